"""The law of this file: a child process waits for no thread of its parent, which stayed behind.

Whoever forks while another thread holds a lock hands it on locked, and nobody in the child would
ever unlock it.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, Final, TypeVar
from weakref import WeakKeyDictionary

__all__ = ["lock_for"]

_T = TypeVar("_T")
_NAME: Final = "_lock"
_held: WeakKeyDictionary[Any, Callable[[], object]] = WeakKeyDictionary()


def lock_for(holder: object, make: Callable[[], _T]) -> _T:
    """A lock that its holder keeps as ``_lock``, and that is a new one in each child process."""
    _held[holder] = make
    return make()


def _unlock_all() -> None:
    for holder, make in list(_held.items()):
        setattr(holder, _NAME, make())


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_unlock_all)
