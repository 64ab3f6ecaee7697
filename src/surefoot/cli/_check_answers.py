"""The law of this file: what is wrong with an answer is a fixed word, and never the answer's own.

Every answer that went over the wire is read as strictly as surefoot can (R92 to R98, D25), whatever
the check itself was content with; what an answer states about waiting and consent is held to its
grammar. What the check left, or did not keep, is no fault of the gateway's: it is named as not
judged, and so is never taken for sound.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Literal

from surefoot.errors import UnreadableAnswerError
from surefoot.wire import RawAnswer, RequestId, SseDecoder, read_head, safe_answer, safe_event

from ._check_tap import MOST_BYTES, MOST_EXCHANGES, Exchange, Tape

__all__ = ["THROTTLE_HEADERS", "Problem", "Read", "Unjudged", "read_strictly", "schemes_of"]

THROTTLE_HEADERS: Final = (
    "retry-after",
    "ratelimit",
    "ratelimit-policy",
    "ratelimit-limit",
    "ratelimit-remaining",
    "ratelimit-reset",
    "x-ratelimit-limit",
    "x-ratelimit-remaining",
    "x-ratelimit-reset",
)
"""Header names by which servers speak of limits; surefoot itself reads the first alone."""

_ANY_WRAPPER: Final = 47  # zlib's word for: gzip or zlib, as the data itself says

_SCHEMES: Final = ("bearer", "basic", "dpop", "digest", "negotiate", "aws4-hmac-sha256")


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Problem:
    """One thing that is wrong with the answers to one method."""

    method: str
    """The JSON-RPC method that was asked, or the HTTP method."""

    rule: str
    """The rule that is broken, as a fixed word."""

    means: str
    """What it means, in words."""


Why = Literal["left", "too-large", "too-many"]


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Unjudged:
    """An answer, or the rest of one, that was not read."""

    method: str
    """The JSON-RPC method that was asked."""

    why: Why
    """As a fixed word."""

    means: str
    """What it means, in words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Read:
    """What the strict reading found."""

    answers: int
    """Answers that were read, whole or in part."""

    problems: tuple[Problem, ...]
    """What is wrong with them, each once."""

    unjudged: tuple[Unjudged, ...]
    """What was not read of them, each once."""


_MEANS: Final[dict[str, str]] = {
    "challenge": "its WWW-Authenticate leads to another origin; an OAuth client is not sent there",
    "no-challenge": "a 401 without WWW-Authenticate: an OAuth client cannot find out what to do",
    "no-retry-after": "a 429 without Retry-After: callers have to guess how long to wait",
    "retry-after": "its Retry-After is neither whole seconds nor an HTTP date: callers guess",
    "session-id": "its session id is not visible ASCII, and is not handed on",
    "redirect": "it redirects; a client should be given the address that answers",
    "no-reply": "HTTP {status} without a JSON-RPC body: no more than that can be told to a client",
    "compressed": "it compresses its answer in a way that it was not asked for, or badly",
    "cut": "the answer broke off",
    "no-answer": "the connection ended without an answer, or none came in time",
    "content-type": "a body that is neither application/json nor text/event-stream",
    "content-type-parameter": "its Content-Type has a parameter other than charset=utf-8",
    "empty": "a success without a body, where an answer was asked for",
    "unanswered": "its event stream ended without the reply",
}
_UNREADABLE: Final = "it cannot be read in exactly one way, and is refused as unreadable"


_UNJUDGED: Final[dict[Why, str]] = {
    "left": "the check was over before its answer was; what had not come is not judged",
    "too-large": f"of its answer no more than {MOST_BYTES >> 20} MiB were read; the rest is not "
    "judged",
    "too-many": f"after {MOST_EXCHANGES} requests no more answers were read",
}


class _NotJudgedError(Exception):
    """The reading came to where the check left, or to the end of what it kept."""

    def __init__(self, why: Why) -> None:
        self.why: Why = why
        super().__init__(why)


def read_strictly(sent: Tape, origin: tuple[str, str, int] | None) -> Read:
    """Read every answer as strictly as can be.

    Args:
        sent: What went over the wire.
        origin: The endpoint's own, to which a challenge must lead.
    """
    answers = 0
    found: dict[Problem, None] = {}
    unjudged: dict[Unjudged, None] = {}
    for exchange in sent.kept:
        if exchange.outgoing is None or exchange.outgoing.kind != "request":
            continue
        method = exchange.method
        answers += exchange.status is not None
        try:
            for rule in _rules_broken(exchange, origin):
                means = _MEANS.get(rule, _UNREADABLE).format(status=exchange.status)
                found[Problem(method=method, rule=rule, means=means)] = None
        except _NotJudgedError as stop:
            unjudged[_unjudged(method, stop.why)] = None
    unjudged |= {_unjudged(method, "too-many"): None for method in sorted(sent.missed)}
    return Read(answers=answers, problems=tuple(found), unjudged=tuple(unjudged))


