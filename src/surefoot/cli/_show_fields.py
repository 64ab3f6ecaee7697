"""The law of this file: a record may come from anybody, so no field of it is taken on trust.

A field of the wrong type is as good as absent, and absent is shown as not recorded. Text from a
record is made printable before it reaches a terminal: a tool's name must not move the cursor.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from math import isfinite
from typing import Any, Final, cast

__all__ = ["Fields", "fields_in", "flag", "moment", "plain", "seconds", "text", "whole"]

Fields = Mapping[str, Any]

_MOST: Final = 120
"""Characters of one text that are shown."""


def text(fields: Fields, name: str) -> str | None:
    """A text, or ``None``."""
    value = fields.get(name)
    return value if isinstance(value, str) else None


def flag(fields: Fields, name: str) -> bool:
    """Whether a field says ``true``."""
    return fields.get(name) is True


def whole(fields: Fields, name: str) -> int | None:
    """A whole number, zero or more, or ``None``."""
    value = fields.get(name)
    good = isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 63
    return value if good else None


def seconds(fields: Fields, name: str) -> float | None:
    """Seconds, finite and zero or more, or ``None``."""
    value = fields.get(name)
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if isfinite(number) and number >= 0 else None


def moment(fields: Fields, name: str = "time") -> datetime | None:
    """A time with its zone, or ``None``."""
    value = text(fields, name)
    try:
        found = None if value is None else datetime.fromisoformat(value)
    except ValueError:
        return None
    return found if found is not None and found.tzinfo is not None else None


def fields_in(fields: Fields, name: str) -> Sequence[Fields]:
    """The objects of a list; whatever else is in it is left out."""
    value = fields.get(name)
    if not isinstance(value, list):
        return ()
    listed = cast("list[object]", value)
    return [cast("Fields", one) for one in listed if isinstance(one, dict)]


def plain(value: str, *, ascii_only: bool = False, most: int = _MOST) -> str:
    """A text on one line, printable, and not longer than people read."""
    short = value if len(value) <= most else value[: most - 3] + "..."
    if short.isprintable() and (short.isascii() or not ascii_only):
        return short
    return "".join(
        letter
        if letter.isprintable() and (letter.isascii() or not ascii_only)
        else letter.encode("unicode_escape").decode("ascii")
        for letter in short
    )
