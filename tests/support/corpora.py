"""The law of this file: published test suites are read where they lie, never copied into the tree.

`SUREFOOT_DATA` names the folder that holds them (`JSONTestSuite/`, `aws4_testsuite/`, ...). Without
it, a folder of shared data beside the repository, or beside one of its parents, is used.
"""

from __future__ import annotations

import os
from pathlib import Path

__all__ = ["ABSENT", "corpora", "corpus"]

ABSENT = "set SUREFOOT_DATA to the folder that holds the published test suites"
"""Why a test that needs one is skipped."""

_ROOT = Path(__file__).resolve().parents[2]


def corpora() -> Path | None:
    """The folder of the published suites, or None where there is none."""
    named = os.environ.get("SUREFOOT_DATA")
    if named:
        return Path(named)
    beside = (folder / "shared" / "data" for folder in _ROOT.parents)
    return next((folder for folder in beside if folder.is_dir()), None)


def corpus(name: str) -> Path | None:
    """One suite by the name of its folder or file; usable while tests are collected."""
    folder = corpora()
    found = None if folder is None else folder / name
    return found if found is not None and found.exists() else None
