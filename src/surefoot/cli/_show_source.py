"""The law of this file: a record is read by lines, each of them bounded, however many there are."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, Final

__all__ = ["LONGEST_LINE", "followed", "lines_of"]

LONGEST_LINE: Final = 4 * 1024 * 1024
"""Bytes of one line that are read; the rest of a longer one is skipped."""

_LOOK_SECONDS: Final = 0.2


def lines_of(file: BinaryIO) -> Iterator[bytes]:
    """The lines of a file, each bounded; a longer one comes as its first part, newline added."""
    while line := file.readline(LONGEST_LINE):
        if line.endswith(b"\n") or len(line) < LONGEST_LINE:
            yield line
            continue
        while rest := file.readline(LONGEST_LINE):
            if rest.endswith(b"\n"):
                break
        yield line + b"\n"


def followed(path: Path) -> Iterator[bytes | None]:
    """The lines of a file that grows, for ever; ``None`` each time there is nothing new.

    A line comes when its newline is there. A file that was moved away or cut short is opened anew,
    and one that is not there yet is waited for.
    """
    while True:
        try:
            file = path.open("rb")
        except FileNotFoundError:
            yield None
            _pause()
            continue
        with file:
            yield from _grown(file, path)


def _grown(file: BinaryIO, path: Path) -> Iterator[bytes | None]:
    """The lines of one file until another one has its name."""
    waiting = b""
    replaced = False
    while True:
        line = file.readline(LONGEST_LINE)
        if line:
            waiting += line
            if line.endswith(b"\n") or len(waiting) >= LONGEST_LINE:
                yield waiting
                waiting = b""
            continue
        if replaced:
            if waiting:
                yield waiting
            return
        yield None
        _pause()
        replaced = _is_another(file, path)


def _is_another(file: BinaryIO, path: Path) -> bool:
    try:
        there = path.stat()
    except OSError:
        return False
    here = os.fstat(file.fileno())
    moved = (there.st_dev, there.st_ino) != (here.st_dev, here.st_ino)
    return moved or here.st_size < file.tell()


def _pause() -> None:
    sys.stdout.flush()
    time.sleep(_LOOK_SECONDS)  # noqa: TID251 - a program of its own, with nothing else to do
