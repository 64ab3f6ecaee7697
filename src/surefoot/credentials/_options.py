"""The law of this file: a number that cannot mean anything is refused by its name (R71, R72)."""

from __future__ import annotations

from math import isnan

__all__ = ["count", "seconds"]


def seconds(name: str, value: object) -> float:
    """Hold an option to a number of seconds, at least 0."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        message = f"{name}: must be a number of seconds"
        raise TypeError(message)
    if isnan(value) or value < 0:
        message = f"{name}: must be at least 0, not {value!r}"
        raise ValueError(message)
    return float(value)


def count(name: str, value: object) -> int:
    """Hold an option to a whole number, at least 1."""
    if isinstance(value, bool) or not isinstance(value, int):
        message = f"{name}: must be a whole number"
        raise TypeError(message)
    if value < 1:
        message = f"{name}: must be at least 1, not {value!r}"
        raise ValueError(message)
    return value
