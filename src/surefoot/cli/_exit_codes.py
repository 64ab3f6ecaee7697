"""The law of this file: what the exit code of every command means stands here and nowhere else."""

from __future__ import annotations

from typing import Final

__all__ = ["BROKEN_PIPE", "FAILED", "FLAWED", "INCOMPLETE", "INTERRUPTED", "OK", "USAGE"]

OK: Final = 0
"""It was done."""

FAILED: Final = 1
"""It could not be done, or what was to be shown did not come true; one line says why."""

USAGE: Final = 2
"""The command line means nothing; the message says what is allowed."""

INCOMPLETE: Final = 3
"""It was shown, and something is missing in it that was once recorded."""

FLAWED: Final = 4
"""It was looked at, and something is wrong with it."""

INTERRUPTED: Final = 130
"""Stopped by Ctrl-C: 128 and the number of SIGINT, as shells count."""

BROKEN_PIPE: Final = 141
"""Whoever read the output left, as `head` does: 128 and the number of SIGPIPE."""
