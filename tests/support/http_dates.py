"""The law of this file: HTTP dates are written from RFC 9110 alone, never by the code under test.

The three forms of section 5.6.7, and every text that means one moment.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

__all__ = ["asctime", "imf_fixdate", "rfc850", "spellings"]

_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


def imf_fixdate(when: datetime, *, time: str | None = None) -> str:
    """``Sun, 06 Nov 1994 08:49:37 GMT``; ``time`` writes another time of day."""
    when = when.astimezone(UTC)
    day, month = _DAYS[when.weekday()][:3], _MONTHS[when.month - 1]
    return f"{day}, {when.day:02} {month} {when.year:04} {time or _time(when)} GMT"


def rfc850(when: datetime, *, time: str | None = None) -> str:
    """``Sunday, 06-Nov-94 08:49:37 GMT``: the year has two digits."""
    when = when.astimezone(UTC)
    day, month = _DAYS[when.weekday()], _MONTHS[when.month - 1]
    return f"{day}, {when.day:02}-{month}-{when.year % 100:02} {time or _time(when)} GMT"


def asctime(when: datetime, *, time: str | None = None, fill: str = " ") -> str:
    """``Sun Nov  6 08:49:37 1994``; ``fill`` stands before a day of one digit."""
    when = when.astimezone(UTC)
    day, month = _DAYS[when.weekday()][:3], _MONTHS[when.month - 1]
    return f"{day} {month} {when.day:{fill}>2} {time or _time(when)} {when.year:04}"


def spellings(when: datetime) -> set[str]:
    """Every text of the grammar that can mean ``when``, the second 60 before it included."""
    texts = {form(when) for form in (imf_fixdate, rfc850, asctime)} | {asctime(when, fill="0")}
    day = when.astimezone(UTC)
    if (day.hour, day.minute, day.second) == (0, 0, 0) and day > datetime(1, 1, 2, tzinfo=UTC):
        before = day - timedelta(seconds=1)
        texts |= {form(before, time="23:59:60") for form in (imf_fixdate, rfc850, asctime)}
        texts.add(asctime(before, time="23:59:60", fill="0"))
    return texts


def _time(when: datetime) -> str:
    return f"{when.hour:02}:{when.minute:02}:{when.second:02}"
