"""The law of this file: many ask, one works, and nobody waits on another's event loop.

The first caller does the work in its own task; the others wait for it. If the first is cancelled
the work is cancelled with it and one of the others begins anew, so a cancelled caller leaves
nothing behind (B9, R123). Nothing here belongs to a loop before somebody waits, and a caller in
another thread, on another loop or on another async library is woken where it waits. A loop that
somebody stopped in the middle of the work is not waited for: who waits on another one begins anew.
The lock is a plain one, held for a few instructions and never across an ``await``.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from threading import Lock
from typing import Final, Generic, TypeVar, cast

import anyio

from surefoot.credentials._failures import fresh_copy
from surefoot.errors import CredentialError

__all__ = ["SingleFlight", "asyncio_loop"]

_T = TypeVar("_T")

_LOOK: Final = 1.0
"""Seconds after which one who waits looks whether the other's event loop still runs."""


class _Flight(Generic[_T]):
    """One piece of work under way, and who waits for it."""

    __slots__ = ("landed", "loop", "outcome", "wakers")

    def __init__(self) -> None:
        self.landed = False
        self.loop = asyncio_loop()
        """Where the work is done; ``None`` for trio, which ends no run with work under way."""
        self.outcome: _T | CredentialError | None = None
        self.wakers: list[Callable[[], None]] = []


class SingleFlight(Generic[_T]):
    """Lets one caller at a time do the work for all that need it.

    Args:
        lock: Guards the state that ``ready`` and ``work`` share.
    """

    __slots__ = ("_flight", "lock")

    def __init__(self, lock: Lock | None = None) -> None:
        self.lock = lock or Lock()
        self._flight: _Flight[_T] | None = None

    @property
    def idle(self) -> bool:
        """Nobody works now."""
        return self._flight is None

    async def run(
        self,
        ready: Callable[[], _T | None],
        work: Callable[[], Awaitable[_T | CredentialError | None]],
    ) -> _T:
        """Return what ``ready`` has, else what the one who works returns.

        ``ready`` is called under the lock. ``work`` returns a ``CredentialError`` where others
        raise it, so that each caller raises a copy of its own; ``None`` lets somebody begin anew.

        Raises:
            CredentialError: the work failed.
        """
        while True:
            with self.lock:
                have = ready()
                if have is not None:
                    return have
                flight, leads = self._flight, False
                if flight is None:
                    flight, leads = _Flight[_T](), True
                    self._flight = flight
            if leads:
                outcome = await self._lead(flight, work)
            else:
                await self._wait(flight)
                outcome = flight.outcome
            if isinstance(outcome, CredentialError):
                raise fresh_copy(outcome)
            if outcome is not None:
                return outcome

    async def _lead(
        self, flight: _Flight[_T], work: Callable[[], Awaitable[_T | CredentialError | None]]
    ) -> _T | CredentialError | None:
        """Work, and tell the others however it ends; no outcome means that one of them begins."""
        try:
            flight.outcome = await work()
        finally:
            self._land(flight)
        return flight.outcome

    def _land(self, flight: _Flight[_T]) -> None:
        """It is over: wake who waits."""
        with self.lock:
            flight.landed = True
            if self._flight is flight:
                self._flight = None
            wakers, flight.wakers = flight.wakers, []
        for wake in wakers:
            wake()

    async def _wait(self, flight: _Flight[_T]) -> None:
        """Wait until the flight has landed, on the loop that this caller runs on."""
        event, loop = anyio.Event(), flight.loop
        look = None if loop is None or loop is asyncio_loop() else _LOOK
        wake = _waker(event)
        with self.lock:
            if flight.landed:
                return
            flight.wakers.append(wake)
        try:
            while not event.is_set():
                with anyio.move_on_after(look):
                    await event.wait()
                if loop is not None and not loop.is_running():
                    self._land(flight)
                    break
        finally:
            with self.lock, suppress(ValueError):
                flight.wakers.remove(wake)


def asyncio_loop() -> asyncio.AbstractEventLoop | None:
    """The loop of asyncio that runs here."""
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


def _waker(event: anyio.Event) -> Callable[[], None]:
    """A function that sets an event of this loop from any thread."""
    loop = asyncio_loop()
    if loop is None:
        import trio  # noqa: PLC0415 - only where trio runs

        token = trio.lowlevel.current_trio_token()
        return lambda: _schedule(token.run_sync_soon, event)
    return lambda: _schedule(loop.call_soon_threadsafe, event)


def _schedule(soon: object, event: anyio.Event) -> None:
    """Set the event soon; a loop that is closed has nobody left who waits."""
    with suppress(RuntimeError):  # trio.RunFinishedError is one too
        cast("Callable[[Callable[[], None]], object]", soon)(event.set)
