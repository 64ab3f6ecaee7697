"""What the tests of `surefoot check` share: how it is run, and how its report is read."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

__all__ = ["Check", "Ran", "seen"]

Ran = tuple[int, str, str]
"""The exit code, and what it said to either stream."""

Check = Callable[..., Ran]
"""Runs the command with arguments, in this process."""


def seen(ran: Ran) -> dict[str, Any]:
    """Its report, where it was asked for one in JSON."""
    code, out, _ = ran
    told: dict[str, Any] = json.loads(out)
    assert told["exit_code"] == code
    return told
