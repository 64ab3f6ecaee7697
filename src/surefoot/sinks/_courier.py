"""The law of this file: events are handed over by a thread of their own, so no call waits for them.

What callers do is one append to a bounded queue. When the queue is full the new event is lost and
counted (B13): memory stays bounded, however long a sink stalls. The thread is woken for the first
event and then looks in every ``pause`` seconds, so a busy program pays for few wake-ups.
"""

from __future__ import annotations

import atexit
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final
from weakref import WeakSet

from surefoot.evidence import Filed

__all__ = ["AT_EXIT_SECONDS", "QUEUE", "Carried", "Courier"]

AT_EXIT_SECONDS: Final = 2.0
"""How long the end of a run, and the end of the process, wait for a sink."""

QUEUE: Final = 10_000
"""Events that may wait for a sink."""

_PAUSE: Final = 0.05
_MOST_AT_ONCE: Final = 64
"""Events that are delivered together: what is on disk is never far behind what is queued."""

Carried = Filed | Mapping[str, Any]
"""What is carried: events, and such as are still to be written out."""

_open: WeakSet[Courier] = WeakSet()


class Courier:
    """Carries events from any number of threads and loops to one function, in order.

    Args:
        deliver: Takes a batch, on the courier's own thread. It isolates what goes wrong itself.
        lost: Told, on the caller's thread, of an event for which there was no room.
        room: Events that may wait.
        pause: Seconds between two looks at a queue in use.
    """

    def __init__(
        self,
        deliver: Callable[[Sequence[Carried]], None],
        *,
        lost: Callable[[], None],
        room: int = QUEUE,
        pause: float = _PAUSE,
    ) -> None:
        self._deliver = deliver
        self._lost = lost
        self._room = room
        self._pause = pause
        self._closed = False
        self._fresh()

    def _fresh(self) -> None:
        """Begin with nothing; also in a child process, whose parent's thread stayed behind."""
        self._pid = os.getpid()
        self._queue: deque[Carried | threading.Event] = deque()
        self._starting = threading.Lock()
        self._thread: threading.Thread | None = None
        self._wake = threading.Event()
        self._hurry = threading.Event()
        self._idle = False
        self._over = False

    def offer(self, event: Carried) -> bool:
        """Queue one event, at once; whether there was room."""
        if self._pid != os.getpid():
            self._fresh()
        queue = self._queue
        if self._closed or len(queue) >= self._room:
            self._lost()
            return False
        queue.append(event)
        if self._idle:
            self._wake.set()
        elif self._thread is None:
            self._start()
        return True

    def flush(self, timeout: float = AT_EXIT_SECONDS) -> bool:
        """Wait until what was offered before is delivered; whether that took less than ``timeout``.

        On the courier's own thread, where waiting would never end, it returns at once.
        """
        if self._thread is None or self._pid != os.getpid():
            return not self._queue
        if self._thread is threading.current_thread():
            return False
        if self._over:
            return True
        done = threading.Event()
        self._queue.append(done)
        self._hurry.set()
        self._wake.set()
        # A thread that ended meanwhile had delivered everything before it did.
        return self._over or done.wait(timeout)

    def close(self, timeout: float = AT_EXIT_SECONDS) -> bool:
        """Take no more, deliver what is queued, and end the thread; whether all was delivered."""
        first, self._closed = not self._closed, True
        delivered = self.flush(timeout)
        self._hurry.set()
        self._wake.set()
        if first and not delivered:
            for waiting in list(self._queue):
                if not isinstance(waiting, threading.Event):
                    self._lost()
        return delivered

    def _start(self) -> None:
        with self._starting:
            if self._thread is not None:
                return
            thread = threading.Thread(target=self._run, name="surefoot-evidence", daemon=True)
            self._thread = thread
            try:
                thread.start()
            except RuntimeError:
                # The interpreter is ending and starts no thread any more; nobody is in a hurry now.
                self._thread = None
                self._drain(self._queue)
                return
        _open.add(self)

    def _run(self) -> None:
        queue, wake, hurry = self._queue, self._wake, self._hurry
        while True:
            if not queue:
                if self._closed:
                    # Whoever asks for a flush from now on sees this; whoever did before is served.
                    self._over = True
                    self._drain(queue)
                    return
                self._idle = True
                # Whoever appends after this look sees the flag; whoever did before is seen here.
                if not queue and not self._closed:
                    wake.wait()
                self._idle = False
                wake.clear()
            self._drain(queue)
            if not self._closed:
                hurry.wait(self._pause)
            hurry.clear()

    def _drain(self, queue: deque[Carried | threading.Event]) -> None:
        batch: list[Carried] = []
        while queue:
            taken = queue.popleft()
            if not isinstance(taken, threading.Event):
                batch.append(taken)
                if len(batch) < _MOST_AT_ONCE:
                    continue
            if batch:
                self._deliver(batch)
                batch = []
            if isinstance(taken, threading.Event):
                taken.set()
        if batch:
            self._deliver(batch)


def _flush_all() -> None:
    """At the end of the process, give every sink its last chance, all within one bound."""
    end = time.monotonic() + AT_EXIT_SECONDS
    for courier in list(_open):
        courier.flush(max(0.0, end - time.monotonic()))


atexit.register(_flush_all)
