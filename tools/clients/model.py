"""The law of this file: the model is a script; what it calls next depends on what it reads alone.

A driver asks it for the next calls, in the way in which its framework asks a language model, and
gives it what the framework would show one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

__all__ = ["Call", "Script", "converse", "in_one_line"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One use of a tool that the model asks for."""

    id: str
    tool: str
    arguments: Mapping[str, Any]


@dataclass(slots=True)
class Script:
    """A model that calls some tools at once, may insist on one of them, and then is content.

    Args:
        wanted: the tools that it calls at once, with their arguments.
        insists: how often it calls the last of them again while it reads no word of success.
    """

    wanted: Sequence[tuple[str, Mapping[str, Any]]]
    insists: int = 0
    read: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    """What it read: the tool, and the text."""
    _asked: dict[str, Call] = field(default_factory=dict[str, Call])

    def next(self, answers: Mapping[str, str]) -> Sequence[Call]:
        """Take what came of the calls so far, by id, and say which to make; none at the end."""
        if not self._asked:
            return [self._ask(tool, arguments) for tool, arguments in self.wanted]
        fresh = {key: text for key, text in answers.items() if key in self._asked}
        for key, text in fresh.items():
            self.read.append((self._asked.pop(key).tool, in_one_line(text)))
        self._asked = {"": Call(id="", tool="", arguments={})}
        tool, arguments = self.wanted[-1]
        said = [text for name, text in self.read if name == tool]
        if self.insists and not (said and said[-1].startswith(("charged", "refunded"))):
            self.insists -= 1
            return [self._ask(tool, arguments)]
        return []

    def _ask(self, tool: str, arguments: Mapping[str, Any]) -> Call:
        key = f"call-{len(self.read)}-{len(self._asked)}-{self.insists}"
        call = Call(id=key, tool=tool, arguments=arguments)
        self._asked[key] = call
        return call


async def converse(script: Script, call: Callable[[str, Any], Awaitable[str]]) -> None:
    """Run a script over a client that is no framework: each call in a task of its own.

    An error that `call` raises is what a loop without a framework would show the model.
    """
    answers: dict[str, str] = {}

    async def one(wanted: Call) -> None:
        try:
            answers[wanted.id] = await call(wanted.tool, dict(wanted.arguments))
        except Exception as error:  # noqa: BLE001 - whatever it is, it is what the caller gets
            answers[wanted.id] = f"{type(error).__name__}: {error}"

    while calls := script.next(answers):
        await asyncio.gather(*(one(wanted) for wanted in calls))


def in_one_line(text: str) -> str:
    """A text without its line breaks."""
    return " ".join(text.split())
