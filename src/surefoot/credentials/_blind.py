"""The law of this file: what holds a secret shows nothing of it, whoever looks (R107, R108).

A blind object keeps its value in a closure. Its ``repr``, ``str`` and ``format`` are fixed text;
it has no ``__dict__`` for ``vars`` or ``dataclasses.asdict`` to walk, and its slots hold a
function; it refuses to pickle; a copy is the object itself; two are equal only if they are one.
Without this a finished asyncio task prints its result, and a debugger's page or a crash report
prints the locals of every frame. What it cannot do: a program that opens the closure on purpose
reads the value, and Python's strings cannot be wiped from the heap.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn, SupportsIndex, TypeVar, final

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Blind", "Secret", "sealed"]

_T = TypeVar("_T")


def sealed(value: _T) -> Callable[[], _T]:
    """Put a value behind a function, so that only a call brings it out."""
    return lambda: value


class Blind:
    """The base of everything that holds a secret. Immutable, equal only to itself."""

    __slots__ = ("__weakref__",)

    def __repr__(self) -> str:
        """Say what it is, and nothing that it holds."""
        return f"{type(self).__name__}(<hidden>)"

    def __format__(self, spec: str) -> str:
        """Format the fixed text."""
        return format(repr(self), spec)

    def __copy__(self) -> Blind:
        """Return the object itself: it cannot change, and a second one would be a second secret."""
        return self

    def __deepcopy__(self, memo: dict[int, object]) -> Blind:
        """Return the object itself, as ``__copy__`` does."""
        return self

    def __reduce_ex__(self, protocol: SupportsIndex) -> NoReturn:
        """Refuse to pickle: a pickle is a file, a queue or another process."""
        raise _refusal(self)

    def __getstate__(self) -> NoReturn:
        """Refuse to hand out the state, as ``__reduce_ex__`` does."""
        raise _refusal(self)

    def __setattr__(self, name: str, value: object) -> None:
        """Refuse to change."""
        message = f"{type(self).__name__} cannot be changed"
        raise AttributeError(message)

    def __delattr__(self, name: str) -> None:
        """Refuse to change."""
        message = f"{type(self).__name__} cannot be changed"
        raise AttributeError(message)


@final
class Secret(Blind):
    """One secret text, such as a user's own token. ``reveal()`` brings it out.

    Raises:
        TypeError: the value is not a ``str``; the message does not show it.
    """

    __slots__ = ("_open",)

    _open: Callable[[], str]

    def __init__(self, value: str, /) -> None:
        wrong = not isinstance(value, str)  # pyright: ignore[reportUnnecessaryIsInstance]
        if not wrong:
            object.__setattr__(self, "_open", sealed(value))
        del value  # what is raised below carries this frame, and a frame carries its locals
        if wrong:
            message = "value: must be a str"
            raise TypeError(message)

    def reveal(self) -> str:
        """Return the text. Use it, and keep it nowhere."""
        return self._open()


def _refusal(blind: Blind) -> TypeError:
    """Word the one refusal of pickling and copying out."""
    return TypeError(
        f"{type(blind).__name__} holds a secret and does not pickle; "
        "build it where it is used, or ask a credential provider there"
    )
