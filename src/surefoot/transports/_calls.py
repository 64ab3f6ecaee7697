"""The law of this file: what only the caller knows of a call travels with its message.

On mcp 1.x the task that sends a request is not the caller's, and sees the context of connecting; so
the caller's run and patience are read where the caller writes its message, and found again by the
message's id where the request is sent (R22, B6). One table a stream, bounded by the calls in
flight.
"""

from __future__ import annotations

from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Final, Self

import anyio
import anyio.lowlevel

from surefoot.evidence import current_ledger

if TYPE_CHECKING:
    from surefoot.evidence import Ledger, SpanSource

    from ._recorder import Record

__all__ = ["CallContext", "CallTable", "WatchedWriter", "calling"]


_TURNS: Final = 3
"""Turns of a loop within which a task that was started by another begins, whatever their order."""

_MOST_TURNS: Final = 32


class CallContext:
    """One call of a caller who told us more than the message says."""

    __slots__ = ("abandoned", "ends", "ledger", "parent", "record")

    def __init__(self, *, ledger: Ledger | None = None, ends: float | None = None) -> None:
        self.ledger = ledger
        """The run of the caller's context."""
        self.ends = ends
        """Monotonic seconds at which the caller stops listening, or ``None`` (B6)."""
        self.parent: object = None
        """Where in the trace the caller is (B14)."""
        self.record: Record | None = None
        """The record of the request, once it is opened."""
        self.abandoned = False
        """The caller no longer listens, perhaps before there was a record (B2)."""

    def abandon(self) -> None:
        """Send nothing more for a caller who no longer listens; to be called on its loop (B2)."""
        self.abandoned = True
        if self.record is not None:
            self.record.abandoned = True
            if self.record.waiting is not None:
                self.record.waiting.cancel()


_current: ContextVar[CallContext | None] = ContextVar("surefoot.call", default=None)


class calling:  # noqa: N801 - reads as a statement: ``with calling(context):``
    """Make ``context`` the one whose messages are written inside the ``with``."""

    def __init__(self, context: CallContext) -> None:
        self._context = context
        self._token: Any = None

    def __enter__(self) -> CallContext:
        """Begin."""
        self._token = _current.set(self._context)
        return self._context

    def __exit__(self, *exc: object) -> None:
        """End."""
        _current.reset(self._token)


class CallTable:
    """Contexts of the messages of one stream that were written and not yet sent, by id.

    Args:
        spans: Knows where in the trace a writer is, if anybody is tracing.
    """

    __slots__ = ("_by_id", "_spans", "_untaken")

    def __init__(self, spans: SpanSource | None = None) -> None:
        self._spans = spans
        self._by_id: dict[tuple[type, object], CallContext] = {}
        self._untaken: set[tuple[type, object]] = set()

    def note(self, message_id: object) -> None:
        """Keep the writer's context for the message of this id."""
        ledger = current_ledger()
        spans = self._spans
        parent = spans.current() if spans is not None and spans.tracing() else None
        context = _current.get()
        if context is None and (ledger is not None or parent is not None):
            context = CallContext()
        if context is not None:
            context.ledger = ledger
            context.parent = parent
            self._by_id[type(message_id), message_id] = context

    def take(self, message_id: object) -> CallContext | None:
        """The context of the message of this id, once."""
        if self._untaken:
            self._untaken.discard((type(message_id), message_id))
        if not self._by_id:
            return None
        return self._by_id.pop((type(message_id), message_id), None)

    async def taken(self, message_id: object) -> None:
        """Wait for a moment until the SDK's task for a message has come to us with it.

        That task is under way at the second turn of the loop after it was written; where it never
        comes, because it failed before it reached us, nobody waits for it.
        """
        key = (type(message_id), message_id)
        for turn in range(_MOST_TURNS):
            if turn >= _TURNS and key not in self._untaken:
                break
            await anyio.lowlevel.checkpoint()
        self._untaken.discard(key)

    def written(self, message_id: object) -> None:
        """Note that the message of this id is about to be written."""
        self._untaken.add((type(message_id), message_id))


class WatchedWriter:
    """The SDK's own write stream, with an eye on the ids that go by.

    Args:
        wrapped: The SDK's stream.
        table: Where the writers' contexts are kept.
        one_by_one: Hand a message over only when the last one was taken. mcp 1.x needs it: each of
            its tasks reads a variable that the next message overwrites, and on trio a task may
            begin after that; then one goes out twice, and another never (B3).
    """

    def __init__(self, wrapped: Any, table: CallTable, *, one_by_one: bool = False) -> None:
        self.ended = False
        """The SDK's client has closed it: nothing can be written any more."""
        self._wrapped = wrapped
        self._table = table
        self._turn = anyio.Lock() if one_by_one else None

    def __getattr__(self, name: str) -> Any:
        """Everything else is the stream's own."""
        return getattr(self._wrapped, name)

    async def send(self, item: Any) -> None:
        """Note whose message this is, then hand it on."""
        message = item.message
        message = getattr(message, "root", message)
        asks = getattr(message, "method", None) is not None
        message_id = getattr(message, "id", None) if asks else None
        if message_id is not None:
            self._table.note(message_id)
        if self._turn is None:
            await self._wrapped.send(item)
            return
        async with self._turn:
            if message_id is None:
                await self._wrapped.send(item)
                return
            self._table.written(message_id)
            try:
                await self._wrapped.send(item)
            finally:
                # Whoever is cancelled here may have written; the next one must not write over it.
                with anyio.CancelScope(shield=True):
                    await self._table.taken(message_id)

    async def __aenter__(self) -> Self:
        """Enter the stream."""
        await self._wrapped.__aenter__()
        self.ended = False
        return self

    async def __aexit__(self, *exc: object) -> Any:
        """Leave the stream."""
        self.ended = True
        return await self._wrapped.__aexit__(*exc)

    async def aclose(self) -> None:
        """Close the stream."""
        self.ended = True
        await self._wrapped.aclose()
