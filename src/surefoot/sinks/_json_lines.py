"""The law of this file: one event is one whole line, on the disk before the next one is begun.

A line is appended by a single ``write`` on a descriptor opened with ``O_APPEND``, so that a killed
process leaves whole lines, at most the last one cut, and several processes may share a file. A file
that was left with a cut line is continued on a new one. A disk that stalls or fails costs events,
which are counted, and never a call (B13).
"""

from __future__ import annotations

import json
import os
import stat
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from pydantic_core import PydanticSerializationError, to_json

from surefoot.evidence import Alarm, Delivery

from ._courier import AT_EXIT_SECONDS, QUEUE, Courier
from ._loud import loud

__all__ = ["JsonLinesSink", "line_of"]

_LOOK_SECONDS: Final = 1.0
"""How often it is seen whether somebody moved the file away."""

_FLAGS: Final = os.O_WRONLY | os.O_APPEND | os.O_CREAT | getattr(os, "O_CLOEXEC", 0)


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
        self._file = _AppendFile(self._path, max_bytes=max_bytes, keep=keep)
        self._delivery = Delivery(self._file, name=type(self).__name__, alarm=alarm)
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
        return self._delivery.dropped

    def emit(self, event: Mapping[str, Any], /) -> None:
        """Queue one event for the file. Returns at once and never raises."""
        self._courier.offer(event)

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

    def _write(self, batch: Sequence[Mapping[str, Any]]) -> None:
        self._file.look()
        hand = self._delivery.hand
        for event in batch:
            hand(event)

    def _no_room(self) -> None:
        self._delivery.lose("QueueFull")


class _AppendFile:
    """The file itself; used by one thread."""

    def __init__(self, path: Path, *, max_bytes: int | None, keep: int) -> None:
        self._path = path
        self._max_bytes = max_bytes
        self._keep = keep
        self._fd = -1
        self._size = 0
        self._torn = False
        self._looked = 0.0
        self._open()

    def emit(self, event: Mapping[str, Any], /) -> None:
        """Append one event."""
        line = line_of(event)
        if self._fd < 0:
            self._open()
        if self._max_bytes is not None and 0 < self._size > self._max_bytes - len(line):
            self._rotate()
        if self._torn:
            line = b"\n" + line
        self._append(line)

    def look(self) -> None:
        """Once a second, follow a file that somebody moved away or removed."""
        now = time.monotonic()
        if now - self._looked < _LOOK_SECONDS:
            return
        self._looked = now
        if self._fd >= 0 and not self._is_ours():
            self.close()

    def close(self) -> None:
        """Close the file; the next event would open it again."""
        fd, self._fd = self._fd, -1
        if fd >= 0:
            with suppress(OSError):
                os.close(fd)

    def _append(self, line: bytes) -> None:
        written = 0
        try:
            while written < len(line):
                written += os.write(self._fd, line[written:] if written else line)
        finally:
            self._size += written
            if written:
                self._torn = written < len(line)

    def _open(self) -> None:
        fd = os.open(self._path, _FLAGS, 0o600)
        found = os.fstat(fd)
        self._fd = fd
        self._size = found.st_size
        self._torn = False
        if stat.S_ISREG(found.st_mode) and found.st_size:
            with suppress(OSError), self._path.open("rb") as file:
                file.seek(-1, os.SEEK_END)
                self._torn = file.read(1) != b"\n"

    def _is_ours(self) -> bool:
        """Whether the path still names the file that is open."""
        try:
            there, here = self._path.stat(), os.fstat(self._fd)
        except OSError:
            return False
        return (there.st_dev, there.st_ino) == (here.st_dev, here.st_ino)

    def _rotate(self) -> None:
        """Move the full file aside; where another process already did, only follow."""
        if self._is_ours():
            for number in range(self._keep - 1, 0, -1):
                with suppress(FileNotFoundError):
                    self._old(number).replace(self._old(number + 1))
            self._path.replace(self._old(1))
        self.close()
        self._open()

    def _old(self, number: int) -> Path:
        return self._path.with_name(f"{self._path.name}.{number}")


def _whole(option: str, value: object, *, least: int, none: bool = False) -> None:
    if value is None and none:
        return
    if not isinstance(value, int) or isinstance(value, bool):
        msg = f"{option}: must be a whole number{' or None' if none else ''}"
        raise TypeError(msg)
    if value < least:
        msg = f"{option}: must be at least {least}"
        raise ValueError(msg)
