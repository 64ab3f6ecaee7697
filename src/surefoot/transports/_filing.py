"""The law of this file: a call is filed when it begins and when it ends, as plain values (D33).

What its record knows by then is all that is asked; nothing here decides. In clear stands only what
the app asked for, and only what is known to hold none of the secrets of its attempts (B7).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

from surefoot.evidence import MAX_CONTENT, Attempt, CallEnded, CallStarted, RequestAttempts

if TYPE_CHECKING:
    from surefoot.evidence import Effect

    from ._recorder import Record
    from ._seal import Seal
    from ._sent import Sent

__all__ = [
    "arguments_in_clear",
    "call_ended",
    "call_started",
    "first_part",
    "request_attempts",
    "says_that_it_failed",
]


def call_started(record: Record, call_id: str, arguments: bytes | None = None) -> CallStarted:
    """The event that a call begins."""
    length, digest = record.arguments
    return CallStarted(
        call_id=call_id,
        endpoint=record.endpoint,
        tool=record.call.tool,
        arguments_length=length,
        arguments_sha256=digest,
        arguments=arguments,
    )


def call_ended(record: Record, now: float) -> CallEnded:
    """The event that a call came to its end: how long it took, whether it failed, what it did."""
    began = record.started if record.call_began is None else record.call_began
    return CallEnded(
        call_id=record.call_id or "",
        duration_seconds=max(0.0, now - began),
        is_error=_is_error(record),
        effect=_effect(record),
        answer_form=record.answer_form,
        answer_length=record.answer_length,
        answer_sha256=record.digest_of_answer(),
        answer=record.content,
    )


def request_attempts(record: Record, now: float) -> RequestAttempts:
    """The event of all attempts of one request, with no request, header or body in it."""
    length, digest = record.arguments
    return RequestAttempts(
        method=record.call.method or record.http_method,
        tool=record.call.tool,
        endpoint=record.endpoint,
        attempts=tuple(_attempt(*one, record) for one in enumerate(record.sent, 1)),
        ended=record.ended or "cut",
        why=record.why or "cancelled",
        status=record.status,
        waited_seconds=record.waited,
        duration_seconds=max(0.0, now - record.started),
        may_have_run=record.left_open,
        answer_form=record.answer_form,
        answer_length=record.answer_length,
        answer_sha256=record.digest_of_answer(),
        request_length=length,
        request_sha256=digest,
        family=record.family,
        hook_failures=record.hook_failures,
        call_id=record.call_id,
    )


def _attempt(number: int, sent: Sent, record: Record) -> Attempt:
    return Attempt(
        number=number,
        outcome=sent.outcome,
        status=sent.status,
        kind=sent.kind,
        effect=sent.effect,
        started_seconds=sent.started - record.started,
        duration_seconds=sent.duration_seconds,
        error=sent.error,
        retry_after_seconds=sent.retry_after_seconds,
        retry_after_malformed=sent.retry_after_malformed,
        wait_seconds=sent.wait_seconds,
        permission=sent.permission,
        reason=sent.reason,
        credential=sent.credential,
        scrubbed_hits=sent.scrubbed_hits,
        unsearched_secrets=sent.unsearched_secrets,
        sends_at_least_one=sent.outcome == "unanswered" and not sent.proven,
    )


def arguments_in_clear(record: Record, seal: Seal) -> bytes | None:
    """The canonical arguments of a call, without the secrets that its attempt carries."""
    asked = record.outgoing
    arguments = None if asked is None else asked.canonical_arguments()
    if arguments is None:
        return None
    scrub = seal.scrub()
    return first_part(arguments if scrub is None else scrub(arguments)[0])


def first_part(content: bytes) -> bytes:
    """As much as an event takes, and one byte by which it sees that there was more."""
    return content if len(content) <= MAX_CONTENT else content[: MAX_CONTENT + 1]


def says_that_it_failed(message: Mapping[str, Any]) -> bool:
    """Whether an answer is an error, or a result that says that it stands for one."""
    if "error" in message:
        return True
    result = message.get("result")
    return isinstance(result, dict) and cast("dict[str, Any]", result).get("isError") is True


def _is_error(record: Record) -> bool | None:
    """Whether its client was told that it failed; ``None`` where nobody was told anything."""
    if record.why == "cancelled" and record.answer_form != "local":
        return None
    if record.answer_form == "local":
        return True
    if record.told_failed is None and record.status is not None and record.status >= 400:
        return True
    return record.told_failed


def _effect(record: Record) -> Effect:
    if record.completed:
        return "ran"
    return "not_sent" if all(one.effect == "not_sent" for one in record.sent) else "unknown"
