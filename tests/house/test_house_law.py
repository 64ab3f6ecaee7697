"""How files and doors are laid out: what the checker lets pass, and what it must catch."""

from __future__ import annotations

from pathlib import Path

import pytest

from house_law import breaches_in_file, breaches_in_text

DOOR = '"""A room."""\n\nfrom ._one import One\n\n__all__ = ["One"]\n'
FILE = '"""The law of this file: it is one."""\n\nX = 1\n'

BROKEN = [
    ("_one.py", "X = 1\n", "opens without the docstring"),
    ("_one.py", "# a comment\nX = 1\n", "opens without the docstring"),
    ("_one.py", "", "opens without the docstring"),
    ("_one.py", FILE + "\n" * 398, "401 lines"),
    ("_utils.py", FILE, "_utils is a drawer"),
    ("helpers.py", FILE, "helpers is a drawer"),
    ("_one.py", FILE + "def get_one() -> int: ...\n", "get_one: name the thing"),
    ("_one.py", FILE + "class A:\n    async def _create_b(self): ...\n", "_create_b: name"),
    ("__init__.py", '"""A room."""\n\nfrom ._one import One\n', "has an __all__"),
    ("__init__.py", DOOR.replace('["One"]', "list(names)"), "a plain list of names"),
    ("__init__.py", DOOR.replace('["One"]', '["One", "Two"]'), "names Two, which is not imported"),
    ("__init__.py", DOOR + "import math\n", "math is imported but not handed on"),
    ("__init__.py", DOOR + "LIMIT = 3\n", "only hands names on"),
    ("__init__.py", DOOR + "def one() -> None: ...\n", "only hands names on"),
]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("_one.py", FILE),
        ("_one.py", FILE + "\n" * 397),
        ("_one.py", FILE + "def getter() -> int: ...\n"),
        ("__init__.py", DOOR),
        ("__init__.py", '"""A room."""\n\nfrom __future__ import annotations\n\n__all__ = []\n'),
    ],
)
def test_a_file_that_can_be_read_alone_passes(tmp_path: Path, name: str, text: str) -> None:
    path = tmp_path / name
    path.write_text(text, "utf-8")
    assert breaches_in_file(path, in_package=True) == []


@pytest.mark.parametrize(("name", "text", "message"), BROKEN)
def test_a_breach_of_the_layout_is_named(
    tmp_path: Path, name: str, text: str, message: str
) -> None:
    path = tmp_path / name
    path.write_text(text, "utf-8")
    assert any(message in breach.message for breach in breaches_in_file(path, in_package=True))


def test_doors_and_names_are_judged_in_the_package_only(tmp_path: Path) -> None:
    path = tmp_path / "__init__.py"
    path.write_text(FILE + "def get_one() -> int: ...\n", "utf-8")
    assert breaches_in_file(path, in_package=False) == []
    assert len(breaches_in_file(path, in_package=True)) > 1


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("see /" + "home/someone/x", True),
        ("'/" + "work/x'", True),
        ("C /" + "Users/someone", True),
        ("https://gateway.example.com/" + "home/x", False),
        ("a network/work/leisure balance", False),
        ("/usr/bin/env", False),
    ],
)
def test_a_folder_of_one_machine_is_named(tmp_path: Path, text: str, *, found: bool) -> None:
    path = tmp_path / "page.md"
    path.write_text(f"first\n{text}\n", "utf-8")
    assert [breach.line for breach in breaches_in_text(path)] == ([2] if found else [])
