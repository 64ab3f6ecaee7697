"""The law of this file: one event of a stream is one checked message, or the stream is refused.

A stream of MCP holds messages: what the server asks, what it notifies, and in the end the reply. An
event without data keeps its ``id`` and ``retry``. Of other events only ``endpoint``, which names a
path, passes; the rest is dropped, because no MCP client reads it (D22).
"""

from __future__ import annotations

import re
from typing import Any, Final, Literal, NamedTuple, cast

from surefoot.wire._head import AnswerPolicy
from surefoot.wire._jsonrpc import Message, RequestId
from surefoot.wire._reply import Asked, Refusal, read_body
from surefoot.wire._scrub import Scrub
from surefoot.wire._sentences import Outcome
from surefoot.wire._sse_block import KEEP_ALIVE, SseBlock, encode_event
from surefoot.wire.strict_json import JsonLimits

__all__ = ["CheckedEvent", "EventKind", "safe_event"]

EventKind = Literal["request", "notification", "result", "error", "empty", "other", "unreadable"]
"""What an event turned out to be."""

_LIMITS: Final = JsonLimits()
_ENDPOINT: Final = re.compile(rb"[\x21-\x7e]{1,2048}")
_MOST_BYTES: Final = 1024 * 1024


class CheckedEvent(NamedTuple):
    """One event as the client may read it. Its repr shows no word of it."""

    kind: EventKind
    """What it turned out to be."""

    wire: bytes
    """The event, written again; empty where nothing of it passes."""

    id: str | None = None
    """The event id that is handed on, if it sets a plain one."""

    message: Message | None = None
    """The message, as it is in ``wire``."""

    outcome: Outcome | None = None
    """What to call it, where it is an error or cannot be read."""

    retry_after: float | None = None
    """The seconds to wait that an error states."""

    rule: str | None = None
    """The rule that an unreadable event broke."""

    scrubbed: int = 0
    """How many times a secret stood in it."""

    @property
    def replies(self) -> bool:
        """Whether this is a reply, after which a stream has said what it had to say."""
        return self.kind in ("result", "error")

    def __repr__(self) -> str:
        return f"CheckedEvent(kind={self.kind!r}, rule={self.rule!r})"


_PING: Final = CheckedEvent("empty", KEEP_ALIVE)

# Twice as fast as calling the class, and this runs for every event.
_new = cast("Any", tuple).__new__


def safe_event(
    block: SseBlock,
    *,
    request_id: RequestId | None,
    policy: AnswerPolicy = "checked",
    scrub: Scrub | None = None,
    limits: JsonLimits = _LIMITS,
    max_event_bytes: int = _MOST_BYTES,
) -> CheckedEvent:
    """Return what the client may read of one event (R88, R97, D22); never raises.

    After an ``unreadable`` event nothing more of the stream may be handed on.

    Args:
        block: the event, as the decoder gave it.
        request_id: the id of a reply; ``None`` on a standing stream, where any may come.
        policy: how far an error's own words pass (D20).
        scrub: the secrets of this attempt (B7).
        limits: the bounds of one message (B12).
        max_event_bytes: what the client itself reads of one event.
    """
    event_id = None
    if block.id is not None:
        event_id = block.plain_id
        if event_id and scrub is not None and scrub.holds(event_id.encode()):
            event_id = None
    if not block.data:
        if block.is_keep_alive:
            return _PING
        return CheckedEvent("empty", encode_event(None, id=event_id, retry=block.retry), event_id)
    if block.event != "message":
        return _other(block, event_id, scrub)
    read = read_body(block.data, Asked(request_id, policy, scrub, limits))
    if isinstance(read, Refusal):
        return _unreadable(read)
    wire = encode_event(read.text, id=event_id, retry=block.retry)
    # The client counts without line ends; written anew, a message may be longer than it came.
    if len(wire) > max_event_bytes and len(wire) - wire.count(b"\n") > max_event_bytes:
        return _unreadable(Refusal("event-bytes", too_large=True, scrubbed=read.scrubbed))
    kind, _, message, outcome, seconds, hits = read
    return _new(CheckedEvent, (kind, wire, event_id, message, outcome, seconds, None, hits))


def _unreadable(refusal: Refusal) -> CheckedEvent:
    """Name the rule; what the stream ends with, the caller words."""
    outcome: Outcome = "too-large" if refusal.too_large else "unreadable"
    return CheckedEvent(
        "unreadable", b"", outcome=outcome, rule=refusal.rule, scrubbed=refusal.scrubbed
    )


def _other(block: SseBlock, event_id: str | None, scrub: Scrub | None) -> CheckedEvent:
    """Pass the one other event that a client of MCP reads, and of the rest only what it sets."""
    data = block.data or b""
    if block.event != "endpoint" or not _ENDPOINT.fullmatch(data):
        kept = block.id is not None or block.retry is not None
        wire = encode_event(None, id=event_id, retry=block.retry) if kept else b""
        return CheckedEvent("other", wire, event_id if kept else None)
    if scrub is not None and scrub.holds(data):
        return CheckedEvent("other", b"", scrubbed=1)
    return CheckedEvent(
        "other",
        encode_event(data, event="endpoint", id=event_id, retry=block.retry),
        event_id,
    )
