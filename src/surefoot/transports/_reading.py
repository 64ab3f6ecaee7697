"""The law of this file: what an attempt's answer may be read as is decided here, once (R88, R104).

A body is read to its end inside the attempt, within bounds, and goes up as the canonical form of
exactly what was checked and scrubbed; a reset in the middle of it is therefore an attempt without an
answer, and not an answer. An event stream goes up at its headers and is checked event by event as it
passes, without being peeked at: waiting for a first event made a held stream 15 times slower.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from typing import TYPE_CHECKING, Any, Final, Literal

import anyio

from surefoot.errors import AnswerTooLargeError, UnreadableAnswerError
from surefoot.wire import (
    CheckedAnswer,
    JsonLimits,
    RawAnswer,
    SseDecoder,
    read_head,
    refused_answer,
    safe_answer,
    safe_event,
)

from ._clock import Clock, SystemClock
from ._content import decoded, whole_body
from ._family import family_of, lines_of
from ._note import NOTE, EventState, Note
from ._recorder import mark_of
from ._seal import SEAL

if TYPE_CHECKING:
    from surefoot.wire import Outgoing, RequestId, Scrub

    from ._endpoint import Endpoint
    from ._family import AsyncTransport, Family, HTTPRequest, HTTPResponse, Line
    from ._recorder import Record

__all__ = ["ReadingTransport"]

_EVENT_STREAM: Final = b"text/event-stream"
_CLOSE_SECONDS: Final = 1.0


class ReadingTransport:
    """Reads each attempt's answer strictly, scrubs it, and hands up what was checked.

    Args:
        wrapped: The transport below.
        endpoint: The endpoint, on whose origin the URLs of a challenge must be (D23).
        policy: ``checked`` or ``strict`` (D20).
        clock: Time.
        limits: Bounds of one JSON text, its bytes among them (B12).
        max_event_bytes: Bytes of one event; 1 MiB is what the SDK itself reads.
        idle: Seconds without a byte after which an event stream ends.
        total: Seconds after which the answer to a request ends, however lively its stream is.
    """

    def __init__(  # noqa: PLR0917 - keyword-only
        self,
        wrapped: AsyncTransport,
        *,
        endpoint: Endpoint | None = None,
        policy: Literal["checked", "strict"] = "checked",
        clock: Clock | None = None,
        limits: JsonLimits | None = None,
        max_event_bytes: int = 1024 * 1024,
        idle: float = 300.0,
        total: float = 3600.0,
    ) -> None:
        self.wrapped = wrapped
        self._origin = None if endpoint is None else endpoint.parts
        self._policy: Literal["checked", "strict"] = policy
        self._clock: Clock = clock or SystemClock()
        self._limits = limits or JsonLimits()
        self._max_event = max_event_bytes
        self._idle = idle
        self._total = total
        self._settings: dict[str, Any] = {
            "endpoint": endpoint, "policy": policy, "clock": clock, "limits": limits,
            "max_event_bytes": max_event_bytes, "idle": idle, "total": total,
        }  # fmt: skip

    @property
    def proves_not_sent(self) -> bool | None:
        """As the transport below."""
        return getattr(self.wrapped, "proves_not_sent", None)

    def rewrapped(self, wrapped: AsyncTransport) -> ReadingTransport:
        """The same reading over another transport."""
        return ReadingTransport(wrapped, **self._settings)

    async def aclose(self) -> None:
        """Close the transport below."""
        await self.wrapped.aclose()

    async def handle_async_request(self, request: HTTPRequest) -> HTTPResponse:
        """Send once, and hand up what the answer may be read as.

        Raises:
            Exception: what the transport raised, before or in the middle of the answer.
        """
        response = await self.wrapped.handle_async_request(request)
        seal = response.extensions.pop(SEAL, None)
        scrub: Scrub | None = None if seal is None else seal.scrub()
        family = family_of(request)
        record = mark_of(request)
        lines = lines_of(response)
        status: int = response.status_code
        if status < 300 and _is_event_stream(lines):
            return self._stream(response, request, record, lines, scrub)
        outgoing = None if record is None else record.outgoing
        request_id = None if outgoing is None or outgoing.kind != "request" else outgoing.id
        in_session = "mcp-session-id" in request.headers
        try:
            body = await whole_body(response.stream, lines, self._limits.max_bytes)
        except UnreadableAnswerError as error:
            # A failure's own status says more than a body that cannot be read.
            checked = (
                self._checked(status, lines, b"", request_id, scrub, in_session)
                if status >= 300
                else refused_answer(
                    error.rule,
                    request_id=request_id,
                    too_large=isinstance(error, AnswerTooLargeError),
                )
            )
        else:
            checked = self._checked(status, lines, body, request_id, scrub, in_session)
        finally:
            await _closed(response)
        if record is not None:
            _write_down(record, checked, scrub)
        answer = family.response(checked.status, list(checked.headers), checked.body)
        answer.extensions[NOTE] = _note(checked, lines, scrub)
        return answer

    def _checked(
        self,
        status: int,
        lines: Sequence[Line],
        body: bytes,
        request_id: RequestId | None,
        scrub: Scrub | None,
        in_session: bool,  # noqa: FBT001 - the caller's own variable
    ) -> CheckedAnswer:
        return safe_answer(
            RawAnswer(status, tuple(lines), body),
            request_id=request_id,
            policy=self._policy,
            scrub=scrub,
            origin=self._origin,
            in_session=in_session,
            limits=self._limits,
        )

    def _stream(
        self,
        response: HTTPResponse,
        request: HTTPRequest,
        record: Record | None,
        lines: list[Line],
        scrub: Scrub | None,
    ) -> HTTPResponse:
        """An event stream, handed up at its headers."""
        family: Family = family_of(request)
        head = read_head(
            response.status_code, lines, policy=self._policy, origin=self._origin, scrub=scrub
        )
        state = EventState()
        if head.media != "events":
            state.rule = head.rule or "content-type"
        source = response.stream
        events = _Events(self, state, record, scrub, _silent_for(request, self._idle))
        parts = events.read(source, lines)

        async def close() -> None:
            try:
                await parts.aclose()
            finally:
                await source.aclose()

        stream = family.stream(parts, close)
        headers = [*head.headers, (b"content-type", _EVENT_STREAM)]
        answer = family.Response(response.status_code, headers=headers, stream=stream)
        answer.extensions[NOTE] = Note(kind="stream", events=state, seen=_seen(lines, scrub))
        return answer


class _Events:
    """One event stream on its way up: decoded, checked, written again."""

    def __init__(  # noqa: PLR0917 - its one caller knows each of them
        self,
        reading: ReadingTransport,
        state: EventState,
        record: Record | None,
        scrub: Scrub | None,
        silence: float | None,
    ) -> None:
        self._policy = reading._policy  # noqa: SLF001 - one file
        self._limits = reading._limits  # noqa: SLF001
        self._max_event = reading._max_event  # noqa: SLF001
        self._clock = reading._clock  # noqa: SLF001
        self._state = state
        self._record = record
        self._scrub = scrub
        self._silence = silence
        outgoing: Outgoing | None = None if record is None else record.outgoing
        asked = outgoing is not None and outgoing.kind == "request"
        self._id = outgoing.id if outgoing is not None and asked else None
        self._end = self._clock.monotonic() + reading._total if asked else None  # noqa: SLF001
        self._room = self._limits.max_bytes if asked else None

    async def read(self, source: Any, lines: Sequence[Line]) -> AsyncGenerator[bytes, None]:
        """The checked events; ends where the stream ends, and where it breaks a rule (D22)."""
        if self._state.rule is not None:
            return
        decoder = SseDecoder(max_event_bytes=self._max_event, keep_alives=True)
        chunks = decoded(source, lines)
        try:
            while (chunk := await self._next(chunks)) is not None:
                part = self._checked(decoder, chunk)
                if part:
                    yield part
                if self._state.rule is not None:
                    return
        except UnreadableAnswerError as error:
            self._broken(error)
        finally:
            await chunks.aclose()

    async def _next(self, chunks: AsyncGenerator[bytes, None]) -> bytes | None:
        """The next chunk, or ``None`` at the end of the stream; within the limits of time."""
        if self._silence is None:
            chunk = await anext(chunks, None)
        else:
            chunk = None
            with anyio.move_on_after(self._silence) as silence:
                chunk = await anext(chunks, None)
            if silence.cancelled_caught:
                raise AnswerTooLargeError(rule="stream-idle-seconds", limit=self._silence)
        if self._end is not None and not self._state.replied:
            if self._clock.monotonic() >= self._end:
                raise AnswerTooLargeError(rule="stream-total-seconds", limit=self._end)
            if chunk is not None and self._room is not None:
                self._room -= len(chunk)
                if self._room < 0:
                    raise AnswerTooLargeError(rule="too-many-bytes", limit=self._limits.max_bytes)
        return chunk

    def _checked(self, decoder: SseDecoder, chunk: bytes) -> bytes:
        """The events that one chunk finishes, checked and written again."""
        state = self._state
        out: list[bytes] = []
        try:
            for block in decoder.feed(chunk):
                event = safe_event(
                    block,
                    request_id=self._id,
                    policy=self._policy,
                    scrub=self._scrub,
                    limits=self._limits,
                    max_event_bytes=self._max_event,
                )
                if event.scrubbed and self._record is not None and self._record.sent:
                    self._record.sent[-1].hits += event.scrubbed
                if event.rule is not None:
                    state.rule = event.rule
                    state.too_large = event.outcome == "too-large"
                    break
                if event.id:
                    state.last_id = event.id
                if event.replies:
                    self._replied(event.kind)
                out.append(event.wire)
        except UnreadableAnswerError as error:
            self._broken(error)
        return out[0] if len(out) == 1 else b"".join(out)

    def _replied(self, kind: str) -> None:
        self._state.replied = True
        if self._record is not None and kind == "result":
            self._record.completed = True
            if self._record.sent:
                self._record.sent[-1].effect = "ran"

    def _broken(self, error: UnreadableAnswerError) -> None:
        self._state.rule = error.rule
        self._state.too_large = isinstance(error, AnswerTooLargeError)


def _is_event_stream(lines: Sequence[Line]) -> bool:
    """Whether some content type names an event stream; if it is well said, is checked later."""
    return any(
        name == b"content-type" and value.lower().lstrip().startswith(_EVENT_STREAM)
        for name, value in lines
    )


def _silent_for(request: HTTPRequest, idle: float) -> float | None:
    """Seconds of silence that this file itself has to bound, or ``None`` where the client does.

    A scope around every chunk costs as much as the chunk, and a client with a read timeout already
    ends a silent stream.
    """
    read = request.extensions.get("timeout", {}).get("read")
    return None if isinstance(read, (int, float)) and read <= idle else idle


async def _closed(response: HTTPResponse) -> None:
    """Close what was read, even in a cancelled task, and without waiting for ever."""
    with anyio.CancelScope(shield=True), anyio.move_on_after(_CLOSE_SECONDS):
        await response.stream.aclose()


def _write_down(record: Record, checked: CheckedAnswer, scrub: Scrub | None) -> None:
    """Leave in the record what only the reader knows."""
    sent = record.sent[-1] if record.sent else None
    if checked.kind == "result":
        record.completed = True
        if sent is not None:
            sent.effect = "ran"
    if sent is not None:
        sent.hits += checked.scrubbed
        sent.unsearched = 0 if scrub is None else scrub.too_short


def _note(checked: CheckedAnswer, lines: list[Line], scrub: Scrub | None) -> Note:
    message = checked.message
    code = None
    if message is not None and checked.kind == "error":
        code = message.value["error"]["code"]
    return Note(
        kind=checked.kind,
        rule=checked.rule,
        too_large=checked.outcome == "too-large",
        error_type=checked.error_type,
        code=code,
        outcome=checked.outcome,
        retry_after=checked.retry_after,
        seen=_seen(lines, scrub),
    )


def _seen(lines: list[Line], scrub: Scrub | None) -> Any:
    """The header lines as rules may see them: all that hold no secret."""
    if scrub is None:
        return lambda: lines
    return lambda: [(name, value) for name, value in lines if not scrub.holds(value)]
