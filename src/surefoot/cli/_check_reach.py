"""The law of this file: why no connection came about is told in fixed words, and never quoted.

The text of an error may hold the address, and so what somebody put into it.
"""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from socket import gaierror
from typing import Final, cast

__all__ = ["why_unreached"]

_WHY: Final[tuple[tuple[type[BaseException], str], ...]] = (
    (ssl.SSLCertVerificationError, "its certificate is not valid for this name and machine"),
    (ssl.SSLError, "no TLS could be agreed on; is it plain http?"),
    (gaierror, "its name cannot be looked up"),
    (ConnectionRefusedError, "nobody listens there"),
    (TimeoutError, "no connection came about in time"),
)
_MOST: Final = 32
"""Errors of one chain that are looked at."""


def why_unreached(error: BaseException) -> str:
    """Why there was no connection, as far as the chain of errors tells."""
    found = list(_chain(error))
    for kind, words in _WHY:
        if any(isinstance(one, kind) for one in found):
            return words
    if any("Timeout" in type(one).__name__ for one in found):
        return "no connection came about in time"
    return "no connection came about"


def _chain(error: BaseException) -> Iterator[BaseException]:
    """The error, and what it came from, groups included."""
    waiting: list[BaseException] = [error]
    seen: set[int] = set()
    while waiting and len(seen) < _MOST:
        one = waiting.pop(0)
        if id(one) in seen:
            continue
        seen.add(id(one))
        yield one
        if isinstance(one, BaseExceptionGroup):
            waiting += cast("BaseExceptionGroup[BaseException]", one).exceptions
        waiting += [below for below in (one.__cause__, one.__context__) if below is not None]
