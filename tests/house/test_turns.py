"""The law of the tests themselves: tables that take turns lose no row."""

from __future__ import annotations

import subprocess
import sys
from collections import defaultdict
from functools import cache
from pathlib import Path

import pytest

pytestmark = pytest.mark.unmeasured

TESTS = Path(__file__).parents[1]
TABLES = ("transports/test_decision_table.py", "never_twice/test_ends.py", "survival")
AXES = {"asyncio", "trio", "httpx2", "httpx", "modern", "handshake"}


@cache
def collected(*options: str) -> dict[str, dict[str, set[frozenset[str]]]]:
    """Of each table and each of its rows: with which loop and family or era it runs."""
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "--collect-only", *options, *TABLES],
        capture_output=True,
        text=True,
        timeout=50,
        check=True,
        cwd=TESTS,
    )
    found: dict[str, dict[str, set[frozenset[str]]]] = defaultdict(lambda: defaultdict(set))
    for line in done.stdout.splitlines():
        name, bracket, rest = line.partition("[")
        if bracket and "::" in name:
            parts = rest.removesuffix("]").split("-")
            row = "-".join(part for part in parts if part not in AXES)
            found[name][row].add(frozenset(AXES.intersection(parts)))
    return found


def test_no_row_is_lost() -> None:
    """Each row of each table is met, on each loop and with each family or era that it has."""
    whole, turns = collected("--every-pair"), collected()
    assert len(whole) > 10
    for name, rows in whole.items():
        for row, pairs in rows.items():
            assert frozenset().union(*turns[name][row]) == frozenset().union(*pairs), (name, row)


def test_long_tables_take_turns_and_the_matrix_of_all_faults_does_not() -> None:
    """The control: something was left out, and not what is promised for each pair."""
    whole, turns = collected("--every-pair"), collected()
    shorter = {
        name
        for name, rows in whole.items()
        if any(pairs != turns[name][row] for row, pairs in rows.items())
    }
    assert any("test_decision_table" in name for name in shorter)
    assert not any("test_matrix" in name for name in shorter)


@pytest.mark.parametrize("pair", [("asyncio", "httpx2"), ("trio", "httpx2"), ("trio", "httpx")])
def test_each_pair_is_met_by_many_rows(pair: tuple[str, str]) -> None:
    """Alternating, and not one half of the pairs."""
    tables = [
        rows for name, rows in collected().items() if "transports/test_decision_table" in name
    ]
    rows = max(tables, key=len)
    assert len(rows) > 20
    assert sum(frozenset(pair) in pairs for pairs in rows.values()) > len(rows) / 4
