"""The law of this file: whatever a sink does, the call that was recorded never notices (B13).

A failure is counted, told once, and written down by the sink itself as soon as it works again.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from ._events import EventSink, sink_failed

__all__ = ["Alarm", "Delivery"]

Alarm = Callable[[str], object]
"""Tells people, once: a sentence without any content of events."""


class Delivery:
    """Hands events to one sink, and isolates what it raises.

    Args:
        sink: Where they go.
        name: What people know the sink as; by default the name of its class.
        alarm: Told once per sink, at its first failure.
    """

    __slots__ = ("_alarm", "_error", "_lock", "_lost", "_name", "_sink", "dropped")

    def __init__(
        self, sink: EventSink, *, name: str | None = None, alarm: Alarm | None = None
    ) -> None:
        self._sink = sink
        self._name = type(sink).__name__ if name is None else name
        self._alarm = alarm
        self._lost = 0
        self._error = ""
        self._lock = threading.Lock()
        self.dropped = 0
        """Events that this sink did not take, all together."""

    def hand(self, event: Mapping[str, Any]) -> bool:
        """Hand one event on; whether the sink took it."""
        try:
            if self._lost:
                self._confess(event)
            self._sink.emit(event)
        except Exception as error:  # noqa: BLE001 - a sink's failure is its own
            self.lose(type(error).__name__)
            return False
        return True

    def lose(self, error: str) -> None:
        """Count an event that the sink did not get, and why."""
        with self._lock:
            first = self.dropped == 0
            self.dropped += 1
            self._lost += 1
            self._error = error
        if first and self._alarm is not None:
            with suppress(Exception):  # an alarm that fails changes nothing either
                self._alarm(
                    f"evidence is incomplete: {self._name} failed with {error}; calls go on, "
                    "what is lost is counted, and this is said once"
                )

    def _confess(self, event: Mapping[str, Any]) -> None:
        """Write down what was lost, before the first event that comes after it."""
        lost = self._lost
        self._sink.emit(sink_failed(event, sink=self._name, error=self._error, dropped=lost))
        with self._lock:
            self._lost -= lost
