"""The law of this file: the history of one request is written down once, by whoever sent it.

Recording is an object and not a layer. The outermost layer of a stack opens a ``Record`` and hangs
it on the request; each layer leaves there what only it knows; the owner files it when the answer's
body is closed and takes the mark off the request in ``finally``. The same mark is what keeps a
second series, hidden behind somebody else's wrapper, from multiplying sends (R20, R29 to R31).
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256
from typing import TYPE_CHECKING, Final, Literal

from surefoot.evidence import Attempt, RequestAttempts

if TYPE_CHECKING:
    from surefoot.evidence import Ledger
    from surefoot.policy import Call, Permission
    from surefoot.wire import Outgoing

    from ._family import HTTPRequest

__all__ = ["MARK", "Record", "Sent", "mark_of"]

MARK: Final = "surefoot.record"
"""The name under which a record hangs on ``request.extensions``."""

Outcome = Literal["answered", "refused", "unanswered", "not_sent", "cut"]
Effect = Literal["not_sent", "unknown", "ran"]


def mark_of(request: HTTPRequest) -> Record | None:
    """The record of the series that this request is already part of, or ``None``."""
    return request.extensions.get(MARK)


class Sent:
    """One attempt while it is being made; becomes an ``Attempt`` when the record is filed."""

    __slots__ = (
        "credential",
        "effect",
        "ended",
        "error",
        "hits",
        "kind",
        "malformed",
        "outcome",
        "permission",
        "proven",
        "reason",
        "refreshable",
        "retry_after",
        "started",
        "status",
        "unsearched",
        "wait",
    )

    def __init__(self, reason: str, started: float) -> None:
        self.reason = reason
        self.started = started
        self.ended = started
        self.outcome: Outcome = "cut"
        self.effect: Effect = "unknown"
        self.status: int | None = None
        self.kind: str | None = None
        self.error: str | None = None
        self.retry_after: float | None = None
        self.malformed = False
        self.wait: float | None = None
        self.permission: Permission | None = None
        self.credential: str | None = None
        self.hits = 0
        self.unsearched = 0
        """Secrets that this attempt carried and that are too short to search for (B7)."""
        self.proven = False
        self.refreshable = False
        """A forced vend could hand out another credential than the one that this attempt carried.
        """


class Record:
    """Everything that is known of one request while it is under way."""

    __slots__ = (
        "answer_form",
        "answer_length",
        "answer_sha256",
        "call",
        "call_id",
        "completed",
        "credential_failed",
        "ended",
        "endpoint",
        "family",
        "filed",
        "force",
        "hook_failures",
        "http_method",
        "ledger",
        "outgoing",
        "rebuilt",
        "rejected",
        "running",
        "sent",
        "started",
        "status",
        "unanswered",
        "waited",
        "why",
    )

    def __init__(
        self,
        *,
        outgoing: Outgoing | None,
        call: Call,
        http_method: str,
        endpoint: str,
        family: str,
        started: float,
        ledger: Ledger | None,
    ) -> None:
        self.outgoing = outgoing
        """The JSON-RPC message, where the body is one."""
        self.call = call
        self.http_method = http_method
        self.endpoint = endpoint
        self.family = family
        self.started = started
        self.sent: list[Sent] = []
        self.running = False
        """A series is under way: another one on the same request passes straight through."""
        self.force = False
        """The last credential was rejected: the next vend must not hand out the same."""
        self.rejected: object | None = None
        """The generation of the credential that was last vended; opaque (B9)."""
        self.waited = 0.0
        self.unanswered = False
        """Some attempt had no answer and is not proven unsent."""
        self.completed = False
        """A result was handed on, so what happened to earlier attempts no longer matters."""
        self.credential_failed = False
        self.ended: str | None = None
        self.why: str | None = None
        self.status: int | None = None
        self.answer_form: Literal["json", "sse", "empty", "local"] | None = None
        self.answer_length: int | None = None
        self.answer_sha256: str | None = None
        self.rebuilt = False
        """What the client reads was written by us and not by the server."""
        self.hook_failures = 0
        self.call_id: str | None = None
        self.filed = False
        self.ledger = ledger
        """Where it will be filed: the run of the caller's context, else the Gateway's own."""

    @property
    def may_have_run(self) -> bool:
        """No answer came to some attempt, nothing proves it unsent, and no result settled it."""
        return self.unanswered and not self.completed

    def end(self, ended: str, why: str, status: int | None = None) -> None:
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
