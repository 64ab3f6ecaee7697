"""The law of this file: an event goes up as the canonical form of what was checked, or not at all.

Events are checked one by one as they pass; the first that breaks a rule ends the stream, and the
layer above says so in words (D22). Bytes, silence and time are bounded for the answer to a request;
a standing stream may live as long as its server wants (B12).
"""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from surefoot.errors import AnswerTooLargeError, UnreadableAnswerError
from surefoot.wire import KEEP_ALIVE, JsonLimits, SseDecoder, safe_event

from ._content import TOTAL, decoded, patient
from ._family import finished

if TYPE_CHECKING:
    from surefoot.wire import CheckedEvent, Outgoing, Scrub

    from ._clock import Clock
    from ._family import HTTPRequest
    from ._note import EventState
    from ._recorder import Record

__all__ = ["EventReader", "EventRules", "heard", "silent_for"]

_logger = logging.getLogger("surefoot")


@dataclass(frozen=True, slots=True, kw_only=True)
class EventRules:
    """How answers and their events are read; the same for every attempt of a Gateway."""

    policy: Literal["checked", "strict"]
    """How far a failure's own words pass (D20)."""

    clock: Clock
    limits: JsonLimits
    """Bounds of one JSON text."""

    max_event_bytes: int
    """Bytes of one event."""

    idle: float
    """Seconds of silence after which a stream ends."""

    total: float
    """Seconds after which the answer to a request ends."""

    def timer(self) -> Callable[[], None]:
        """Start the time of one answer; what is returned raises once it is over."""
        clock, total = self.clock, self.total
        end = clock.monotonic() + total

        def go_on() -> None:
            if clock.monotonic() >= end:
                raise AnswerTooLargeError(rule=TOTAL, limit=total)

        return go_on


class EventReader:
    """One event stream on its way up: decoded, checked, written again.

    Args:
        rules: How it is read.
        state: What the layers above look at while it goes by.
        record: The request's record. Where the request resumes a call, the answer is that call's.
        scrub: The secrets of this attempt.
        request: The request, whose timeouts may already bound a silent stream.
    """

    def __init__(
        self,
        rules: EventRules,
        state: EventState,
        record: Record | None,
        scrub: Scrub | None,
        request: HTTPRequest,
    ) -> None:
        self._rules = rules
        self._state = state
        self._record = record
        self._scrub = scrub
        self._silence = silent_for(request, rules.idle)
        own: Outgoing | None = None if record is None else record.outgoing
        state.asked = own is not None and own.kind == "request"
        self._owner = owner = None if record is None else record.resumes or record
        owed = own if owner is record or owner is None else owner.outgoing
        asked = owed is not None and owed.kind == "request"
        self._id = owed.id if owed is not None and asked else None
        self._go_on = rules.timer() if asked else None
        self._room = rules.limits.max_bytes

    async def read(self, source: Any, coding: bytes | None) -> AsyncGenerator[bytes, None]:
        """The checked events; ends where the stream ends, and where it breaks a rule (D22)."""
        state = self._state
        if state.rule is not None:
            return
        decoder = SseDecoder(max_event_bytes=self._rules.max_event_bytes, keep_alives=True)
        parts = source.__aiter__()
        waited: Any = parts if self._silence is None else patient(parts, self._silence)
        chunks: Any = waited if coding is None else decoded(waited, coding)
        try:
            async for chunk in chunks:
                if self._go_on is not None and not state.replied:
                    self._count(chunk)
                part = self._checked(decoder, chunk)
                if part:
                    yield part
                if state.rule is not None:
                    return
        except UnreadableAnswerError as error:
            self._broken(error)
        finally:
            for reader in dict.fromkeys((chunks, waited, parts)):
                await finished(reader)

    def _count(self, chunk: bytes) -> None:
        """Hold the answer to a request to its bounds of bytes and time."""
        if self._go_on is not None:
            self._go_on()
        self._room -= len(chunk)
        if self._room < 0:
            raise AnswerTooLargeError(rule="too-many-bytes", limit=self._rules.limits.max_bytes)

    def _checked(self, decoder: SseDecoder, chunk: bytes) -> bytes:
        """The events that one chunk finishes, checked and written again."""
        state = self._state
        out: list[bytes] = []
        try:
            for block in decoder.feed(chunk):
                event = safe_event(
                    block,
                    request_id=self._id,
                    policy=self._rules.policy,
                    scrub=self._scrub,
                    limits=self._rules.limits,
                    max_event_bytes=self._rules.max_event_bytes,
                )
                if event.wire is KEEP_ALIVE and out and out[-1] is KEEP_ALIVE:
                    continue  # one says what a hundred in a row say
                if event.scrubbed and self._record is not None and self._record.sent:
                    self._record.sent[-1].scrubbed_hits += event.scrubbed
                if event.rule is not None:
                    state.rule = event.rule
                    state.too_large = event.outcome == "too-large"
                    break
                if event.id:
                    state.last_id = event.id
                if event.replies:
                    self._replied(event)
                out.append(event.wire)
        except UnreadableAnswerError as error:
            self._broken(error)
        return out[0] if len(out) == 1 else b"".join(out)

    def _replied(self, event: CheckedEvent) -> None:
        """Take note of the answer; that it came is said last, because it is said for good."""
        state, record, owner = self._state, self._record, self._owner
        if record is not None and owner is not None:
            if event.message is not None:
                heard(owner, event.message.value)
            if event.kind == "result":
                owner.completed = record.completed = True
                if record.sent:
                    record.sent[-1].effect = "ran"
        state.failed = event.kind == "error"
        state.replied = True
        if owner is not None and owner.fence is not None and not state.looked_at:
            # Its caller may make the same call anew as soon as it has read this event.
            owner.fence.release(owner)

    def _broken(self, error: UnreadableAnswerError) -> None:
        self._state.rule = error.rule
        self._state.too_large = isinstance(error, AnswerTooLargeError)


def heard(record: Record, message: Mapping[str, Any]) -> None:
    """Let the record learn from an answer; what cannot be learned from is an answer still."""
    try:
        record.heard(message)
    except Exception as error:  # noqa: BLE001 - see above
        _logger.warning("learned nothing from an answer: %s", type(error).__name__)


def silent_for(request: HTTPRequest, idle: float) -> float | None:
    """Seconds of silence that this file itself has to bound, or ``None`` where the client does.

    A scope around every chunk costs as much as the chunk, and a client with a read timeout already
    ends a silent stream.
    """
    read = request.extensions.get("timeout", {}).get("read")
    return None if isinstance(read, (int, float)) and read <= idle else idle
