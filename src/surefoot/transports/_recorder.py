"""The law of this file: the history of one request is written down once, by whoever sent it.

Recording is an object and not a layer. The outermost layer of a stack opens a ``Record`` and hangs
it on the request; each layer leaves there what only it knows; the owner files it when the answer's
body is closed and takes the mark off the request in ``finally``. The same mark is what keeps a
second series, hidden behind somebody else's wrapper, from multiplying sends (R20, R29 to R31).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final

import anyio

from surefoot.evidence import CallEnded, CallStarted, CredentialVended, Pending, RequestAttempts

from ._filing import (
    arguments_in_clear,
    call_ended,
    call_started,
    first_part,
    request_attempts,
    says_that_it_failed,
)
from ._sent import Sent

if TYPE_CHECKING:
    from surefoot.errors import CredentialError
    from surefoot.evidence import (
        AnswerForm,
        Ended,
        Entry,
        Ledger,
        SpanSource,
        Why,
    )
    from surefoot.policy import Call
    from surefoot.wire import Outgoing

    from ._family import HTTPRequest
    from ._fencing import Fencing
    from ._opening import Opener
    from ._seal import Seal

__all__ = ["MARK", "Record", "Sent", "mark_of"]

MARK: Final = "surefoot.record"
"""The name under which a record hangs on ``request.extensions``."""

_SMALL: Final = 4096
"""Bytes of a body that may wait for a sink with its record; a larger one is digested at once."""

_CANCELLED: Final = -32800
"""What servers answer to a request that ``notifications/cancelled`` ended."""


def mark_of(request: HTTPRequest) -> Record | None:
    """The record of the series that this request is already part of, or ``None``."""
    return request.extensions.get(MARK)


class Record:
    """Everything that is known of one request while it is under way.

    Args:
        opener: Reads what the request asks for, and where it goes, when somebody wants to know.
        body: The request's body, as far as it is known.
        resendable: Whether that is all of it, and within the bound (D10).
        http_method: The HTTP method.
        url: Where it goes.
        family: The HTTP library.
        started: Monotonic seconds.
        ledger: Where it will be filed: the run of the caller's context, else the Gateway's own.
    """

    running: bool = False
    """A series is under way: another one on the same request passes straight through."""
    force: bool = False
    """The last credential was rejected: the next vend must not hand out the same."""
    rejected: object | None = None
    """The generation of the credential that was last vended; opaque (B9)."""
    challenge: str | None = None
    """What the answer that rejected it said, once checked (D23)."""
    scopes: tuple[str, ...] = ()
    """The scopes that it was asked for with."""
    missing: tuple[str, ...] = ()
    """The scopes that the answer said were missing."""
    waited: float = 0.0
    unanswered: bool = False
    """Some attempt had no answer and is not proven unsent."""
    unsure: bool = False
    """What answered it leaves open whether it ran, and its client was told so."""
    completed: bool = False
    """A result was handed on, so what happened to earlier attempts no longer matters."""
    credential_error: CredentialError | None = None
    """Why no credential could be had, in the provider's own fixed phrase."""
    ended: Ended | None = None
    why: Why | None = None
    status: int | None = None
    answer_form: AnswerForm | None = None
    answer_length: int | None = None
    answer_sha256: str | None = None
    content: bytes | None = None
    """The same in clear, where the app asked for that (``content="full"``)."""
    private: bool = False
    """What the client is given is for its eyes alone: a URL of consent is a capability (R117)."""
    told_failed: bool | None = None
    """What the client was told says of itself that it failed; ``None`` until it is told."""
    goes_on: bool = False
    """A later request will go on with this call (D33)."""
    sent_again: bool = False
    """It is that round again, with other headers (D33)."""
    call_began: float | None = None
    """Monotonic seconds at which the call began of which this is a later round."""
    hook_failures: int = 0
    filed: bool = False
    resumes: Record | None = None
    """The call whose answer this request goes on to read, where it is a resumption."""
    ends: float | None = None
    """Monotonic seconds at which the caller of this one call stops listening (B6)."""
    late: Callable[[], bool] | None = None
    """Whether its caller has stopped listening by now; asked when an attempt leaves (B2, B6)."""
    code: int | None = None
    """The code of a JSON-RPC error that answered it."""
    fence: Fencing | None = None
    """What remembers it, and is to be told how it ended (B3)."""
    abandoned: bool = False
    """Its caller has cancelled it by a message; nothing more is sent for it (B2)."""
    waiting: anyio.CancelScope | None = None
    """The wait under way, which a cancellation by message ends."""
    cancellable: bool = False
    """A message could cancel it, so that its waits have to be ended from elsewhere."""
    spans: SpanSource | None = None
    """Where its attempts get their spans; ``None`` where nobody is tracing."""
    parent: object = None
    """Where in the trace its caller was, where that is not where it is sent."""
    begun: bool = False
    """That its call begins is filed, or need not be."""
    _outgoing: Outgoing | None = None
    _unread: bool = True
    _call: Call | None = None
    _endpoint: str | None = None
    _call_id: str | None = None
    _given: bytes | None = None
    """What the client was given, until its digest is taken; small."""
    _held: tuple[Entry | Pending, ...] = ()
    """What is filed once it is filed that the call begins."""
    _arguments: tuple[int | None, str | None] | None = None

    def __init__(
        self,
        *,
        opener: Opener,
        body: bytes | None,
        resendable: bool,
        http_method: str,
        url: Any,
        family: str,
        started: float,
        ledger: Ledger | None,
    ) -> None:
        self._opener = opener
        self._body = body
        self._resendable = resendable
        self._url = url
        self.http_method = http_method
        self.family = family
        self.started = started
        self.sent: list[Sent] = []
        self.ledger = ledger

    @property
    def body(self) -> bytes | None:
        """The request's body; ``None`` where it was streamed and passed the bound (D10)."""
        return self._body

    @property
    def outgoing(self) -> Outgoing | None:
        """The JSON-RPC message, where the body is one."""
        if self._unread:
            self._read()
        return self._outgoing

    @property
    def call(self) -> Call:
        """What a series must know of the request."""
        return self._call or self._read()

    @property
    def endpoint(self) -> str:
        """The declared label, else the origin (R52)."""
        if self._endpoint is None:
            self._endpoint = self._opener.endpoint(self._url)
        return self._endpoint

    @property
    def call_id(self) -> str | None:
        """Our id for the call; ``None`` for what is no tool call. Made when first wanted."""
        if self._call_id is None and self.call.is_tool_call:
            self._call_id = self._opener.call_id(self)
        return self._call_id

    @property
    def arguments(self) -> tuple[int | None, str | None]:
        """Length and SHA-256 of the canonical arguments; twice ``None`` where there are none."""
        if self._arguments is None:
            content = None if self.outgoing is None else self.outgoing.canonical_arguments()
            known = None if content is None else (len(content), sha256(content).hexdigest())
            self._arguments = known or (None, None)
        return self._arguments

    @property
    def keeps_content(self) -> bool:
        """The app asked for what the client is given in clear, and it is nobody's secret."""
        wanted = self.ledger is not None and self.ledger.content == "full"
        return wanted and self.call.is_tool_call and not self.private

    def heard(self, message: Mapping[str, Any]) -> None:
        """Take note of an answer of the server's own, as it was checked."""
        if "error" in message:
            self.code = message["error"]["code"]
        self.told_failed = says_that_it_failed(message)
        self.goes_on = False
        self._opener.heard(self, message)

    def given(self, body: bytes) -> None:
        """Take note of exactly what the client is given."""
        self.answer_length = len(body)
        self._given = body
        if len(body) > _SMALL:
            self.digest_of_answer()
        self.content = first_part(body) if self.keeps_content else None

    def digest_of_answer(self) -> str | None:
        """SHA-256 of what the client was given; taken late, as it costs a call ten times as much.

        (OpenSSL looks its algorithm up each time, in memory that a call has long driven out of the
        caches; where many are taken one after the other they cost a microsecond each.)
        """
        given = self._given
        if given is not None:
            # In this order: two sinks may ask at once, each on its own thread.
            self.answer_sha256 = sha256(given).hexdigest()
            self._given = None
        return self.answer_sha256

    def answered_by(self, other: Record, content: bytearray | None) -> None:
        """Take over what the client was given for it by the stream of another request."""
        if other is not self:
            self.answer_form = other.answer_form
            self.answer_length, self.answer_sha256 = other.answer_length, other.digest_of_answer()
            if other.told_failed is not None:
                self.told_failed = other.told_failed
        if content is not None:
            self.content = first_part(bytes(content))

    def let_go(self) -> None:
        """Let go of what can be read again: thousands of calls may wait at once."""
        self._outgoing, self._unread = None, True

    def _read(self) -> Call:
        """Read the body; what a series was told of it once does not change."""
        self._outgoing, call = self._opener.read(
            self.http_method, self._body, resendable=self._resendable
        )
        self._unread = False
        if self._call is None:
            self._call = call
        return self._call

    @property
    def may_have_run(self) -> bool:
        """No answer came to some attempt, nothing proves it unsent, and no result settled it."""
        return self.unanswered and not self.completed

    @property
    def left_open(self) -> bool:
        """What the evidence and the last span say of it."""
        return (self.may_have_run or self.unsure) and self.call.is_tool_call

    def end(self, ended: Ended, why: Why, status: int | None = None) -> None:
        """Write down how the request ended; the first word stands."""
        if self.ended is None:
            self.ended = ended
            self.why = why
            self.status = status

    @property
    def seal(self) -> Seal | None:
        """What was secret in its attempts so far, until its answer is closed (R19, B7).

        Of one that resumes a call: in that call's, too.
        """
        for sent in reversed(self.sent):
            if sent.seal is not None:
                return sent.seal
        return None if self.resumes is None else self.resumes.seal

    def unseal(self) -> None:
        """Drop what was secret."""
        for sent in self.sent:
            if sent.seal is not None:
                sent.seal = None

    def begin(self) -> None:
        """File that a call begins, once; a later round of it begins none.

        In clear nothing is filed before the call has ended: what a later attempt carries as a
        secret may stand in the arguments, too. Where its run is closed first, they are left out.
        """
        ledger = self.ledger
        if ledger is None or self.begun:
            return
        if self.keeps_content and not self.filed:
            ledger.hold_back(self, partial(self._beginning, in_clear=False))
        elif entries := self._beginning():
            ledger.file(*entries)

    def _beginning(self, *, in_clear: bool = True) -> tuple[Entry | Pending, ...]:
        self.begun = True
        entries, self._held = self._held, ()
        call_id = self.call_id
        if call_id is None or self.call_began is not None:
            return entries
        # Without a seal nothing is known to be free of secrets, and so nothing is filed in clear.
        if in_clear and self.seal is not None and self.keeps_content:
            return (call_started(self, call_id, arguments_in_clear(self, self.seal)), *entries)
        make = partial(call_started, self, call_id)
        return (Pending(CallStarted.type, make) if self._small else make(), *entries)

    def vended(self, service: str, kind: str) -> None:
        """File that a credential was handed out for an attempt: its kind, and nothing of it."""
        if self.ledger is None:
            return
        make = partial(CredentialVended, service=service, kind=kind, call_id=self.call_id)
        vended = Pending(CredentialVended.type, make)
        if self.begun:
            self.ledger.file(vended)
        else:
            self._held = (*self._held, vended)

    def trace(self, sent: Sent) -> None:
        """Open the span of an attempt that begins now (B14)."""
        if self.spans is not None:
            sent.span = self.spans.open(
                number=len(self.sent),
                endpoint=self.endpoint,
                origin=self._opener.origin(self._url),
                http_method=self.http_method,
                method=self.call.method,
                tool=self.call.tool,
                parent=self.parent,
            )

    def traced(self, sent: Sent) -> None:
        """End the span of an attempt, once what follows it is decided."""
        span, sent.span = sent.span, None
        if span is not None:
            unknown = sent.effect == "unknown" and sent.outcome in ("unanswered", "cut")
            span.end(sent, may_have_run=unknown and self.call.is_tool_call)

    def file(self, now: float) -> None:
        """File the record, once, and how its call ended; end the last span."""
        if self.filed:
            return
        self.filed = True
        if self.code == _CANCELLED and not self.completed:
            # The server stopped it at its caller's word; how far it had come, nobody says (D27).
            self.unanswered = True
            self.ended, self.why = "cut", "cancelled"
        if self.ledger is not None:
            self._file(self.ledger, now)
        self.unseal()
        if self.spans is not None and self.sent and (span := self.sent[-1].span) is not None:
            self.sent[-1].span = None
            span.end(self.sent[-1], may_have_run=self.left_open)

    def _file(self, ledger: Ledger, now: float) -> None:
        """What is small is put together where it is written out, and not while a call waits."""
        if not self.begun:
            ledger.release(self)
            self.begin()
        ends = self.call.is_tool_call and not self.goes_on
        if self._small:
            filed = Pending(RequestAttempts.type, partial(request_attempts, self, now))
            if ends:
                ledger.file(filed, Pending(CallEnded.type, partial(call_ended, self, now)))
            else:
                ledger.file(filed)
            return
        ledger.file(request_attempts(self, now))
        if ends:
            ledger.file(call_ended(self, now))

    @property
    def _small(self) -> bool:
        return self._body is not None and len(self._body) <= _SMALL
