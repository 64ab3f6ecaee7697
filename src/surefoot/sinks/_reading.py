"""The law of this file: what was recorded is read as far as it goes, and where it cannot be, said.

Events of other versions and of unknown types pass through: what has a version and a type is an
event. Reading streams, so that a file may be of any length.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final, Literal, cast

from surefoot.errors import UnreadableAnswerError
from surefoot.evidence import Event
from surefoot.wire import JsonLimits, strict_json

__all__ = ["Unreadable", "read_events"]

_LINE: Final = JsonLimits(max_bytes=4 * 1024 * 1024, max_containers=100_000)


@dataclass(frozen=True, slots=True, kw_only=True)
class Unreadable:
    """A line that is no event."""

    line: int
    """Its number; the first line is 1."""

    why: Literal["cut", "not-json", "not-an-event"]
    """Its end is missing, it is no JSON, or it is JSON of somebody else."""


def read_events(lines: Iterable[bytes]) -> Iterator[Event | Unreadable]:
    """Read events from the lines of a file that is open in binary mode; blank lines are skipped.

    A last line without its newline is what a process leaves that was killed while it wrote: an
    event if it can be read, and ``cut`` if not.
    """
    for number, line in enumerate(lines, 1):
        if line.isspace():
            continue
        event = _event(line)
        if isinstance(event, dict):
            yield event
        else:
            cut = event == "not-json" and _is_cut(line)
            yield Unreadable(line=number, why="cut" if cut else event)


def _is_cut(line: bytes) -> bool:
    """Whether a line begins as an event does; one that was continued on a new line is cut, too."""
    return not line.endswith(b"\n") or b'{"v":'.startswith(line[:5].rstrip())


def _event(line: bytes) -> Event | Literal["not-json", "not-an-event"]:
    try:
        value = strict_json.loads(line, limits=_LINE)
    except UnreadableAnswerError:
        return "not-json"
    if not isinstance(value, dict):
        return "not-an-event"
    event = cast("dict[str, Any]", value)
    version, kind = event.get("v"), event.get("type")
    if isinstance(version, int) and not isinstance(version, bool) and isinstance(kind, str):
        return event
    return "not-an-event"
