"""D14. A two-digit year by the 50-year rule of RFC 9110 section 5.6.7, on clocks of any century."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.http_dates import rfc850
from surefoot.policy import parse_http_date, parse_retry_after


def utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


@pytest.mark.parametrize(
    ("now", "meant"),
    [
        ("2026-11-30T00:00:00", "2026-06-21T07:28:00"),
        ("2026-11-30T00:00:00", "2076-11-30T00:00:00"),
        ("2026-11-30T00:00:00", "1976-11-30T00:00:01"),
        ("2026-11-30T00:00:00", "1999-12-31T23:59:59"),
        ("2026-11-30T00:00:00", "2000-02-29T00:00:00"),
        ("2099-06-01T12:00:00", "2101-01-01T00:00:00"),
        ("2099-06-01T12:00:00", "2099-12-31T23:59:59"),
        ("2099-06-01T12:00:00", "2149-06-01T12:00:00"),
        ("2099-06-01T12:00:00", "2049-06-01T12:00:01"),
        ("2099-06-01T12:00:00", "2098-01-01T00:00:00"),
        ("2000-01-01T00:00:00", "1999-12-31T23:59:59"),
        ("2000-01-01T00:00:00", "2050-01-01T00:00:00"),
        ("2000-01-01T00:00:00", "1950-01-01T00:00:01"),
        ("2060-01-01T00:00:00", "2070-05-05T05:05:05"),
        ("2024-02-29T12:00:00", "2074-02-28T23:59:59"),
        ("2024-02-29T12:00:00", "1974-03-01T00:00:00"),
        ("2024-02-29T12:00:00", "2024-02-29T12:00:07"),
        ("1970-01-01T00:00:00", "2019-12-31T23:59:59"),
    ],
)
def test_the_year_is_the_latest_that_is_not_more_than_fifty_years_ahead(
    now: str, meant: str
) -> None:
    """D14. Exactly fifty years is not more than fifty; one second above it is a century earlier."""
    assert parse_http_date(rfc850(utc(meant)), now=utc(now)) == utc(meant)


@pytest.mark.parametrize(
    ("now", "other"),
    [
        ("2026-11-30T00:00:00", "2076-11-30T00:00:01"),
        ("2026-11-30T00:00:00", "1976-11-30T00:00:00"),
        ("2099-06-01T12:00:00", "2149-06-01T12:00:01"),
        ("2099-06-01T12:00:00", "2001-01-01T00:00:00"),
        ("2024-02-29T12:00:00", "2074-03-01T00:00:00"),
        ("2026-11-30T00:00:00", "1926-11-30T00:00:00"),
        ("2026-11-30T00:00:00", "2126-11-30T00:00:00"),
    ],
)
def test_a_weekday_of_another_century_makes_it_malformed(now: str, other: str) -> None:
    """D14. The rule places the year; the weekday only has to agree, it never moves the year."""
    assert parse_http_date(rfc850(utc(other)), now=utc(now)) is None


@pytest.mark.parametrize(
    ("now", "text"),
    [
        ("2060-01-01T00:00:00", "Monday, 29-Feb-00 00:00:00 GMT"),
        ("2060-01-01T00:00:00", "Tuesday, 29-Feb-00 00:00:00 GMT"),
        ("2026-11-30T00:00:00", "Friday, 29-Feb-26 00:00:00 GMT"),
        ("2026-11-30T00:00:00", "Tuesday, 31-Jun-26 00:00:00 GMT"),
        ("2026-11-30T00:00:00", "Monday, 00-Jun-26 00:00:00 GMT"),
    ],
)
def test_a_day_that_its_year_does_not_have_is_malformed(now: str, text: str) -> None:
    """D14. 2100 is no leap year, and a day that does not exist is not looked for elsewhere."""
    assert parse_http_date(text, now=utc(now)) is None


def test_a_leap_second_counts_towards_the_fifty_years() -> None:
    """D14. 23:59:60 is one second later than 23:59:59, on the edge too."""
    now = utc("2026-12-31T23:59:59")
    edge = parse_http_date("Thursday, 31-Dec-76 23:59:59 GMT", now=now)
    assert edge == utc("2076-12-31T23:59:59")
    assert parse_http_date("Thursday, 31-Dec-76 23:59:60 GMT", now=now) is None
    passed = parse_http_date("Friday, 31-Dec-76 23:59:60 GMT", now=now)
    assert passed == utc("1977-01-01T00:00:00")


def test_fifty_years_are_counted_in_utc() -> None:
    """D14. Late on New Year's Eve in New York it is already next year."""
    eve = datetime(2026, 12, 31, 23, tzinfo=timezone(timedelta(hours=-5)))
    meant = utc("2077-01-01T03:59:59")
    assert parse_http_date(rfc850(meant), now=eve) == meant


@pytest.mark.parametrize(
    "now",
    [
        datetime.min.replace(tzinfo=UTC),
        datetime.min.replace(tzinfo=timezone(timedelta(hours=14))),
        datetime.max.replace(tzinfo=UTC),
        datetime.max.replace(tzinfo=timezone(timedelta(hours=-12))),
        datetime(9960, 1, 1, tzinfo=UTC),
    ],
    ids=str,
)
@pytest.mark.parametrize("digits", range(0, 100, 7))
def test_a_clock_at_the_edge_of_the_calendar_never_raises(now: datetime, digits: int) -> None:
    """D14. No value raises or overflows, not even beside the first and the last year."""
    for text in (
        f"Friday, 01-Jan-{digits:02} 00:00:00 GMT",
        "Mon, 01 Jan 0001 00:00:00 GMT",
        "Fri, 31 Dec 9999 23:59:59 GMT",
    ):
        seconds = parse_retry_after(text, now=now)
        assert seconds is None or seconds >= 0


@given(
    now=st.datetimes(
        min_value=datetime(100, 1, 1),  # noqa: DTZ001 - Hypothesis takes naive bounds
        max_value=datetime(9900, 1, 1),  # noqa: DTZ001
        timezones=st.just(UTC),
    ),
    years=st.integers(-49, 49),
    within=st.datetimes(
        min_value=datetime(2001, 1, 1),  # noqa: DTZ001
        max_value=datetime(2001, 12, 31),  # noqa: DTZ001
    ),
)
def test_every_moment_within_forty_nine_years_is_read_as_itself(
    now: datetime, years: int, within: datetime
) -> None:
    """D14. Whatever the century of the clock."""
    meant = within.replace(year=now.year + years, microsecond=0, tzinfo=UTC)
    assert parse_http_date(rfc850(meant), now=now) == meant
