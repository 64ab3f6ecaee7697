"""The law of this file: every file can be read alone, and every room has one door.

- A Python file opens with a docstring and has at most 400 lines.
- No file is a drawer: nothing is called utils, util, helpers, common or misc.
- A room's `__init__.py` holds a docstring, imports and `__all__`; `__all__` names exactly what it
  imports. Files that are nobody's business outside their room begin with an underscore.
- Nothing that we define begins with `get_` or `create_`: a thing is named, an action is a verb.
- No file of the repository names a folder of one person's machine.

Run without arguments it prints each breach as `path:line: message`, and exits with 1 if there is
one.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from import_law import Breach

__all__ = ["breaches_in_file", "breaches_in_text"]

MOST_LINES: Final = 400
DRAWERS: Final = frozenset({"utils", "util", "helpers", "common", "misc"})
SOMEONES_FOLDER: Final = re.compile(r"(?<![\w.])/(?:work|farm|root|home|Users)/[A-Za-z]")


def _names_handed_on(tree: ast.Module) -> set[str]:
    """What the imports of a door bind."""
    return {
        alias.asname or alias.name
        for node in tree.body
        if isinstance(node, ast.Import | ast.ImportFrom)
        if not (isinstance(node, ast.ImportFrom) and node.module == "__future__")
        for alias in node.names
    }


def _names_in_all(tree: ast.Module) -> tuple[int, set[str]] | None:
    """The line and the names of `__all__`, or None where there is none that can be read."""
    for node in tree.body:
        match node:
            case ast.Assign(targets=[ast.Name(id="__all__")], value=ast.List(elts=listed)):
                names = {n.value for n in listed if isinstance(n, ast.Constant)}
                return node.lineno, {name for name in names if isinstance(name, str)}
            case _:
                pass
    return None


def _judge_door(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """What is wrong with the `__init__.py` of a room."""
    for node in tree.body[1:]:
        match node:
            case ast.Import() | ast.ImportFrom():
                pass
            case ast.Assign(targets=[ast.Name(id="__all__")]):
                pass
            case ast.Expr(value=ast.Constant(value=str())):  # the docstring of __all__
                pass
            case _:
                yield node.lineno, "a door only hands names on: imports and __all__, nothing else"
    listed = _names_in_all(tree)
    if listed is None:
        yield 1, "a door has an __all__, a plain list of names"
        return
    line, names = listed
    handed_on = _names_handed_on(tree)
    for name in sorted(names - handed_on):
        yield line, f"__all__ names {name}, which is not imported here"
    for name in sorted(handed_on - names):
        yield line, f"{name} is imported but not handed on in __all__"


def _judge_names(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Definitions that are called get_ or create_."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            bare = node.name.lstrip("_")
            if bare.startswith(("get_", "create_")):
                yield node.lineno, f"{node.name}: name the thing, or use a verb that says more"


def breaches_in_file(path: Path, *, in_package: bool) -> list[Breach]:
    """Every breach in one Python file; doors and names are judged inside the package only."""
    text = path.read_text("utf-8")
    tree = ast.parse(text, filename=str(path))
    found: list[tuple[int, str]] = []
    if ast.get_docstring(tree) is None:
        found.append((1, "opens without the docstring that states its law"))
    lines = text.count("\n")
    if lines > MOST_LINES:
        found.append(
            (MOST_LINES, f"{lines} lines, and {MOST_LINES} is the most: a wall is missing")
        )
    if path.stem.strip("_") in DRAWERS:
        found.append((1, f"{path.stem} is a drawer: say what belongs in it"))
    if in_package:
        found += _judge_names(tree)
        if path.name == "__init__.py":
            found += _judge_door(tree)
    return [Breach(path=path, line=line, message=message) for line, message in found]


def breaches_in_text(path: Path) -> list[Breach]:
    """Folders of one person's machine in a file; one that is no UTF-8 text is left alone."""
    try:
        text = path.read_text("utf-8")
    except UnicodeDecodeError:
        return []
    return [
        Breach(path=path, line=number, message="names a folder of one machine")
        for number, line in enumerate(text.splitlines(), start=1)
        if SOMEONES_FOLDER.search(line)
    ]


def _tracked(root: Path) -> list[Path]:
    """The files of the repository, new ones included; all files where git does not know them."""
    listing = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=root,
        capture_output=True,
        text=True,
        check=False,
    )
    names = listing.stdout.split("\0") if listing.returncode == 0 else []
    return sorted(root / name for name in names if name and (root / name).is_file())


def main() -> int:
    """Judge this repository."""
    root = Path(__file__).resolve().parents[1]
    package = root / "src" / "surefoot"
    files = _tracked(root) or sorted(package.rglob("*.py"))
    breaches: list[Breach] = []
    for path in files:
        breaches += breaches_in_text(path)
        if path.suffix == ".py":
            breaches += breaches_in_file(path, in_package=package in path.parents)
    for breach in breaches:
        print(f"{breach.path.relative_to(root)}:{breach.line}: {breach.message}")
    return 1 if breaches else 0


if __name__ == "__main__":
    sys.exit(main())
