"""The law of this file: inside surefoot, imports point one way.

```
errors <- policy | wire | evidence <- credentials <- transports | sinks <- gateway
       <- agentcore | pacing | explain <- integrations | proxy | demo <- cli
```

A room imports from rooms left of it, never from its own neighbours behind a `|`, and never another
room's private file. `testing` may import up to `agentcore`; only `demo` imports it. `__main__.py`
starts `cli`, and stands to the right of all. The pure rooms import nothing that has a clock,
chance, a socket, a loop or a log. An import inside a function, under `TYPE_CHECKING` or through
`import_module("...")` counts as any other.

Run without arguments it prints each breach as `path:line: message`, and exits with 1 if there is
one.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

__all__ = ["Breach", "breaches_in"]

PACKAGE: Final = "surefoot"

FLOORS: Final[tuple[frozenset[str], ...]] = (
    frozenset({"errors"}),
    frozenset({"policy", "wire", "evidence"}),
    frozenset({"credentials"}),
    frozenset({"transports", "sinks"}),
    frozenset({"gateway"}),
    frozenset({"agentcore", "pacing", "explain"}),
    frozenset({"integrations", "proxy", "demo"}),
    frozenset({"cli"}),
    frozenset({"__main__"}),
)
"""Each floor stands on the ones before it."""

FRONT_DOOR: Final = ""
"""`surefoot/__init__.py`: hands on names of any room up to `agentcore`'s floor."""

PURE: Final = frozenset({"policy", "wire", "evidence"})

IMPURE: Final = frozenset(
    {
        "anyio",
        "asyncio",
        "httpx",
        "httpx2",
        "logging",
        "mcp",
        "mcp_types",
        "random",
        "socket",
        "time",
        "trio",
    }
)
"""Top-level modules that a pure room may not import."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Breach:
    """One place where the law is broken."""

    path: Path
    line: int
    message: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.message}"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Import:
    """One imported module, dotted in full; `names` are what was taken out of it."""

    line: int
    module: str
    names: tuple[str, ...] = ()


def _may_import() -> dict[str, frozenset[str]]:
    """For each room the rooms that it may import from."""
    table: dict[str, frozenset[str]] = {}
    below: frozenset[str] = frozenset()
    for floor in FLOORS:
        table.update(dict.fromkeys(floor, below))
        below |= floor
    up_to_agentcore = frozenset[str]().union(*FLOORS[:6])
    table["testing"] = up_to_agentcore
    table[FRONT_DOOR] = up_to_agentcore
    table["demo"] |= {"testing"}
    return table


MAY_IMPORT: Final = _may_import()


def _imports(tree: ast.Module, package: str) -> Iterator[_Import]:
    """Every import of a file that lies in `package`, wherever in the file it stands."""
    for node in ast.walk(tree):
        match node:
            case ast.Import():
                for alias in node.names:
                    yield _Import(line=node.lineno, module=alias.name)
            case ast.ImportFrom():
                module = node.module or ""
                if node.level:
                    parents = package.split(".")[: len(package.split(".")) - node.level + 1]
                    module = ".".join([*parents, module] if module else parents)
                names = tuple(alias.name for alias in node.names)
                yield _Import(line=node.lineno, module=module, names=names)
            case ast.Call(
                func=ast.Attribute(attr="import_module")
                | ast.Name(id="import_module" | "__import__"),
                args=[ast.Constant(value=str(module)), *_],
            ):
                yield _Import(line=node.lineno, module=module)
            case _:
                pass


def _room_of(parts: tuple[str, ...]) -> str:
    """The room that a file lies in, from its path below the package."""
    return FRONT_DOOR if parts == ("__init__.py",) else parts[0].removesuffix(".py")


def _targets(found: _Import) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Each (room, path inside it) that an import of ours reaches; the front door is room ''."""
    inside = tuple(found.module.split(".")[1:])
    if inside:
        yield inside[0], (*inside[1:], *(n for n in found.names if n.startswith("_")))
    elif not found.names:
        yield FRONT_DOOR, ()
    for name in () if inside else found.names:
        yield (name, ()) if name in MAY_IMPORT else (FRONT_DOOR, ())


def _judge(room: str, found: _Import) -> Iterator[str]:
    """What is wrong with one import found in a file of `room`."""
    top = found.module.partition(".")[0]
    if room in PURE and top in IMPURE:
        yield f"{room} is pure and may not import {top}"
    if top != PACKAGE:
        return
    for target, inside in _targets(found):
        if target == room:
            continue
        if target == FRONT_DOOR:
            yield f"{room} imports the front door; name the room itself"
        elif target not in MAY_IMPORT:
            yield f"{target} is no room that the law knows"
        elif target not in MAY_IMPORT[room]:
            yield f"{room or 'the front door'} may not import {target}"
        elif any(part.startswith("_") and not part.startswith("__") for part in inside):
            yield f"{'.'.join(inside)} is private to {target}"


def breaches_in(package: Path) -> list[Breach]:
    """Every breach of the law in the package that lies at `package`, in the order of paths."""
    breaches: list[Breach] = []
    for path in sorted(package.rglob("*.py")):
        parts = path.relative_to(package).parts
        room = _room_of(parts)
        if room not in MAY_IMPORT:
            breaches.append(
                Breach(path=path, line=1, message=f"{room} is no room that the law knows")
            )
            continue
        tree = ast.parse(path.read_text("utf-8"), filename=str(path))
        dotted = ".".join([PACKAGE, *parts[:-1]])
        breaches += [
            Breach(path=path, line=found.line, message=message)
            for found in _imports(tree, dotted)
            for message in _judge(room, found)
        ]
    return breaches


def main() -> int:
    """Judge the package of this repository."""
    root = Path(__file__).resolve().parents[1]
    breaches = breaches_in(root / "src" / PACKAGE)
    for breach in breaches:
        print(f"{breach.path.relative_to(root)}:{breach.line}: {breach.message}")
    return 1 if breaches else 0


if __name__ == "__main__":
    sys.exit(main())
