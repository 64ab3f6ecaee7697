"""The law of this file: a stream that ends without its answer ends with ours.

A cut stream leaves a 1.x client waiting for ever and tells a 2.x client nothing. So the last event
is one of ours, in words, with one exception: where the era has sessions and an event id was seen,
the client can resume, and it is left to do so; only a resumption that fails gets the closing event
(DESIGN section 7).
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from hashlib import sha256
from typing import TYPE_CHECKING, Final

import anyio

from surefoot.evidence import MAX_CONTENT

from ._family import finished
from ._giveup import why_refused
from ._note import state_of
from ._resuming import Pending, closing_event

if TYPE_CHECKING:
    from ._family import Family, HTTPRequest, HTTPResponse
    from ._recorder import Record
    from ._resuming import File, Resumptions

__all__ = ["ClosingStream"]

_DRAIN_SECONDS: Final = 0.02
"""How long an answered stream is read on, so that its connection is kept (DESIGN section 7)."""

_CLOSE_SECONDS: Final = 1.0


class ClosingStream:
    """One event stream on its way to the client.

    Args:
        response: The answer whose stream it is.
        request: The request, whose headers name the session and what a GET resumes.
        family: The HTTP library.
        record: The record of that request.
        resumptions: What waits for a resumption.
        file: Files a record, once.
    """

    def __init__(  # noqa: PLR0917 - what its one caller knows of a stream
        self,
        response: HTTPResponse,
        request: HTTPRequest,
        family: Family,
        record: Record,
        resumptions: Resumptions,
        file: File,
    ) -> None:
        self._source = response.stream
        self._state = state_of(response)
        outgoing = record.outgoing
        if outgoing is not None and outgoing.kind == "request":
            self._awaited: Pending | None = Pending(record, family)
            self._resumable = not outgoing.has_result_type
        else:
            self._awaited = resumptions.take(request, record, family)
            self._resumable = True
        self._heads = (response.headers, request.headers)
        self._resumptions = resumptions
        self._record = record
        self._file = file
        # A digest of what nobody records is work for nothing.
        self._digest = None if record.ledger is None else sha256()
        owner = record if self._awaited is None else self._awaited.record
        self._kept = bytearray() if owner.keeps_content else None
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
            return closing_event(
                why_refused(state.rule, too_large=state.too_large), awaited, state.rule
            )
        if state.last_id is not None and self._resumable and awaited.may_resume():
            key = (self._session(), state.last_id)
            self._left_open = self._resumptions.wait_for(key, awaited, self._file)
            if self._left_open:
                if awaited.record.fence is not None:
                    awaited.record.fence.left_open(awaited.record)
                return None
        return closing_event("cut-stream", awaited)

    def _session(self) -> str:
        """The session that the stream belongs to; empty where there is none."""
        found = [head["mcp-session-id"] for head in self._heads if "mcp-session-id" in head]
        return found[0] if found else ""

    def _count(self, part: bytes) -> bytes:
        if self._digest is not None:
            self._digest.update(part)
        self._length += len(part)
        if self._kept is not None and len(self._kept) <= MAX_CONTENT:
            self._kept += part
        return part

    async def close(self) -> None:
        """Close what is below, keep its connection where that is cheap, and file the record."""
        iterator, self._iterator = self._iterator, None
        if iterator is None:
            return
        try:
            if self._open:
                await self._close_early(iterator)
            else:
                # What has ended is closed at once, and need not be guarded.
                await self._source.aclose()
        finally:
            self._finish()

    async def _close_early(self, iterator: AsyncGenerator[bytes, None]) -> None:
        """Close what goes on, even in a cancelled task, and without waiting for ever.

        After the reply the stream is read on for a moment: it ends, and then its connection is
        free.
        """
        await finished(iterator)
        seconds = _DRAIN_SECONDS if self._state.replied else _CLOSE_SECONDS
        with anyio.CancelScope(shield=True, deadline=anyio.current_time() + seconds) as scope:
            if self._state.replied:
                try:
                    async for _ in self._source:
                        pass
                except Exception:  # noqa: BLE001, S110 - the answer has been read; this is courtesy
                    pass
                scope.deadline += _CLOSE_SECONDS
            await self._source.aclose()
        if scope.cancelled_caught:
            with anyio.CancelScope(shield=True, deadline=anyio.current_time() + _CLOSE_SECONDS):
                await self._source.aclose()

    def _finish(self) -> None:
        record = self._record
        record.answer_form = "sse"
        record.answer_length = self._length
        record.answer_sha256 = None if self._digest is None else self._digest.hexdigest()
        awaited = self._awaited
        if awaited is not None:
            # What answers a call is what its last stream gave its client.
            awaited.record.answered_by(record, self._kept)
        if awaited is None and self._state.last_id is not None:
            self._resumptions.stood((self._session(), self._state.last_id))
        if awaited is not None and self._state.replied:
            awaited.record.completed = not self._state.failed
        elif awaited is not None and not self._left_open and self._open:
            # Closed by its reader before the answer came: what ran is unknown, and nobody is told.
            awaited.record.unanswered = True
            awaited.record.ended = None
            awaited.record.end("cut", "cancelled", 200)
        if awaited is None or awaited.record is not record:
            self._file(record)
        if awaited is not None and not self._left_open:
            self._file(awaited.record)
