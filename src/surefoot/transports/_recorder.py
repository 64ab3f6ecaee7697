"""The law of this file: the history of one request is written down once, by whoever sent it.

Recording is an object and not a layer. The outermost layer of a stack opens a ``Record`` and hangs
it on the request; each layer leaves there what only it knows; the owner files it when the answer's
body is closed and takes the mark off the request in ``finally``. The same mark is what keeps a
second series, hidden behind somebody else's wrapper, from multiplying sends (R20, R29 to R31).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final

import anyio

from surefoot.evidence import Attempt, RequestAttempts

if TYPE_CHECKING:
    from surefoot.errors import CredentialError
    from surefoot.evidence import (
        AnswerForm,
        Effect,
        Ended,
        Ledger,
        Outcome,
        Reason,
        RefusalKind,
        Why,
    )
    from surefoot.policy import Call, Permission
    from surefoot.wire import Outgoing

    from ._family import HTTPRequest
    from ._fencing import Fencing
    from ._opening import Opener

__all__ = ["MARK", "Record", "Sent", "mark_of"]

MARK: Final = "surefoot.record"
"""The name under which a record hangs on ``request.extensions``."""


_CANCELLED: Final = -32800
"""What servers answer to a request that ``notifications/cancelled`` ended."""


def mark_of(request: HTTPRequest) -> Record | None:
    """The record of the series that this request is already part of, or ``None``."""
    return request.extensions.get(MARK)


class Sent:
    """One attempt while it is being made; becomes an ``Attempt`` when the record is filed.

    What an attempt usually is stands on the class, so that an uneventful one costs two fields.
    """

    reason: Reason
    outcome: Outcome = "cut"
    effect: Effect = "unknown"
    status: int | None = None
    kind: RefusalKind | None = None
    error: str | None = None
    retry_after: float | None = None
    malformed: bool = False
    wait: float | None = None
    permission: Permission | None = None
    credential: str | None = None
    hits: int = 0
    unsearched: int = 0
    """Secrets that this attempt carried and that are too short to search for (B7)."""
    proven: bool = False
    """Errors from below prove what left."""
    refreshable: bool = False
    """A forced vend could hand out another credential than the one that this attempt carried."""
    steps_up: bool = False
    """It could hand out one with more scopes."""

    def __init__(self, reason: Reason, started: float) -> None:
        self.reason = reason
        self.started = self.ended = started


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
    rebuilt: bool = False
    """What the client reads was written by us and not by the server."""
    hook_failures: int = 0
    filed: bool = False
    ends: float | None = None
    """Monotonic seconds at which the caller of this one call stops listening (B6)."""
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
    _outgoing: Outgoing | None = None
    _unread: bool = True
    _call: Call | None = None
    _endpoint: str | None = None
    _call_id: str | None = None

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

    def heard(self, message: Mapping[str, Any]) -> None:
        """Take note of an answer of the server's own, as it was checked."""
        if "error" in message:
            self.code = message["error"]["code"]
        self._opener.heard(self, message)

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

    def end(self, ended: Ended, why: Why, status: int | None = None) -> None:
        """Write down how the request ended; the first word stands."""
        if self.ended is None:
            self.ended = ended
            self.why = why
            self.status = status

    def file(self, now: float) -> None:
        """File the record, once."""
        if self.filed:
            return
        self.filed = True
        if self.code == _CANCELLED and not self.completed:
            # The server stopped it at its caller's word; how far it had come, nobody says (D27).
            self.unanswered = True
            self.ended, self.why = "cut", "cancelled"
        if self.ledger is not None:
            self.ledger.file(self.as_evidence(now))

    def as_evidence(self, now: float) -> RequestAttempts:
        """The record as plain values, with no request, header or body in it."""
        arguments = None if self.outgoing is None else self.outgoing.canonical_arguments()
        return RequestAttempts(
            method=self.call.method or self.http_method,
            tool=self.call.tool,
            endpoint=self.endpoint,
            attempts=tuple(self._attempts()),
            ended=self.ended or "cut",
            why=self.why or "cancelled",
            status=self.status,
            waited_seconds=self.waited,
            duration_seconds=max(0.0, now - self.started),
            may_have_run=self.may_have_run and self.call.is_tool_call,
            answer_form=self.answer_form,
            answer_length=self.answer_length,
            answer_sha256=self.answer_sha256,
            request_length=None if arguments is None else len(arguments),
            request_sha256=None if arguments is None else sha256(arguments).hexdigest(),
            family=self.family,
            hook_failures=self.hook_failures,
            call_id=self.call_id,
        )

    def _attempts(self) -> Sequence[Attempt]:
        return [
            Attempt(
                number=number,
                outcome=one.outcome,
                status=one.status,
                kind=one.kind,
                effect=one.effect,
                started_seconds=one.started - self.started,
                duration_seconds=max(0.0, one.ended - one.started),
                error=one.error,
                retry_after_seconds=one.retry_after,
                retry_after_malformed=one.malformed,
                wait_seconds=one.wait,
                permission=one.permission,
                reason=one.reason,
                credential=one.credential,
                scrubbed_hits=one.hits,
                sends_at_least_one=one.outcome == "unanswered" and not one.proven,
            )
            for number, one in enumerate(self.sent, 1)
        ]
