"""The law of this file: every event of a run has a number, so that what is missing can be seen.

Filing is safe from any thread and any loop, never raises for what a sink does, and never waits but
for another caller's filing: ``surefoot.sinks`` puts a thread before a sink that could stall.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime

from ._delivery import Alarm, Delivery
from ._events import Content, Entry, EventSink, Filed, Pending, RunEnded, RunStarted
from ._forks import lock_for

__all__ = ["Ledger"]


class Ledger:
    """Numbers the events of one run and hands them to its sink (R22, B13).

    Args:
        sink: Where events go.
        run: The run's id.
        now: The time of day, aware, in UTC.
        start: Filed before the first event.
        alarm: Told once when evidence becomes incomplete.
        content: Whether the app wants arguments and answers in clear; who files them looks here.
        close: Called when the ledger is closed: flushes, and closes what the run owns.
    """

    def __init__(
        self,
        sink: EventSink,
        *,
        run: str,
        now: Callable[[], datetime],
        start: RunStarted | None = None,
        alarm: Alarm | None = None,
        content: Content = "digests",
        close: Callable[[], object] | None = None,
    ) -> None:
        self.run = run
        self.content: Content = content
        self._delivery = Delivery(sink, alarm=alarm)
        self._sink = sink
        self._later: Callable[[Filed], object] | None = getattr(sink, "emit_later", None)
        self._lost_before: int = getattr(sink, "dropped", 0)
        self._alarm = alarm
        self._now = now
        self._start = start
        self._close = close
        self._began: datetime | None = None
        self._filed = 0
        self._late = 0
        # A sink may itself do something that is recorded: the same thread may come in again.
        self._lock = lock_for(self, threading.RLock)
        self._held_back: dict[object, Callable[[], tuple[Entry | Pending, ...]]] = {}
        self.closed = False
        """No more events are taken."""

    def __repr__(self) -> str:
        """Show the run and how far it is."""
        return f"<Ledger of run {self.run}, {self._filed} events>"

    @property
    def filed(self) -> int:
        """Events that were numbered so far."""
        return self._filed

    @property
    def dropped(self) -> int:
        """Events that are known to be lost so far.

        Where other runs use the same sink at the same time, theirs as well.
        """
        behind: int = getattr(self._sink, "dropped", 0)
        return self._delivery.losses.total + self._late + behind - self._lost_before

    def begin(self) -> None:
        """File that the run was opened, if that was not filed yet."""
        with self._lock:
            start, self._start = self._start, None
            if start is not None:
                self._began = self._now()
                self._number(start, self._began)

    def file(self, *entries: Entry | Pending) -> None:
        """File events of one moment. Whatever the sink does, this returns and does not raise.

        Args:
            entries: Each with a ``type`` and a ``body()``, finished: its fields may be asked for
                later, and on another thread.
        """
        with self._lock:
            if self.closed:
                self._too_late(len(entries))
                return
            if self._start is not None:
                self.begin()
            now = self._now()
            for entry in entries:
                if self._later is None:
                    self._number(entry, now)
                    continue
                # Every call comes here four times, so the usual way is taken in one step.
                self._filed += 1
                try:
                    self._later(Filed(entry, run=self.run, seq=self._filed, time=now))
                except Exception as error:  # noqa: BLE001 - a sink's failure is its own
                    self._delivery.losses.add(type(error).__name__)

    def hold_back(self, key: object, make: Callable[[], tuple[Entry | Pending, ...]]) -> None:
        """Remember what begins now and is filed later: at the latest when the run is closed.

        Args:
            key: By which it is released, once it is filed.
            make: Makes what is filed of it where the run is closed first; on any thread.
        """
        with self._lock:
            if not self.closed:
                self._held_back[key] = make

    def release(self, key: object) -> None:
        """Forget what was held back: it is filed by now, or is about to be."""
        with self._lock:
            self._held_back.pop(key, None)

    def close(self, error: str | None = None) -> None:
        """File that the run was closed, once; then flush.

        Args:
            error: The name of the class of what ended the run, if something was raised.
        """
        with self._lock:
            if self.closed:
                return
            held_back, self._held_back = self._held_back, {}
            for make in held_back.values():
                with suppress(Exception):  # what cannot be made costs itself, and no app its end
                    self.file(*make())
            self.closed = True
            if self._start is None:
                now = self._now()
                began = self._began
                lasted = None if began is None else max(0.0, (now - began).total_seconds())
                ended = RunEnded(
                    events=self._filed + 1,
                    dropped=self.dropped,
                    duration_seconds=lasted,
                    error=error,
                )
                self._number(ended, now)
        if self._close is not None:
            self._close()

    def _number(self, entry: Entry | Pending, now: datetime) -> None:
        self._filed += 1
        self._delivery.hand(Filed(entry, run=self.run, seq=self._filed, time=now))

    def _too_late(self, count: int) -> None:
        """Count events that came after the run was closed; said once."""
        first = self._late == 0
        self._late += count
        if first and self._alarm is not None:
            with suppress(Exception):  # an alarm that fails changes nothing either
                self._alarm(
                    "evidence is incomplete: a request ended after its run was closed; close "
                    "answers inside the run"
                )
