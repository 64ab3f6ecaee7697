"""The law of this file: a request that carries an id always gets an answer, and never an exception.

Measured: an exception out of a transport ends the SDK's session and every call in flight on it, a
bare non-2xx ends a 1.x session, a failed notification costs both SDKs their writer. So what is
given up on is answered in words, in the form that its client reads and no framework repeats (DESIGN
section 7). Cancellation passes; it is nobody's answer.
"""

from __future__ import annotations

import logging
from hashlib import sha256
from inspect import isawaitable
from typing import TYPE_CHECKING, Any, Final, Self

from surefoot.errors import AuthorizationRequiredError
from surefoot.policy import Replay

from ._body import let_go
from ._clock import Clock, SystemClock
from ._closing import ClosingStream, Resumptions, closing_event
from ._family import Family, family_of
from ._giveup import GiveUp, after_error, after_status, written, written_error
from ._note import NOTE, Note, note_of
from ._opening import Opener
from ._recorder import MARK, Record, mark_of
from ._streams import filed_when_closed

if TYPE_CHECKING:
    from collections.abc import Callable

    from surefoot.evidence import Ledger

    from ._endpoint import Endpoint
    from ._family import AsyncTransport, HTTPRequest, HTTPResponse

__all__ = ["AnsweringTransport"]

_logger = logging.getLogger("surefoot")

_JSON: Final = [(b"content-type", b"application/json")]
_OK: Final = 200
_ACCEPTED: Final = 202
_FAILURES_FROM: Final = 300
_AUTH: Final = frozenset({401, 403})
_MEANINGFUL: Final = frozenset({400, 404})
"""Statuses to which the protocol gives a meaning of its own: a lost session, an unknown method."""

_DISCOVER_PASSES: Final = frozenset({400, 401, 403, 404})
_TRANSIENT_BUT_METHOD: Final = frozenset({-32601, -32022})


