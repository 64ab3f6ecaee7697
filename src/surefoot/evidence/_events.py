"""The law of this file: each event says one fact, in plain values, under a version and a type.

Version 1. A reader that meets an event type it does not know passes it through; a field that is
absent was not recorded, and ``null`` says that there was none (B13). Durations carry their unit in
their name. Arguments and answers appear as digest and length of their canonical bytes, and in clear
only where the app asked for it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.resources import files
from typing import Any, ClassVar, Final, Literal, Protocol, cast

from ._attempts import AnswerForm, Effect
from ._text import bounded, short

__all__ = [
    "VERSION",
    "CallEnded",
    "CallStarted",
    "Content",
    "CredentialVended",
    "Entry",
    "Event",
    "EventSink",
    "Filed",
    "Pending",
    "RunEnded",
    "RunStarted",
    "event_schema_text",
    "sink_failed",
    "written_time",
]

VERSION: Final = 1
"""The version of what is written; it rises when a field changes its meaning."""

Event = dict[str, Any]
"""One event as sinks get it: JSON-able, and nobody's to change."""

Content = Literal["digests", "full"]
"""Whether arguments and answers are kept as digests, or in clear as well."""


class EventSink(Protocol):
    """**Protocol**: where events go.

    A sink may also have ``close()``, called when no more will come; ``never_stalls = True``, its
    promise that ``emit`` returns at once, so that no thread has to stand before it; and
    ``emit_later(filed)``, by which it takes a ``Filed`` and writes it out on a thread of its own.
    """

    def emit(self, event: Mapping[str, Any], /) -> None:
        """Take one event, which is not to be changed. May be called from any thread and loop."""
        ...


class Entry(Protocol):
    """**Protocol**: what a ledger files: a type, and the fields of its event.

    It is finished when it is filed: the fields may be asked for later, and on another thread.
    """

    type: ClassVar[str]
    """The event's type."""

    def body(self) -> dict[str, Any]:
        """Its fields, without those that the ledger adds."""
        ...


class Pending:
    """An entry that is put together when it is written out.

    Filing one costs a call next to nothing: what ``make`` does, it does on the sink's thread, and
    what it raises costs this entry and nothing else. Until then it keeps alive whatever ``make``
    refers to, so that has to be small, and finished.

    Args:
        kind: The event's type, which is known at once.
        make: Makes the entry.
    """

    __slots__ = ("_make", "type")

    def __init__(self, kind: str, make: Callable[[], Entry]) -> None:
        self.type = kind
        self._make = make

    def body(self) -> dict[str, Any]:
        """The fields of the entry that ``make`` returns."""
        return self._make().body()


class Filed:
    """An entry that has its number and its time, and is written out when somebody wants it.

    A call pays for noting what happened; the thread that hands it on pays for the words.
    """

    __slots__ = ("_entry", "_event", "run", "seq", "time")

    def __init__(self, entry: Entry | Pending, *, run: str, seq: int, time: datetime) -> None:
        self._entry: Entry | Pending | None = entry
        self._event: Event | None = None
        self.run = run
        self.seq = seq
        self.time = time

    def event(self) -> Event:
        """The event, made once; the entry is let go of then."""
        entry = self._entry
        if entry is not None:
            # Two threads may both come here: they make the same, and either will do.
            self._event = {
                "v": VERSION,
                "type": entry.type,
                "seq": self.seq,
                "time": written_time(self.time),
                "run": self.run,
                **entry.body(),
            }
            self._entry = None
        return cast("Event", self._event)


def written_time(time: datetime) -> str:
    """RFC 3339, in UTC, to the microsecond."""
    global _last  # noqa: PLW0603 - what was filed in one moment is written out one after the other
    known, written = _last
    if known is not time:
        utc = time if time.tzinfo is UTC else time.astimezone(UTC)
        written = utc.isoformat(timespec="microseconds")
        _last = time, written
    return written


_last: tuple[datetime | None, str] = (None, "")


