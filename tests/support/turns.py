"""The law of this file: a long table meets both loops and both families, not each pair for a row.

A table of a hundred rows, on two loops with two HTTP families, is four hundred tests which say the
same of a row again and again. Here a row runs once on each loop, and the other axis alternates
from row to row: each row meets both loops and, where there are two, both families or eras; each
pair of them is met by many rows. Short tables, and the matrix of all faults, run whole.
"""

from __future__ import annotations

from collections import defaultdict
from types import ModuleType
from typing import Any, Final
from zlib import crc32

import pytest

__all__ = ["in_turns"]

_LONG: Final = 8
"""Rows from which on a table takes turns."""

_WHOLE: Final = ("survival/test_matrix.py",)
"""Tables that are promised for each pair."""

_SECOND: Final = frozenset({"httpx", "handshake"})
_FIRST: Final = frozenset({"httpx2", "modern"})


def in_turns(items: list[pytest.Item]) -> tuple[list[pytest.Item], list[pytest.Item]]:
    """Divide tests into those that run, and those whose turn it is not."""
    tables: dict[str, dict[str, list[tuple[pytest.Item, bool, bool | None]]]] = defaultdict(
        lambda: defaultdict(list)
    )
    for item in items:
        placed = _placed(item)
        if placed is not None:
            row, on_trio, second = placed
            tables[item.nodeid.partition("[")[0]][row].append((item, on_trio, second))
    left: set[int] = set()
    for name, rows in tables.items():
        if len(rows) < _LONG or name.partition("::")[0].endswith(_WHOLE):
            continue
        for row, tests in rows.items():
            turn = crc32(f"{name}{row}".encode()) % 2 == 0
            for item, on_trio, second in tests:
                if (on_trio if second is None else on_trio is second) is not turn:
                    left.add(id(item))
    return (
        [item for item in items if id(item) not in left],
        [item for item in items if id(item) in left],
    )


def _placed(item: pytest.Item) -> tuple[str, bool, bool | None] | None:
    """The row of a test, whether it runs on trio, and whether with the second of two families."""
    found: Any = getattr(item, "callspec", None)
    if found is None or "anyio_backend" not in found.params:
        return None
    second: bool | None = None
    row: list[str] = []
    for name, value in sorted(found.params.items()):
        word = value.__name__ if isinstance(value, ModuleType) else value
        if name == "anyio_backend":
            continue
        if isinstance(word, str) and word in _FIRST | _SECOND and second is None:
            second = word in _SECOND
        else:
            row.append(f"{name}{found.indices.get(name, 0)}")
    return "-".join(row), found.params["anyio_backend"] == "trio", second
