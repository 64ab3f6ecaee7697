"""The law of this file: while one of our threads is inside an AWS library, it prints nothing.

At DEBUG such a library prints requests and answers whole: keys, session tokens, identity tokens and
signatures. While one of our threads is inside, what it prints below WARNING is dropped; anybody
else's use of it prints as before.
"""

from __future__ import annotations

import logging
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Generator

__all__ = ["quieten", "silence"]

_PRINTING: Final = ("botocore", "boto3", "urllib3")


class _Inside(threading.local):
    """Whether this thread asks on our behalf now."""

    now = False


_INSIDE: Final = _Inside()


class _Filter(logging.Filter):
    """Drops what our own threads cause the library to print below WARNING."""

    def filter(self, record: logging.LogRecord) -> bool:
        return record.levelno >= logging.WARNING or not _INSIDE.now


_FILTER: Final = _Filter()


@contextmanager
def silence() -> Generator[None]:
    """Drop what this thread causes an AWS library to print while it lasts."""
    before, _INSIDE.now = _INSIDE.now, True
    quieten()
    try:
        yield
    finally:
        _INSIDE.now = before


def quieten() -> None:
    """Put the filter on every logger of theirs that there is by now; a filter is put on once.

    A module of theirs that is imported later has a logger that is not silent yet; their sessions
    import all that they use when they are imported themselves.
    """
    known = logging.root.manager.loggerDict
    for name in list(known):
        if name.partition(".")[0] in _PRINTING:
            logging.getLogger(name).addFilter(_FILTER)
