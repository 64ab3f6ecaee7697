"""The law of this file: time is a number that a test sets, and nothing waits for anything else."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import Any

import anyio

__all__ = ["Loop", "LoopClock"]


class Loop(asyncio.SelectorEventLoop):
    """An event loop that never waits: its time is told."""

    now: float = 0.0

    def time(self) -> float:
        """The time that was told."""
        return self.now

    def settle(self) -> None:
        """Let everything happen that can happen at this time."""
        held: Any = self
        for _ in range(1000):
            self.call_soon(self.stop)
            self.run_forever()
            if not held._ready:
                return
        raise AssertionError("it goes on for ever")


class LoopClock:
    """The loop's time as a clock."""

    def __init__(self, loop: Loop) -> None:
        self._loop = loop

    def monotonic(self) -> float:
        """Seconds, as the loop counts them."""
        return self._loop.now

    def now(self) -> datetime:
        """A day that does not end."""
        return datetime(2026, 1, 1, tzinfo=UTC)

    async def sleep(self, seconds: float) -> None:
        """Sleep until the loop was told that so much time has passed."""
        await anyio.sleep(seconds)
