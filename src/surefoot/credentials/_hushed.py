"""The law of this file: while we drive an OAuth flow, the SDK's log shows no exception of it.

The SDK logs whatever ends a flow at ERROR, its text and its frames included, before anybody can
catch it: what an assertion or a handler of the app raises quotes secrets, a state that does not
match is printed whole, and the frames hold the client's key. The line itself stays; what went wrong
is told by the error that we raise. Flows that somebody else drives are logged as before.
"""

from __future__ import annotations

import logging
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Generator

__all__ = ["hushed"]

_ROOT: Final = "mcp.client.auth"
_DRIVING: Final = ContextVar("surefoot_drives_a_flow", default=False)


class _Filter(logging.Filter):
    """Lets every line pass, and takes the exception off those of our flows."""

    def filter(self, record: logging.LogRecord) -> bool:
        if _DRIVING.get():
            record.exc_info = record.exc_text = None
        return True


_FILTER: Final = _Filter()


@contextmanager
def hushed() -> Generator[None]:
    """Take exceptions off what the SDK logs of a flow, in this task and while it lasts."""
    for name in list(logging.root.manager.loggerDict):
        if name == _ROOT or name.startswith(f"{_ROOT}."):
            logging.getLogger(name).addFilter(_FILTER)  # a filter is put on once
    before = _DRIVING.set(True)
    try:
        yield
    finally:
        _DRIVING.reset(before)
