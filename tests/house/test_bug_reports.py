"""R24, B1 to B3. What others reported in public is on a list, and each line of it has its tests.

The list lies in `tests/house/bug_reports.toml`. A test names a report in its docstring, in the form
"C11 of the bug reports" or "C11, C13 and C15 of the bug reports".
"""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

import pytest

import requirements_ledger as ledger

HOUSE: Final = Path(__file__).resolve().parent
LIST: Final = HOUSE / "bug_reports.toml"
REPORTS: Final = HOUSE.parent / "reports"

_NAMED: Final = re.compile(r"\b(C\d\d(?:(?:, | and )C\d\d)*) of the bug reports\b")
_KINDS: Final = "abcdefghij"


def listed(text: str) -> dict[str, str]:
    """What must hold, by the number of the report."""
    return {case: line for kind in tomllib.loads(text).values() for case, line in kind.items()}


def cases_in(docstring: str) -> set[str]:
    """The reports that a docstring names."""
    found = _NAMED.findall(" ".join(docstring.split()))
    return {case for names in found for case in re.findall(r"C\d\d", names)}


def docstrings(source: str) -> Iterator[str]:
    """The docstring of every test function."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name[:5] == "test_":
            yield ast.get_docstring(node) or ""


def held(sources: Mapping[str, str]) -> dict[str, bool]:
    """The reports that tests name, and whether one of them names a rule beside it."""
    found: dict[str, bool] = {}
    for source in sources.values():
        for docstring in docstrings(source) if "bug reports" in source else ():
            for case in cases_in(docstring):
                found[case] = found.get(case, False) or bool(ledger.numbers_in(docstring))
    return found


CASES: Final = listed(LIST.read_text("utf-8"))
SOURCES: Final = {
    str(path): path.read_text("utf-8") for path in sorted(HOUSE.parent.rglob("test_*.py"))
    if path != Path(__file__).resolve()
}  # fmt: skip


@pytest.fixture(scope="module")
def found() -> dict[str, bool]:
    """What all tests hold."""
    return held(SOURCES)


def test_every_report_of_the_list_is_held_by_a_test_that_names_its_rule(
    found: dict[str, bool],
) -> None:
    assert {case for case in CASES if not found.get(case)} == set()


def test_every_report_that_a_test_names_is_on_the_list(found: dict[str, bool]) -> None:
    assert set(found) - set(CASES) == set()


def test_the_list_is_whole_and_in_order() -> None:
    """A report goes by its number for ever; the numbers between were other reports of the kind."""
    assert list(CASES) == [f"C{number:02}" for number in range(1, 46, 2)]


@pytest.mark.parametrize("case", CASES)
def test_a_line_of_the_list_says_in_one_sentence_what_holds(case: str) -> None:
    line = CASES[case]
    assert line.endswith(".")
    assert 20 < len(line) < 140
    assert not re.search(r"https?:|[#@]|/\w+/", line), "in our own words, without a place"


def test_each_kind_of_report_has_a_file_of_its_own() -> None:
    """The kinds are a to j, in the order of the list; a kind may fill more than one file."""
    kinds = [path.name[5] for path in sorted(REPORTS.glob("test_*.py"))]
    assert "".join(dict.fromkeys(kinds)) == _KINDS
    assert len(tomllib.loads(LIST.read_text("utf-8"))) == len(_KINDS)


def test_every_test_of_the_reports_names_one_and_runs_with_both_majors() -> None:
    for path in REPORTS.glob("test_*.py"):
        source = path.read_text("utf-8")
        assert "mark.both_majors" in source, path.name
        assert all(cases_in(docstring) for docstring in docstrings(source)), path.name


@pytest.mark.parametrize(
    ("docstring", "cases"),
    [
        ("R1, C01 of the bug reports.", {"C01"}),
        ("C11, C13 and C15 of the bug reports.", {"C11", "C13", "C15"}),
        ("C07 of the\n    bug reports.", {"C07"}),
        ("C07 of the bug reports, and C09 of the bug reports.", {"C07", "C09"}),
        ("C07.", set[str]()),
        ("C7 of the bug reports.", set[str]()),
        ("The bug reports.", set[str]()),
    ],
    ids=["one", "three", "over a line end", "two", "no form", "no number", "no report"],
)
def test_a_report_is_found_in_the_forms_that_are_agreed(docstring: str, cases: set[str]) -> None:
    assert cases_in(docstring) == cases


def test_a_report_that_no_test_holds_would_be_seen() -> None:
    """Named without a rule, it is named and not held; elsewhere than in a test, it is not named."""
    source = '''
def test_one():
    """C01 of the bug reports."""
def test_two():
    """R1, C03 of the bug reports."""
def helper():
    """R1, C05 of the bug reports."""
'''
    assert held({"x": source}) == {"C01": False, "C03": True}
