"""The law of this file: every artefact is searched on behalf of a channel, counted, and let go.

A hit keeps the channel and the place. A place that itself holds the secret is not told.
"""

from __future__ import annotations

import asyncio
import gc
import os
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import compress
from pathlib import Path
from typing import Any, Final, Literal, get_args

from surefoot.testing._audit_forms import SecretForms
from surefoot.testing._audit_walk import Walk, is_ours

__all__ = ["AuditChannel", "Leak", "Search"]

AuditChannel = Literal[
    "logs", "warnings", "streams", "hooks", "exceptions", "objects", "requests", "tasks", "spans",
    "files", "artefacts",
]  # fmt: skip
"""Where a secret may be seen. ``requests`` are those of httpx and httpx2 that are still alive."""

_CHANNELS: Final[tuple[AuditChannel, ...]] = get_args(AuditChannel)
_MAX_OBJECTS: Final = 20_000
_MAX_LEAKS: Final = 50
_HTTP_FAMILIES: Final = frozenset({"httpx", "httpx2"})


@dataclass(frozen=True, slots=True)
class Leak:
    """One place in which a secret was seen."""

    channel: AuditChannel
    """Through which channel."""

    place: str
    """Where in it; never the text itself."""

    form: str
    """In which form: ``"verbatim"``, ``"base64"``, ..."""

    def __str__(self) -> str:
        return f"{self.channel}: {self.place} ({self.form})"


class Search:
    """Searches what it is given, what is filed and what is alive.

    Args:
        forms: What is searched for.
        files: Files and folders, read when the search is completed.
        skip: Channels that are not searched.
        trusted: Files whose frames may hold the secret.

    Raises:
        ValueError: ``skip`` names no channel.
    """

    def __init__(
        self,
        forms: SecretForms,
        *,
        files: Iterable[str | os.PathLike[str]] = (),
        skip: Collection[AuditChannel] = (),
        trusted: Collection[str] = (),
    ) -> None:
        if not set(skip) <= set(_CHANNELS):
            message = f"skip: must hold channels, of {', '.join(_CHANNELS)}"
            raise ValueError(message)
        self._forms = forms
        self._files = [Path(file) for file in files]
        self._skip = frozenset(skip)
        self._trusted = frozenset(trusted)
        self._leaks: dict[Leak, None] = {}
        self.looked: Counter[AuditChannel] = Counter()

    @property
    def leaks(self) -> tuple[Leak, ...]:
        """What was found so far, in the order in which it was found."""
        return tuple(self._leaks)

    def covers(self, channel: AuditChannel) -> bool:
        """The channel is not left out."""
        return channel not in self._skip

    def ear(self, channel: AuditChannel) -> Callable[[str, object], None]:
        """A function that searches each thing it is told of, however often it is told."""
        found = self._finder(channel)

        def hears(place: str, said: object) -> None:
            if self.covers(channel):
                Walk(found, self._trusted).look(place, said)

        return hears

    def complete(self) -> None:
        """Search the files, and everything that is alive now."""
        hears = self.ear("files")
        for root in self._files:
            for file in sorted(root.rglob("*")) if root.is_dir() else [root]:
                hears(f"the name of a file in {root.name}", file.name)
                if file.is_file():
                    hears(file.name, file.read_bytes())
        for channel, values in _alive().items():
            if self.covers(channel):
                walk = Walk(self._finder(channel), self._trusted)
                for value in values[:_MAX_OBJECTS]:
                    place = f"{type(value).__module__}.{type(value).__qualname__}"
                    walk.look(place, _task_parts(value) if channel == "tasks" else value)

    def _finder(self, channel: AuditChannel) -> Callable[[str, str | bytes], None]:
        """A function that searches one artefact, on behalf of a channel."""

        def found(place: str, text: str | bytes) -> None:
            self.looked[channel] += 1
            form = self._forms.find(text)
            if form is not None and len(self._leaks) < _MAX_LEAKS:
                told = "a place that is named by it" if self._forms.find(place) else place
                self._leaks[Leak(channel, told, form)] = None

        return found


def _alive() -> dict[AuditChannel, list[Any]]:
    """What is alive and searched, by channel.

    There may be a million objects, of few kinds: so each is asked for its kind, and no more.
    """
    gc.collect()
    alive: list[object] = gc.get_objects()
    kinds: list[type[object]] = list(map(type, alive))
    ids = list(map(id, kinds))  # (some kinds cannot be put into a set)
    wanted: dict[AuditChannel, set[int]] = {"objects": set(), "requests": set(), "tasks": set()}
    for number, kind in dict(zip(ids, kinds, strict=True)).items():
        for channel in _channels_of(kind):
            wanted[channel].add(number)
    return {
        channel: list(compress(alive, map(chosen.__contains__, ids)))
        for channel, chosen in wanted.items()
    }


def _channels_of(kind: type[object]) -> Iterator[AuditChannel]:
    """In which channels objects of a kind are searched."""
    # Some classes of other libraries answer even a question for their module with an error.
    with suppress(Exception):
        if is_ours(kind):
            yield "objects"
    with suppress(Exception):
        if kind.__name__ == "Request" and kind.__module__.partition(".")[0] in _HTTP_FAMILIES:
            yield "requests"
    if issubclass(kind, (asyncio.Future, asyncio.Handle)):
        yield "tasks"


def _task_parts(value: Any) -> list[object]:
    """What a task, a future or a handle shows, without marking its exception as retrieved."""
    held = [getattr(value, name, None) for name in ("_result", "_exception")]
    return [repr(value), *held]
