"""R35, R37, R43, R87, D5, D14, D34. Kind c of the bug reports: what `Retry-After` may say.

Digits, or one of three forms of a date; anything else was never said, and is recorded as that. What
was said is waited whole, or not at all and told. The values go over a real connection, because an
HTTP library hands them on as text that means more to Python than to HTTP.
"""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from typing import Any, Final

import pytest

from support.exchanges import FAMILIES, Exchanged, exchange
from surefoot import Gateway, RateLimitedError, Retry
from surefoot.testing import FakeClock, FaultyGateway, RecordingSink, Throttle

pytestmark = [pytest.mark.both_majors, pytest.mark.anyio]

NOW: Final = datetime(2026, 1, 1, tzinfo=UTC)
"""The client's clock; the gateway states no `Date` unless a test says so."""

ENDLESS: Final = Retry(max_wait=None, spread=0)


def lowest() -> float:
    """Chance that adds nothing."""
    return 0.0


async def _throttled(
    family: str, step: Throttle, *, retry: Retry = ENDLESS
) -> tuple[Exchanged, tuple[float, ...]]:
    """One refusal, then a sound answer; and what was slept."""
    clock, sink = FakeClock(start=NOW), RecordingSink()
    with FaultyGateway() as faulty:
        faulty.script("charge", step)
        gateway = Gateway(faulty.url, retry=retry, clock=clock, draw=lowest, evidence=sink)
        told = await exchange(gateway, faulty, sink, family=family)
    return told, clock.sleeps


def _until(year: int, *rest: int) -> float:
    return (datetime(year, *rest, tzinfo=UTC) - NOW).total_seconds()


NOT_FINITE: Final[dict[str, bytes]] = {
    word: word.encode()
    for word in ("inf", "Infinity", "1e400", "nan", "NaN", "-inf", "+inf", "1e3", "5.0", "5.", ".5")
}
NO_DIGITS: Final[dict[str, bytes]] = {
    "an Arabic-Indic digit": b"\xd9\xa5",
    "a full-width digit": b"\xef\xbc\x95",
    "a superscript in Latin-1": b"\xb2",
    "a superscript in UTF-8": b"\xc2\xb2",
    "a sign": b"+5",
    "a minus": b"-5",
    "a minus before zero": b"-0",
    "an underscore": b"1_0",
    "hexadecimal": b"0x10",
    "a unit": b"5s",
    "words": b"soon",
    "quotes": b'"5"',
    "a comma": b"5,",
    "two numbers": b"5, 60",
    "a blank inside": b"1 0",
    "a no-break space": b"5\xc2\xa0",
    "nothing": b"",
}
NO_DATES: Final[dict[str, bytes]] = {
    name: name.encode()
    for name in (
        "Wed, 31 Feb 2026 07:28:00 GMT",
        "Sun, 29 Feb 2026 07:28:00 GMT",
        "Jan 1 2030",
        "Sep 2027",
        "2027-01-01T00:00:00Z",
        "Fri, 01 Jan 2027 00:00:00 UTC",
        "Fri, 01 Jan 2027 00:00:00 +0000",
        "Fri, 01 Jan 2027 00:00:00",
        "Fri, 01 Jan 2027 24:00:00 GMT",
        "Fri, 01 Jan 2027 12:00:60 GMT",
        "Thu, 01 Jan 2027 00:00:00 GMT",
        "Fri, 1 Jan 2027 00:00:00 GMT",
        "Fri, 01 Jan 27 00:00:00 GMT",
        "fri, 01 jan 2027 00:00:00 gmt",
        "Friday, 01-Jan-2027 00:00:00 GMT",
        "Sun Nov 6 08:49:37 2027",
    )
}
TWO_LINES: Final[dict[str, tuple[Any, ...]]] = {"two lines": (60, 5), "the same twice": (5, 5)}

MALFORMED: Final[dict[str, Any]] = {**NOT_FINITE, **NO_DIGITS, **NO_DATES, **TWO_LINES}


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("said", MALFORMED)
async def test_what_means_nothing_was_never_said(said: str, family: str) -> None:
    """R87, D14, C11, C13 and C15 of the bug reports. Our own wait, and the record says so."""
    told, slept = await _throttled(family, Throttle(MALFORMED[said]))
    assert (told.text, len(told.sends)) == ("charged 1", 2)
    assert told.column("retry_after_malformed") == [True, False]
    assert told.column("retry_after_seconds") == [None, None]
    assert slept == (0.1,)


async def test_milliseconds_of_nobodys_standard_are_not_read() -> None:
    """D14, C11 of the bug reports. Only the header of the standard is."""
    headers = {"retry-after-ms": "inf", "x-retry-after": "nan", "x-ratelimit-reset": "9" * 30}
    told, slept = await _throttled(FAMILIES[0], Throttle(headers=headers))
    assert told.column("retry_after_malformed") == [False, False]
    assert slept == (0.1,)


