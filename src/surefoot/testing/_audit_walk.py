"""The law of this file: whatever a log, a debugger or a crash report would print is printed here.

An object is looked at as such tools do: ``repr``, ``str``, its attributes, its pickle. It is looked
*into* where it is ours, a container, or of the HTTP families below us; what a user's own object
keeps to itself is the user's. A blind object is looked at from outside, like any other, and its
closure is not opened. Everything is bounded.
"""

from __future__ import annotations

import pickle
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from functools import partial
from traceback import format_exception_only, walk_tb
from types import ModuleType, TracebackType
from typing import Any, Final, cast

from surefoot.credentials import Blind

__all__ = ["Walk", "is_ours"]

Found = Callable[[str, str | bytes], None]
"""Is told a place and what is printed there."""

_LOOKED_INTO: Final = frozenset(
    {"surefoot", "httpx", "httpx2", "httpcore", "httpcore2", "h11", "mcp", "mcp_types"}
)
_MAX_DEPTH: Final = 8
_MAX_OBJECTS: Final = 20_000
_MAX_TEXT: Final = 4 * 1024 * 1024
_PRINTED_BY: Final = ("to_json", "model_dump_json")
"""Methods by which spans and models turn themselves into what is exported."""


class Walk:
    """One look at one thing and what it holds; no object is looked at twice.

    Args:
        found: Told each place and what is printed there.
        trusted: Files whose frames may hold the secret: those that planted it.
    """

    def __init__(self, found: Found, trusted: AbstractSet[str] = frozenset()) -> None:
        self._found = found
        self._trusted = trusted
        self._seen: dict[int, object] = {}  # keeps them alive, so that no id comes twice

    def look(self, place: str, value: object, *, depth: int = 0) -> None:
        """Print the value and, where it may be looked into, what it holds."""
        if isinstance(value, (str, bytes)):
            self._found(place, value[:_MAX_TEXT])
            return
        if value is None or isinstance(value, (bool, int, float, complex, type, ModuleType)):
            return
        if id(value) in self._seen or len(self._seen) >= _MAX_OBJECTS or depth > _MAX_DEPTH:
            return
        self._seen[id(value)] = value
        if isinstance(value, (bytearray, memoryview)):
            self._found(place, memoryview(cast("bytearray", value)).tobytes()[:_MAX_TEXT])
        elif isinstance(value, BaseException):
            self.exception(place, value)
        elif isinstance(value, TracebackType):
            self.frames(place, value)
        else:
            self._outside(place, value)
            for name, part in self._inside(value):
                self.look(f"{place}{name}", part, depth=depth + 1)

    def exception(self, place: str, error: BaseException) -> None:
        """Print an exception with its arguments, attributes, pickle and frames, and its chain."""
        self._seen[id(error)] = error
        place = f"{place} > {type(error).__name__}"
        self._found(f"{place}: message", "".join(_printed(lambda: format_exception_only(error))))
        self._outside(place, error)
        self.look(f"{place}.args", error.args, depth=1)
        for name, part in _attributes(error):
            self.look(f"{place}{name}", part, depth=1)
        if error.__traceback__ is not None:
            self.frames(place, error.__traceback__)
        chain: list[tuple[str, BaseException | None]] = [
            (f"{place}.__cause__", error.__cause__),
            (f"{place}.__context__", error.__context__),
        ]
        if isinstance(error, BaseExceptionGroup):
            group = cast("BaseExceptionGroup[BaseException]", error)
            chain += [(f"{place}.exceptions", inner) for inner in group.exceptions]
        for where, other in chain:
            if other is not None and id(other) not in self._seen:
                self.exception(where, other)

    def frames(self, place: str, tb: TracebackType) -> None:
        """Print the locals of every frame but the trusted ones, as reporters capture them."""
        for frame, line in walk_tb(tb):
            if frame.f_code.co_filename not in self._trusted:
                where = f"{place} in {frame.f_code.co_qualname} (line {line})"
                for name, part in list(frame.f_locals.items()):
                    self._found(f"{where}, local {name}: repr", _printed(partial(repr, part)))
                    self.look(f"{where}, local {name}", part, depth=2)

    def _outside(self, place: str, value: object) -> None:
        """What the object shows to whoever prints it."""
        self._found(f"{place}: repr", _printed(lambda: repr(value)))
        self._found(f"{place}: str", _printed(lambda: str(value)))
        self._found(f"{place}: format", _printed(lambda: f"{value}"))
        if isinstance(value, Blind):
            state = _printed(lambda: repr([part for _, part in _attributes(value)]))
            self._found(f"{place}: attributes", state)
        for method in _PRINTED_BY:
            write: Any = getattr(type(value), method, None)
            if callable(write):
                self._found(f"{place}: {method}", str(_printed(partial(write, value))))
        if (
            is_ours(type(value))
            or isinstance(value, BaseException)
            or hasattr(type(value), "model_dump")
        ):
            self._found(f"{place}: pickle", _pickled(value))

    def _inside(self, value: object) -> Iterator[tuple[str, object]]:
        """What the object holds, where it may be looked into."""
        if isinstance(value, Blind):
            return
        if isinstance(value, Mapping):
            mapping = cast("Mapping[object, object]", value)
            for number, (key, part) in enumerate(list(mapping.items())):
                yield f"[key {number}]", key
                yield f"[{key!r}]" if isinstance(key, str) else f"[{number}]", part
        elif isinstance(value, (list, tuple, AbstractSet, deque)):
            for number, part in enumerate(list(cast("list[object]", value))):
                yield f"[{number}]", part
        if _looked_into(type(cast("object", value))):
            yield from _attributes(cast("object", value))


def is_ours(kind: type[object]) -> bool:
    """A kind of this library, apart from its test doubles: they keep what a server received."""
    return kind.__module__.startswith("surefoot.") and not _a_double(kind)


def _a_double(kind: type[object]) -> bool:
    return kind.__module__.startswith("surefoot.testing")


def _looked_into(kind: type[object]) -> bool:
    return kind.__module__.partition(".")[0] in _LOOKED_INTO and not _a_double(kind)


def _attributes(value: object) -> list[tuple[str, object]]:
    """``__dict__`` and every slot, without calling a property."""
    held: Any = getattr(value, "__dict__", None)
    parts = [(f".{name}", part) for name, part in dict(held).items()] if held else []
    for kind in type(value).__mro__:
        slots = kind.__dict__.get("__slots__", ())
        for slot in (slots,) if isinstance(slots, str) else tuple(slots):
            if slot[:2] == "__" and slot[-2:] == "__":
                continue
            name = f"_{kind.__name__.lstrip('_')}{slot}" if slot[:2] == "__" else slot
            part = getattr(value, name, None)
            if part is not None:
                parts.append((f".{name}", part))
    return parts


def _printed(write: Callable[[], Any]) -> Any:
    """Whatever it returns, or the text of what it raises: that would be printed instead."""
    try:
        return write()
    except Exception as error:  # noqa: BLE001 - an object that cannot be printed shows nothing
        return f"{type(error).__name__}: {error.args!r}"


def _pickled(value: object) -> bytes:
    try:
        return pickle.dumps(value)
    except Exception as error:  # noqa: BLE001 - most refuse, and their refusal is text too
        return repr(error.args).encode("utf-8", "replace")
