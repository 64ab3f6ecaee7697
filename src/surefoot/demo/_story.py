"""The law of this file: a line for whatever happens, when it happens, so that no wait is silent."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ._calls import Call
from ._happenings import Happening
from ._terminal import Style, Terminal

__all__ = ["Story"]

_LABEL: Final = 24
_BODY: Final = 14
"""Columns before what is told of a call."""


class Story:
    """Tells one run on the terminal.

    Args:
        terminal: where.
        calls: the table, for the names of the calls.
    """

    def __init__(self, terminal: Terminal, calls: Sequence[Call]) -> None:
        self._terminal = terminal
        self._calls = {call.number: call for call in calls}
        self._last_words: str | None = None
        """The last error that was told in full; the next one like it is told in short."""

        self._last_death: str | None = None
        """Of what the last session died, until something else is told."""

    def tell(self, happening: Happening) -> None:
        """Print what happened."""
        if happening.kind not in {"error", "session-lost", "lost"}:
            self._last_death = None
        call = None if happening.call is None else self._calls[happening.call]
        number = "" if call is None else str(call.number)
        front = f"{happening.at:6.2f} {number:>3}"
        if happening.kind == "call" and call is not None:
            self._last_words = None
            label = f"{front}  {call.label}".ljust(_LABEL + 12)
            self._terminal.line(("dim", front), label[len(front) :], ("bold", happening.text))
            return
        style, text = self._worded(happening)
        self._terminal.text(style, text, indent=_BODY, first=front)

    def _worded(self, happening: Happening) -> tuple[Style, str]:
        # The 1.x SDK adds the URL, and a page to read about HTTP.
        text = happening.text.partition(" for url ")[0]
        match happening.kind:
            case "answered":
                return "good", f"answered: {text}"
            case "error":
                again, self._last_words = text == self._last_words, text
                if text == self._last_death:
                    return "bad", "cut with it"
                return "bad", "the same error again" if again else f"error: {text}"
            case "session-lost":
                self._last_death = text
                return "bad", f"THE SESSION DIED: {text}"
            case "told":
                short = text.partition(" Do not ")[0]
                return "wait", f"told: {short} (It only reads: asked again.)"
            case "unknown":
                return "wait", f"told: {text} (The agent leaves it.)"
            case "lost":
                return "bad", f"LOST after {text}"
            case "waits":
                return "wait", text
            case _:
                return "", f"-- {text} --" if happening.kind == "hour" else text
