"""The law of this file: what a user may rely on is written down, name by name, with its signature.

`python tools/public_api.py` prints it; `--write` puts it into tests/house/public_api.txt, which a
test holds against the code. A change of that file is a change for users: say it in CHANGELOG.md.
"""

from __future__ import annotations

import argparse
import enum
import inspect
import pkgutil
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import surefoot

__all__ = ["SNAPSHOT", "public_api"]

SNAPSHOT: Final = Path(__file__).resolve().parents[1] / "tests" / "house" / "public_api.txt"

PROGRAMS: Final = frozenset({"surefoot.cli", "surefoot.demo"})
"""Rooms that are run and not imported."""


def public_api() -> str:
    """Every public name of every room, a line each, in order."""
    lines: list[str] = []
    for module in _rooms():
        lines += ["", f"[{module.__name__}]"]
        for name in sorted(module.__all__):
            lines += _described(name, getattr(module, name))
    return "\n".join([*lines[1:], ""])


def _rooms() -> Iterator[ModuleType]:
    """The front door, every room, and public files inside rooms; the plugin is pytest's to load."""
    yield surefoot
    for info in sorted(
        pkgutil.walk_packages(surefoot.__path__, "surefoot."), key=lambda info: info.name
    ):
        private = any(part.startswith("_") for part in info.name.split("."))
        if not private:
            module = import_module(info.name)
            if hasattr(module, "__all__") and info.name not in PROGRAMS:
                yield module


def _described(name: str, value: Any) -> Iterator[str]:
    if inspect.isclass(value):
        yield f"class {name}{_bases(value)}{_signature(value)}".rstrip()
        yield from (f"    {line}" for line in _members(value))
    elif inspect.isfunction(value):
        yield f"{_prefix(value)}def {name}{_signature(value)}"
    elif inspect.ismodule(value):
        yield f"module {name}"
    else:
        yield f"{name}: {_kind(value)}"


def _members(kind: type[Any]) -> Iterator[str]:
    """What a class has under public names, those of our own bases included."""
    if issubclass(kind, enum.Enum):
        yield from (f"{member.name} = {member.value!r}" for member in kind)
        return
    fields: set[str] = set(getattr(kind, "__dataclass_fields__", ()))
    ours = [base for base in kind.__mro__ if base.__module__.partition(".")[0] == "surefoot"]
    found: dict[str, Any] = {}
    for base in reversed(ours):
        found |= dict.fromkeys(inspect.get_annotations(base))
        found |= vars(base)
    for name in sorted(found):
        if name.startswith("_") or name in fields:
            continue
        value: Any = inspect.getattr_static(kind, name, None)
        value = getattr(value, "__func__", value)  # of a static or class method
        if isinstance(value, property):
            yield f"{name}: property"
        elif inspect.isfunction(value):
            yield f"{_prefix(value)}def {name}{_signature(value)}"
        else:
            yield f"{name}: attribute"


def _prefix(function: Any) -> str:
    bare = inspect.unwrap(function)
    asynchronous = inspect.iscoroutinefunction(bare) or inspect.isasyncgenfunction(bare)
    return "async " if asynchronous else ""


def _signature(value: Any) -> str:
    """Names, kinds and defaults; types are pyright's affair, and differ between Pythons."""
    try:
        signature = inspect.signature(value)
    except (TypeError, ValueError):
        return ""
    plain = [
        one.replace(annotation=inspect.Parameter.empty, default=_default(one))
        for one in signature.parameters.values()
        if one.name != "self"
    ]
    return str(signature.replace(parameters=plain, return_annotation=inspect.Signature.empty))


class _Shown:
    """A default value as it is shown: no address of this process in it."""

    def __init__(self, text: str) -> None:
        self._text = text

    def __repr__(self) -> str:
        return self._text


def _default(parameter: inspect.Parameter) -> Any:
    value = parameter.default
    if value is inspect.Parameter.empty:
        return value
    text = repr(value)
    if "<factory>" in text:
        return _Shown("...")
    return _Shown(f"<{type(value).__name__}>" if " at 0x" in text else text)


def _bases(kind: type) -> str:
    named = [base.__name__ for base in kind.__bases__ if base is not object]
    return f"[{', '.join(named)}] " if named else " "


def _kind(value: Any) -> str:
    return type(value).__name__ if not hasattr(value, "__args__") else "type"


def main() -> int:
    """Print the snapshot, or write it."""
    parser = argparse.ArgumentParser(description="The public names and their signatures.")
    parser.add_argument("--write", action="store_true", help="into tests/house/public_api.txt")
    text = public_api()
    if parser.parse_args().write:
        SNAPSHOT.write_text(text, "utf-8")
    else:
        sys.stdout.write(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
