"""The law of this file: time and chance reach the transports as arguments, and only from here.

``SystemClock`` is the one place that reads a clock or sleeps; ``surefoot.testing.FakeClock`` is the
other implementation.
"""

from __future__ import annotations

import time
from datetime import UTC, datetime
from random import random as chance  # noqa: TID251 - this is where chance enters, too
from typing import Protocol

import anyio

__all__ = ["Clock", "SystemClock", "chance"]


class Clock(Protocol):
    """**Protocol**: what the transports know of time."""

    def monotonic(self) -> float:
        """Seconds from a fixed point; never goes back."""
        ...

    def now(self) -> datetime:
        """The time of day, aware, in UTC."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Return after ``seconds``; cancellable, and never early."""
        ...


class SystemClock:
    """The machine's own clock, on asyncio and trio alike."""

    __slots__ = ()

    monotonic = staticmethod(time.monotonic)

    def now(self) -> datetime:
        """The time of day in UTC."""
        return datetime.now(UTC)  # noqa: TID251 - the one place

    async def sleep(self, seconds: float) -> None:
        """Sleep on whichever event loop runs, and never return before the clock says so.

        An event loop may wake a timer up to its own resolution early, and a stated wait is never
        cut short (R36), so the rest is slept as well.
        """
        end = time.monotonic() + seconds
        await anyio.sleep(seconds)
        while (left := end - time.monotonic()) > 0:  # noqa: ASYNC110 - no event says it is time
            await anyio.sleep(left)
