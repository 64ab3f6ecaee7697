"""`make bench` runs every benchmark there is, and its page says what was missed."""

from __future__ import annotations

import importlib.util
import json
import sys
from datetime import UTC, datetime
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

FOLDER = Path(__file__).resolve().parents[2] / "benchmarks"
PARTS = {"run_all", "figures", "wire_rounds"}
"""What is no benchmark itself."""


def loaded(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"bench_{name}", FOLDER / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


RUN_ALL: Any = loaded("run_all")


def row(**changes: Any) -> dict[str, Any]:
    usual = {"what": "x", "value": 2.0, "unit": "us", "against": "", "at_most": None}
    return {**usual, "at_least": None, **changes}


def test_every_benchmark_is_run_and_hands_its_figures_on() -> None:
    there = {path.stem for path in FOLDER.glob("*.py")} - PARTS
    assert set(RUN_ALL.SCRIPTS) == there
    for name in there:
        assert "figure(" in (FOLDER / f"{name}.py").read_text("utf-8"), name


def test_figures_are_written_where_somebody_asks_for_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    figures: Any = loaded("figures")
    figures.figure("nobody asked", 1, "us")
    file = tmp_path / "figures.jsonl"
    monkeypatch.setenv("SUREFOOT_FIGURES", str(file))
    figures.figure("asked", 1.5, "x", against="y", at_most=2)
    (line,) = file.read_text("utf-8").splitlines()
    assert json.loads(line) == row(what="asked", value=1.5, unit="x", against="y", at_most=2)


@pytest.mark.parametrize(
    ("figure", "shown"),
    [
        (row(), "| one | x | 2 us |  |  |"),
        (row(unit="x", against="bare"), "| one | x | 2x | bare |  |"),
        (row(at_most=3), "| one | x | 2 us |  | at most 3, kept |"),
        (row(at_most=1.5), "| one | x | 2 us |  | at most 1.5, **missed** |"),
        (row(at_least=2), "| one | x | 2 us |  | at least 2, kept |"),
        (row(at_least=2.5), "| one | x | 2 us |  | at least 2.5, **missed** |"),
    ],
)
def test_a_figure_is_one_row_and_a_missed_target_is_said(
    figure: dict[str, Any], shown: str
) -> None:
    ran = RUN_ALL.Ran(script="one", seconds=1.0, figures=[figure])
    assert RUN_ALL.rows_in([ran])[2:] == [shown]
    assert RUN_ALL.missed(figure) == ("missed" in shown)


def test_a_script_that_failed_is_named_and_the_page_says_when_and_where() -> None:
    ran = RUN_ALL.Ran(script="one", seconds=61.0, failed="exit code 1")
    when = datetime(2026, 11, 30, 12, 5, tzinfo=UTC)
    page = RUN_ALL.page([ran], when=when, machine="a machine", versions="mcp 2")
    assert "on 2026-11-30, 12:05 UTC; it took 61 s." in page
    assert "Machine: a machine. Versions: mcp 2." in page
    assert "| one | | **failed**: exit code 1 | | |" in page


def test_a_script_that_ends_badly_is_found_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "bad.py").write_text("raise SystemExit(3)\n", "utf-8")
    monkeypatch.setattr(RUN_ALL, "HERE", tmp_path)
    ran = RUN_ALL.run("bad", (), quiet=True)
    assert (ran.failed, ran.figures) == ("exit code 3", [])
