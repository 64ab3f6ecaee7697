"""The law of this file: a file grows by whole lines, and a line that could not be finished ends.

Used by one thread. A full file is moved aside; a file that somebody else moved or removed is not
written to any longer than a second.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

__all__ = ["AppendFile"]

_LOOK_SECONDS: Final = 1.0
_MOST_AT_ONCE: Final = 256 * 1024
_FLAGS: Final = os.O_WRONLY | os.O_APPEND | os.O_CREAT | getattr(os, "O_CLOEXEC", 0)


class AppendFile:
    """A file of lines.

    Args:
        path: Made if need be, for its owner alone.
        max_bytes: The file is moved aside before it grows beyond this.
        keep: How many that were moved aside are kept.

    Raises:
        OSError: it cannot be opened.
    """

    def __init__(self, path: Path, *, max_bytes: int | None, keep: int) -> None:
        self._path = path
        self._max_bytes = max_bytes
        self._keep = keep
        self._fd = -1
        self._size = 0
        self._torn = False
        self._looked = 0.0
        self._open()

    def append(self, lines: Sequence[bytes]) -> tuple[int, Exception | None]:
        """Append lines; how many are in the file whole, and what kept the others out."""
        done = 0
        try:
            self._follow()
            while done < len(lines):
                done += self._append(self._fitting(lines, done))
        except _Stopped as stopped:
            return done + stopped.lines, stopped.cause
        except Exception as error:  # noqa: BLE001 - no memory, say: it is counted
            return done, error
        return done, None

    def close(self) -> None:
        """Close the file; the next lines would open it again."""
        fd, self._fd = self._fd, -1
        if fd >= 0:
            with suppress(OSError):
                os.close(fd)

    def _append(self, lines: Sequence[bytes]) -> int:
        """Write lines at once; a rest that the system left over is written after it."""
        text = b"".join(lines)
        if self._torn:
            text = b"\n" + text
        written = 0
        try:
            while written < len(text):
                written += os.write(self._fd, text[written:] if written else text)
        except OSError as error:
            whole = text.count(b"\n", 0, written) - self._torn if written else 0
            raise _Stopped(whole, error) from None
        finally:
            self._size += written
            if written:
                self._torn = text[written - 1] != _NEWLINE
        return len(lines)

    def _fitting(self, lines: Sequence[bytes], done: int) -> Sequence[bytes]:
        """The next lines that go into one write and into this file; moves a full file aside."""
        if self._fd < 0:
            self._open()
        room = _MOST_AT_ONCE
        if self._max_bytes is not None:
            if 0 < self._size > self._max_bytes - len(lines[done]):
                self._rotate()
            room = min(room, self._max_bytes - self._size)
        until = done
        while until < len(lines) and (until == done or room >= len(lines[until])):
            room -= len(lines[until])
            until += 1
        return lines[done:until]

    def _follow(self) -> None:
        """Once a second, see whether somebody moved the file away or removed it."""
        now = time.monotonic()
        if now - self._looked >= _LOOK_SECONDS:
            self._looked = now
            if self._fd >= 0 and not self._is_ours():
                self.close()

    def _open(self) -> None:
        self._fd = os.open(self._path, _FLAGS, 0o600)
        found = os.fstat(self._fd)
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


_NEWLINE: Final = 0x0A


class _Stopped(Exception):  # noqa: N818 - a signal between two functions of this file
    """A write failed after so many lines."""

    def __init__(self, lines: int, cause: OSError) -> None:
        self.lines = lines
        self.cause = cause
        super().__init__()
