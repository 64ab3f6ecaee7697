"""The law of this file: whatever a sink does, the call that was recorded never notices (B13).

A failure is counted, told once, and written down by the sink itself as soon as it works again.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from ._events import Event, EventSink, Filed, sink_failed
from ._forks import lock_for

__all__ = ["Alarm", "Delivery", "Losses"]

Alarm = Callable[[str], object]
"""Tells people, once: a sentence without any content of events."""


class Losses:
    """What one sink did not take: counted, told once, and owed to the record. For any thread.

    Args:
        name: What people know the sink as.
        alarm: Told once, at the first loss.
    """

    __slots__ = ("__weakref__", "_alarm", "_error", "_lock", "_owed", "name", "total")

    def __init__(self, name: str, alarm: Alarm | None = None) -> None:
        self.name = name
        self.total = 0
        """Events lost, all together."""
        self._alarm = alarm
        self._owed = 0
        self._error = ""
        self._lock = lock_for(self, threading.Lock)

    def add(self, error: str, count: int = 1) -> None:
        """Count events that the sink did not get, and why: a class name or ``"QueueFull"``."""
        with self._lock:
            first = self.total == 0
            self.total += count
            self._owed += count
            self._error = error
        if first and self._alarm is not None:
            with suppress(Exception):  # an alarm that fails changes nothing either
                self._alarm(
                    f"evidence is incomplete: {self.name} failed with {error}; calls go on, "
                    "what is lost is counted, and this is said once"
                )

    def owed(self, event: Mapping[str, Any]) -> Event | None:
        """What has to be written before ``event``, the first after a loss; mostly ``None``."""
        if not self._owed:
            return None
        return sink_failed(event, sink=self.name, error=self._error, dropped=self._owed)

    def written(self, dropped: int) -> None:
        """Note that so many losses are on record now."""
        with self._lock:
            self._owed -= dropped


class Delivery:
    """Hands events to one sink, and isolates what it raises.

    Args:
        sink: Where they go.
        alarm: Told once, at the first failure.
    """

    __slots__ = ("_later", "_sink", "losses")

    def __init__(self, sink: EventSink, *, alarm: Alarm | None = None) -> None:
        self._sink = sink
        self._later: Callable[[Filed], object] | None = getattr(sink, "emit_later", None)
        self.losses = Losses(type(sink).__name__, alarm)

    def hand(self, filed: Filed | Mapping[str, Any]) -> bool:
        """Hand one event on; whether the sink took it."""
        try:
            if isinstance(filed, Filed):
                if self._later is not None:
                    self._later(filed)
                    return True
                event: Mapping[str, Any] = filed.event()
            else:
                event = filed
            owed = self.losses.owed(event)
            if owed is not None:
                self._sink.emit(owed)
                self.losses.written(owed["dropped"])
            self._sink.emit(event)
        except Exception as error:  # noqa: BLE001 - a sink's failure is its own
            self.losses.add(type(error).__name__)
            return False
        return True
