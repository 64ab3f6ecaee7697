"""The law of this file: an answer that never begins ends like one that never ends (B12).

An HTTP library bounds each read, and neither a flood of 1xx nor a head that drips: every byte
starts its time anew. A cancel scope around each call would bound it, and costs microseconds of
every call for what next to none of them meets. So under asyncio all calls of a stack share one
timer, and a call costs an entry in a table; whoever is overdue is cancelled as ``asyncio.timeout``
cancels. Under trio there is nothing but a scope.
"""

from __future__ import annotations

import asyncio
from contextvars import Context
from typing import TYPE_CHECKING, Final

import anyio
import anyio.lowlevel

from ._body import closed

if TYPE_CHECKING:
    from ._family import AsyncTransport, HTTPRequest, HTTPResponse

__all__ = ["Overdue", "Patience"]


_NAP: Final = 5.0
"""Seconds after which a table looks whether anybody waits at all."""


class Overdue(Exception):  # noqa: N818 - a signal to the series above, which says it in words
    """The time for an answer is over.

    Args:
        seconds: How long that was.
    """

    def __init__(self, seconds: float) -> None:
        super().__init__(seconds)
        self.seconds = seconds


class _Table:
    """The calls of one event loop that wait, by their tasks, in the order in which they began."""

    __slots__ = ("_ended", "_seconds", "loop", "timer", "waiting")

    def __init__(self, loop: asyncio.AbstractEventLoop, seconds: float) -> None:
        self.loop = loop
        self.waiting: dict[asyncio.Task[object], float] = {}
        self.timer: asyncio.TimerHandle | None = None
        self._seconds = seconds
        self._ended: set[asyncio.Task[object]] = set()

    def wake(self, began: float) -> None:
        """Have a look when the call that began then may be overdue."""
        # Soon enough, so that of a client that is closed nothing is left on its loop for an hour;
        # and in a context of its own, since this one may hold what the first call holds.
        at = min(began + self._seconds, self.loop.time() + _NAP)
        self.timer = self.loop.call_at(at, self._look, context=Context())

    def _look(self) -> None:
        self.timer = None
        now = self.loop.time()
        for task, began in list(self.waiting.items()):
            if began + self._seconds > now:
                self.wake(began)
                return
            del self.waiting[task]
            self._ended.add(task)
            task.cancel()

    def ended(self, task: asyncio.Task[object]) -> bool:
        """Whether the wait of this task was ended here; asked once."""
        if task not in self._ended:
            return False
        self._ended.remove(task)
        return True


class Patience:
    """How long the calls of one stack wait for the headers of their answers.

    Args:
        seconds: From the moment that a request is handed down.
    """

    __slots__ = ("_seconds", "_table")

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._table: _Table | None = None

    async def wait(self, transport: AsyncTransport, request: HTTPRequest) -> HTTPResponse:
        """Send the request, and wait for the headers of its answer.

        Raises:
            Overdue: they did not come in time.
            Exception: what the transport raised.
        """
        try:
            task = asyncio.current_task()
        except RuntimeError:
            task = None
        if task is None:
            return await self._in_a_scope(transport, request)
        table = self._table
        loop = task.get_loop()
        if table is None or table.loop is not loop:
            # Whoever uses one stack on several loops pays for a table whenever they take turns.
            self._table = table = _Table(loop, self._seconds)
        waiting, before, began = table.waiting, task.cancelling(), loop.time()
        waiting[task] = began
        if table.timer is None:
            table.wake(began)
        try:
            response = await transport.handle_async_request(request)
        except BaseException as error:
            waiting.pop(task, None)
            late = table.ended(task) and task.uncancel() <= before
            if not late or not isinstance(error, asyncio.CancelledError):
                raise
        else:
            if waiting.pop(task, None) is not None or not table.ended(task):
                return response
            # It came in the very moment of its cancellation, which may still be on its way to us.
            try:
                await _let_come(task, before)
            finally:
                await closed(response)
        raise Overdue(self._seconds)

    async def _in_a_scope(self, transport: AsyncTransport, request: HTTPRequest) -> HTTPResponse:
        response: HTTPResponse = None
        with anyio.move_on_after(self._seconds) as scope:
            response = await transport.handle_async_request(request)
        if response is None or scope.cancelled_caught:
            raise Overdue(self._seconds)
        return response


async def _let_come(task: asyncio.Task[object], before: int) -> None:
    """Take a cancellation back that nobody has been told of yet, unless it is not ours alone."""
    try:
        await anyio.lowlevel.checkpoint()
    except asyncio.CancelledError:
        if task.uncancel() > before:
            raise
    else:
        task.uncancel()