SECONDS: Final[dict[str, tuple[bytes, float]]] = {
    "one": (b"1", 1),
    "blanks around": (b" 5 ", 5),
    "a tab before": (b"\t5", 5),
    "blanks and tabs": (b" \t 5\t ", 5),
    "zeros before": (b"0000000005", 5),
    "a day": (b"86400", 86400),
}
DATES: Final[dict[str, float]] = {
    "Sun, 21 Jun 2026 07:28:00 GMT": _until(2026, 6, 21, 7, 28),
    "Sunday, 21-Jun-26 07:28:00 GMT": _until(2026, 6, 21, 7, 28),
    "Sun Jun 21 07:28:00 2026": _until(2026, 6, 21, 7, 28),
    "Sat Nov  6 08:49:37 2027": _until(2027, 11, 6, 8, 49, 37),
    "Tuesday, 31-Dec-75 23:59:59 GMT": _until(2075, 12, 31, 23, 59, 59),
    "Thu, 31 Dec 2026 23:59:60 GMT": _until(2027, 1, 1),
}
PAST: Final = (
    "Friday, 31-Dec-99 23:59:59 GMT",
    "Sat, 31 Dec 2016 23:59:60 GMT",
    "Wed, 31 Dec 2025 23:59:59 GMT",
    "Sun Nov  6 08:49:37 1994",
    "Mon, 01 Jan 0001 00:00:00 GMT",
)
WELL_FORMED: Final[dict[str, tuple[bytes, float]]] = {
    **SECONDS,
    **{date: (date.encode(), seconds) for date, seconds in DATES.items()},
}


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("said", WELL_FORMED)
async def test_what_was_said_is_waited_to_the_second(said: str, family: str) -> None:
    """R35, D14, C13 and C15 of the bug reports. Each of the three forms, and the right century."""
    value, seconds = WELL_FORMED[said]
    told, slept = await _throttled(family, Throttle(value))
    assert told.text == "charged 1"
    assert told.column("retry_after_malformed") == [False, False]
    assert told.column("retry_after_seconds") == [seconds, None]
    assert slept == (seconds,)


@pytest.mark.parametrize("said", [*PAST, "0", "000"])
async def test_a_moment_that_is_over_is_zero_and_still_no_reason_to_hurry(said: str) -> None:
    """D14, D15, C15 of the bug reports. A floor of half of the first backoff."""
    told, slept = await _throttled(FAMILIES[0], Throttle(said))
    assert told.column("retry_after_seconds") == [0, None]
    assert slept == (0.1,)


@pytest.mark.parametrize("family", FAMILIES)
async def test_a_date_is_measured_by_the_clock_of_the_one_who_wrote_it(family: str) -> None:
    """D34, C15 of the bug reports. A client that is a year late waits ten seconds all the same."""
    headers = {"date": "Mon, 01 Mar 2027 00:00:00 GMT"}
    told, slept = await _throttled(
        family, Throttle("Monday, 01-Mar-27 00:00:10 GMT", headers=headers)
    )
    assert told.column("retry_after_seconds") == [10, None]
    assert slept == (10,)


HUGE: Final[dict[str, tuple[str, float]]] = {
    "a day": ("86400", 86400),
    "a second more than there is": ("11", 11),
    "three hundred years": ("9999999999", 9999999999),
    "beyond 64 bits": ("9" * 20, float("9" * 20)),
    "beyond a float": ("9" * 400, sys.float_info.max),
    "five thousand digits": ("9" * 5000, sys.float_info.max),
    "the last date there is": ("Fri, 31 Dec 9999 23:59:59 GMT", _until(9999, 12, 31, 23, 59, 59)),
    "a leap second after it": ("Fri, 31 Dec 9999 23:59:60 GMT", -1),
}


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("said", HUGE)
async def test_a_wait_beyond_the_budget_is_not_begun_and_not_cut_short(
    said: str, family: str
) -> None:
    """R37, R43, B5, C17 of the bug reports. Nothing slept, one send, and the server's own number.

    The last row is no date at all, because no calendar has the second after it.
    """
    value, seconds = HUGE[said]
    told, slept = await _throttled(family, Throttle(value), retry=Retry())
    if seconds < 0:
        assert told.column("retry_after_malformed") == [True, False]
        return
    assert (told.kind, len(told.sends), slept) == ("rate-limited", 1, ())
    assert told.column("retry_after_seconds") == [pytest.approx(seconds)]
    assert told.outcome["retry_after_seconds"] == pytest.approx(seconds)


@pytest.mark.parametrize("said", ["a day", "five thousand digits", "the last date there is"])
@pytest.mark.parametrize("bound", ["timeout", "caller_timeout", "max_elapsed"])
async def test_our_own_client_raises_it_typed_and_in_no_time(said: str, bound: str) -> None:
    """R45, B6, C17 of the bug reports. Whichever of the budgets it is that has no room for it."""
    value, seconds = HUGE[said]
    clock = FakeClock(start=NOW)
    options: dict[str, Any] = {
        "timeout": {"retry": ENDLESS},
        "caller_timeout": {"retry": ENDLESS, "caller_timeout": 5},
        "max_elapsed": {"retry": Retry(max_wait=None, max_elapsed=5)},
    }[bound]
    with FaultyGateway() as faulty:
        gateway = Gateway(faulty.url, clock=clock, **options)
        async with gateway.session() as session:
            await session.tools()
            faulty.script("charge", Throttle(value))
            patience = 5 if bound == "timeout" else None
            with pytest.raises(RateLimitedError) as caught:
                await session.call("charge", {"amount": 1}, timeout=patience)
    assert caught.value.retry_after == pytest.approx(seconds)
    assert (caught.value.attempts, clock.sleeps) == (1, ())
