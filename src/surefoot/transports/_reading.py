"""The law of this file: what an attempt's answer may be read as is decided here, once (R88, R104).

A body is read to its end inside the attempt, within bounds, and goes up as the canonical form of
exactly what was checked and scrubbed; a reset in the middle of it is therefore an attempt without
an answer, and not an answer. An event stream goes up at its headers and is checked event by event
as it passes, without being peeked at: waiting for a first event made a held stream 15 times slower.
"""

from __future__ import annotations

from contextlib import suppress
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

from ._body import closed
from ._clock import Clock, SystemClock
from ._content import framing_of, patient, whole_body
from ._events import EventReader, EventRules, heard, silent_for
from ._family import family_of, finished, lines_of
from ._note import NOTE, EventState, Note
from ._overdue import Patience
from ._recognise import redirect_target
from ._recorder import mark_of
from ._seal import SEAL

if TYPE_CHECKING:
    from surefoot.wire import Scrub

    from ._endpoint import Endpoint
    from ._family import AsyncTransport, Family, HTTPRequest, HTTPResponse, Line
    from ._recorder import Record

__all__ = ["ReadingTransport"]

_EVENT_STREAM: Final = b"text/event-stream"
_REPEATABLE: Final = frozenset({307, 308})
"""Redirects that keep method and body, and may therefore be followed at all (B11)."""

_OURS: Final = frozenset({"failure", "unreadable"})
_WITHOUT_BODY: Final = frozenset({202, 204, 205})
_ASKS_NOTHING: Final = frozenset({"notification", "response"})
_PASSED_OVER: Final = 64 * 1024
"""Bytes of a body that no client reads, which are read for rules, and to keep its connection."""

_AT_ONCE: Final = 0.02
_SOON: Final = 1.0
"""Seconds in which they have to come: without a body by its status, or with one."""

_CHALLENGING: Final = frozenset({401, 403})
_REPLIES: Final = frozenset({"result", "error"})


