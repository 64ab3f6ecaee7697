"""The law of this file: the client reads an answer that was read once, or words of ours (R88).

``safe_answer`` is the one rule for a body that came whole. It is pure and never raises, whatever a
server sends. What passes is the canonical form of what was checked; a failure without a JSON-RPC
reply becomes one made of its status, its error type and the wait it states, and of nothing else;
what cannot be read in exactly one way becomes a 502 in our own words (R98).

What is written is read as it stands: checked once more, it stays the same, byte for byte.
"""

from __future__ import annotations

from typing import Any, Final, Literal, NamedTuple, cast

from surefoot.errors import UnreadableAnswerError
from surefoot.wire._forms import INTERNAL_ERROR, error
from surefoot.wire._head import AnswerPolicy, HeaderLine, read_head
from surefoot.wire._jsonrpc import Message, RequestId
from surefoot.wire._known import aws_error_type, outcome_of_status, outcome_of_words
from surefoot.wire._reply import Asked, Refusal, read_body
from surefoot.wire._rewrite import stated_seconds
from surefoot.wire._scrub import Scrub
from surefoot.wire._sentences import Outcome, sentence
from surefoot.wire.strict_json import JsonLimits, loads

__all__ = ["AnswerKind", "CheckedAnswer", "RawAnswer", "refused_answer", "safe_answer"]

AnswerKind = Literal["result", "error", "failure", "empty", "unreadable"]
"""What an answer turned out to be: a reply (``result``, ``error``), a ``failure`` without a reply,
``empty``, or ``unreadable``."""

_LIMITS: Final = JsonLimits()
_JSON: Final = (b"content-type", b"application/json")
_NO_CONTENT: Final = (202, 204, 205)
_BAD_GATEWAY: Final = 502
_NOT_FOUND: Final = 404
_INVALID_REQUEST: Final = -32600
_METHOD_NOT_FOUND: Final = -32601


class RawAnswer(NamedTuple):
    """One answer as it came, its body whole and decoded. Its repr shows the status alone."""

    status: int
    """The HTTP status."""

    headers: tuple[HeaderLine, ...]
    """The header lines, in their order."""

    body: bytes
    """The body, with any content coding undone."""

    def __repr__(self) -> str:
        return f"RawAnswer(status={self.status})"


class CheckedAnswer(NamedTuple):
    """One answer as the client may read it. Its repr shows no word of it.

    A tuple, because it is built for every answer and is cheap to build.
    """

    kind: AnswerKind
    """What it turned out to be."""

    status: int
    """The HTTP status to hand on: the server's own, or 502 for what cannot be read."""

    headers: tuple[HeaderLine, ...]
    """The header lines to hand on, names in lower case, content type and length included."""

    body: bytes
    """The canonical body; what a digest of the answer is taken over."""

    message: Message | None = None
    """The reply itself, as it is in ``body``; ``None`` where there was none."""

    outcome: Outcome | None = None
    """What to call it, where it is anything but a result or empty."""

    error_type: str | None = None
    """The AWS error type (D24)."""

    retry_after: float | None = None
    """The seconds to wait that the *body* states (D17); the header is for the policy room."""

    rule: str | None = None
    """The rule that an unreadable answer broke."""

    scrubbed: int = 0
    """How many times a secret stood in it."""

    def __repr__(self) -> str:
        return f"CheckedAnswer(kind={self.kind!r}, status={self.status}, rule={self.rule!r})"


# Twice as fast as calling the class, and this runs for every answer.
_new = cast("Any", tuple).__new__


