"""Every promised rule has a test that names it, and every number that a test names is a rule."""

from __future__ import annotations

from pathlib import Path

import pytest

from requirements_ledger import (
    LEDGER,
    TESTS,
    disagreements,
    named_in_tests,
    numbers_in,
    promised,
    rules_in,
)

SAMPLE = """
[asking-again]
R1 = { state = "promised", rule = "one" }
R2 = { state = "planned", rule = "two" }
"""

TOLD: list[tuple[set[str], list[str]]] = [
    ({"R1"}, []),
    (set(), ["R1 is promised and no test names it: one"]),
    ({"R1", "R2"}, ["R2 is planned, yet test_x.py names it: promise it"]),
    ({"R1", "R3"}, ["R3 is named by test_x.py and is no rule"]),
]

READ: list[tuple[str, set[str]]] = [
    ("R1, D14 and B3.", {"R1", "D14", "B3"}),
    ("R37 to R40 hold", {"R37", "R38", "R39", "R40"}),
    ("R37 to D40", {"R37", "D40"}),
    ("R01, XR1, R1x, R1234, r1, A1", set()),
    ("R1-R3", {"R1", "R3"}),
]


def test_the_ledger_and_the_tests_agree_both_ways() -> None:
    rules = rules_in(LEDGER.read_text("utf-8"))
    named = named_in_tests(TESTS)
    assert named, "no test names a rule: the reader is broken"
    assert disagreements(rules, named) == []


def test_the_ledger_has_every_number_once_and_in_order() -> None:
    wanted = [
        f"{kind}{n}"
        for kind, most in (("R", 125), ("D", 37), ("B", 14))
        for n in range(1, most + 1)
    ]
    assert list(rules_in(LEDGER.read_text("utf-8"))) == wanted


@pytest.mark.parametrize(("named", "found"), TOLD)
def test_each_kind_of_disagreement_is_told(named: set[str], found: list[str]) -> None:
    places = {number: {Path("tests/test_x.py")} for number in named}
    assert disagreements(rules_in(SAMPLE), places) == found


@pytest.mark.parametrize(("text", "numbers"), READ)
def test_numbers_are_read_as_written(text: str, numbers: set[str]) -> None:
    assert numbers_in(text) == numbers


def test_only_docstrings_of_files_with_tests_name_a_rule(tmp_path: Path) -> None:
    (tmp_path / "test_one.py").write_text(
        '"""R1."""\n# R2\nX = "R3"\n'
        'def test_a() -> None:\n    """R4."""\n'
        'def aid() -> None:\n    """R5."""\n'
        'class TestB:\n    """R6."""\n    async def test_c(self) -> None:\n        """R7."""\n',
        "utf-8",
    )
    (tmp_path / "test_empty.py").write_text('"""R8."""\n', "utf-8")
    (tmp_path / "conftest.py").write_text('"""R9."""\ndef test_x() -> None: ...\n', "utf-8")
    assert set(named_in_tests(tmp_path)) == {"R1", "R4", "R6", "R7"}


def test_promising_changes_the_state_of_what_is_tested_and_nothing_else() -> None:
    text = promised(SAMPLE, {"R2": {Path("test_x.py")}})
    assert {rule.state for rule in rules_in(text).values()} == {"promised"}
    assert promised(SAMPLE, {}) == SAMPLE


def test_a_state_without_a_meaning_is_refused() -> None:
    with pytest.raises(ValueError, match="R2: the state is promised or planned"):
        rules_in(SAMPLE.replace("planned", "maybe"))
