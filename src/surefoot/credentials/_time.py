"""The law of this file: time reaches a provider as an argument, and is read and slept through here.

The room above has a clock of its own; anything with its ``monotonic`` and ``sleep`` serves here
too, ``surefoot.testing.FakeClock`` among them.
"""

from __future__ import annotations

import time
from typing import Protocol

import anyio

__all__ = ["Clock", "MachineClock"]


class Clock(Protocol):
    """**Protocol**: what a provider knows of time."""

    def monotonic(self) -> float:
        """Seconds from a fixed point; never goes back."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Return after ``seconds``; cancellable."""
        ...


class MachineClock:
    """The machine's own clock, on asyncio and trio alike."""

    __slots__ = ()

    monotonic = staticmethod(time.monotonic)

    async def sleep(self, seconds: float) -> None:
        """Sleep on whichever event loop runs."""
        await anyio.sleep(seconds)
