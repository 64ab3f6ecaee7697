"""The law of this file: a busy gateway stays busy for a time, and not for a number of tries.

So a client that comes back too early is refused again, as it would be; one that waits as long as it
was told finds it free, because what is stated never ends before the time is up.
"""

from __future__ import annotations

import math
import time
from datetime import UTC, datetime
from typing import ClassVar, Literal

from surefoot.testing import Answer, Exchange, Step, Throttle

__all__ = ["Busy", "States"]

States = Literal["seconds", "date", "nonsense", "nothing"]
"""What a refusal states as its Retry-After."""


class Busy(Step):
    """429 from the first request on until `seconds` have passed, then the sound answer.

    Declared with `repeat=True`, it answers every attempt. The tool runs only for the answer.

    Args:
        seconds: for how long; a date is in whole seconds, so it lasts up to a second longer.
        states: the Retry-After: the seconds that are left, a date, a word without meaning, or none.
    """

    __slots__ = ("_free_at", "_seconds", "_states", "stated")

    fits: ClassVar = frozenset({"call"})

    def __init__(self, seconds: float, *, states: States) -> None:
        self._seconds = seconds
        self._states: States = states
        self._free_at: float | None = None
        self.stated: dict[int, float] = {}
        """What was asked for: seconds, by the refusal's place in the gateway's journal."""

    async def play(self, exchange: Exchange) -> None:
        """Refuse, or answer once the time is up."""
        # A date is read on the clock of the day, so that clock decides for all of them.
        now = time.time()
        if self._free_at is None:
            free_at = now + self._seconds
            self._free_at = float(math.ceil(free_at)) if self._states == "date" else free_at
        left = self._free_at - now
        if left > 0 and self._states in {"seconds", "date"}:
            whole = self._states == "seconds"
            self.stated[exchange.number] = float(math.ceil(left)) if whole else left
        await (Answer() if left <= 0 else self._refusal(left)).play(exchange)

    def _refusal(self, left: float) -> Throttle:
        match self._states:
            case "seconds":
                return Throttle(math.ceil(left))
            case "date":
                return Throttle(datetime.fromtimestamp(self._free_at or 0.0, UTC))
            case "nonsense":
                return Throttle("soon")
            case "nothing":
                return Throttle()
