"""The law of this file: a body is read in one fixed order, and every message passes this way.

Strict parse, secrets out, one message, the request's own id, our own keys out, then what the policy
lets pass. So nothing after the scrub can bring a secret back. Whole answers and events share it.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from surefoot.errors import AnswerTooLargeError, UnreadableAnswerError
from surefoot.wire._head import AnswerPolicy
from surefoot.wire._jsonrpc import Message, MessageKind, RequestId, read_message, same_id
from surefoot.wire._known import outcome_of_code, outcome_of_status
from surefoot.wire._rewrite import stated_seconds, strict_error, without_our_keys
from surefoot.wire._scrub import Scrub
from surefoot.wire._sentences import Outcome
from surefoot.wire.strict_json import JsonLimits, canonical, dumps, loads

__all__ = ["Asked", "Read", "ReadKind", "Refusal", "read_body"]

ReadKind: TypeAlias = Literal["request", "notification", "result", "error"]
"""The four things that a message of a server can be."""

_KINDS: Final[MappingProxyType[MessageKind, ReadKind]] = MappingProxyType(
    {
        "request": "request",
        "notification": "notification",
        "response": "result",
        "error": "error",
    }
)
_REPLIES: Final = frozenset({"result", "error"})
_FAILURES: Final = 300  # from this status on, the status says what an error means
_METHOD_NOT_FOUND: Final = -32601


class Asked(NamedTuple):
    """What was asked, and how its answer is to be read."""

    id: RequestId | None
    policy: AnswerPolicy
    scrub: Scrub | None
    limits: JsonLimits
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


def read_body(body: bytes, asked: Asked, status: int) -> Read | Refusal:
    """Read a body as one message, or say why it is not handed on; never raises."""
    parsed = _parsed(body, asked)
    if isinstance(parsed, Refusal):
        return parsed
    value, text, hits = parsed
    message = read_message(value, lenient=asked.policy == "checked")
    if isinstance(message, str):
        return Refusal(message, scrubbed=hits)
    kind: ReadKind = _KINDS[message.kind]
    kept = message.value
    if kind in _REPLIES and asked.id is not None and not same_id(message.id, asked.id):
        if kind == "result" or message.id is not None:
            return Refusal("wrong-id", scrubbed=hits)
        # An error that could not name its request is the error of the one that was asked (D18).
        kept = {**kept, "id": asked.id}
    outcome: Outcome | None = None
    seconds: float | None = None
    if kind == "error":
        told: Any = kept["error"]
        seconds = stated_seconds(told.get("data"))
        outcome = _outcome(told["code"], asked, status)
        if asked.policy == "strict":
            kept = strict_error(kept, outcome, status if status >= _FAILURES else None)
    # In canonical form a key of ours can be written in one way only.
    if text.find(b'"surefoot/') >= 0:
        kept = without_our_keys(kept)
    if kept is not value:
        message = Message(message.kind, kept.get("id"), kept)
        text = dumps(kept)
    return Read(kind, text, message, outcome, seconds, hits)


def _parsed(body: bytes, asked: Asked) -> tuple[Any, bytes, int] | Refusal:
    """Parse, write canonically, and take the secrets out."""
    try:
        value, text = canonical(body, limits=asked.limits)
        if asked.scrub is None:
            return value, text, 0
        text, hits = asked.scrub(text)
        return (loads(text) if hits else value), text, hits
    except AnswerTooLargeError as broken:
        return Refusal(broken.rule, too_large=True)
    except UnreadableAnswerError as broken:
        return Refusal(broken.rule)


def _outcome(code: int, asked: Asked, status: int) -> Outcome:
    """Name what an error means: by its status where that is a failure's, else by its code."""
    if status < _FAILURES:
        return outcome_of_code(code)
    # At 404 the code tells an unknown method from a session that is gone.
    in_session = asked.in_session and code != _METHOD_NOT_FOUND
    return outcome_of_status(status, in_session=in_session)
