"""The law of this file: a stream that ends without its answer ends with ours.

A cut stream leaves a 1.x client waiting for ever and tells a 2.x client nothing. So the last event
is one of ours, in words, with one exception: where the era has sessions and an event id was seen,
the client can resume, and it is left to do so; only a resumption that fails gets the closing event
(DESIGN section 7). Everything that is kept for a resumption is bounded.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import AsyncGenerator, Callable
from hashlib import sha256
from typing import TYPE_CHECKING, Final

import anyio

from surefoot.wire import Outcome

from ._giveup import GiveUp, written
from ._note import EventState, state_of

if TYPE_CHECKING:
    from ._family import HTTPRequest, HTTPResponse
    from ._recorder import Record

__all__ = ["ClosingStream", "Pending", "Resumptions", "closing_event"]

_DRAIN_SECONDS: Final = 0.02
"""How long an answered stream is read on, so that its connection is kept (DESIGN section 7)."""

_MOST_PENDING: Final = 256
_MOST_RESUMPTIONS: Final = 10
"""Resumptions of one call; a server that closes each at once must not be asked for ever."""

File = Callable[..., None]


class Pending:
    """A call whose stream was cut where the client can resume it."""

    __slots__ = ("record", "tries")

    def __init__(self, record: Record) -> None:
        self.record = record
        self.tries = 0

    def give_up(self, file: File) -> None:
        """File a call whose resumption will never come: it stays without an answer."""
        self.record.unanswered = True
        self.record.ended = None
        self.record.end("cut", "stream-cut", 200)
        file(self.record)


class Resumptions:
    """Which calls wait for a resumption, by session and last event id; bounded."""

    __slots__ = ("_pending",)

    def __init__(self) -> None:
        self._pending: OrderedDict[tuple[str, str], Pending] = OrderedDict()

    def wait_for(self, session: str, event_id: str, pending: Pending) -> Pending | None:
        """Remember a cut call; returns the one that had to go for it, if any."""
        self._pending[session, event_id] = pending
        self._pending.move_to_end((session, event_id))
        if len(self._pending) > _MOST_PENDING:
            return self._pending.popitem(last=False)[1]
        return None

    def take(self, request: HTTPRequest) -> Pending | None:
        """The call that this GET resumes, or ``None``."""
        event_id = request.headers.get("last-event-id")
        if event_id is None or request.method != "GET":
            return None
        return self._pending.pop((request.headers.get("mcp-session-id", ""), event_id), None)

    def all(self) -> list[Pending]:
        """Empty the memory, at the end."""
        pending = list(self._pending.values())
        self._pending.clear()
        return pending


def closing_event(outcome: Outcome, record: Record, rule: str | None = None) -> bytes:
    """The last event of a stream that has no answer: ours, in the form for its method."""
    record.unanswered = True
    record.ended = None
    record.end("cut", "unreadable" if rule is not None else "stream-cut", 200)
    body = written(GiveUp(outcome=outcome, rule=rule), record)
    return b"event: message\ndata: " + body + b"\n\n"


def _awaited(request: HTTPRequest, record: Record, resumptions: Resumptions) -> Pending | None:
    """Whose answer this stream owes: the request's own, or that of the call which a GET resumes."""
    if record.outgoing is not None and record.outgoing.kind == "request":
        return Pending(record)
    return resumptions.take(request)


class ClosingStream:
    """One event stream on its way to the client.

    Args:
        response: The answer whose stream it is.
        request: The request, whose headers name the session and what a GET resumes.
        record: The record of that request.
        resumptions: What waits for a resumption.
        file: Files a record, once.
    """

    def __init__(
        self,
        response: HTTPResponse,
        request: HTTPRequest,
        record: Record,
        resumptions: Resumptions,
        file: File,
    ) -> None:
        self._source = response.stream
        self._state = state_of(response)
        self._awaited = _awaited(request, record, resumptions)
        self._session = response.headers.get("mcp-session-id") or request.headers.get(
            "mcp-session-id"
        )
        self._resumptions = resumptions
        self._record = record
        self._file = file
        self._digest = sha256()
        self._length = 0
        self._iterator: AsyncGenerator[bytes, None] | None = None
        self._open = True
        self._left_open = False

    def parts(self) -> AsyncGenerator[bytes, None]:
        """The stream's bytes, and the closing event where one is owed."""
        self._iterator = self._parts()
        return self._iterator

    async def _parts(self) -> AsyncGenerator[bytes, None]:
        failure: str | None = None
        try:
            async for part in self._source:
                yield self._count(part)
        except Exception as error:  # noqa: BLE001 - the client is told in words
            failure = type(error).__name__
        self._open = False
        if failure is not None and self._record.sent:
            self._record.sent[-1].error = failure
        last = self._ending()
        if last is not None:
            yield self._count(last)

    def _ending(self) -> bytes | None:
        """The closing event, or ``None`` where the answer came or can still be resumed."""
        awaited, state = self._awaited, self._state
        if awaited is None or state.replied:
            return None
        if state.rule is not None:
            return closing_event(_outcome(state), awaited.record, state.rule)
        if self._session is not None and state.last_id is not None:
            awaited.tries += 1
            if awaited.tries <= _MOST_RESUMPTIONS:
                gone = self._resumptions.wait_for(self._session, state.last_id, awaited)
                self._left_open = True
                if gone is not None:
                    gone.give_up(self._file)
                return None
        return closing_event("cut-stream", awaited.record)

    def _count(self, part: bytes) -> bytes:
        self._digest.update(part)
        self._length += len(part)
        return part

    async def close(self) -> None:
        """Close what is below, keep its connection where that is cheap, and file the record."""
        iterator, self._iterator = self._iterator, None
        if iterator is None:
            return
        try:
            with anyio.CancelScope(shield=True):
                await iterator.aclose()
                if self._open and self._state.replied:
                    await self._drain()
                await self._source.aclose()
        finally:
            self._finish()

    async def _drain(self) -> None:
        """Read on for a moment: the stream ends, and then its connection is free."""
        with anyio.move_on_after(_DRAIN_SECONDS):
            try:
                async for _ in self._source:
                    pass
            except Exception:  # noqa: BLE001, S110 - the answer has been read; this is only courtesy
                pass

    def _finish(self) -> None:
        record = self._record
        record.answer_form = "sse"
        record.answer_length = self._length
        record.answer_sha256 = self._digest.hexdigest()
        awaited = self._awaited
        if awaited is not None and self._state.replied:
            awaited.record.completed = True
        elif awaited is not None and not self._left_open and self._open:
            # Closed by its reader before the answer came: what ran is unknown, and nobody is told.
            awaited.record.unanswered = True
            awaited.record.ended = None
            awaited.record.end("cut", "cancelled", 200)
        if awaited is None or awaited.record is not record:
            self._file(record)
        if awaited is not None and not self._left_open:
            self._file(awaited.record)


def _outcome(state: EventState) -> Outcome:
    """What to call a stream that broke a rule."""
    if state.rule is not None and state.rule.startswith("stream-"):
        return "deadline"
    return "too-large" if state.too_large else "unreadable"
