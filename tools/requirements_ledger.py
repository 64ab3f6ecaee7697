"""The law of this file: what is promised is tested, and what a test names is promised.

The rules lie in `tests/house/requirements.toml`. A test names the numbers that it holds in a
docstring: that of its file, its class or its function; `R37 to R42` names each of them.

Run without arguments it says how the two stand. With `--promise` it sets to "promised" every
planned rule that a test names.
"""

from __future__ import annotations

import argparse
import ast
import re
import sys
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

__all__ = ["LEDGER", "TESTS", "Rule", "disagreements", "named_in_tests", "numbers_in", "rules_in"]

TESTS: Final = Path(__file__).resolve().parents[1] / "tests"
LEDGER: Final = TESTS / "house" / "requirements.toml"

_NUMBER: Final = re.compile(r"\b([RDB])([1-9]\d{0,2})\b(?: to \1([1-9]\d{0,2})\b)?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One numbered rule and whether this version keeps it."""

    number: str
    rule: str
    state: Literal["promised", "planned"]


def rules_in(text: str) -> dict[str, Rule]:
    """The rules of a ledger by their numbers; a field or state that has no meaning raises."""
    rules: dict[str, Rule] = {}
    for section in tomllib.loads(text).values():
        for number, fields in section.items():
            if fields["state"] not in {"promised", "planned"}:
                message = f"{number}: the state is promised or planned"
                raise ValueError(message)
            rules[number] = Rule(number=number, **fields)
    return rules


def numbers_in(text: str) -> set[str]:
    """The numbers that a text names, ranges spelled out."""
    found: set[str] = set()
    for kind, first, last in _NUMBER.findall(text):
        found |= {f"{kind}{n}" for n in range(int(first), int(last or first) + 1)}
    return found


def _docstrings(tree: ast.Module) -> Iterator[str]:
    """Docstrings of the file, its test classes and its tests; none where the file has no test."""
    tests = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
        and node.name.lower().startswith("test")
    ]
    for node in (tree, *tests) if tests else ():
        yield ast.get_docstring(node) or ""


def named_in_tests(tests: Path) -> dict[str, set[Path]]:
    """Each number that tests name, with the files that name it."""
    named: dict[str, set[Path]] = {}
    for path in sorted(tests.rglob("test_*.py")):
        for docstring in _docstrings(ast.parse(path.read_text("utf-8"), filename=str(path))):
            for number in numbers_in(docstring):
                named.setdefault(number, set()).add(path)
    return named


def disagreements(rules: Mapping[str, Rule], named: Mapping[str, set[Path]]) -> list[str]:
    """Where the ledger and the tests say different things, one sentence each."""
    return [
        *(
            f"{rule.number} is promised and no test names it: {rule.rule}"
            for rule in rules.values()
            if rule.state == "promised" and rule.number not in named
        ),
        *(
            f"{rule.number} is planned, yet {_places(named[rule.number])} names it: promise it"
            for rule in rules.values()
            if rule.state == "planned" and rule.number in named
        ),
        *(
            f"{number} is named by {_places(paths)} and is no rule"
            for number, paths in named.items()
            if number not in rules
        ),
    ]


def _places(paths: set[Path]) -> str:
    return ", ".join(sorted(path.name for path in paths))


def promised(text: str, named: Mapping[str, set[Path]]) -> str:
    """The text of the ledger with every planned rule promised that a test names."""
    return re.sub(
        r'^([RDB]\d+) = \{ state = "planned"',
        lambda m: f'{m[1]} = {{ state = "promised"' if m[1] in named else m[0],
        text,
        flags=re.MULTILINE,
    )


def main() -> int:
    """Show how ledger and tests stand, and promise what is tested if asked to."""
    parser = argparse.ArgumentParser(description="Numbered rules and the tests that name them.")
    parser.add_argument("--promise", action="store_true", help="promise what tests name")
    named = named_in_tests(TESTS)
    text = LEDGER.read_text("utf-8")
    if parser.parse_args().promise:
        text = promised(text, named)
        LEDGER.write_text(text, "utf-8")
    rules = rules_in(text)
    for sentence in disagreements(rules, named):
        print(sentence)
    kept = sum(rule.state == "promised" for rule in rules.values())
    print(f"{kept} rules promised, {len(rules) - kept} planned")
    return 0


if __name__ == "__main__":
    sys.exit(main())
