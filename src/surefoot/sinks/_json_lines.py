"""The law of this file: one event is one whole line, and the file reads wherever its writer died.

Lines are appended by one thread, whole, by a single ``write`` on a descriptor opened with
``O_APPEND``: a killed process leaves whole lines, at most the last one cut, and processes may share
a file. What waited together is written together, since each ``write`` makes the thread line up
behind a busy program anew. A file that was left with a cut line is continued on a new one. A disk
that stalls or fails costs events, which are counted, and never a call (B13).
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from pydantic_core import PydanticSerializationError, to_json

from surefoot.evidence import Alarm, Event, Filed, Losses

from ._append_file import AppendFile
from ._courier import AT_EXIT_SECONDS, QUEUE, Carried, Courier
from ._loud import loud

__all__ = ["JsonLinesSink", "line_of"]


def line_of(event: Mapping[str, Any]) -> bytes:
    """One event as one line, its newline included."""
    try:
        return to_json(event) + b"\n"
    except (PydanticSerializationError, UnicodeEncodeError):
        # Half of a surrogate pair, or a value of no JSON type, from a foreign caller.
        return json.dumps(event, default=str, separators=(",", ":")).encode("ascii") + b"\n"


class JsonLinesSink:
    """Appends events to a file, one JSON object a line.

    Args:
        path: The file. It is made if need be, for its owner alone (mode 0600); its folder is not.
        max_bytes: Begin a new file before one grows beyond this, and keep the old one as
            ``path.1`` (``None``: never). A single longer line still gets a file of its own.
        keep: How many old files are kept.
        room: Events that may wait for the disk.
        alarm: Told once when the file becomes incomplete; by default the ``surefoot`` logger.

    Raises:
        OSError: the file cannot be opened for appending.
        TypeError: an option has the wrong type.
        ValueError: an option is out of range.
    """

    never_stalls: Final = True
    """``emit`` only queues."""

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        max_bytes: int | None = None,
        keep: int = 5,
        room: int = QUEUE,
        alarm: Alarm = loud,
    ) -> None:
        _whole("max_bytes", max_bytes, least=1, none=True)
        _whole("keep", keep, least=1)
        _whole("room", room, least=1)
        self._path = Path(path)
        self._file = AppendFile(self._path, max_bytes=max_bytes, keep=keep)
        self._losses = Losses(type(self).__name__, alarm)
        self._courier = Courier(self._write, lost=self._no_room, room=room)

    def __repr__(self) -> str:
        """Show the file's name and what is lost, not the folder."""
        return f"<JsonLinesSink {self._path.name!r}, {self.dropped} dropped>"

    @property
    def path(self) -> Path:
        """The file that is appended to."""
        return self._path

    @property
    def dropped(self) -> int:
        """Events that are not in the file: no room, or the disk refused."""
        return self._losses.total

    def emit(self, event: Mapping[str, Any], /) -> None:
        """Queue one event for the file. Returns at once and never raises."""
        self._courier.offer(event)

    def emit_later(self, filed: Filed, /) -> None:
        """Queue an event that the file's own thread will write out."""
        self._courier.offer(filed)

    def flush(self, timeout: float = AT_EXIT_SECONDS) -> bool:
        """Wait until what was emitted is written; whether that took less than ``timeout`` s."""
        return self._courier.flush(timeout)

    def close(self, timeout: float = AT_EXIT_SECONDS) -> bool:
        """Write what is queued and close the file; whether all of it is written.

        A disk that stalls is left to itself after ``timeout`` seconds.
        """
        written = self._courier.close(timeout)
        if written:
            self._file.close()
        return written

    def _write(self, batch: Sequence[Carried]) -> None:
        """Append a batch, on the courier's thread; whatever fails is counted."""
        lines: list[bytes] = []
        owed: Event | None = None
        for one in batch:
            try:
                event = one.event() if isinstance(one, Filed) else one
                line = line_of(event)
            except BaseException as error:  # noqa: BLE001 - nor does an exit end our thread
                self._losses.add(type(error).__name__)
                continue
            if not lines and (owed := self._losses.owed(event)) is not None:
                lines.append(line_of(owed))
            lines.append(line)
        written, error = self._file.append(lines)
        if owed is not None and written:
            self._losses.written(owed["dropped"])
        elif owed is not None:
            written = 1  # it is no event of a run: what it says is still owed, and not lost anew
        if error is not None:
            self._losses.add(type(error).__name__, len(lines) - written)

    def _no_room(self) -> None:
        self._losses.add("QueueFull")


def _whole(option: str, value: object, *, least: int, none: bool = False) -> None:
    if value is None and none:
        return
    if not isinstance(value, int) or isinstance(value, bool):
        msg = f"{option}: must be a whole number{' or None' if none else ''}"
        raise TypeError(msg)
    if value < least:
        msg = f"{option}: must be at least {least}"
        raise ValueError(msg)
