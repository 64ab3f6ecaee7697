"""The law of this file: an option of this room that cannot mean anything is refused by its name.

When it is built, with the rule and the way out, and never with what was given: that may be a secret
in the wrong place (R71, R72). A wrong type is a ``TypeError``, a wrong value a ``ValueError``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from inspect import iscoroutinefunction
from math import isfinite
from typing import Any, Final, cast

from surefoot.credentials import ApiKey
from surefoot.errors import InvalidCredentialError

__all__ = [
    "a_clock",
    "a_name",
    "a_return_url",
    "a_signing_name",
    "broken_function",
    "broken_word",
    "header_name",
    "one_of",
    "one_way",
    "positive_seconds",
    "texts",
]

_SIGNING_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")
_RETURN_URL: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:[\x21-\x7e]{1,2000}")
_CLOCK: Final = "clock: must be a Clock: an object with monotonic, now and sleep, or None"


def broken_word(option: str, value: object, such_as: str) -> Exception | None:
    """What is wrong with what should be a text that is not empty, if anything."""
    if not isinstance(value, str):
        return TypeError(f"{option}: must be a str: {such_as}")
    return None if value else ValueError(f"{option}: must not be empty: {such_as}")


def a_name(option: str, value: object) -> None:
    """Hold an option to a name, or ``None``."""
    if value is None:
        return
    if not isinstance(value, str):
        raise TypeError(f"{option}: must be a str, or None")
    if not value:
        raise ValueError(f"{option}: must not be empty; leave it out, or pass None")


def a_signing_name(value: object) -> str:
    """Hold ``service`` to the name by which a service of AWS knows its signatures."""
    if not isinstance(value, str):
        raise TypeError("service: must be a str: a signing name such as bedrock-agentcore")
    if _SIGNING_NAME.fullmatch(value) is None:
        raise ValueError("service: must be a signing name such as bedrock-agentcore")
    return value


def one_of(option: str, value: object, words: Sequence[str]) -> None:
    """Hold an option to one of a few words."""
    if value not in words:
        kind = ValueError if isinstance(value, str) else TypeError
        raise kind(f"{option}: must be one of {', '.join(words)}")


def one_way(credentials: object, aws: object) -> None:
    """Refuse keys that would sign nothing."""
    if credentials is not None and aws is not None:
        raise ValueError(
            "aws: with credentials= nothing is signed; leave out the one that is not meant"
        )


def positive_seconds(option: str, value: object) -> float:
    """Hold an option to a time above nothing."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise TypeError(f"{option}: must be a number of seconds")
    try:
        seconds = float(value)
    except OverflowError:  # a whole number that no float holds
        seconds = 0.0
    if not isfinite(seconds) or seconds <= 0:
        raise ValueError(f"{option}: must be above 0 and finite")
    return seconds


def header_name(option: str, value: object) -> str:
    """Hold an option to the name of a header that a key may stand in."""
    if not isinstance(value, str):
        raise TypeError(f"{option}: must be a str such as x-api-key")
    try:
        ApiKey("a-key", header=value)
    except InvalidCredentialError as error:
        rule = error.reason.removeprefix("header: ")
    else:
        return value
    raise ValueError(f"{option}: {rule}")


def a_return_url(value: object) -> str | None:
    """Hold ``return_url`` to an absolute URL, or ``None``; the service holds it to its own list."""
    if value is None:
        return None
    if not isinstance(value, str):
        raise TypeError("return_url: must be a str such as https://app.example.com/done, or None")
    if _RETURN_URL.fullmatch(value) is None:
        raise ValueError("return_url: must be a whole URL such as https://app.example.com/done")
    return value


def texts(option: str, value: object) -> dict[str, str] | None:
    """Hold an option to a mapping of texts to texts, or ``None``."""
    if value is None:
        return None
    given = dict(cast("Mapping[Any, Any]", value)) if isinstance(value, Mapping) else None
    if given is None or not all(isinstance(part, str) for pair in given.items() for part in pair):
        raise TypeError(f'{option}: must be a mapping of str to str such as {{"prompt": "login"}}')
    return given


def broken_function(value: object) -> Exception | None:
    """What is wrong with ``workload_token``, if anything: a function that answers at once."""
    if value is None:
        return None
    if not callable(value):
        return TypeError("workload_token: must be a function that returns the token, or None")
    if iscoroutinefunction(value):
        return TypeError("workload_token: must be a plain function, and no async one")
    return None


def a_clock(value: object) -> None:
    """Hold ``clock`` to something that tells the time, or ``None``."""
    if value is not None and not all(
        callable(getattr(value, member, None)) for member in ("monotonic", "now", "sleep")
    ):
        raise TypeError(_CLOCK)
