"""The law of this file: what an attempt's answer may be read as is decided here, once (R88, R104).

A body is read to its end inside the attempt, within bounds, and goes up as the canonical form of
exactly what was checked and scrubbed; a reset in the middle of it is therefore an attempt without
an answer, and not an answer. An event stream goes up at its headers and is checked event by event
as it passes, without being peeked at: waiting for a first event made a held stream 15 times slower.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, Literal

import anyio

from surefoot.errors import AnswerTooLargeError, UnreadableAnswerError
from surefoot.wire import (
    CheckedAnswer,
    JsonLimits,
    RawAnswer,
    origin_of,
    read_head,
    refused_answer,
    safe_answer,
)

from ._clock import Clock, SystemClock
from ._content import whole_body
from ._events import EventReader, EventRules
from ._family import family_of, lines_of
from ._note import NOTE, EventState, Note
from ._recognise import redirect_target
from ._recorder import mark_of
from ._seal import SEAL

if TYPE_CHECKING:
    from surefoot.wire import RequestId, Scrub

    from ._endpoint import Endpoint
    from ._family import AsyncTransport, Family, HTTPRequest, HTTPResponse, Line
    from ._recorder import Record

__all__ = ["ReadingTransport"]

_EVENT_STREAM: Final = b"text/event-stream"
_REPEATABLE: Final = frozenset({307, 308})
"""Redirects that keep method and body, and may therefore be followed at all (B11)."""

_CHALLENGING: Final = frozenset({401, 403})
_REPLIES: Final = frozenset({"result", "error"})
_CLOSE_SECONDS: Final = 1.0


class ReadingTransport:
    """Reads each attempt's answer strictly, scrubs it, and hands up what was checked.

    Args:
        wrapped: The transport below.
        endpoint: The endpoint, on whose origin the URLs of a challenge must be (D23); without one
            the request's own origin counts.
        policy: ``checked`` or ``strict`` (D20).
        clock: Time.
        limits: Bounds of one JSON text, its bytes among them (B12).
        max_event_bytes: Bytes of one event; 1 MiB is what the SDK itself reads.
        idle: Seconds without a byte after which an event stream ends.
        total: Seconds after which the answer to a request ends, however lively its stream is.
    """

    def __init__(
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
        self._rules = EventRules(
            policy=policy,
            clock=clock or SystemClock(),
            limits=limits or JsonLimits(),
            max_event_bytes=max_event_bytes,
            idle=idle,
            total=total,
        )
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
        try:
            body = await whole_body(response.stream, lines, self._rules.limits.max_bytes)
        except UnreadableAnswerError as error:
            # A failure's own status says more than a body that cannot be read.
            checked = (
                self._checked(
                    RawAnswer(status, tuple(lines), b""), request, request_id, scrub
                )
                if status >= 300
                else refused_answer(
                    error.rule,
                    request_id=request_id,
                    too_large=isinstance(error, AnswerTooLargeError),
                )
            )
        else:
            checked = self._checked(
                RawAnswer(status, tuple(lines), body), request, request_id, scrub
            )
        finally:
            await _closed(response)
        if record is not None:
            _write_down(record, checked, scrub)
        headers = list(checked.headers)
        if record is None or not 300 <= status < 400:
            status = checked.status
        elif (place := _place_within(request, response, scrub)) is not None:
            # For the series above, which alone may follow it (B11). Answering lets none pass.
            headers.append((b"location", place))
        answer = family.response(status, headers, checked.body)
        answer.extensions[NOTE] = _note(checked, lines, scrub)
        return answer

    def _checked(
        self,
        raw: RawAnswer,
        request: HTTPRequest,
        request_id: RequestId | None,
        scrub: Scrub | None,
    ) -> CheckedAnswer:
        origin = self._origin
        if origin is None and raw.status in _CHALLENGING:
            origin = origin_of(str(request.url))
        return safe_answer(
            raw,
            request_id=request_id,
            policy=self._rules.policy,
            scrub=scrub,
            origin=origin,
            in_session=raw.status >= 300 and "mcp-session-id" in request.headers,
            limits=self._rules.limits,
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
            response.status_code, lines, policy=self._rules.policy, origin=self._origin, scrub=scrub
        )
        state = EventState()
        if head.media != "events":
            state.rule = head.rule or "content-type"
        source = response.stream
        events = EventReader(self._rules, state, record, scrub, request)
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


def _is_event_stream(lines: Sequence[Line]) -> bool:
    """Whether some content type names an event stream; if it is well said, is checked later."""
    return any(
        name == b"content-type" and value.lower().lstrip().startswith(_EVENT_STREAM)
        for name, value in lines
    )


async def _closed(response: HTTPResponse) -> None:
    """Close what was read, even in a cancelled task, and without waiting for ever."""
    with anyio.CancelScope(shield=True), anyio.move_on_after(_CLOSE_SECONDS):
        await response.stream.aclose()


def _place_within(
    request: HTTPRequest, response: HTTPResponse, scrub: Scrub | None
) -> bytes | None:
    """Where a redirect points that stays within the origin and tells no secret."""
    if response.status_code not in _REPEATABLE or redirect_target(request, response) is None:
        return None
    place = next(value for name, value in lines_of(response) if name == b"location")
    return None if scrub is not None and scrub.holds(place) else place


def _write_down(record: Record, checked: CheckedAnswer, scrub: Scrub | None) -> None:
    """Leave in the record what only the reader knows."""
    sent = record.sent[-1] if record.sent else None
    if checked.kind == "result":
        record.completed = True
        if sent is not None:
            sent.effect = "ran"
    if checked.message is not None and checked.kind in _REPLIES:
        record.heard(checked.message.value)
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
