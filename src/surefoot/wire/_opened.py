r"""The law of this file: what an encoding hides is found where it stands (B7).

A text is looked at as it is, and again with its escapes opened: ``\u0041``, ``\x41``, ``%41``,
``&#65;`` and ``&amp;``, up to three times, since texts are quoted in texts. In each state it is
looked at once more without its line ends, because base64 is sent in lines. What is found in such a
view is told as a place in the text itself: the escapes are gone through again to count, and no
list of them is kept, because an answer may be made of nothing else (B12).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

__all__ = ["Span", "View", "hides", "views"]

Span = tuple[int, int]
"""From where to where, the second not included."""

_ROUNDS: Final = 3
_CODE: Final = "([2-7][0-9A-Fa-f])"
_NAMED: Final = {"amp": "&", "quot": '"', "apos": "'", "lt": "<", "gt": ">"}
# A run of backslashes is looked at from its first one alone, and never a second time.
_ESCAPED: Final = re.compile(
    rf"\\(?<!\\\\)\\*+(?:u00|x){_CODE}|%(?:25)*{_CODE}|&#x0*+{_CODE};"
    r"|&#0*+(3[2-9]|[4-9][0-9]|1[01][0-9]|12[0-6]);|&(amp|quot|apos|lt|gt);"
)
_DECIMAL: Final = 4
_NAME: Final = 5
_BREAK: Final = re.compile(r"[\r\n]++|(?<!\\)\\++[rn]")

# What no escaping has to change, and a needle therefore consists of.
_UNRESERVED: Final = rb"(?:[46][1-9A-Fa-f]|[57][0-9Aa]|3[0-9]|2[DEde]|5[Ff]|7[Ee])"
_IN_PERCENT: Final = re.compile(rb"%(?:25)*" + _UNRESERVED)
_LINE: Final = rb"(?<=[A-Za-z0-9+/_-]{60}"
_BEHIND_BACKSLASH: Final = re.compile(
    rb"\\(?:u00" + _UNRESERVED + rb"|n(?:"
    # The line before it, ended by a line feed or by two signs; the same in a text in a text.
    + _LINE + rb"\\n)|" + _LINE + rb"\\r\\n)|"
    + _LINE + rb"\\\\n)|" + _LINE + rb"\\\\r\\\\n)))"
)  # fmt: skip


class View(NamedTuple):
    """One way to look at a text."""

    text: str
    """What is seen."""

    before: View | None = None
    """What it was made of; ``None`` for the text itself."""

    step: re.Pattern[str] = _ESCAPED
    """What was changed in that."""

    def places(self, spans: list[Span]) -> list[Span]:
        """Tell where in the text itself these parts of the view stand; they must be in order."""
        if self.before is None or not spans:
            return spans
        return self.before.places(_places(self.before.text, self.step, spans))


def views(text: str) -> Iterator[View]:
    """List the ways in which a text is looked at, the plainest first."""
    view = View(text)
    for opened in range(_ROUNDS + 1):
        yield view
        if "\n" in view.text or "\\n" in view.text:
            yield View(_BREAK.sub("", view.text), view, _BREAK)
        if opened == _ROUNDS or not _ESCAPED.search(view.text):
            return
        view = View(_ESCAPED.sub(_character, view.text), view, _ESCAPED)


def hides(text: bytes) -> bool:
    """Tell whether something that needs no escaping is escaped in it, or broken into lines.

    Only then can a needle be in a view of the text without being in the text.
    """
    # (One byte is found ten times as fast as two, and there is seldom anything to search for.)
    return (text.find(b"\\") >= 0 and _BEHIND_BACKSLASH.search(text) is not None) or (
        text.find(b"%") >= 0 and _IN_PERCENT.search(text) is not None
    )


def _character(escape: re.Match[str]) -> str:
    """The character that an escape stands for."""
    which = escape.lastindex or 1
    code: str = escape[which]
    if which == _NAME:
        return _NAMED[code]
    return chr(int(code, 10 if which == _DECIMAL else 16))


def _places(text: str, step: re.Pattern[str], spans: list[Span]) -> list[Span]:
    """Tell where in a text stand parts of what a step made of it."""
    width = 0 if step is _BREAK else 1
    changes = step.finditer(text)
    change = next(changes, None)
    shift = 0  # by how much what comes now stands further behind in the text
    found: list[Span] = []
    for span in spans:
        ends: list[Span] = []
        for target in (span[0], span[1] - 1):
            while change is not None and change.start() - shift + width <= target:
                shift += change.end() - change.start() - width
                change = next(changes, None)
            if change is not None and change.start() - shift == target:
                ends.append(change.span())
            else:
                ends.append((target + shift, target + shift + 1))
        found.append((ends[0][0], ends[1][1]))
    return found
