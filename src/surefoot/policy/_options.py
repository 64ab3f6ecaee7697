"""The law of this file: an option is refused by its name, its rule and the way out, unechoed.

What is put in the wrong place is most often a secret, so only a number is ever shown (R71, R72): a
wrong type is a ``TypeError``, a ``bool`` for a number too; a wrong range or word a ``ValueError``.
"""

from __future__ import annotations

__all__ = ["a_bool", "one_of", "wrong_type", "wrong_value"]


def wrong_type(name: str, rule: str) -> TypeError:
    """Name the option and what it takes."""
    return TypeError(f"{name}: must be {rule}")


def wrong_value(name: str, rule: str, value: float | None = None) -> ValueError:
    """Name the option and its rule; echo a value only if it is a number."""
    echo = "" if value is None else f", not {value!r}"
    return ValueError(f"{name}: must be {rule}{echo}")


def a_bool(name: str, value: object) -> None:
    """Hold an option to ``True`` or ``False``."""
    if not isinstance(value, bool):
        raise wrong_type(name, "True or False")


def one_of(name: str, value: object, words: tuple[str, ...]) -> None:
    """Hold an option to a closed set of words."""
    if value not in words:
        kind = wrong_value if isinstance(value, str) else wrong_type
        raise kind(name, " or ".join(f'"{word}"' for word in words))
