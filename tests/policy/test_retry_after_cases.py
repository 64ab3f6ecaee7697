"""R63, R87, D14. What a Retry-After field asks for, case by case."""

from __future__ import annotations

import json
import sys
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from pathlib import Path
from typing import Any

import pytest

from support.http_dates import imf_fixdate
from surefoot.policy import parse_http_date, parse_retry_after

LARGEST = sys.float_info.max

_TABLE: dict[str, Any] = json.loads(
    (Path(__file__).parents[1] / "data" / "retry_after_cases.json").read_text("utf-8")
)
NOW = datetime.fromisoformat(_TABLE["now"])
CASES: list[dict[str, Any]] = _TABLE["cases"]
VALID = [case for case in CASES if case["valid"]]
INVALID = [case for case in CASES if not case["valid"]]


def short(case: dict[str, Any]) -> str:
    return ascii(case["input"])[1:40]


def test_the_table_is_whole() -> None:
    """D14. The positive control: a table that did not load would pass every test below."""
    assert len(CASES) == _TABLE["count"] == 135
    assert len(VALID) > 30
    assert len(INVALID) > 90


@pytest.mark.parametrize("case", VALID, ids=short)
def test_what_the_grammar_allows_is_read_to_the_second(case: dict[str, Any]) -> None:
    """R87, D14. Digits are seconds, a date is the distance to it, and never less than nothing."""
    seconds = parse_retry_after(case["input"], now=NOW)
    if case["kind"] == "http-date":
        date = datetime.fromisoformat(case["date"])
        assert parse_http_date(case["input"].strip(" \t"), now=NOW) == date
        assert seconds == max(0.0, (date - NOW).total_seconds())
    elif case["seconds"] is None or case["seconds"] > LARGEST:
        assert seconds == LARGEST
    else:
        assert seconds == case["seconds"]


@pytest.mark.parametrize("case", INVALID, ids=short)
def test_what_the_grammar_does_not_allow_is_absent(case: dict[str, Any]) -> None:
    """R87, D14. A malformed header degrades to our own backoff; it is neither zero nor an error."""
    assert parse_retry_after(case["input"], now=NOW) is None


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        (None, None),
        ("0", 0.0),
        ("000", 0.0),
        (" 5 ", 5.0),
        ("\t5", 5.0),
        ("\t 5 \t", 5.0),
        ("86400", 86400.0),
        ("9999999999", 9999999999.0),
        ("9" * 400, LARGEST),
        ("9" * 5000, LARGEST),
        ("0" * 5000 + "7", 7.0),
        ("inf", None),
        ("Infinity", None),
        ("1e400", None),
        ("nan", None),
        ("-inf", None),
        ("\N{ARABIC-INDIC DIGIT FIVE}", None),
        ("\N{SUPERSCRIPT TWO}", None),
        ("\xd9\xa5", None),
        ("+5", None),
        ("1_0", None),
        ("0x10", None),
        ("1e3", None),
        ("5,", None),
        ("60, 5", None),
        ("5\n", None),
        ("\n5", None),
        ("5\x0b", None),
        ("\u20035", None),
        ("5.0", None),
        ("5 s", None),
        ("Jan 1 2030", None),
        ("Sep 2027", None),
        ("Wed, 31 Feb 2026 00:00:00 GMT", None),
        ("Sat, 31 Dec 2016 23:59:60 GMT", 0.0),
        ("Thu, 31 Dec 2026 23:59:60 GMT", 32 * 86400.0),
        ("Thu, 31 Dec 2026 23:58:60 GMT", None),
        ("Thu, 31 Dec 2026 22:59:60 GMT", None),
        ("Thu, 31 Dec 2026 23:59:61 GMT", None),
        ("Fri, 31 Dec 9999 23:59:60 GMT", None),
        ("Mon, 30 Nov 2026 00:00:07 GMT", 7.0),
        ("Monday, 30-Nov-26 00:00:07 GMT", 7.0),
        ("Mon Nov 30 00:00:07 2026", 7.0),
        ("Tue, 30 Nov 2026 00:00:07 GMT", None),
        ("Tuesday, 30-Nov-26 00:00:07 GMT", None),
        ("Tue Nov 30 00:00:07 2026", None),
        ("Mon, 30-Nov-26 00:00:07 GMT", None),
        ("Monday, 30 Nov 2026 00:00:07 GMT", None),
        ("Mon, 30 Nov 2026 00:00:07 GMT, 5", None),
    ],
    ids=lambda value: ascii(value)[:40],
)
def test_values_that_other_readers_got_wrong(value: str | None, seconds: float | None) -> None:
    """R87, D14. ``int``, ``float`` and free date parsers take them; the grammar does not."""
    assert parse_retry_after(value, now=NOW) == seconds


def test_a_date_is_measured_to_a_fraction_of_our_own_second() -> None:
    """D14. Our clock has fractions and the date has none: the whole distance counts."""
    now = NOW + timedelta(milliseconds=250)
    assert parse_retry_after(imf_fixdate(NOW + timedelta(seconds=2)), now=now) == 1.75
    assert parse_retry_after(imf_fixdate(NOW), now=now) == 0.0


@pytest.mark.parametrize("hours", [-12, -5, 1, 14])
def test_the_zone_of_our_clock_changes_nothing(hours: int) -> None:
    """D14. Dates are UTC, whatever zone the clock speaks."""
    now = NOW.astimezone(timezone(timedelta(hours=hours)))
    for value in (imf_fixdate(NOW + timedelta(seconds=9)), "Monday, 30-Nov-26 00:00:09 GMT"):
        assert parse_retry_after(value, now=now) == 9.0
    assert parse_retry_after("9", now=now) == 9.0


class NoOffset(tzinfo):
    """A zone that does not know its offset: Python calls such a time naive."""

    def utcoffset(self, _dt: datetime | None, /) -> None:
        return None

    def dst(self, _dt: datetime | None, /) -> None:
        return None

    def tzname(self, _dt: datetime | None, /) -> str:
        return "?"


@pytest.mark.parametrize("zone", [None, NoOffset()])
@pytest.mark.parametrize("value", [None, "5", "nonsense", "Mon, 30 Nov 2026 00:00:07 GMT"])
def test_a_clock_without_a_zone_is_refused_whatever_the_value(
    value: str | None, zone: tzinfo | None
) -> None:
    """R71, D14. A mistake of the caller shows at once, and not only when a date arrives."""
    with pytest.raises(ValueError, match=r"^now: a time zone is needed"):
        parse_retry_after(value, now=datetime(2026, 11, 30, tzinfo=zone))
    assert parse_retry_after("5", now=datetime(2026, 11, 30, tzinfo=UTC)) == 5.0
