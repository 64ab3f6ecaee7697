"""The law of this file: `Retry-After` is read exactly as RFC 9110 writes it, or it is absent.

A reader that is more generous is worse than none: `int()` takes Arabic digits, `+5` and `1_0`;
`float()` takes `inf` and `nan`, and a sleep on those never ends; date parsers take `Sep 2027`. A
value that is not in the grammar degrades to the caller's own backoff (R87, D14). No input raises.
"""

from __future__ import annotations

import re
import sys
from datetime import UTC, datetime, timedelta
from typing import Final

__all__ = ["parse_http_date", "parse_retry_after"]

_DAYS: Final = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_LONG_DAYS: Final = (
    "Monday",
    "Tuesday",
    "Wednesday",
    "Thursday",
    "Friday",
    "Saturday",
    "Sunday",
)
_MONTHS: Final = (
    "Jan",
    "Feb",
    "Mar",
    "Apr",
    "May",
    "Jun",
    "Jul",
    "Aug",
    "Sep",
    "Oct",
    "Nov",
    "Dec",
)

_SECONDS: Final = re.compile(r"[0-9]+")
_TIME: Final = r"(?P<h>[0-9]{2}):(?P<mi>[0-9]{2}):(?P<s>[0-9]{2})"
_MONTH: Final = "(?P<mo>" + "|".join(_MONTHS) + ")"
_IMF_FIXDATE: Final = re.compile(
    f"(?P<wd>{'|'.join(_DAYS)}), (?P<d>[0-9]{{2}}) {_MONTH} (?P<y>[0-9]{{4}}) {_TIME} GMT"
)
_RFC850: Final = re.compile(
    f"(?P<wd>{'|'.join(_LONG_DAYS)}), (?P<d>[0-9]{{2}})-{_MONTH}-(?P<y>[0-9]{{2}}) {_TIME} GMT"
)
_ASCTIME: Final = re.compile(
    f"(?P<wd>{'|'.join(_DAYS)}) {_MONTH} (?P<d>[0-9]{{2}}| [0-9]) {_TIME} (?P<y>[0-9]{{4}})"
)

_LONGEST_DATE: Final = len("Wednesday, 30-Nov-26 23:59:59 GMT")
_YEARS_AHEAD: Final = 50
_LAST_HOUR: Final = 23
_LAST_MINUTE: Final = 59
_LEAP_SECOND: Final = 60


def parse_retry_after(value: str | None, *, now: datetime) -> float | None:
    """Say how many seconds from ``now`` a `Retry-After` field value asks to wait.

    Args:
        value: The field value, or ``None`` where the header was not sent. Surrounding spaces and
            tabs are trimmed. Several header lines joined by a comma are malformed.
        now: An aware time: what a date is measured from, and the centre of the 50-year rule.

    Returns:
        Seconds, finite and never negative (a past date is 0.0; a number that no float holds is the
        largest float, which fits into no budget), or ``None`` for an absent or malformed value:
        then use your own backoff.

    Raises:
        ValueError: ``now`` has no time zone. No ``value`` raises.

    Source: RFC 9110 sections 10.2.3 and 5.6.7; R87, D14.
    """
    if now.utcoffset() is None:
        msg = "now: a time zone is needed, for example datetime.now(UTC)"
        raise ValueError(msg)
    if value is None:
        return None
    value = value.strip(" \t")
    if _SECONDS.fullmatch(value):
        return min(float(value), sys.float_info.max)
    when = parse_http_date(value, now=now)
    if when is None:
        return None
    return max(0.0, (when - now).total_seconds())


def parse_http_date(value: str, *, now: datetime) -> datetime | None:
    """Read one of the three HTTP date forms, or return ``None`` for anything else.

    The weekday must be the date's own (RFC 5322 section 3.3), the zone is the literal ``GMT``, a
    two-digit year that looks more than 50 years ahead of ``now`` is in the past (RFC 9110 section
    5.6.7), and a leap second exists only at 23:59:60.
    """
    if len(value) > _LONGEST_DATE:
        return None
    match = _IMF_FIXDATE.fullmatch(value) or _ASCTIME.fullmatch(value)
    two_digits = match is None
    if match is None:
        match = _RFC850.fullmatch(value)
    if match is None:
        return None
    year, day = int(match["y"]), int(match["d"])
    month = _MONTHS.index(match["mo"]) + 1
    hour, minute, second = int(match["h"]), int(match["mi"]), int(match["s"])
    leap = second == _LEAP_SECOND
    if leap and (hour, minute) != (_LAST_HOUR, _LAST_MINUTE):
        return None
    try:
        if two_digits:
            year = _full_year(year, (month, day, hour, minute, second), now)
        when = datetime(year, month, day, hour, minute, second - leap, tzinfo=UTC)
        if (_LONG_DAYS if two_digits else _DAYS)[when.weekday()] != match["wd"]:
            return None
        return when + timedelta(seconds=leap)
    except (ValueError, OverflowError):
        return None


def _full_year(digits: int, rest: tuple[int, int, int, int, int], now: datetime) -> int:
    """Place a two-digit year: the latest that puts the date at most 50 years ahead of ``now``.

    Written as numbers and not as dates, since the same day 50 years on need not exist.
    """
    ours = now.astimezone(UTC)
    moment = (ours.month, ours.day, ours.hour, ours.minute, ours.second, ours.microsecond)
    horizon = ours.year + _YEARS_AHEAD
    # The century of the horizon, not of today: "01" read in 2099 means 2101.
    year = horizon // 100 * 100 + digits
    return year if (year, *rest) <= (horizon, *moment) else year - 100
