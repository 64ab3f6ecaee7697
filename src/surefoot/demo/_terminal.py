"""The law of this file: a line is never wider than the terminal, and colour is for people alone.

Colour only where the stream is a terminal, `NO_COLOR` is unset and `TERM` is not `dumb`
(no-color.org); letters are ASCII, so that any encoding can show them; every line is out at once.
"""

from __future__ import annotations

import os
import shutil
import textwrap
from typing import Final, Literal, TextIO

__all__ = ["NARROWEST", "WIDEST", "Style", "Terminal"]

Style = Literal["", "bold", "dim", "good", "bad", "wait"]

WIDEST: Final = 80
NARROWEST: Final = 60
"""Below this many columns nothing is laid out anew; the terminal itself wraps."""

_CODES: Final[dict[Style, str]] = {
    "": "",
    "bold": "1",
    "dim": "2",
    "good": "32",
    "bad": "31",
    "wait": "33",
}


class Terminal:
    """Where the demo is told.

    Args:
        stream: where lines go.
        width: columns; by default those of the terminal, within `NARROWEST` and `WIDEST`.
    """

    def __init__(self, stream: TextIO, *, width: int | None = None) -> None:
        self._stream = stream
        columns = shutil.get_terminal_size((WIDEST, 24)).columns if width is None else width
        self.width = max(NARROWEST, min(WIDEST, columns))
        self._coloured = (
            stream.isatty()
            and not os.environ.get("NO_COLOR")
            and os.environ.get("TERM", "") != "dumb"
        )

    def line(self, *parts: str | tuple[Style, str]) -> None:
        """Print one line of styled parts, cut where the terminal ends."""
        room = self.width
        painted: list[str] = []
        for part in parts:
            style, text = ("", part) if isinstance(part, str) else part
            text = _ascii(text)
            if len(text) > room:
                text = text[: max(0, room - 2)] + ".."[: max(0, room)]
            room -= len(text)
            painted.append(self._painted(style, text))
        print("".join(painted).rstrip(), file=self._stream, flush=True)

    def text(self, style: Style, text: str, *, indent: int = 0, first: str = "") -> None:
        """Print a text that may take several lines, `first` standing before it."""
        lines = textwrap.wrap(_ascii(text), self.width - indent, break_on_hyphens=False) or [""]
        for place, line in enumerate(lines):
            before = first.ljust(indent) if place == 0 else " " * indent
            self.line(("dim", before), (style, line))

    def code(self, style: Style, line: str) -> None:
        """Print a line to copy: never cut."""
        print(self._painted(style, line), file=self._stream, flush=True)

    def gap(self) -> None:
        """Print an empty line."""
        self.line()

    def _painted(self, style: Style, text: str) -> str:
        code = _CODES[style]
        return f"\x1b[{code}m{text}\x1b[0m" if self._coloured and code and text else text


def _ascii(text: str) -> str:
    """The text in ASCII without control characters; a server's words may be in it."""
    plain = text.encode("ascii", "replace").decode("ascii")
    return "".join(letter if letter.isprintable() else " " for letter in plain)
