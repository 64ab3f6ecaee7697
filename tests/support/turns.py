"""The law of this file: a long table meets both loops and both families, not each pair for a row.

A table of a hundred rows, on two loops with two HTTP families, is four hundred tests which say the
same of a row again and again. Here a row runs once on each loop, and the other axis alternates
from row to row: each row meets both loops and both families or eras, and each pair of them is met
by many rows. Everything else runs whole: short tables, tables with one of the axes alone, the
matrix of all faults, and whatever is not seen to be a whole product.
"""

from __future__ import annotations

from collections import defaultdict
from types import ModuleType
from typing import Any, Final, NamedTuple
from zlib import crc32

import pytest

__all__ = ["in_turns"]

_LONG: Final = 8
"""Rows from which on a table takes turns."""

_WHOLE: Final = ("survival/test_matrix.py",)
"""Tables that are promised for each pair."""

_AXES: Final = (("httpx2", "httpx"), ("modern", "handshake"))
_LOOPS: Final = ("asyncio", "trio")


class _Place(NamedTuple):
    """Where in its table a test stands."""

    row: str
    loop: int
    other: int
    item: pytest.Item


def in_turns(items: list[pytest.Item]) -> tuple[list[pytest.Item], list[pytest.Item]]:
    """Divide tests into those that run, and those whose turn it is not.

    Returns:
        Both, in the order in which they came; each row of each table keeps two of its four tests.
    """
    tables: dict[str, dict[str, list[_Place]]] = defaultdict(lambda: defaultdict(list))
    for item in items:
        place = _placed(item)
        if place is not None:
            tables[item.nodeid.partition("[")[0]][place.row].append(place)
    left: set[int] = set()
    for name, rows in tables.items():
        if len(rows) < _LONG or name.partition("::")[0].endswith(_WHOLE):
            continue
        for row, places in rows.items():
            if sorted((one.loop, one.other) for one in places) != [(0, 0), (0, 1), (1, 0), (1, 1)]:
                continue
            turn = crc32(f"{name}[{row}]".encode()) % 2
            left.update(id(one.item) for one in places if (one.loop + one.other) % 2 != turn)
    return (
        [item for item in items if id(item) not in left],
        [item for item in items if id(item) in left],
    )


def _placed(item: pytest.Item) -> _Place | None:
    """The place of a test that has a loop and another axis; its row is the rest of its id."""
    found: Any = getattr(item, "callspec", None)
    if found is None or "anyio_backend" not in found.params:
        return None
    parts: list[str] = found.id.split("-")
    words = [one.__name__ if isinstance(one, ModuleType) else one for one in found.params.values()]
    for axis in _AXES:
        word = next((word for word in words if isinstance(word, str) and word in axis), None)
        loop = found.params["anyio_backend"]
        if word is None or loop not in _LOOPS or loop not in parts or word not in parts:
            continue
        parts.remove(loop)
        parts.remove(word)
        return _Place("-".join(parts), _LOOPS.index(loop), axis.index(word), item)
    return None