def safe_answer(
    answer: RawAnswer,
    *,
    request_id: RequestId | None,
    policy: AnswerPolicy = "checked",
    scrub: Scrub | None = None,
    origin: tuple[str, str, int] | None = None,
    in_session: bool = False,
    limits: JsonLimits = _LIMITS,
) -> CheckedAnswer:
    """Return what the client may read of one answer (R88 to R104); never raises.

    Args:
        answer: the answer as it came.
        request_id: the id it must answer; ``None`` where nothing was asked, as by a notification.
        policy: how far a failure's own words pass (D20).
        scrub: the secrets of this attempt (B7).
        origin: the endpoint's, for a challenge (D23).
        in_session: whether the request named an MCP session, so that a 404 means that it is gone.
        limits: the bounds of the body (B12).
    """
    status = answer.status
    head = read_head(status, answer.headers, policy=policy, origin=origin, scrub=scrub)
    failed = not 200 <= status < 300
    if not failed and (request_id is None or status in _NO_CONTENT):
        return CheckedAnswer("empty", status, (*head.headers, _length(b"")), b"")
    if head.media == "json" and answer.body and request_id is not None:
        asked = Asked(request_id, policy, scrub, limits, status, in_session)
        read = read_body(answer.body, asked)
        if isinstance(read, Refusal):
            refusal = read
        elif read.kind == "error" or (read.kind == "result" and not failed):
            text = read.text
            return _new(
                CheckedAnswer,
                (
                    read.kind,
                    status,
                    (*head.headers, _JSON, (b"content-length", b"%d" % len(text))),
                    text,
                    read.message,
                    read.outcome,
                    _error_type(head.error_type, scrub) if read.kind == "error" else None,
                    read.retry_after,
                    None,
                    read.scrubbed,
                ),
            )
        else:
            refusal = Refusal("not-an-answer", scrubbed=read.scrubbed)
        if not failed:
            return _refused(refusal, head.headers, request_id)
    elif not failed:
        rule = head.rule or ("content-type" if answer.body else "empty")
        return _refused(Refusal(rule), head.headers, request_id)
    body = _loosely(answer.body, limits) if head.media == "json" or head.aws_json else None
    said, stated = aws_error_type(head.error_type, body), stated_seconds(body)
    error_type = None if _is_secret(said, scrub) else said
    seconds = None if _is_secret(stated, scrub) else stated
    outcome = None if error_type is not None else outcome_of_words(status, body)
    outcome = outcome or outcome_of_status(status, error_type, in_session=in_session)
    # A redirect that was not followed must not be followed by anybody above either (B11).
    return _failure(
        _Failure(
            status=status if outcome != "redirected" else _BAD_GATEWAY,
            answered=status,
            outcome=outcome,
            error_type=error_type,
            retry_after=seconds,
            scrubbed=(said != error_type) + (stated != seconds),
        ),
        head.headers,
        request_id,
    )


def refused_answer(
    rule: str,
    *,
    request_id: RequestId | None,
    too_large: bool = False,
    headers: tuple[HeaderLine, ...] = (),
) -> CheckedAnswer:
    """Write the 502 for an answer that was refused before it could be read (R98).

    Args:
        rule: the rule it broke: a fixed word.
        request_id: the id of the request, if it had one.
        too_large: whether the rule is a bound.
        headers: what was checked of its head.
    """
    return _refused(Refusal(rule, too_large=too_large), headers, request_id)


class _Failure(NamedTuple):
    """The allow-listed parts of a failure; what is written is a function of these (R90)."""

    status: int
    answered: int
    outcome: Outcome
    error_type: str | None
    retry_after: float | None
    scrubbed: int


def _refused(
    refusal: Refusal, headers: tuple[HeaderLine, ...], request_id: RequestId | None
) -> CheckedAnswer:
    """Write the 502 in words of ours (R98)."""
    outcome: Outcome = "too-large" if refusal.too_large else "unreadable"
    body = error(request_id, INTERNAL_ERROR, sentence(outcome))
    return CheckedAnswer(
        "unreadable",
        _BAD_GATEWAY,
        (*headers, _JSON, _length(body)),
        body,
        outcome=outcome,
        rule=refusal.rule,
        scrubbed=refusal.scrubbed,
    )


def _failure(
    failure: _Failure, headers: tuple[HeaderLine, ...], request_id: RequestId | None
) -> CheckedAnswer:
    """Write a failure anew from the parts that may pass (R90), as a JSON-RPC error."""
    text = sentence(
        failure.outcome,
        status=failure.answered,
        retry_after=failure.retry_after,
        error_type=failure.error_type,
    )
    code = INTERNAL_ERROR
    if failure.status == _NOT_FOUND:
        # What the SDK itself makes of a 404: the session is gone, or the method is not known.
        lost = failure.outcome == "session-lost"
        code = _INVALID_REQUEST if lost else _METHOD_NOT_FOUND
    seconds = failure.retry_after
    data = None if seconds is None else {"retryAfter": seconds}
    # Where nothing was asked nobody reads a reply, and the status says all that may be said.
    body = b"" if request_id is None else error(request_id, code, text, data)
    typed = () if request_id is None else (_JSON,)
    return CheckedAnswer(
        "failure",
        failure.status,
        (*headers, *typed, _length(body)),
        body,
        outcome=failure.outcome,
        error_type=failure.error_type,
        retry_after=failure.retry_after,
        scrubbed=failure.scrubbed,
    )


def _error_type(header: bytes | None, scrub: Scrub | None) -> str | None:
    """The AWS error type that stands beside a JSON-RPC error, unless a secret is written in it."""
    name = aws_error_type(header)
    return None if _is_secret(name, scrub) else name


def _is_secret(said: str | float | None, scrub: Scrub | None) -> bool:
    """Whether a secret is written in what a failure says of itself (B7)."""
    if said is None or scrub is None:
        return False
    text = said if isinstance(said, str) else f"{said!r} {said:.0f}"
    return scrub.holds(text.encode())


def _loosely(body: bytes, limits: JsonLimits) -> Any:
    """Parse the body of a failure for its error type and its wait; anything else in it is lost."""
    try:
        return loads(body, limits=limits)
    except UnreadableAnswerError:
        return None


def _length(body: bytes) -> HeaderLine:
    """The length of what is handed on."""
    return b"content-length", b"%d" % len(body)