@dataclass(frozen=True, slots=True, kw_only=True)
class RunStarted:
    """A run was opened."""

    type: ClassVar[str] = "run.started"

    name: str | None = None
    parent: str | None = None
    """The run that was open around it."""

    library: str | None = None
    """The version of surefoot that wrote it."""

    content: Content = "digests"

    def body(self) -> dict[str, Any]:
        """Its fields as JSON-able values."""
        return {
            "name": self.name,
            "parent": self.parent,
            "library": self.library,
            "content": self.content,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class RunEnded:
    """A run was closed."""

    type: ClassVar[str] = "run.ended"

    events: int
    """How many events the run has, this one included: a reader sees whether some are missing."""

    dropped: int = 0
    """How many are known to be lost."""

    duration_seconds: float | None = None
    error: str | None = None
    """The name of the class of what ended it, if something was raised."""

    def body(self) -> dict[str, Any]:
        """Its fields as JSON-able values."""
        lasted = self.duration_seconds
        return {
            "events": self.events,
            "dropped": self.dropped,
            "duration_seconds": None if lasted is None else round(lasted, 6),
            "error": None if self.error is None else short(self.error),
        }


@dataclass(slots=True, kw_only=True)
class CallStarted:
    """The agent uses a tool (D33)."""

    type: ClassVar[str] = "call.started"

    call_id: str
    endpoint: str
    tool: str | None = None
    arguments_length: int | None = None
    arguments_sha256: str | None = None
    arguments: bytes | None = None
    """The canonical arguments, scrubbed, where the app asked for content."""

    def body(self) -> dict[str, Any]:
        """Its fields as JSON-able values."""
        fields: dict[str, Any] = {
            "call": self.call_id,
            "endpoint": self.endpoint,
            "tool": None if self.tool is None else short(self.tool),
            "arguments": {"length": self.arguments_length, "sha256": self.arguments_sha256},
        }
        _in_clear(fields["arguments"], self.arguments)
        return fields


@dataclass(slots=True, kw_only=True)
class CallEnded:
    """A call came to its end, whichever it was."""

    type: ClassVar[str] = "call.ended"

    call_id: str
    duration_seconds: float
    is_error: bool | None
    """The tool said that it failed, or we gave up; ``None`` where nothing was read."""

    effect: Effect
    answer_form: AnswerForm | None = None
    answer_length: int | None = None
    answer_sha256: str | None = None
    answer: bytes | None = None
    """What the client was given, scrubbed, where the app asked for content."""

    def body(self) -> dict[str, Any]:
        """Its fields as JSON-able values."""
        fields: dict[str, Any] = {
            "call": self.call_id,
            "duration_seconds": round(self.duration_seconds, 6),
            "is_error": self.is_error,
            "effect": self.effect,
            "answer": {
                "form": self.answer_form,
                "length": self.answer_length,
                "sha256": self.answer_sha256,
            },
        }
        _in_clear(fields["answer"], self.answer)
        return fields


@dataclass(slots=True, kw_only=True)
class CredentialVended:
    """A credential was handed out for one attempt: its kind and for what, and nothing of it."""

    type: ClassVar[str] = "credential.vended"

    service: str
    kind: str
    """``bearer``, ``api-key``, ``basic`` or ``headers``."""

    call_id: str | None = None

    def body(self) -> dict[str, Any]:
        """Its fields as JSON-able values."""
        return {"call": self.call_id, "service": short(self.service), "kind": self.kind}


def _in_clear(fields: dict[str, Any], content: bytes | None) -> None:
    if content is not None:
        fields["text"], fields["cut"] = bounded(content)


def sink_failed(event: Mapping[str, Any], *, sink: str, error: str, dropped: int) -> Event:
    """The event by which a sink that works again says what it lost.

    It belongs to whoever delivers and not to a run's ledger, so it has no number of its own.

    Args:
        event: The event at hand, whose run and time it takes.
        sink: The name of the sink's class.
        error: The name of the class of what was raised, or ``"QueueFull"``.
        dropped: How many events were lost since it last worked.
    """
    return {
        "v": VERSION,
        "type": "sink.failed",
        "seq": None,
        "time": event.get("time"),
        "run": event.get("run"),
        "sink": short(sink),
        "error": short(error),
        "dropped": dropped,
    }


def event_schema_text() -> str:
    """The JSON Schema (draft 2020-12) of every event of this version, as text."""
    return files("surefoot.evidence").joinpath("events.schema.json").read_text("utf-8")
