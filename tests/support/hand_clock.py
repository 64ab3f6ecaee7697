"""The law of this file: time is what a test says it is, in any thread, and no loop is needed."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

__all__ = ["HandClock"]


class HandClock:
    """Time that a test moves."""

    def __init__(self, start: datetime = datetime(2026, 11, 30, tzinfo=UTC)) -> None:
        self.seconds = 0.0
        self._start = start

    def move(self, seconds: float) -> None:
        """Let time pass at once."""
        self.seconds += seconds

    def monotonic(self) -> float:
        """Seconds that were moved so far."""
        return self.seconds

    def now(self) -> datetime:
        """The time of day."""
        return self._start + timedelta(seconds=self.seconds)

    async def sleep(self, seconds: float) -> None:
        """Move by as much."""
        self.move(seconds)
