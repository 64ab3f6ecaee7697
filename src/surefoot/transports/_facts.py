"""The law of this file: what came of an attempt is written down, and told to its series, once.

An attempt's outcome, its effect and what is permitted after it are three things (R5). Each function
here leaves in the record what is known, and hands the series the fact; deciding is the series' own.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from surefoot.errors import (
    AuthorizationRequiredError,
    CredentialError,
    DeadlineExceededError,
    MayHaveRunError,
)
from surefoot.policy import Answered, Deliver, Fact, Fail, NotSent, Unanswered, Verdict

from ._family import never_left

if TYPE_CHECKING:
    from ._family import HTTPResponse
    from ._recorder import Record, Sent

__all__ = ["answered", "as_final", "conclude", "cut", "failed"]

_logger = logging.getLogger("surefoot")


def answered(
    sent: Sent, found: tuple[Verdict, int] | None, *, moved: bool, rejected: bool
) -> Answered:
    """An attempt with an answer, which is not yet a success (R23).

    Args:
        sent: The attempt, whose status is known.
        found: What a rule recognised, and which rule.
        moved: The answer is a redirect that would be followed.
        rejected: A forced vend could help.
    """
    status = sent.status or 0
    if found is None:
        return Answered(status=status, rejected=rejected, redirect=moved)
    verdict, index = found
    sent.outcome = "refused"
    sent.kind = verdict.kind
    sent.retry_after_seconds = verdict.retry_after
    sent.retry_after_malformed = verdict.malformed
    return Answered(status=status, verdict=verdict, rule=index)


def failed(error: Exception, sent: Sent, record: Record, *, proven: bool) -> NotSent | Unanswered:
    """An attempt without an answer: proven not to have left, or of unknown effect (D3, R10)."""
    sent.error = type(error).__name__
    if isinstance(error, (CredentialError, AuthorizationRequiredError)):
        sent.outcome = sent.effect = "not_sent"
        if isinstance(error, CredentialError):
            record.credential_error = error
        return NotSent(error=error, credential=True)
    sent.proven = proven
    if sent.effect == "not_sent" or never_left(error, proven=proven):
        sent.outcome = sent.effect = "not_sent"
        return NotSent(error=error)
    sent.outcome = "unanswered"
    record.unanswered = True
    return Unanswered(error=error)


def cut(
    record: Record, seconds: float | None, sent: Sent | None = None
) -> MayHaveRunError | DeadlineExceededError:
    """Time is up: an end, and never a reason to repeat (R12, R46, D26).

    Args:
        record: The request's record.
        seconds: After how many seconds that was.
        sent: The attempt that was in flight; ``None`` before a repeat, which is then not sent.
    """
    late = DeadlineExceededError(max_elapsed=seconds or 0.0)
    if sent is not None and sent.effect == "unknown":
        record.unanswered = True
    record.end("cut", "deadline")
    if not (record.call.is_tool_call and record.may_have_run):
        return late
    error = MayHaveRunError(
        cause="deadline",
        attempts=len(record.sent),
        tool=record.call.tool,
        call_id=record.call_id,
    )
    error.__cause__ = late
    return error


def conclude(
    decision: Deliver | Fail, fact: Fact, response: HTTPResponse | None, record: Record
) -> HTTPResponse:
    """Write down how the series ended, and hand on its answer or its failure."""
    if isinstance(decision, Fail):
        record.end("not_sent" if isinstance(fact, NotSent) else "unanswered", decision.why)
        _logger.warning("%s: gave up without an answer: %s", record.endpoint, decision.why)
        raise decision.error
    refused = isinstance(fact, Answered) and fact.verdict is not None
    record.end("refused" if refused else "answered", decision.why, record.sent[-1].status)
    if refused:
        _logger.warning("%s: gave up on a refusal: %s", record.endpoint, decision.why)
    return response


def as_final(fact: Answered | NotSent | Unanswered) -> Deliver | Fail:
    """The end of a series whose caller has cancelled it by a message (B2)."""
    if isinstance(fact, Answered):
        return Deliver(why="no-time")
    return Fail(error=fact.error, why="no-time")
