"""What the project's files say of each other, and what the lock may not hold."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
LOCK: dict[str, Any] = tomllib.loads((ROOT / "uv.lock").read_text("utf-8"))


def foreign_sources(lock: dict[str, Any]) -> list[str]:
    """Packages of a lock that come from anywhere but one public index."""
    indexes = {p["source"].get("registry") for p in lock["package"]} - {None}
    return [
        package["name"]
        for package in lock["package"]
        if package["source"] != {"editable": "."}
        and (len(indexes) > 1 or not str(package["source"].get("registry")).startswith("https://"))
    ]


def versions_locked(name: str) -> set[str]:
    return {p["version"] for p in LOCK["package"] if p["name"] == name}


def test_the_lock_names_one_public_index_and_no_place_of_one_machine() -> None:
    assert foreign_sources(LOCK) == []


@pytest.mark.parametrize(
    "source",
    [
        {"path": "wheels/x.whl"},
        {"directory": "../x"},
        {"registry": "file:///x"},
        {"git": "https://x"},
    ],
)
def test_a_lock_that_does_is_found_out(source: dict[str, str]) -> None:
    public = {"name": "a", "source": {"registry": "https://index.example/simple"}}
    assert foreign_sources({"package": [public]}) == []
    assert "x" in foreign_sources({"package": [public, {"name": "x", "source": source}]})


def test_one_lock_holds_both_majors_of_mcp() -> None:
    assert {version.partition(".")[0] for version in versions_locked("mcp")} == {"1", "2"}


def test_the_lock_was_made_from_the_dependencies_as_they_are_declared() -> None:
    (ours,) = (p for p in LOCK["package"] if p["name"] == "surefoot")
    wanted = {re.split(r"[<>=]", line)[0] for line in PROJECT["project"]["dependencies"]}
    declared = {
        row["name"]
        for row in ours["metadata"]["requires-dist"]
        if "extra ==" not in row.get("marker", "")
    }
    assert declared == wanted


def test_the_metadata_names_each_python_that_is_supported() -> None:
    names = [c for c in PROJECT["project"]["classifiers"] if re.search(r":: 3\.\d+$", c)]
    lowest = PROJECT["project"]["requires-python"].removeprefix(">=")
    assert names[0].endswith(lowest)
    assert [name.rpartition(".")[2] for name in names] == ["11", "12", "13", "14"]


def test_the_package_is_marked_as_typed_and_every_extra_is_spelled_in_lower_case() -> None:
    assert (ROOT / "src" / "surefoot" / "py.typed").is_file()
    assert all(
        re.fullmatch("[a-z0-9]+", name) for name in PROJECT["project"]["optional-dependencies"]
    )
