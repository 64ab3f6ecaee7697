"""What the README and SECURITY.md promise is proven by a file that is there, and that tests."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).resolve().parents[2]
README: Final = (ROOT / "README.md").read_text("utf-8")
SECURITY: Final = (ROOT / "SECURITY.md").read_text("utf-8")
LINK: Final = re.compile(r"\]\((?!https?://|#)([^)#\s]+)\)")


def promises(page: str) -> list[list[str]]:
    """The files that each row of the table of promises links to, but for pages."""
    table = page.partition("## What is promised")[2].partition("\n## ")[0]
    lines = [line for line in table.splitlines() if line.startswith("| ")][1:]
    return [[to for to in LINK.findall(line) if to.startswith("tests/")] for line in lines]


@pytest.mark.parametrize("files", promises(README) + promises(SECURITY), ids=" ".join)
def test_a_promise_is_proven_by_a_file_that_tests(files: list[str]) -> None:
    assert files, "a row without a test promises nothing"
    for file in files:
        path = ROOT / file
        assert path.name.startswith("test_"), file
        assert re.search(r"^(?:async )?def test_", path.read_text("utf-8"), re.MULTILINE), file


def test_every_link_of_the_readme_leads_to_a_file() -> None:
    assert [to for to in LINK.findall(README) if not (ROOT / to).exists()] == []


def test_a_row_without_a_test_would_be_seen() -> None:
    table = (
        "## What is promised\n\n| promise | test |\n|---|---|\n| a | none |\n| b | [x](tests/x) |\n"
    )
    assert len(promises(README)) > 10
    assert len(promises(SECURITY)) > 5
    assert promises(table) == [[], ["tests/x"]]
    assert LINK.findall("[a](b.md) [c](https://d.example) [e](#f)") == ["b.md"]
