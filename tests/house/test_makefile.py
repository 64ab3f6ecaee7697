"""What `make help` lists is done when asked for, `make clean` leaves nothing, CI is as told."""

from __future__ import annotations

import re
import shutil
import subprocess
from fnmatch import fnmatch
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
MAKEFILE = (ROOT / "Makefile").read_text("utf-8")
MAKERS = [ROOT / "Makefile", *(ROOT / "tools").rglob("*.py")]


def listed(makefile: str) -> list[str]:
    """The targets that have a text."""
    return re.findall(r"^([a-z0-9-]+):.*?## ", makefile, re.MULTILINE)


def phony(makefile: str) -> set[str]:
    """The targets that are no files."""
    lines = re.findall(r"^\.PHONY:((?:.*\\\n)*.*)", makefile, re.MULTILINE)
    return set(" ".join(lines).replace("\\\n", " ").split())


def removed(makefile: str) -> list[str]:
    """What `make clean` names."""
    recipe = makefile.partition("\nclean:")[2].partition("\n\n")[0]
    return [
        word
        for line in recipe.splitlines()
        if line.startswith("\trm -rf ")
        for word in line.removeprefix("\trm -rf ").split()
    ]


def environments() -> set[str]:
    """Every environment that the Makefile or a tool makes; what varies in a name is a `0`."""
    texts = (path.read_text("utf-8") for path in MAKERS)
    found = {
        re.sub(r"\{\w+\}", "0", name)
        for text in texts
        for name in re.findall(r"""[ ="/](\.venv[a-z0-9.{}-]*)(?=[/"\s])""", text)
    }
    return {name.rstrip(".") for name in found}


def test_every_target_that_is_listed_is_phony_so_that_no_file_or_folder_can_hide_it() -> None:
    assert len(listed(MAKEFILE)) > 20
    assert "docs" in listed(MAKEFILE)
    assert set(listed(MAKEFILE)) == phony(MAKEFILE)


@pytest.mark.parametrize(
    ("text", "hidden"),
    [
        (".PHONY: a b\na: ## one\nb: a | c ## two\nc:\n", set[str]()),
        (".PHONY: a \\\n\tb\na: ## one\nb: ## two\n", set[str]()),
        (".PHONY: a\na: ## one\nb: ## two\n", {"b"}),
        ("a: ## one\n", {"a"}),
    ],
)
def test_one_that_is_not_is_found_out(text: str, hidden: set[str]) -> None:
    assert set(listed(text)) - phony(text) == hidden


def test_docs_is_made_although_a_folder_has_that_name() -> None:
    """Once its environment stood, the folder hid it."""
    make = shutil.which("make")
    assert make is not None
    assert (ROOT / "docs").is_dir()
    said = subprocess.run(
        [make, "--dry-run", "docs"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert "tools/check_docs.py" in said.stdout


def test_clean_removes_every_environment_that_is_made_anywhere() -> None:
    made = environments()
    assert {".venv", ".venv-mcp1", ".venv-floors", ".venv-clients", ".venv-py0"} <= made
    assert [one for one in made if not any(fnmatch(one, name) for name in removed(MAKEFILE))] == []


def test_contributing_names_each_check_of_ci_and_the_processes_that_the_tests_have() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    script = (ROOT / ".ci" / "run").read_text("utf-8")
    run = set(re.findall(r"^  make --no-print-directory ([a-z-]+)$", script, re.MULTILINE))
    assert {"check", "sdk-suite", "conformance", "demo", "check-clients", "docs", "floors"} <= run
    assert [one for one in run if f"`make {one}`" not in text] == []
    assert [one for one in run if one not in listed(MAKEFILE)] == []
    workers = re.search(r"^WORKERS \?= (\d+)$", MAKEFILE, re.MULTILINE)
    assert workers is not None
    assert f"in {('one', 'two', 'three', 'four')[int(workers[1]) - 1]} processes" in text