class AnsweringTransport:
    """The outermost layer of a stack: answers in words what the layers below gave up on.

    Args:
        wrapped: The stack below.
        endpoint: Whose requests are ours; ``None`` means all of them (D31).
        beside: Where other requests go, untouched; by default ``wrapped``.
        replay: What the app declared.
        name: The endpoint's label.
        auth_above: An auth flow above reads 401 and 403 even on mcp 1.x.
        on_authorization: Told when a person must consent first.
        ledger: Where evidence goes outside of any run.
        clock: Time.
        max_body: Bytes of a request body that are kept for a repeat (D10).
        owner: Whose stack this is, so that the same Gateway does not wrap twice.
    """

    def __init__(
        self,
        wrapped: AsyncTransport,
        *,
        endpoint: Endpoint | None = None,
        beside: AsyncTransport | None = None,
        replay: Replay | None = None,
        name: str | None = None,
        auth_above: bool = False,
        on_authorization: Callable[[AuthorizationRequiredError], object] | None = None,
        ledger: Ledger | None = None,
        clock: Clock | None = None,
        max_body: int = 16 * 1024 * 1024,
        owner: object = None,
    ) -> None:
        self.wrapped = wrapped
        self.endpoint = endpoint
        self.owner = owner
        self._beside = beside or wrapped
        self._auth_above = auth_above
        self._on_authorization = on_authorization
        self._clock: Clock = clock or SystemClock()
        self._opener = Opener(
            replay=replay or Replay(),
            name=name,
            ledger=ledger,
            clock=self._clock,
            max_body=max_body,
        )
        self._resumptions = Resumptions()
        self._settings: dict[str, Any] = {
            "endpoint": endpoint, "beside": beside, "replay": replay, "name": name,
            "auth_above": auth_above, "on_authorization": on_authorization, "ledger": ledger,
            "clock": clock, "max_body": max_body, "owner": owner,
        }  # fmt: skip

    @property
    def proves_not_sent(self) -> bool | None:
        """As the stack below."""
        return getattr(self.wrapped, "proves_not_sent", None)

    def rewrapped(self, wrapped: AsyncTransport) -> AnsweringTransport:
        """The same answering over another stack."""
        return AnsweringTransport(wrapped, **self._settings)

    async def __aenter__(self) -> Self:
        """Enter what is below, where it can be entered."""
        enter = getattr(self._beside, "__aenter__", None)
        if enter is not None:
            await enter()
        return self

    async def __aexit__(self, *exc: object) -> None:
        """Leave what is below, where it was entered, or close it."""
        leave = getattr(self._beside, "__aexit__", None)
        if leave is None:
            await self.aclose()
        else:
            await leave(*exc)

    async def aclose(self) -> None:
        """Close the stack below."""
        await self.wrapped.aclose()

    async def handle_async_request(self, request: HTTPRequest) -> HTTPResponse:
        """Answer the request. Raises nothing for one that carries an id, cancellation excepted."""
        if self.endpoint is not None and not self.endpoint.owns(request):
            return await self._beside.handle_async_request(request)
        if mark_of(request) is not None:
            return await self.wrapped.handle_async_request(request)
        family = family_of(request)
        record = await self._opener.open(request, family)
        request.extensions[MARK] = record
        try:
            response = await self.wrapped.handle_async_request(request)
        except Exception as error:  # noqa: BLE001 - whatever it is, the session must not die of it
            caught = error
        except BaseException:
            record.end("cut", "cancelled")
            record.file(self._clock.monotonic())
            raise
        else:
            return await self._answer(response, request, record, family)
        finally:
            request.extensions.pop(MARK, None)
        return await self._answer_error(caught, request, record, family)

    async def _answer_error(
        self, error: Exception, request: HTTPRequest, record: Record, family: Family
    ) -> HTTPResponse:
        """Put an exception into words, or let it pass where there is nobody to read them."""
        if isinstance(error, AuthorizationRequiredError):
            await self._ask(error)
        kind = None if record.outgoing is None else record.outgoing.kind
        if kind == "request":
            return self._local(written(after_error(error, record), record), record, family)
        if (pending := self._resumptions.take(request)) is not None:
            return self._resumption_failed(pending.record, record, family)
        if kind in ("notification", "response"):
            return self._accepted(record, family)
        record.file(self._clock.monotonic())
        raise error

    async def _answer(
        self, response: HTTPResponse, request: HTTPRequest, record: Record, family: Family
    ) -> HTTPResponse:
        """Hand an answer on, or put what it says into the form that its client can read."""
        status: int = response.status_code
        note = note_of(response)
        outgoing = record.outgoing
        kind = None if outgoing is None else outgoing.kind
        if kind == "request":
            if note is not None and note.kind == "stream":
                return self._stream(response, request, record, family)
            if status < _FAILURES_FROM and (note is None or note.kind in ("result", "empty")):
                return self._whole(response, record, note, family)
            return await self._answer_failure(response, request, record, family)
        if status >= _FAILURES_FROM:
            if (pending := self._resumptions.take(request)) is not None:
                await let_go(response)
                return self._resumption_failed(pending.record, record, family)
            if kind in ("notification", "response"):
                await let_go(response)
                return self._accepted(record, family)
        if note is not None and note.kind == "stream":
            return self._stream(response, request, record, family)
        return self._whole(response, record, note, family)

    async def _answer_failure(
        self, response: HTTPResponse, request: HTTPRequest, record: Record, family: Family
    ) -> HTTPResponse:
        """An answer that is no result: pass on what has a meaning, put the rest into words."""
        status: int = response.status_code
        note = note_of(response) or Note(kind="failure")
        in_session = "mcp-session-id" in request.headers
        refused = bool(record.sent) and record.sent[-1].kind is not None
        if note.kind == "unreadable":
            outcome = "too-large" if note.too_large else "unreadable"
            record.ended = None
            record.end("answered", "unreadable", status)
            record.unanswered = True
            await let_go(response)
            return self._local(
                written(GiveUp(outcome=outcome, rule=note.rule), record), record, family
            )
        given_up = after_status(status, record, in_session=in_session, error_type=note.error_type)
        if not refused and self._passes(status, note, record, in_session=in_session, family=family):
            if note.kind != "error":
                return self._kept(response, given_up, record, family)
            if family.major == 1 and status not in _AUTH | {404}:
                return self._restated(response, record, family, _OK)
            return self._whole(response, record, note, family)
        if status in _AUTH and (family.major > 1 or self._auth_above):
            return self._kept(response, given_up, record, family)
        await let_go(response)
        return self._local(written(given_up, record), record, family)

    def _passes(
        self, status: int, note: Note, record: Record, *, in_session: bool, family: Family
    ) -> bool:
        """Whether the server's own words keep their meaning for the client (DESIGN section 7)."""
        outgoing: Any = record.outgoing
        if status in _AUTH:
            return note.kind == "error" and (family.major > 1 or self._auth_above)
        if record.may_have_run:
            return False
        if outgoing.method == "server/discover":
            transient = status >= 500 or status == 429
            return status in _DISCOVER_PASSES or (
                note.kind == "error" and (not transient or note.code in _TRANSIENT_BUT_METHOD)
            )
        if status == 404:
            return in_session or note.kind == "error"
        return note.kind == "error"

    def _kept(
        self, response: HTTPResponse, given_up: GiveUp, record: Record, family: Family
    ) -> HTTPResponse:
        """The status stays, because somebody above reads it; the body is ours."""
        body = written_error(given_up, record)
        challenge = [
            (name.lower(), value)
            for name, value in response.headers.raw
            if name.lower() in (b"www-authenticate", b"retry-after")
        ]
        record.rebuilt = True
        return self._sealed(response.status_code, [*_JSON, *challenge], body, record, family)

    def _restated(
        self, response: HTTPResponse, record: Record, family: Family, status: int
    ) -> HTTPResponse:
        """The server's own JSON-RPC error at another status, for a client that dies of its own."""
        record.rebuilt = True
        return self._sealed(status, list(_JSON), response.read(), record, family)

    def _local(self, body: bytes, record: Record, family: Family) -> HTTPResponse:
        """An answer of our own."""
        record.rebuilt = True
        return self._sealed(_OK, list(_JSON), body, record, family)

    def _resumption_failed(self, cut: Record, record: Record, family: Family) -> HTTPResponse:
        """A GET that could not resume a cut call: the call's own closing event, at 200."""
        body = closing_event("cut-stream", cut)
        self._file(cut, None)
        record.rebuilt = True
        kind = [(b"content-type", b"text/event-stream")]
        return self._sealed(_OK, kind, body, record, family)

    def _accepted(self, record: Record, family: Family) -> HTTPResponse:
        """A failed notification: recorded, and answered as every notification is."""
        record.rebuilt = True
        return self._sealed(_ACCEPTED, [], b"", record, family)

    def _sealed(
        self,
        status: int,
        headers: list[tuple[bytes, bytes]],
        body: bytes,
        record: Record,
        family: Family,
    ) -> HTTPResponse:
        """Build an answer, write down what the client will read, and file the record."""
        headers.append((b"content-length", b"%d" % len(body)))
        response = family.response(status, headers, body)
        record.answer_form = "local"
        self._file(record, response.stream)
        return response

    def _stream(
        self, response: HTTPResponse, request: HTTPRequest, record: Record, family: Family
    ) -> HTTPResponse:
        """A stream that goes by, and ends in words if it has to."""
        stream = ClosingStream(response, request, record, self._resumptions, self._file)
        response.extensions.pop(NOTE, None)
        response.stream = family.stream(stream.parts(), stream.close)
        return response

    def _whole(
        self, response: HTTPResponse, record: Record, note: Note | None, family: Family
    ) -> HTTPResponse:
        """An answer that passes as it was read."""
        if not isinstance(response.stream, family.ByteStream):
            return filed_when_closed(response, family, record, self._clock)
        response.extensions.pop(NOTE, None)
        empty = note is not None and note.kind == "empty"
        record.answer_form = "empty" if empty else "json"
        self._file(record, response.stream)
        return response

    def _file(self, record: Record, body: Any) -> None:
        """File the record, with the digest of exactly what the client was given."""
        if body is not None and record.ledger is not None:
            whole = b"".join(body)
            record.answer_length = len(whole)
            record.answer_sha256 = sha256(whole).hexdigest()
        record.file(self._clock.monotonic())

    async def _ask(self, error: AuthorizationRequiredError) -> None:
        """Tell the app that a person must consent; what its hook does changes nothing."""
        if self._on_authorization is None:
            return
        try:
            told = self._on_authorization(error)
            if isawaitable(told):
                await told
        except Exception as raised:  # noqa: BLE001 - a hook's failure is its own
            _logger.warning("on_authorization raised %s", type(raised).__name__)