def _unjudged(method: str, why: Why) -> Unjudged:
    return Unjudged(method=method, why=why, means=_UNJUDGED[why])


def schemes_of(exchange: Exchange) -> list[str]:
    """The schemes that a challenge names, of those that are known; the rest of it may be secret."""
    if exchange.status not in (401, 403):
        return []
    words = b" ".join(exchange.values(b"www-authenticate")).decode("latin-1").lower()
    return [scheme for scheme in _SCHEMES if scheme in words.replace(",", " ").split()]


def _rules_broken(exchange: Exchange, origin: tuple[str, str, int] | None) -> Iterator[str]:
    """Every rule that an answer breaks.

    Raises:
        _NotJudgedError: the rest of it was not read.
    """
    status = exchange.status
    if status is None:
        if exchange.ended == "left":
            raise _NotJudgedError("left")
        if exchange.ended != "unreached":
            yield "no-answer"
        return
    yield from _head_rules(exchange, status, origin)
    head = read_head(status, exchange.lines, policy="strict", origin=origin)
    if head.rule is not None and 200 <= status < 300:
        yield head.rule
        return
    body = _body(exchange)
    if body is None:
        yield "compressed"
        return
    asked = exchange.outgoing.id if exchange.outgoing is not None else None
    if head.media == "events" and 200 <= status < 300:
        yield from _stream_rules(body, asked)
        return
    if body.then is not None:
        yield from body.end()
        return
    checked = safe_answer(
        RawAnswer(status, exchange.lines, body.data),
        request_id=asked,
        policy="strict",
        origin=origin,
        in_session=exchange.in_session,
    )
    if checked.kind == "unreadable":
        yield checked.rule or "unreadable"
    elif checked.kind == "failure" and status not in (401, 403, 429) and not 300 <= status < 400:
        yield "no-reply"


def _head_rules(
    exchange: Exchange, status: int, origin: tuple[str, str, int] | None
) -> Iterator[str]:
    """What is wrong before the body is looked at."""
    kept = dict(read_head(status, exchange.lines, policy="strict", origin=origin).headers)
    if exchange.values(b"mcp-session-id") and b"mcp-session-id" not in kept:
        yield "session-id"
    if 300 <= status < 400:
        yield "redirect"
    if exchange.values(b"retry-after"):
        if b"retry-after" not in kept:
            yield "retry-after"
    elif status == 429:
        yield "no-retry-after"
    if status == 401 and not exchange.values(b"www-authenticate"):
        yield "no-challenge"
    elif "bearer" in schemes_of(exchange) and b"www-authenticate" not in kept:
        yield "challenge"


@dataclass(frozen=True, slots=True)
class _Body:
    """As much of a body as there is to read, without its coding."""

    data: bytes
    then: Literal["cut"] | Why | None
    """Why there is no more; ``None`` where this is all of it."""

    def end(self) -> Iterator[str]:
        """Say what it means that there is no more.

        Raises:
            _NotJudgedError: it is no fault of the gateway's.
        """
        if self.then == "cut":
            yield self.then
        elif self.then is not None:
            raise _NotJudgedError(self.then)


def _body(exchange: Exchange) -> _Body | None:
    """The body; ``None`` where it was coded in another way than was asked for, or badly."""
    data = bytes(exchange.body)
    then: Literal["cut"] | Why | None = None
    if not exchange.kept:
        then = "too-large"
    elif exchange.ended != "whole":
        then = "cut" if exchange.ended == "broken" else "left"
    coding = b",".join(exchange.values(b"content-encoding")).strip().lower()
    if coding in (b"", b"identity") or not data:
        return _Body(data, then)
    if coding not in (b"gzip", b"x-gzip", b"deflate"):
        return None
    decoder = zlib.decompressobj(_ANY_WRAPPER)
    try:
        data = decoder.decompress(data, MOST_BYTES)
    except zlib.error:
        return None
    if decoder.unconsumed_tail:
        return _Body(data, "too-large")
    return None if then is None and not decoder.eof else _Body(data, then)


def _stream_rules(body: _Body, asked: RequestId | None) -> Iterator[str]:
    """What is wrong with an event stream, up to its first bad event, or to the reply.

    Raises:
        _NotJudgedError: neither was in what was read.
    """
    decoder = SseDecoder()
    try:
        for block in decoder.feed(body.data):
            event = safe_event(block, request_id=asked, policy="strict")
            if event.kind == "unreadable":
                yield event.rule or "unreadable"
                return
            if event.replies:
                return
    except UnreadableAnswerError as error:
        yield error.rule
        return
    yield from body.end()
    if body.then is None:
        yield "unanswered"
