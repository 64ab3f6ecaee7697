"""The law of this file: what reached the gateway is written down as it came, and never rewritten.

An entry is frozen. It is replaced by a fuller one while its request is being answered, so that a
test may wait for the moment at which a request has arrived, run or ended.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, cast

import anyio

if TYPE_CHECKING:
    from surefoot.testing._wire import HeaderLine

__all__ = ["Entry", "Journal"]

_LOOK_AGAIN = 0.05
"""Seconds after which a predicate is asked again, although nothing changed here."""
_POLL = 0.004
"""Seconds between two looks of the waiting that must not block a loop."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One HTTP request that reached the gateway, and what became of it.

    Header values and the body are left out of the repr, because a failing assertion prints it.
    """

    sequence: int
    """Position in the journal, from 1."""
    at: float
    """When the request had been read whole, in seconds of the server's `time.monotonic()`."""
    connection: int
    """Number of the TCP connection that carried it, from 1 in the order of acceptance."""
    http_method: str
    path: str
    """The request target as received, query included."""
    headers: tuple[HeaderLine, ...] = field(repr=False)
    """The header lines as received: bytes, in order, names in the letter case that was sent."""
    body: bytes = field(repr=False)
    method: str | None = None
    """The JSON-RPC method, or `None` where the body is not one JSON-RPC request or notification."""
    rpc_id: int | str | None = None
    tool: str | None = None
    session: str | None = None
    """The Mcp-Session-Id that the request named."""
    step: object = None
    """What decided the answer: a step, a `TokenBucket`, an `ExpiringTokens`, or `None`."""
    status: int | None = None
    """The status that was sent, or `None` while nothing, or nothing that has one, was sent."""
    ran: bool = False
    """Whether the tool's body was started for this request."""
    cancelled: bool = False
    """Whether the client withdrew: it hung up before the answer ended, or notified so."""
    ended_at: float | None = None
    """When the gateway was done with it, on the clock of `at`; `None` while in flight."""

    @property
    def in_flight(self) -> bool:
        """Whether the gateway is still busy with this request."""
        return self.ended_at is None

    def header_values(self, name: str) -> tuple[bytes, ...]:
        """Every value sent under a header name, in order; the name is compared without case."""
        wanted = name.lower().encode()
        return tuple(value for line, value in self.headers if line.lower() == wanted)

    def header(self, name: str) -> bytes | None:
        """The first value sent under a header name, or `None`."""
        return next(iter(self.header_values(name)), None)

    def message(self) -> dict[str, object]:
        """The body read as JSON.

        Raises:
            ValueError: the body is not JSON.
            TypeError: the body is not a JSON object.
        """
        value: object = json.loads(self.body)
        if not isinstance(value, dict):
            raise TypeError("the body is not a JSON object")
        return cast("dict[str, object]", value)


class Journal:
    """The list of entries, safe to read and to wait on from any thread."""

    def __init__(self) -> None:
        self._entries: list[Entry] = []
        self._version = 0
        self._changed = threading.Condition()

    def snapshot(self) -> tuple[Entry, ...]:
        """All entries so far, in the order of arrival."""
        with self._changed:
            return tuple(self._entries)

    def open(self, **facts: object) -> Entry:
        """File a request that has been read whole; its number and its time are filled in here."""
        with self._changed:
            entry = Entry(
                sequence=len(self._entries) + 1,
                at=time.monotonic(),
                **facts,  # pyright: ignore[reportArgumentType]  (checked where it is called)
            )
            self._entries.append(entry)
            self._notify()
        return entry

    def update(self, sequence: int, **facts: object) -> None:
        """Put a fuller entry in the place of an earlier one."""
        with self._changed:
            fuller = replace(self._entries[sequence - 1], **facts)
            self._entries[sequence - 1] = fuller
            self._notify()

    def close(self, sequence: int) -> None:
        """Note that the gateway is done with a request."""
        self.update(sequence, ended_at=time.monotonic())

    def touch(self) -> None:
        """Wake those who wait, because something beside the journal changed."""
        with self._changed:
            self._notify()

    def wait_until(self, predicate: Callable[[], bool], timeout: float) -> None:
        """Block this thread until the predicate holds.

        Raises:
            TimeoutError: it did not hold within `timeout` seconds.
        """
        end = time.monotonic() + timeout
        while True:
            seen = self._version
            if predicate():  # without the lock: it may well send a request to this gateway
                return
            left = end - time.monotonic()
            if left <= 0:
                raise TimeoutError(self._timed_out(timeout))
            with self._changed:
                self._changed.wait_for(lambda: self._version != seen, min(left, _LOOK_AGAIN))  # noqa: B023

    async def until(
        self,
        predicate: Callable[[], bool],
        timeout: float,  # noqa: ASYNC109  (a bound that both loops keep)
    ) -> None:
        """Wait in a task, on asyncio or trio, until the predicate holds.

        Raises:
            TimeoutError: it did not hold within `timeout` seconds.
        """
        end = time.monotonic() + timeout
        while not predicate():
            if time.monotonic() >= end:
                raise TimeoutError(self._timed_out(timeout))
            await anyio.sleep(_POLL)

    def _notify(self) -> None:
        self._version += 1
        self._changed.notify_all()

    def _timed_out(self, timeout: float) -> str:
        last = [
            f"{entry.sequence} {entry.tool or entry.method or entry.http_method} -> {entry.status}"
            for entry in self.snapshot()[-5:]
        ]
        seen = "; ".join(last) or "nothing"
        return f"it did not come true within {timeout:g} s; the gateway last saw: {seen}"
