"""The law of this file: events are kept as they were when they were emitted, in order."""

from __future__ import annotations

import copy
import threading
import time
from typing import TYPE_CHECKING, Final

import anyio

from surefoot.testing._checks import a_count, a_number_of_seconds

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["RecordingSink"]


class RecordingSink:
    """A sink that keeps every event it is given. Safe to use from any thread and any loop."""

    never_stalls: Final = True
    """Its promise to whoever hands it events: no thread needs to stand before it."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._events: list[dict[str, object]] = []
        self._closed = False

    def __repr__(self) -> str:
        return f"<RecordingSink, {len(self.events)} events>"

    def emit(self, event: Mapping[str, object]) -> None:
        """Keep a copy of an event, so that what the emitter does to its own later is not seen."""
        kept = copy.deepcopy(dict(event))
        with self._changed:
            self._events.append(kept)
            self._changed.notify_all()

    def close(self) -> None:
        """Note that no more events will come."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    @property
    def closed(self) -> bool:
        """Whether `close` was called."""
        return self._closed

    @property
    def events(self) -> list[dict[str, object]]:
        """All events so far, in order."""
        with self._changed:
            return list(self._events)

    def of(self, event_type: str) -> list[dict[str, object]]:
        """The events whose `type` is this."""
        return [event for event in self.events if event.get("type") == event_type]

    def clear(self) -> None:
        """Forget what was kept."""
        with self._changed:
            self._events.clear()

    def wait_for(
        self, event_type: str, count: int = 1, timeout: float = 5.0
    ) -> list[dict[str, object]]:
        """Block until there are so many events of a type, and give them.

        For threads. In a task, which must not block its loop, use `until`.

        Raises:
            TimeoutError: there were fewer after `timeout` seconds.

        """
        a_count("wait_for(count)", count)
        seconds = a_number_of_seconds("wait_for(timeout)", timeout)
        with self._changed:
            if self._changed.wait_for(lambda: len(self.of(event_type)) >= count, seconds):
                return self.of(event_type)
        raise TimeoutError(self._too_few(event_type, count, seconds))

    async def until(
        self,
        event_type: str,
        count: int = 1,
        timeout: float = 5.0,  # noqa: ASYNC109
    ) -> list[dict[str, object]]:
        """Wait in a task, on asyncio or trio, until there are so many events of a type.

        Raises:
            TimeoutError: there were fewer after `timeout` seconds.

        """
        a_count("until(count)", count)
        end = time.monotonic() + a_number_of_seconds("until(timeout)", timeout)
        while len(found := self.of(event_type)) < count:
            if time.monotonic() >= end:
                raise TimeoutError(self._too_few(event_type, count, timeout))
            await anyio.sleep(0.002)
        return found

    def _too_few(self, event_type: str, count: int, seconds: float) -> str:
        seen = ", ".join(str(event.get("type")) for event in self.events[-8:]) or "none"
        found = len(self.of(event_type))
        return f"{found} of {count} {event_type!r} events after {seconds:g} s; last seen: {seen}"
