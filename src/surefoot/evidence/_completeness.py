"""The law of this file: a run that was read is complete, or it is said in numbers that it is not.

Counting needs a few numbers for each run, however long it is (B13).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["Completeness"]


class Completeness:
    """What is missing of one run, as far as its events tell."""

    __slots__ = ("_declared", "_dropped", "_highest", "_last", "_numbered", "ended", "in_order")

    def __init__(self) -> None:
        self._numbered = 0
        self._highest = 0
        self._last = 0
        self._declared: int | None = None
        self._dropped = 0
        self.ended = False
        """The run's last event is there: nothing more can come."""
        self.in_order = True
        """Every event had a higher number than the one before."""

    def take(self, event: Mapping[str, Any]) -> None:
        """Count one event of the run; a field that means nothing is as good as absent."""
        if event.get("type") == "sink.failed":
            self._dropped += _count(event.get("dropped"))
        number = _count(event.get("seq"))
        if number:
            self._numbered += 1
            self.in_order = self.in_order and number > self._last
            self._last = number
            self._highest = max(self._highest, number)
        if event.get("type") == "run.ended":
            self.ended = True
            self._declared = _count(event.get("events"))
            self._dropped = max(self._dropped, _count(event.get("dropped")))

    @property
    def missing(self) -> int:
        """How many events are known not to be there.

        Of a run that has not ended, more may be missing at its end: nobody can say how many.
        """
        known = max(self._highest, self._declared or 0)
        return max(0, known - self._numbered)

    @property
    def dropped(self) -> int:
        """How many events its sink says that it lost; they are part of ``missing``."""
        return self._dropped

    @property
    def complete(self) -> bool:
        """Whether the run has its end and every event before it."""
        return self.ended and self.missing == 0


def _count(value: object) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0
