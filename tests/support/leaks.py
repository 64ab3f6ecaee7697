"""The law of this file: what leaks here leaks on purpose, and from another file than its test."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import httpx2
import pytest

from surefoot.errors import CredentialError
from surefoot.testing import AuditChannel

__all__ = ["CANARY", "NOTHING_ALIVE", "caught", "leaky", "ours"]

CANARY = "CANARY-3d9a77/+b"

NOTHING_ALIVE: tuple[AuditChannel, ...] = ("objects", "requests", "tasks")
"""The channels of what is alive, left out where a test is about another one."""


def leaky(code: str) -> Callable[..., Any]:
    """A function ``f`` whose frames belong to another file than this one."""
    space: dict[str, Any] = {"httpx2": httpx2, "CredentialError": CredentialError}
    exec(compile(code, "elsewhere.py", "exec"), space)  # noqa: S102
    function: Callable[..., Any] = space["f"]
    return function


def ours(**held: object) -> object:
    """An object that passes for one of this library's."""
    kind = type("Fake", (SimpleNamespace,), {"__module__": "surefoot.fake"})
    made: object = kind(**held)
    return made


def caught(function: Callable[..., Any], *arguments: object) -> BaseException:
    """The exception that it raises, without this frame, which knows the arguments."""
    try:
        function(*arguments)
    except BaseException as error:  # noqa: BLE001
        frames = error.__traceback__
        return error.with_traceback(None if frames is None else frames.tb_next)
    pytest.fail("nothing was raised")
