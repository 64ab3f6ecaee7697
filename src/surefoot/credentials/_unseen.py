"""The law of this file: what a constructor refuses is in no frame of what it raises (R71, R72).

The wrong thing is most often the secret itself, put in the wrong place: a bare token for
``credentials``, a password in a URL. The message does not show it; but a crash report prints the
arguments of every frame, and those of a constructor are what it was given.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

__all__ = ["unseen"]

_P = ParamSpec("_P")
_R = TypeVar("_R")


def unseen(build: Callable[_P, _R]) -> Callable[_P, _R]:
    """Let what a function raises carry none of its frames: for constructors that take secrets.

    Args:
        build: A plain function, not an async one.
    """

    @wraps(build)
    def built(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        try:
            return build(*args, **kwargs)
        except Exception as error:  # noqa: BLE001 - it is raised below
            broken = error
        del args, kwargs
        broken.__cause__ = broken.__context__ = None
        raise broken.with_traceback(None)

    return built
