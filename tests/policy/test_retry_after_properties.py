"""R87, D14. Whatever a server sends as Retry-After: no raise, nothing infinite or negative."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from math import isfinite

from hypothesis import assume, example, given
from hypothesis import strategies as st

from support.http_dates import asctime, imf_fixdate, spellings
from surefoot.policy import parse_http_date, parse_retry_after

zones = st.integers(-14 * 60, 14 * 60).map(lambda minutes: timezone(timedelta(minutes=minutes)))
clocks = st.datetimes(timezones=st.just(UTC) | zones)
moments = st.datetimes(timezones=st.just(UTC)).map(lambda when: when.replace(microsecond=0))

_DAYS = "Mon Tue Wed Thu Fri Sat Sun Monday Tuesday Wednesday Thursday Friday Saturday Sunday"
_MONTHS = "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec"
_words = st.sampled_from([*_DAYS.split(), *_MONTHS.split(), "GMT", "UTC", "gmt", "", "-", "+1"])
_figures = st.integers(-1, 2100).map(str) | st.sampled_from(["00", "29", "30", "31", "60", "0001"])
_gaps = st.sampled_from([" ", "  ", ", ", ",", "-", ":", "\t", "", "\n", "/"])

scraps = st.lists(st.one_of(_words, _figures, _gaps), max_size=14).map("".join)
"""Texts put together from what dates are made of."""


@st.composite
def dented(draw: st.DrawFn) -> str:
    """A good date in which one character was replaced, doubled or lost."""
    text = draw(moments.flatmap(lambda when: st.sampled_from(sorted(spellings(when)))))
    at = draw(st.integers(0, len(text) - 1))
    return text[:at] + draw(st.text(max_size=2)) + text[at + 1 :]


@given(value=st.none() | st.text() | scraps | dented() | st.text("0123456789 \t,"), now=clocks)
@example(value="9" * 4301, now=datetime(2026, 1, 1, tzinfo=UTC))
@example(value="\ud800", now=datetime(2026, 1, 1, tzinfo=UTC))
@example(value="\x00" * 70000, now=datetime(2026, 1, 1, tzinfo=UTC))
def test_no_value_raises_and_every_wait_is_finite_and_not_negative(
    value: str | None, now: datetime
) -> None:
    """R87, D14. The one promise that a sleep depends on."""
    seconds = parse_retry_after(value, now=now)
    assert seconds is None or (isfinite(seconds) and seconds >= 0)


@given(value=st.text() | scraps | dented(), now=clocks)
def test_nothing_outside_the_grammar_is_read(value: str, now: datetime) -> None:
    """D14. What was accepted can be written again, to the character, from what it was read as."""
    if parse_retry_after(value, now=now) is None:
        return
    core = value.strip(" \t")
    if core.isascii() and core.isdigit():
        return
    when = parse_http_date(core, now=now)
    assert when is not None
    assert core in spellings(when)


@given(when=moments, now=clocks, pad=st.text(" \t", max_size=3))
def test_every_date_of_the_grammar_is_read(when: datetime, now: datetime, pad: str) -> None:
    """R87, D14. The counterpart: strict must not mean deaf."""
    distance = max(0.0, (when - now).total_seconds())
    for text in (imf_fixdate(when), asctime(when), asctime(when, fill="0")):
        assert parse_retry_after(pad + text + pad, now=now) == distance


@given(seconds=st.integers(0, 2**53), zeros=st.integers(0, 40), now=clocks)
def test_every_number_of_seconds_is_read_exactly(seconds: int, zeros: int, now: datetime) -> None:
    """R87, D14. Leading zeros are digits."""
    assert parse_retry_after("0" * zeros + str(seconds), now=now) == seconds


@given(when=moments, now=clocks, later=st.integers(0, 10**6))
def test_a_later_clock_never_makes_a_date_longer(when: datetime, now: datetime, later: int) -> None:
    """D14. A four-digit date means one moment."""
    assume(now < datetime(9000, 1, 1, tzinfo=UTC))
    first = parse_retry_after(imf_fixdate(when), now=now)
    second = parse_retry_after(imf_fixdate(when), now=now + timedelta(seconds=later))
    assert first is not None
    assert second is not None
    assert second <= first
