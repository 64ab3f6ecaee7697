"""The law of this file: a script that cannot mean anything is refused where it is declared.

Every complaint names the option, says what is allowed and echoes no text that it was given.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["a_bool", "a_count", "a_number_of_seconds", "a_status", "a_text", "one_of"]


def a_number_of_seconds(option: str, value: object, *, zero: bool = True) -> float:
    """A duration: an int or a float, finite, not negative.

    Raises:
        TypeError: it is not a number.
        ValueError: it is negative, not finite, or zero where that cannot mean anything.
    """
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"{option} takes seconds as an int or a float, not {type(value).__name__}")
    if not math.isfinite(value) or value < 0 or (value == 0 and not zero):
        bound = "from 0" if zero else "above 0"
        raise ValueError(f"{option} takes a finite number of seconds {bound}, not {value!r}")
    return float(value)


def a_count(option: str, value: object, *, least: int = 0) -> int:
    """A whole number that is not below `least`.

    Raises:
        TypeError: it is not an int.
        ValueError: it is below `least`.
    """
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{option} takes a whole number, not {type(value).__name__}")
    if value < least:
        raise ValueError(f"{option} takes a whole number from {least}, not {value!r}")
    return value


def a_status(option: str, value: object, *, allowed: range = range(200, 600)) -> int:
    """An HTTP status within a range.

    Raises:
        TypeError: it is not an int.
        ValueError: it is outside the range.
    """
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{option} takes an HTTP status as an int, not {type(value).__name__}")
    if value not in allowed:
        raise ValueError(
            f"{option} takes a status from {allowed.start} to {allowed.stop - 1}, not {value!r}"
        )
    return value


def a_text(option: str, value: object) -> str:
    """A text that is not empty.

    Raises:
        TypeError: it is not a str.
        ValueError: it is empty.
    """
    if not isinstance(value, str):
        raise TypeError(f"{option} takes a str, not {type(value).__name__}")
    if not value:
        raise ValueError(f"{option} takes a text that is not empty")
    return value


def a_bool(option: str, value: object) -> bool:
    """`True` or `False`.

    Raises:
        TypeError: it is anything else.
    """
    if not isinstance(value, bool):
        raise TypeError(f"{option} takes True or False, not {type(value).__name__}")
    return value


def one_of(option: str, value: object, allowed: Iterable[str]) -> str:
    """One word of a closed set.

    Raises:
        TypeError: it is not a str.
        ValueError: it is not in the set.
    """
    words = sorted(allowed)
    if not isinstance(value, str):
        raise TypeError(f"{option} takes one of {', '.join(words)}, not {type(value).__name__}")
    if value not in words:
        raise ValueError(f"{option} takes one of {', '.join(words)}")
    return value
