"""The law of this file: a body is read in one fixed order, and every message passes this way.

Strict parse, secrets out, one message, the request's own id, our own keys out, then what the policy
lets pass. So nothing after the scrub can bring a secret back. Whole answers and events share it.
"""

from __future__ import annotations

from typing import Any, Final, Literal, NamedTuple, TypeAlias, cast

from surefoot.errors import AnswerTooLargeError, UnreadableAnswerError
from surefoot.wire._head import AnswerPolicy
from surefoot.wire._jsonrpc import Message, RequestId, read_message, same_id
from surefoot.wire._known import outcome_of_code, outcome_of_status
from surefoot.wire._rewrite import stated_seconds, strict_error, without_our_keys
from surefoot.wire._scrub import Scrub
from surefoot.wire._sentences import Outcome
from surefoot.wire.strict_json import JsonLimits, canonical, dumps, loads

__all__ = ["Asked", "Read", "ReadKind", "Refusal", "read_body"]

ReadKind: TypeAlias = Literal["request", "notification", "result", "error"]
"""The four things that a message of a server can be."""

_FAILURES: Final = 300  # from this status on, the status says what an error means
_OF_THE_REQUEST: Final = (-32601, -32602)
"""Codes that speak of a method or of parameters (an unknown tool), and so of no session."""


class Asked(NamedTuple):
    """What was asked, and how its answer is to be read."""

    id: RequestId | None
    policy: AnswerPolicy
    scrub: Scrub | None
    limits: JsonLimits
    status: int = 200
    in_session: bool = False


class Refusal(NamedTuple):
    """Why a body is not handed on."""

    rule: str
    too_large: bool = False
    scrubbed: int = 0


class Read(NamedTuple):
    """A message that was read, checked and written again."""

    kind: ReadKind
    text: bytes
    message: Message
    outcome: Outcome | None
    retry_after: float | None
    scrubbed: int


# Twice as fast as calling the class, and this runs for every message.
_new = cast("Any", tuple).__new__


def read_body(body: bytes, asked: Asked) -> Read | Refusal:
    """Read a body as one message, or say why it is not handed on; never raises."""
    hits = 0
    try:
        value, text = canonical(body, limits=asked.limits)
        if asked.scrub is not None:
            text, hits = asked.scrub(text)
            if hits:
                value = loads(text)
    except UnreadableAnswerError as broken:
        return Refusal(broken.rule, isinstance(broken, AnswerTooLargeError))
    message = read_message(value, lenient=asked.policy == "checked")
    if isinstance(message, str):
        return Refusal(message, scrubbed=hits)
    kind = message.kind
    if kind == "error":
        return _read_error(message, value, text, asked, hits)
    if kind == "response" and asked.id is not None and not same_id(message.id, asked.id):
        return Refusal("wrong-id", scrubbed=hits)
    # In canonical form a key of ours can be written in one way only.
    if message.value is not value or text.find(b'"surefoot/') >= 0:
        message, text = _written(message, without_our_keys(message.value))
    return _new(Read, ("result" if kind == "response" else kind, text, message, None, None, hits))


def _read_error(
    message: Message, value: Any, text: bytes, asked: Asked, hits: int
) -> Read | Refusal:
    """Hold an error to its id and to the policy."""
    kept = message.value
    if asked.id is not None and not same_id(message.id, asked.id):
        if message.id is not None:
            return Refusal("wrong-id", scrubbed=hits)
        # An error that could not name its request is the error of the one that was asked (D18).
        kept = {**kept, "id": asked.id}
    told: Any = kept["error"]
    outcome = _outcome(told["code"], asked)
    seconds = stated_seconds(told.get("data"))
    if asked.policy == "strict":
        kept = strict_error(kept, outcome, asked.status if asked.status >= _FAILURES else None)
    if text.find(b'"surefoot/') >= 0:
        kept = without_our_keys(kept)
    if kept is not value:
        message, text = _written(message, kept)
    return Read("error", text, message, outcome, seconds, hits)


def _written(message: Message, kept: dict[str, Any]) -> tuple[Message, bytes]:
    """Write a message again, with what is left of it."""
    return Message(message.kind, kept.get("id"), kept), dumps(kept)


def _outcome(code: int, asked: Asked) -> Outcome:
    """Name what an error means: by its status where that is a failure's, else by its code."""
    if asked.status < _FAILURES:
        return outcome_of_code(code)
    # At 404 the code tells an unknown method or tool from a session that is gone.
    in_session = asked.in_session and code not in _OF_THE_REQUEST
    return outcome_of_status(asked.status, in_session=in_session)
