"""The law of this file: what happens in a run is said once, as a value, at the moment it happens.

The story on the terminal, the summary and `--json` are made of these and of what the gateway wrote
down; none of them watches on its own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

__all__ = ["Happening", "Kind", "Tell"]

Kind = Literal[
    "call",  # the agent turns to a call
    "answered",  # ... has its answer
    "error",  # ... got an error, or its session died under it
    "told",  # ... was told in words how it ended, with the facts beside them
    "unknown",  # ... leaves it, because it may have run and changes something
    "lost",  # ... gives it up
    "session-lost",
    "waits",
    "vended",
    "hour",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Happening:
    """One thing that happened."""

    kind: Kind
    at: float
    """Seconds from the start of the run."""

    call: int | None = None
    """The number of the call, where it concerns one."""

    text: str = ""


Tell = Callable[[Kind, int | None, str], None]
"""Say that something happened: what, to which call, in which words."""
