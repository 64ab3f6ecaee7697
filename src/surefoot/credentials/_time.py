"""The law of this file: time reaches a provider as an argument, and is read and slept through here.

The room above has a clock of its own; anything with its methods serves here too, and so does
``surefoot.testing.FakeClock``.
"""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import Protocol

import anyio

__all__ = ["Clock", "MachineClock"]


class Clock(Protocol):
    """**Protocol**: what a provider knows of time."""

    def monotonic(self) -> float:
        """Seconds from a fixed point; never goes back."""
        ...

    def now(self) -> datetime:
        """The time of day, aware, in UTC."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Return after ``seconds``; cancellable."""
        ...


class MachineClock:
    """The machine's own clock, on asyncio and trio alike."""

    __slots__ = ()

    monotonic = staticmethod(time.monotonic)

    def now(self) -> datetime:
        """The time of day in UTC."""
        return datetime.now(UTC)  # noqa: TID251 - the one place of this room that reads it

    async def sleep(self, seconds: float) -> None:
        """Sleep on whichever event loop runs."""
        await anyio.sleep(seconds)
