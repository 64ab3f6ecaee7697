"""What a benchmark hands to `run_all.py`: one figure a line, where somebody asks for them.

A script prints its own tables as ever. Where `SUREFOOT_FIGURES` names a file, each figure that is
worth a row in RESULTS.md is added to it, with its target where one was set.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

__all__ = ["figure"]


def figure(
    what: str,
    value: float,
    unit: str,
    *,
    against: str = "",
    at_most: float | None = None,
    at_least: float | None = None,
) -> None:
    """Add one figure.

    Args:
        what: What was measured.
        value: What came out.
        unit: Its unit; ``x`` for a ratio.
        against: What a ratio is to, measured in the same rounds.
        at_most: The target, where less is better.
        at_least: The target, where more is better.
    """
    file = os.environ.get("SUREFOOT_FIGURES")
    if file is None:
        return
    row = {
        "what": what,
        "value": value,
        "unit": unit,
        "against": against,
        "at_most": at_most,
        "at_least": at_least,
    }
    with Path(file).open("a", encoding="utf-8") as lines:
        lines.write(json.dumps(row) + "\n")
