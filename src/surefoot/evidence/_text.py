"""The law of this file: what goes into an event is bounded, and a number is one that JSON has."""

from __future__ import annotations

import sys
from typing import Final

__all__ = ["MAX_CONTENT", "bounded", "seconds", "short"]

MAX_NAME: Final = 256
"""Code points of a name that somebody else chose: a tool's, a method's, a class's."""

MAX_CONTENT: Final = 65_536
"""Bytes of arguments, or of an answer, that are kept in clear when the app asked for that."""


def short(text: str) -> str:
    """Return ``text``, or as much of it as an event takes, with a mark where it was cut."""
    return text if len(text) <= MAX_NAME else text[: MAX_NAME - 1] + "…"


def seconds(value: float) -> float:
    """Seconds to the microsecond; what JSON has no form for becomes the largest that it has."""
    return round(value, 6) if value <= sys.float_info.max else sys.float_info.max


def bounded(content: bytes | None) -> tuple[str | None, bool]:
    """Content in clear as an event takes it, and whether something was cut off."""
    if content is None:
        return None, False
    kept = content[:MAX_CONTENT].decode("utf-8", "replace")
    return kept, len(content) > MAX_CONTENT
