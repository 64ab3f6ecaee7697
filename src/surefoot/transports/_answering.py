"""The law of this file: a request that carries an id always gets an answer, and never an exception.

Measured: an exception out of a transport ends the SDK's session with every call on it, a bare
non-2xx ends a 1.x session, a failed notification costs both SDKs their writer. So what is given up
on is answered in words, as its client reads them (DESIGN section 7). Cancellation passes.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, Literal, Self

from surefoot.errors import AuthorizationRequiredError
from surefoot.policy import Replay, parse_retry_after

from ._active import ActiveCalls
from ._body import MAX_REQUEST_BODY, let_go
from ._clock import Clock, SystemClock
from ._closing import ClosingStream
from ._consent import Consent, without_url
from ._family import family_of
from ._fencing import refusal
from ._giveup import GiveUp, after_error, after_status, why_refused, written, written_error
from ._nesting import adopted, marked, passed, unmarked
from ._note import NOTE, Note, note_of, state_of
from ._opening import Opener
from ._passing import Passing, kept_lines, passing
from ._recorder import Record, mark_of
from ._resuming import Resumptions, closing_event
from ._standing import StandingStreams
from ._streams import filed_when_closed

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from surefoot.evidence import Ledger, SpanSource

    from ._calls import CallTable
    from ._endpoint import Endpoint
    from ._family import AsyncTransport, Family, HTTPRequest, HTTPResponse, Line
    from ._fencing import Fencing
    from ._learned import Learned

__all__ = ["AnsweringTransport"]

_JSON: Final = (b"content-type", b"application/json")
_EVENTS: Final = (b"content-type", b"text/event-stream")
_AUTH: Final = frozenset({401, 403})


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
        fencing: What keeps a call that may have run from being made again (B3).
        calls: What the callers of one stream said of their messages beside the messages.
        learned: What the server's answers have taught the Gateway so far.
        spans: Where attempts get their spans (B14).
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
        max_body: int = MAX_REQUEST_BODY,
        owner: object = None,
        fencing: Fencing | None = None,
        calls: CallTable | None = None,
        learned: Learned | None = None,
        spans: SpanSource | None = None,
    ) -> None:
        self.wrapped = wrapped
        self.endpoint = endpoint
        self.owner = owner
        self._beside = beside or wrapped
        self._auth_above = auth_above
        self._consent = Consent(on_authorization)
        self._clock: Clock = clock or SystemClock()
        self._opener = Opener(
            replay=replay or Replay(),
            name=name,
            ledger=ledger,
            clock=self._clock,
            max_body=max_body,
            calls=calls,
            learned=learned,
            spans=spans,
            where=None if endpoint is None else endpoint.origin,
            principal=None if fencing is None else fencing.principal,
        )
        self.fencing = fencing
        self._active = ActiveCalls()
        self._resumptions = Resumptions()
        self._standing = StandingStreams(self._clock)
        self._settings: dict[str, Any] = {
            "endpoint": endpoint, "beside": beside, "replay": replay, "name": name,
            "auth_above": auth_above, "on_authorization": on_authorization, "ledger": ledger,
            "clock": clock, "max_body": max_body, "owner": owner, "fencing": fencing,
            "calls": calls, "learned": learned, "spans": spans,
        }  # fmt: skip

    @property
    def proves_not_sent(self) -> bool | None:
        """As the stack below."""
        return getattr(self.wrapped, "proves_not_sent", None)

    @property
    def principal(self) -> str | None:
        """On whose behalf this stack calls."""
        return None if self.fencing is None else self.fencing.principal

    def rewrapped(self, wrapped: AsyncTransport, **changes: Any) -> AnsweringTransport:
        """The same answering over another stack, with other settings where a join brings them."""
        return AnsweringTransport(wrapped, **{**self._settings, **changes})

    async def __aenter__(self) -> Self:
        """Enter what is below, where it can be entered."""
        enter = getattr(self._beside, "__aenter__", None)
        if enter is not None:
            await enter()
        return self

    async def __aexit__(self, *exc: object) -> None:
        """Leave what is below, where it was entered, or close it."""
        self._give_up_resumptions()
        leave = getattr(self._beside, "__aexit__", None)
        await (self.aclose() if leave is None else leave(*exc))

    async def aclose(self) -> None:
        """Close the stack below; what waits for a resumption will get none."""
        self._give_up_resumptions()
        await self.wrapped.aclose()

    async def handle_async_request(self, request: HTTPRequest) -> HTTPResponse:
        """Answer the request. Raises nothing for one that carries an id, cancellation excepted."""
        if self.endpoint is not None and not self.endpoint.owns(request):
            return await self._beside.handle_async_request(request)
        if (known := mark_of(request) or adopted(request, self.owner)) is not None:
            return await passed(self.wrapped, request, known)
        family = family_of(request)
        record = self._opener.open_whole(request, family) or await self._opener.open(
            request, family
        )
        fencing = self.fencing
        if fencing is not None and (stopped := fencing.admit(record, record.started)) is not None:
            refused = await self._stopped(fencing, stopped, request, record, family)
            if refused is not None:
                return refused
        mark = marked(request, record, self.owner)
        key = self._active.enter(request, record)
        try:
            if request.method == "GET":
                await self._standing.pace(request, self._resumptions.waiting(request))
            response = await self.wrapped.handle_async_request(request)
        except Exception as error:  # noqa: BLE001 - whatever it is, the session must not die of it
            caught = error
        except BaseException:
            record.end("cut", "cancelled")
            self._resumptions.left(request, self._file)
            self._file(record)
            raise
        else:
            note: Note | None = response.extensions.get(NOTE)
            if note is not None and note.kind == "result" and response.status_code < 300:
                # The usual way, in one step. (A result is one only where a request was asked.)
                self._consent.connected(record.outgoing, response)
                return self._whole(response, record, family)
            return await self._answer(response, request, record, family)
        finally:
            unmarked(request, mark)
            if key is not None:
                self._active.leave(key, record)
        answer = await self._answer_error(caught, request, record, family)
        if answer is None:
            caught = without_url(caught)
            raise caught
        return answer

    async def _stopped(
        self,
        fencing: Fencing,
        stopped: GiveUp,
        request: HTTPRequest,
        record: Record,
        family: Family,
    ) -> HTTPResponse | None:
        """What stands against a call once the app was asked; a cancelled one was never sent."""
        with self._filed_if_cut(record, "not_sent"):
            found = await fencing.find_out(record, stopped, self._clock)
        if found is None:
            return None
        record.end("not_sent", "fenced")
        kind = None if record.outgoing is None else record.outgoing.kind
        if kind == "request":
            return self._words(written(found, record), record, family)
        if kind == "notification":
            return self._local(202, [], b"", record, family)
        await request.stream.aclose()
        return self._local(400, [_JSON], refusal(found), record, family)

    async def _answer_error(
        self, error: Exception, request: HTTPRequest, record: Record, family: Family
    ) -> HTTPResponse | None:
        """Put an exception into words; ``None`` where there is nobody to read them."""
        if isinstance(error, AuthorizationRequiredError):
            with self._filed_if_cut(record, "not_sent"):
                told = await self._consent.ask(error, request, record)
            if told is not None:
                record.private = True
                return self._words(told, record, family)
        kind = None if record.outgoing is None else record.outgoing.kind
        if kind == "request":
            return self._words(written(after_error(error, record), record), record, family)
        if kind in ("notification", "response"):
            return self._local(202, [], b"", record, family)
        if (closed := self._not_resumed(None, request, record, family)) is not None:
            return closed
        self._file(record)
        return None

    async def _answer(
        self, response: HTTPResponse, request: HTTPRequest, record: Record, family: Family
    ) -> HTTPResponse:
        """Hand an answer on, or put what it says into the form that its client can read."""
        asked = record.outgoing
        self._consent.connected(asked, response)
        note = note_of(response)
        refused = record.sent and record.sent[-1].kind is not None
        if note is not None and note.kind == "stream" and not refused:
            # Where the first event is a refusal, nobody has read of it yet: that is put into words.
            return self._stream(response, request, record, family)
        kind = None if asked is None else asked.kind
        if kind == "request":
            return await self._answer_request(response, request, record, family)
        status: int = response.status_code
        if kind in ("notification", "response"):
            if status < 300:
                return self._whole(response, record, family)
            await self._let_go(response, record)
            if status in _AUTH and family.major > 1:
                # A flow above may renew the credential here as well; 2.x lives through the rest.
                return self._local(status, kept_lines(response), b"", record, family)
            return self._local(202, [], b"", record, family)
        if (closed := self._not_resumed(status, request, record, family)) is not None:
            await self._let_go(response, record)
            return closed
        if 300 <= status < 400:
            # What the series did not follow, nobody follows (B11).
            await self._let_go(response, record)
            return self._local(status, [], b"", record, family)
        return self._whole(response, record, family)

    async def _answer_request(
        self, response: HTTPResponse, request: HTTPRequest, record: Record, family: Family
    ) -> HTTPResponse:
        """An answer that is no result: pass on what has a meaning, put the rest into words."""
        status: int = response.status_code
        note = note_of(response)
        if note is None:
            if status < 300:
                return self._whole(response, record, family)
            note = Note("failure")
        if note.kind in ("empty", "unreadable"):
            record.unanswered = True
            record.ended = None
            record.end("answered", "unreadable", record.sent[-1].status if record.sent else status)
            outcome = why_refused(note.rule, too_large=note.too_large)
            given_up = GiveUp(outcome=outcome, rule=note.rule or "empty")
            await self._let_go(response, record)
            return self._words(written(given_up, record), record, family)
        in_session = "mcp-session-id" in request.headers
        given_up = after_status(status, record, note, in_session=in_session)
        if given_up.retry_after is None and status == 429:
            # With repeats switched off no rule has read it, and it is still what the server said.
            stated = response.headers.get("retry-after")
            given_up = replace(
                given_up, retry_after=parse_retry_after(stated, now=self._clock.now())
            )
        how = passing(
            status,
            note,
            record,
            in_session=in_session,
            sdk=family.major,
            auth_above=self._auth_above,
        )
        if how is Passing.AS_IT_IS:
            return self._whole(response, record, family)
        kept = kept_lines(response)
        if how is Passing.STATUS_ALONE:
            await self._let_go(response, record)
            body = written_error(given_up, record, code=note.code)
            return self._local(status, [_JSON, *kept], body, record, family)
        if how is Passing.STATUS_BARE:
            await self._let_go(response, record)
            return self._local(status, kept, b"", record, family)
        if how is Passing.WORDS_ALONE:
            body = b"".join([part async for part in response.stream])
            await response.aclose()
            return self._local(200, [_JSON, *kept], body, record, family)
        await self._let_go(response, record)
        return self._words(written(given_up, record), record, family)

    def _stream(
        self, response: HTTPResponse, request: HTTPRequest, record: Record, family: Family
    ) -> HTTPResponse:
        """A stream that goes by, and ends in words if it has to."""
        stream = ClosingStream(response, request, family, record, self._resumptions, self._file)
        if self.fencing is not None and state_of(response).replied:
            # Its reply has gone by already, while a rule looked at it.
            self.fencing.release(record)
        response.extensions.pop(NOTE, None)
        response.stream = family.stream(stream.parts(), stream.close)
        return response

    def _not_resumed(
        self, status: int | None, request: HTTPRequest, record: Record, family: Family
    ) -> HTTPResponse | None:
        """A GET that brought no stream, where a call waits for one: its closing event, at 200."""
        cut = self._resumptions.take(request, record, family)
        if cut is None:
            return None
        if (status is None or status < 300 or status >= 500) and cut.may_fail():
            self._resumptions.put_back(request, cut)
            return None
        body = closing_event("cut-stream", cut)
        if cut.record is not record:
            self._file(cut.record, body)
        return self._local(200, [_EVENTS], body, record, family)

    def _words(self, body: bytes, record: Record, family: Family) -> HTTPResponse:
        """An answer of our own, at 200."""
        return self._local(200, [_JSON], body, record, family)

    def _local(
        self, status: int, headers: list[Line], body: bytes, record: Record, family: Family
    ) -> HTTPResponse:
        """Build an answer, write down exactly what the client will read, and file the record."""
        headers.append((b"content-length", b"%d" % len(body)))
        record.answer_form = "local"
        self._file(record, body)
        return family.response(status, headers, body)

    def _whole(self, response: HTTPResponse, record: Record, family: Family) -> HTTPResponse:
        """An answer that passes as it was read."""
        stream = response.stream
        if not isinstance(stream, family.ByteStream):
            return filed_when_closed(response, family, record, self._clock)
        note: Note | None = response.extensions.pop(NOTE, None)
        record.answer_form = "empty" if note is not None and note.kind == "empty" else "json"
        # A digest of what nobody records is work for nothing.
        self._file(record, None if record.ledger is None else b"".join(stream))
        return response

    async def _let_go(self, response: HTTPResponse, record: Record) -> None:
        """Let go of an answer that ours takes the place of; a cancelled caller gets neither."""
        with self._filed_if_cut(record, "cut"):
            await let_go(response)

    @contextmanager
    def _filed_if_cut(self, record: Record, ended: Literal["cut", "not_sent"]) -> Generator[None]:
        """File the record of a caller who is cancelled meanwhile."""
        try:
            yield
        except BaseException:
            record.end(ended, "cancelled")
            self._file(record)
            raise

    def _file(self, record: Record, body: bytes | None = None) -> None:
        """File the record, with the digest of exactly what the client was given."""
        if body is not None and record.ledger is not None:
            record.given(body)
        if self.fencing is not None:
            self.fencing.release(record)
        record.file(self._clock.monotonic())

    def _give_up_resumptions(self) -> None:
        for pending in self._resumptions.all():
            pending.give_up(self._file)
