"""The law of this file: what only the caller knows of a call travels with its message.

On mcp 1.x the task that sends a request is not the caller's, and sees the context of connecting; so
the caller's run and patience are read where the caller writes its message, and found again by the
message's id where the request is sent (R22, B6). One table a stream, bounded by the calls in
flight.
"""

from __future__ import annotations

from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Self

from surefoot.evidence import current_ledger

if TYPE_CHECKING:
    from surefoot.evidence import Ledger, SpanSource

    from ._recorder import Record

__all__ = ["CallContext", "CallTable", "WatchedWriter", "calling"]


class CallContext:
    """One call of a caller who told us more than the message says."""

    __slots__ = ("ends", "ledger", "parent", "record")

    def __init__(self, *, ledger: Ledger | None = None, ends: float | None = None) -> None:
        self.ledger = ledger
        """The run of the caller's context."""
        self.ends = ends
        """Monotonic seconds at which the caller stops listening, or ``None`` (B6)."""
        self.parent: object = None
        """Where in the trace the caller is (B14)."""
        self.record: Record | None = None
        """The record of the request, once it is opened."""

    def abandon(self) -> None:
        """Send nothing more for a caller who no longer listens; to be called on its loop (B2)."""
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

    __slots__ = ("_by_id", "_spans")

    def __init__(self, spans: SpanSource | None = None) -> None:
        self._spans = spans
        self._by_id: dict[tuple[type, object], CallContext] = {}

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
        if not self._by_id:
            return None
        return self._by_id.pop((type(message_id), message_id), None)


class WatchedWriter:
    """The SDK's own write stream, with an eye on the ids that go by."""

    def __init__(self, wrapped: Any, table: CallTable) -> None:
        self._wrapped = wrapped
        self._table = table

    def __getattr__(self, name: str) -> Any:
        """Everything else is the stream's own."""
        return getattr(self._wrapped, name)

    async def send(self, item: Any) -> None:
        """Note whose message this is, then hand it on."""
        message = item.message
        message = getattr(message, "root", message)
        if getattr(message, "method", None) is not None:
            message_id = getattr(message, "id", None)
            if message_id is not None:
                self._table.note(message_id)
        await self._wrapped.send(item)

    async def __aenter__(self) -> Self:
        """Enter the stream."""
        await self._wrapped.__aenter__()
        return self

    async def __aexit__(self, *exc: object) -> Any:
        """Leave the stream."""
        return await self._wrapped.__aexit__(*exc)