class _Came:
    """One answer as it came, with what its reader needs. It dies with the answer."""

    __slots__ = ("framing", "lines", "record", "request", "response", "scrub", "status")

    def __init__(self, request: HTTPRequest, response: HTTPResponse, record: Record | None) -> None:
        seal = response.extensions.pop(SEAL, None)
        self.request = request
        self.response = response
        self.record = record
        self.status: int = response.status_code
        self.lines = lines = lines_of(response)
        self.framing = framing_of(lines)
        self.scrub: Scrub | None = None if seal is None else seal.scrub()
        if self.scrub is not None and self.scrub.too_short and record is not None and record.sent:
            record.sent[-1].unsearched_secrets = self.scrub.too_short

    def seen(self) -> list[Line]:
        """The header lines as rules may see them: all that hold no secret."""
        scrub = self.scrub
        if scrub is None:
            return self.lines
        return [(name, value) for name, value in self.lines if not scrub.holds(value)]


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
        total: Seconds after which the answer to a request ends, however lively its stream is; and
            that its headers may take.
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
        self._patience = Patience(total)
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
            Overdue: the headers did not come in time.
            Exception: what the transport raised, before or in the middle of the answer.
        """
        record = mark_of(request)
        if record is not None and (request.method != "GET" or record.resumes is not None):
            response = await self._patience.wait(self.wrapped, request)
        else:
            # A standing stream may begin when it likes.
            response = await self.wrapped.handle_async_request(request)
        came = _Came(request, response, record)
        status = came.status
        if status < 300 and came.framing[0] and status not in _WITHOUT_BODY:
            return self._stream(came)
        body = await self._body(came)
        checked = self._checked(came, body)
        if record is not None:
            _write_down(record, checked)
            if checked.kind == "unreadable" and record.sent:
                # What goes up is a failure; what was answered stays in the evidence.
                record.sent[-1].status = status
        headers = list(checked.headers)
        if record is None or not 300 <= status < 400:
            status = checked.status
        elif (place := _place_within(came)) is not None:
            # For the series above, which alone may follow it (B11). Answering lets none pass.
            headers.append((b"location", place))
        answer = family_of(request).response(status, headers, checked.body)
        note = answer.extensions[NOTE] = _note(checked, came)
        if checked.kind == "empty" and body and isinstance(body, bytes) and status == 200:
            note.shown = self._told(came, body)
        before: Note | None = came.response.extensions.get(NOTE)
        if before is not None and before.kind in _OURS and note.kind == "error":
            # Another stack, behind a wrapper of somebody's, has read it: these words are ours.
            answer.extensions[NOTE] = before
        return answer

    async def _body(self, came: _Came) -> bytes | UnreadableAnswerError:
        """The whole body, or why there is none; the answer is closed either way."""
        if came.status in _WITHOUT_BODY:
            return await self._passed_over(came, _AT_ONCE)
        record = came.record
        if record is not None and (
            came.request.method == "DELETE"
            or ((asked := record.outgoing) is not None and asked.kind in _ASKS_NOTHING)
        ):
            return await self._passed_over(came, _SOON)
        rules = self._rules
        source = chunks = came.response.stream.__aiter__()
        silence = silent_for(came.request, rules.idle)
        if silence is not None:
            chunks = patient(source, silence)
        try:
            body = await whole_body(chunks, came.framing, rules.limits.max_bytes, rules.timer)
        except UnreadableAnswerError as error:
            broken = error.with_traceback(None)
        except BaseException:
            await _dropped(came.response, chunks, source)
            raise
        else:
            # What was read to its end is closed at once, and need not be guarded.
            try:  # noqa: SIM105 - for every answer, and a context manager costs more
                await came.response.stream.aclose()
            except Exception:  # noqa: BLE001, S110 - the answer is there
                pass
            return body
        await _dropped(came.response, chunks, source)
        return broken

    async def _passed_over(self, came: _Came, seconds: float) -> bytes:
        """A body that no client reads, where it comes soon; else nothing, and its status counts.

        Reading it keeps the connection, and a rule may know a refusal by it. But the SDK's writer
        stands still meanwhile, and with it the session: a server must not decide for how long.
        """
        body, source = b"", came.response.stream.__aiter__()
        try:
            with anyio.move_on_after(seconds), suppress(Exception):
                body = await whole_body(source, came.framing, _PASSED_OVER, self._rules.timer)
        finally:
            await _dropped(came.response, source)
        return body

    def _checked(self, came: _Came, body: bytes | UnreadableAnswerError) -> CheckedAnswer:
        """What the client may read of a whole answer."""
        record, status = came.record, came.status
        outgoing = None if record is None else record.outgoing
        request_id = None if outgoing is None or outgoing.kind != "request" else outgoing.id
        in_session = False
        origin = self._origin
        if not isinstance(body, bytes):
            if status < 300:
                large = isinstance(body, AnswerTooLargeError)
                return refused_answer(body.rule, request_id=request_id, too_large=large)
            # A failure's own status says more than a body that cannot be read.
            body = b""
        if status >= 300:
            in_session = "mcp-session-id" in came.request.headers
            if origin is None and status in _CHALLENGING:
                origin = origin_of(str(came.request.url))
        return safe_answer(
            RawAnswer(status, tuple(came.lines), body),
            request_id=request_id,
            policy=self._rules.policy,
            scrub=came.scrub,
            origin=origin,
            in_session=in_session,
            limits=self._rules.limits,
        )

    def _told(self, came: _Came, body: bytes) -> bytes | None:
        """The error that answers what asked for nothing: for rules, because nobody else reads it.

        A service may refuse a notification as it refuses a call, at 200 and in the same words.
        """
        checked = safe_answer(
            RawAnswer(came.status, tuple(came.lines), body),
            request_id=0,
            policy=self._rules.policy,
            scrub=came.scrub,
            limits=self._rules.limits,
        )
        return checked.body if checked.kind == "error" else None

    def _stream(self, came: _Came) -> HTTPResponse:
        """An event stream, handed up at its headers."""
        family: Family = family_of(came.request)
        head = read_head(
            came.status,
            came.lines,
            policy=self._rules.policy,
            origin=self._origin,
            scrub=came.scrub,
        )
        state = EventState()
        if head.media != "events":
            state.rule = head.rule or "content-type"
        source = came.response.stream
        events = EventReader(self._rules, state, came.record, came.scrub, came.request)
        parts = events.read(source, came.framing.coding)
        headers = [*head.headers, (b"content-type", _EVENT_STREAM)]
        answer = family.streamed(came.status, headers, family.stream(parts, source.aclose))
        note = answer.extensions[NOTE] = Note("stream", came.seen)
        note.events = state
        return answer


async def _dropped(response: HTTPResponse, *readers: Any) -> None:
    """Let go of a body that was not read to its end, and of whoever was reading it."""
    for reader in readers:
        with suppress(Exception):
            await finished(reader)
    await closed(response)


def _place_within(came: _Came) -> bytes | None:
    """Where a redirect points that stays within the origin and tells no secret."""
    if came.status not in _REPEATABLE:
        return None
    place = next((value for name, value in came.lines if name == b"location"), None)
    # This first: where URLs are joined, both go into a cache of the process.
    if place is None or (came.scrub is not None and came.scrub.holds(place)):
        return None
    return None if redirect_target(came.request, came.response) is None else place


def _write_down(record: Record, checked: CheckedAnswer) -> None:
    """Leave in the record what only the reader knows."""
    sent = record.sent[-1] if record.sent else None
    if checked.kind == "result":
        record.completed = True
        if sent is not None:
            sent.effect = "ran"
    if checked.message is not None and checked.kind in _REPLIES:
        heard(record, checked.message.value)
    if sent is not None:
        sent.scrubbed_hits += checked.scrubbed


def _note(checked: CheckedAnswer, came: _Came) -> Note:
    note = Note(checked.kind, came.seen)
    if checked.kind != "result":
        note.rule = checked.rule
        note.too_large = checked.outcome == "too-large"
        note.error_type = checked.error_type
        note.outcome = checked.outcome
        note.retry_after = checked.retry_after
        if checked.message is not None and checked.kind == "error":
            note.code = checked.message.value["error"]["code"]
    return note
