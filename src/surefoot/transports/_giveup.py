"""The law of this file: what happened to a request decides, in one place, what its client is told.

Facts in, an outcome and canonical bytes out. What may have run is never told as "did not run": once
an attempt went without an answer, no later refusal takes that back (REQUIREMENTS 4, "May have
run").
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from surefoot.errors import (
    AuthorizationRequiredError,
    CredentialError,
    DeadlineExceededError,
    MayHaveRunError,
    NotSentError,
)
from surefoot.wire import (
    INTERNAL_ERROR,
    MAY_HAVE_RUN,
    OUTCOME_KEY,
    Outcome,
    discover_failure,
    error,
    outcome_meta,
    outcome_of_status,
    sentence,
    tool_result,
)

if TYPE_CHECKING:
    from ._note import Note
    from ._recorder import Record
    from ._sent import Sent

__all__ = [
    "GiveUp",
    "after_error",
    "after_status",
    "why_refused",
    "written",
    "written_error",
    "written_orphan",
]

_CODES: Final[Mapping[Outcome, int]] = {"redirected": -32600}
"""Codes that the SDK itself gives to the same event; never -32000, which a framework repeats on."""


_REFUSALS: Final = frozenset({"rate-limited", "session-busy"})


@dataclass(frozen=True, slots=True, kw_only=True)
class GiveUp:
    """Why a request got no answer of the server's own, as facts."""

    outcome: Outcome
    status: int | None = None
    retry_after: float | None = None
    rule: str | None = None
    error_type: str | None = None
    earlier: str | None = None
    """The id of the earlier call that stands against this one (B3)."""


def after_error(raised: Exception, record: Record) -> GiveUp:
    """What an exception that ended a request means for it."""
    if record.may_have_run:
        late = isinstance(raised, (DeadlineExceededError, MayHaveRunError))
        return GiveUp(outcome="deadline" if late else "no-answer")
    refused = next((sent for sent in reversed(record.sent) if sent.kind is not None), None)
    if refused is not None:
        # It was sent, and refused, which proves nothing (R3); what was not sent is its repeat.
        return GiveUp(outcome=_refused_as(refused), retry_after=refused.retry_after_seconds)
    if isinstance(raised, AuthorizationRequiredError):
        return GiveUp(outcome="consent-needed")
    if isinstance(raised, CredentialError):
        return GiveUp(outcome="credentials-failed")
    late = isinstance(raised, DeadlineExceededError) or (
        isinstance(raised, NotSentError) and raised.cause == "deadline"
    )
    return GiveUp(outcome="not-sent-in-time" if late else "not-sent")


def after_status(status: int, record: Record, note: Note, *, in_session: bool) -> GiveUp:
    """What an answer that is no result means for a request."""
    last = record.sent[-1] if record.sent else None
    stated = None if last is None else last.retry_after_seconds
    if stated is None:
        stated = note.retry_after
    outcome: Outcome
    if record.may_have_run:
        outcome = "no-answer"
    elif last is not None and last.kind is not None:
        outcome = _refused_as(last)
    else:
        outcome = note.outcome or outcome_of_status(status, note.error_type, in_session=in_session)
    return GiveUp(outcome=outcome, status=status, retry_after=stated, error_type=note.error_type)


def _refused_as(sent: Sent) -> Outcome:
    """What to call an attempt that was refused."""
    return "session-busy" if sent.kind == "session-busy" else "rate-limited"


def why_refused(rule: str | None, *, too_large: bool) -> Outcome:
    """What to call an answer that was refused: late, too large, or not to be read."""
    if rule is not None and rule.startswith("stream-"):
        return "deadline"
    return "too-large" if too_large else "unreadable"


def written(given_up: GiveUp, record: Record) -> bytes:
    """The canonical answer to a request that carries an id, in the form for its method."""
    outgoing: Any = record.outgoing
    if outgoing.is_tool_call and not outgoing.has_task:
        return tool_result(
            outgoing.id,
            _text(given_up, record),
            facts(given_up, record),
            result_type=outgoing.has_result_type,
        )
    if outgoing.method == "server/discover":
        requested = outgoing.protocol_version or "unknown"
        meta = facts(given_up, record)
        return discover_failure(outgoing.id, _text(given_up, record), meta, requested=requested)
    return written_error(given_up, record)


def written_error(given_up: GiveUp, record: Record, code: int | None = None) -> bytes:
    """The same facts as a JSON-RPC error: for answers that keep their status."""
    outgoing: Any = record.outgoing
    data = {OUTCOME_KEY: facts(given_up, record)}
    code = code or _CODES.get(given_up.outcome, INTERNAL_ERROR)
    return error(outgoing.id, code, _text(given_up, record), data)


def written_orphan(given_up: GiveUp, record: Record, *, sdk: int) -> bytes:
    """The same for a call of which only its resumption is known.

    The SDK puts the id of the request that it resumes in the place of any; 1.x wants one there.
    """
    text = sentence(given_up.outcome, status=given_up.status)
    data = {OUTCOME_KEY: facts(given_up, record)}
    return error(None if sdk > 1 else 0, INTERNAL_ERROR, text, data)


def _text(given_up: GiveUp, record: Record) -> str:
    outgoing: Any = record.outgoing
    return sentence(
        given_up.outcome,
        status=given_up.status,
        retry_after=given_up.retry_after,
        attempts=max(1, len(record.sent)),
        what="call" if outgoing.is_tool_call else "read" if record.call.reads else "request",
        error_type=given_up.error_type,
    )


def facts(given_up: GiveUp, record: Record) -> dict[str, Any]:
    """``_meta["surefoot/outcome"]``: the same facts as the sentence, for programs."""
    unknown = record.may_have_run or given_up.outcome in MAY_HAVE_RUN
    may_have_run = unknown and not record.call.reads
    nothing_left = all(sent.effect == "not_sent" for sent in record.sent)
    if may_have_run and not nothing_left and given_up.outcome not in _REFUSALS:
        # The evidence says what the client is told. A refusal is told as one: its effect is
        # unknown, and nothing points to its having run.
        record.unsure = True
    return outcome_meta(
        given_up.outcome,
        may_have_run=may_have_run,
        effect="not_sent" if nothing_left else "unknown",
        status=given_up.status,
        retry_after=given_up.retry_after,
        attempts=len(record.sent),
        waited=record.waited,
        error_type=given_up.error_type,
        rule=given_up.rule,
        call_id=record.call_id,
        earlier=given_up.earlier,
    )
