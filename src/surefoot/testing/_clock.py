"""The law of this file: virtual time moves when it is told to, and only then.

Nothing here belongs to a loop before somebody sleeps, so that one clock may be built anywhere and
used on asyncio or on trio.
"""

from __future__ import annotations

import heapq
import math
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import anyio
import anyio.lowlevel

from surefoot.testing._checks import a_bool, a_count, a_number_of_seconds

__all__ = ["FakeClock"]

_START = datetime(2026, 1, 1, tzinfo=UTC)
_TURNS = 25
"""Turns of the loop that those who were woken are given to do their work and to sleep again."""
_EXACT = 1e-9
"""Seconds within which two moments are the same: 0.1 + 0.2 has to reach 0.3."""


@dataclass(order=True, slots=True)
class _Sleeper:
    wakes_at: float
    place: int
    woken: anyio.Event = field(compare=False)


class FakeClock:
    """A clock whose time is moved by hand, or by those who sleep on it.

    It has what surefoot asks of a clock: `monotonic()`, `now()` and `sleep()`.

    By default a sleep returns at once, and time has moved on by its length; this suits one sleeper
    at a time, as sleepers side by side would each move time by their own. With `auto=False` a sleep
    ends when `advance` has moved time that far, whoever sleeps beside it.

    Args:
        auto: whether sleeping moves time.
        start: what `now()` says at first; an aware moment.
        monotonic: what `monotonic()` says at first, in seconds.

    Raises:
        TypeError: an option has the wrong type.
        ValueError: `start` has no time zone.

    """

    def __init__(
        self, *, auto: bool = True, start: datetime = _START, monotonic: float = 1000.0
    ) -> None:
        if not isinstance(start, datetime):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError(f"FakeClock(start) takes a datetime, not {type(start).__name__}")
        if start.tzinfo is None:
            raise ValueError("FakeClock(start) takes a moment with a time zone")
        self._auto = a_bool("FakeClock(auto)", auto)
        self._wall = start.astimezone(UTC)
        self._first = a_number_of_seconds("FakeClock(monotonic)", monotonic)
        self._elapsed = 0.0
        self._sleeps: list[float] = []
        self._sleepers: list[_Sleeper] = []
        self._places = 0

    def __repr__(self) -> str:
        return f"<FakeClock at {self._elapsed:g} s, {self.sleeping} asleep>"

    @property
    def sleeps(self) -> tuple[float, ...]:
        """Every length that was asked for, in seconds, in the order in which the sleeps began."""
        return tuple(self._sleeps)

    @property
    def sleeping(self) -> int:
        """How many tasks sleep on this clock now."""
        return len(self._sleepers)

    def monotonic(self) -> float:
        """Seconds that never go back."""
        return self._first + self._elapsed

    def now(self) -> datetime:
        """The wall clock: an aware moment in UTC."""
        return self._wall + timedelta(seconds=self._elapsed)

    def set_wall(self, seconds: float) -> None:
        """Let the wall clock jump, forward or back, as clocks that are corrected do.

        Nobody wakes by it, and `monotonic()` does not notice.
        """
        self._wall += timedelta(seconds=seconds)

    async def sleep(self, seconds: float) -> None:
        """Sleep in virtual time. Zero and less give way to others once, and move no time.

        Raises:
            ValueError: the length is NaN or infinite, which a real clock sleeps on for ever.

        """
        if not math.isfinite(seconds):
            raise ValueError("a sleep of NaN or infinite seconds would never end")
        self._sleeps.append(seconds)
        await anyio.lowlevel.checkpoint()
        if seconds <= 0:
            return
        if self._auto:
            self._elapsed += seconds
            return
        self._places += 1
        sleeper = _Sleeper(self._elapsed + seconds, self._places, anyio.Event())
        heapq.heappush(self._sleepers, sleeper)
        try:
            await sleeper.woken.wait()
        finally:
            if sleeper in self._sleepers:
                self._sleepers.remove(sleeper)
                heapq.heapify(self._sleepers)

    async def advance(self, seconds: float) -> None:
        """Move time on, and wake whoever is due by then, in order.

        Each one is given a few turns of the loop at its own moment, so that who sleeps again on the
        way is woken again on the way. Work that waits for a socket may need more time than that.
        """
        end = self._elapsed + a_number_of_seconds("advance(seconds)", seconds)
        await self._settle()
        while self._sleepers and self._sleepers[0].wakes_at <= end + _EXACT:
            sleeper = heapq.heappop(self._sleepers)
            self._elapsed = max(self._elapsed, sleeper.wakes_at)
            sleeper.woken.set()
            await self._settle()
        self._elapsed = max(self._elapsed, end)
        await self._settle()

    async def until_sleeping(
        self,
        count: int = 1,
        *,
        timeout: float = 5.0,  # noqa: ASYNC109  (one word for a bound in all doubles)
    ) -> None:
        """Wait, in real time, until at least so many tasks sleep on this clock.

        Raises:
            TimeoutError: they did not within `timeout` real seconds.

        """
        a_count("until_sleeping(count)", count)
        end = time.monotonic() + timeout
        while self.sleeping < count:
            if time.monotonic() >= end:
                raise TimeoutError(f"{self.sleeping} tasks sleep after {timeout:g} s, not {count}")
            await anyio.sleep(0.001)

    async def _settle(self) -> None:
        for _ in range(_TURNS):
            await anyio.lowlevel.checkpoint()
