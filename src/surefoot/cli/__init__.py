"""The law of this room: one file a command, quick help, and an exit code that means one thing."""

from __future__ import annotations

from ._main import main

__all__ = ["main"]
