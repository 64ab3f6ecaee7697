"""The law of this file: AgentCore's own refusals are told by code and words, each in one function.

On the MCP protocol the service says "not now" at HTTP 200: a session that is being provisioned is
``-32005`` with one sentence, a throttle ``-32003`` with one of two. Each code has a second meaning,
so code and words must both match, and there must be no ``result`` (R60, D16, D17). Recognising
authorises nothing, and the effect stays unknown: a server behind a runtime can send the same body
after it ran the call (R59, R61). That they are refused before anything runs is this adapter's
assumption, recorded beside each repeat (R67, R68).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Final, cast

from surefoot.errors import UnreadableAnswerError
from surefoot.policy import AnswerView, Limits, Retry, Rule, ThrottleRule, Verdict
from surefoot.wire import SseDecoder, aws_error_type, sentence, strict_json

__all__ = ["DEFAULT_RETRY", "SessionBusyRule", "StatedThrottleRule", "adapter_rules"]

DEFAULT_RETRY: Final = Retry(max_attempts=10, max_wait=30.0, base_delay=0.5, max_delay=5.0)
"""The budget of one call to AgentCore (R56).

Creating a session has been measured at up to 12.6 s, and nothing states the wait. Ten attempts with
these delays wait at least 16.25 s and at most 30 before they give up; no single wait is longer than
5 s, so that a session that is ready is not left waiting long.
"""

_THROTTLE_LIMITS: Final = Limits(max_attempts=5, max_wait=30.0, base_delay=0.5, max_delay=5.0)
"""At 200 a spent quota looks like a throttle, and no waiting mends it: five attempts, at most 7.5 s
of our own waiting. A wait that the service states is taken whole, within the call's budget."""

_ONCE: Final = Limits(max_attempts=1)
"""With repeats switched off a refusal is still told as one."""

_READS: Final = 64 * 1024
_BUSY_CODE: Final = -32005
_BUSY_WORDS: Final = "Session operation in progress, please retry"
_BUSY_TYPE: Final = "RetryableConflictException"
_BUSY_SENTENCES: Final = (
    sentence("session-busy", status=409, error_type=_BUSY_TYPE),
    sentence("session-busy", status=409),
)
"""What stands in a body that was written anew, where the server's own named the type or said the
words."""

_THROTTLE_CODE: Final = -32003
_THROTTLE_WORDS: Final = frozenset(
    {"Rate limit exceeded - Too many requests", "Rate limit exceeded"}
)
_PLAIN: Final = ThrottleRule()


@dataclass(frozen=True, slots=True)
class SessionBusyRule:
    """A runtime's session is being provisioned or torn down (``RetryableConflictException``).

    At 200 and at 409 as a JSON-RPC error, in a body or as the first event of a stream; at 409 also
    by the AWS error type. ``ConflictException``, which has the same code, is something else.
    """

    @property
    def reads(self) -> int:
        """As much as a rule may (D16)."""
        return _READS

    def recognise(self, answer: AnswerView) -> Verdict | None:
        """Look for the code with its words, or for the type."""
        if answer.status not in (200, 409):
            return None
        told = _error(answer.body)
        by_words = told.get("code") == _BUSY_CODE and told.get("message") == _BUSY_WORDS
        if not by_words and not (answer.status == 409 and _names_busy(answer, told)):
            return None
        return replace(_stated(answer, None), kind="session-busy")


@dataclass(frozen=True, slots=True)
class StatedThrottleRule:
    """A throttle whose body says more than its head: at 200, or at 429 with a wait in its body.

    A plain 429 is left to the rule for HTTP 429.
    """

    @property
    def reads(self) -> int:
        """As much as a rule may (D16)."""
        return _READS

    def recognise(self, answer: AnswerView) -> Verdict | None:
        """Look for the code with its words, and for ``retryAfter``, which is in seconds."""
        if answer.status not in (200, 429):
            return None
        told = _error(answer.body)
        data = told.get("data")
        stated = cast("dict[str, Any]", data).get("retryAfter") if isinstance(data, dict) else None
        if answer.status == 200:
            known = told.get("code") == _THROTTLE_CODE and told.get("message") in _THROTTLE_WORDS
        else:
            known = stated is not None
        return _stated(answer, stated) if known else None


def adapter_rules(retry: Retry | None) -> tuple[Rule, ...]:
    """All the rules of an AgentCore Gateway, in the order in which they are asked.

    A ``Retry`` with other numbers than the default's holds for every kind of refusal. With ``None``
    nothing is repeated, and a refusal is still told as one.
    """
    hook = None if retry is None else retry.on_retry
    busy: Limits | None = None
    throttle: Limits | None = None
    if retry is None:
        busy = throttle = _ONCE
    elif retry.limits == DEFAULT_RETRY.limits:
        throttle = _THROTTLE_LIMITS
    return (
        Rule(
            recognise=SessionBusyRule(),
            limits=busy,
            on_retry=hook,
            assumes="refused-before-execution",
        ),
        Rule(
            recognise=StatedThrottleRule(),
            limits=throttle,
            on_retry=hook,
            assumes="refused-before-execution",
        ),
        Rule(recognise=_PLAIN, limits=throttle, on_retry=hook),
    )


def _names_busy(answer: AnswerView, told: dict[str, Any]) -> bool:
    """Whether a 409 names the one type that means "not now"."""
    lines = answer.values("x-amzn-errortype")
    named = aws_error_type(lines[0].encode("latin-1")) if len(lines) == 1 else None
    return named == _BUSY_TYPE or told.get("message") in _BUSY_SENTENCES


def _stated(answer: AnswerView, in_body: object) -> Verdict:
    """A throttle with the wait that was stated: of two, the longer, because none is shortened."""
    headed = _PLAIN.recognise(replace(answer, status=429)) or Verdict(kind="throttle")
    if in_body is None:
        return headed
    bodied = Verdict(kind="throttle", retry_after=cast("float", in_body))
    if headed.retry_after is None or bodied.retry_after is None:
        return headed if headed.retry_after is not None else bodied
    return max(headed, bodied, key=lambda verdict: verdict.retry_after or 0.0)


def _error(body: bytes) -> dict[str, Any]:
    """The error object of a JSON-RPC error without a result; empty where it is none."""
    try:
        text = body if body[:1] == b"{" else _first_event(body)
        value: Any = strict_json.loads(text) if text else None
    except UnreadableAnswerError:
        return {}
    if not isinstance(value, dict):
        return {}
    message = cast("dict[str, Any]", value)
    error = message.get("error")
    if not isinstance(error, dict) or message.get("result") is not None:
        return {}
    return cast("dict[str, Any]", error)


def _first_event(body: bytes) -> bytes:
    """The data of the first event that has any."""
    decoder = SseDecoder(max_event_bytes=_READS)
    return next((block.data for block in decoder.feed(body) if block.data), b"")
