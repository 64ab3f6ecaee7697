"""The law of this file: a tool is a frozen declaration; its runs are counted elsewhere.

The four tools that every gateway offers stand for the four cases that matter to a client: a read, a
change that nothing guards, a change that carries an idempotency key, and one that takes its time.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import KW_ONLY, dataclass, field
from typing import Final

from surefoot.testing._checks import a_bool, a_text
from surefoot.testing._wire import compact_json

__all__ = ["DEFAULT_TOOLS", "Tool", "ToolAnswer", "ToolBody", "tool_result"]

ToolAnswer = str | Mapping[str, object]
"""What a tool gives back.

A text becomes one text block. A mapping with `content` is the whole result as it stands; any other
mapping becomes `structuredContent`, with its JSON as the text block beside it.
"""

ToolBody = Callable[[Mapping[str, object]], ToolAnswer | Awaitable[ToolAnswer]]
"""A tool's body: takes the arguments, sync or async; it runs in the loop, so must not block."""


def _any_object() -> Mapping[str, object]:
    return {"type": "object"}


@dataclass(frozen=True, slots=True)
class Tool:
    """One tool of a `FaultyGateway`.

    A body that raises gives a result with `isError: true` and the error's text, as MCP servers do.

    Raises:
        TypeError: an option has the wrong type.
        ValueError: the name is empty.
    """

    name: str
    _: KW_ONLY
    answer: ToolAnswer | ToolBody = "ok"
    makes_changes: bool = False
    """What the listed annotations say; where `annotations` are given, they are listed instead."""
    description: str = ""
    input_schema: Mapping[str, object] = field(default_factory=_any_object)
    output_schema: Mapping[str, object] | None = None
    annotations: Mapping[str, object] | None = None

    def __post_init__(self) -> None:
        a_text("Tool(name)", self.name)
        a_bool("Tool(makes_changes)", self.makes_changes)
        answer: object = self.answer
        if not isinstance(answer, str | Mapping) and not callable(answer):
            raise TypeError(
                f"Tool(answer) takes a text, a mapping or a callable, not {type(answer).__name__}"
            )

    def listed(self) -> dict[str, object]:
        """The tool as tools/list shows it."""
        hints: Mapping[str, object] = self.annotations or {
            "readOnlyHint": not self.makes_changes,
            "destructiveHint": self.makes_changes,
        }
        entry: dict[str, object] = {
            "name": self.name,
            "description": self.description or f"The {self.name} tool.",
            "inputSchema": dict(self.input_schema),
            "annotations": dict(hints),
        }
        if self.output_schema is not None:
            entry["outputSchema"] = dict(self.output_schema)
        return entry

    async def run(self, arguments: Mapping[str, object]) -> ToolAnswer:
        """Run the body once. Raises whatever the body raises."""
        if not callable(self.answer):
            return self.answer
        given = self.answer(arguments)
        return await given if inspect.isawaitable(given) else given


def tool_result(answer: ToolAnswer) -> dict[str, object]:
    """A tool's answer as the `result` of a tools/call, without what only one protocol era adds."""
    if isinstance(answer, str):
        return {"content": [{"type": "text", "text": answer}], "isError": False}
    if "content" in answer or "resultType" in answer:
        return dict(answer)
    text = compact_json(answer).decode()
    return {
        "content": [{"type": "text", "text": text}],
        "structuredContent": dict(answer),
        "isError": False,
    }


def _schema(**properties: str) -> Mapping[str, object]:
    return {
        "type": "object",
        "properties": {name: {"type": kind} for name, kind in properties.items()},
    }


def _search(arguments: Mapping[str, object]) -> str:
    return f"found {arguments.get('q', 'everything')}"


def _refund(arguments: Mapping[str, object]) -> str:
    return f"refunded {arguments.get('order', 'the order')}"


def _charge(arguments: Mapping[str, object]) -> str:
    return f"charged {arguments.get('amount', 'the amount')}"


async def _slow(arguments: Mapping[str, object]) -> str:
    seconds = arguments.get("seconds", 0.2)
    await asyncio.sleep(float(seconds) if isinstance(seconds, int | float) else 0.2)
    return "done at last"


DEFAULT_TOOLS: Final = (
    Tool(
        "search",
        answer=_search,
        description="Looks something up.",
        input_schema=_schema(q="string"),
    ),
    Tool(
        "refund",
        answer=_refund,
        makes_changes=True,
        description="Gives money back; twice is twice.",
        input_schema=_schema(order="string"),
    ),
    Tool(
        "charge",
        answer=_charge,
        makes_changes=True,
        description="Takes money; carries a request_id to tell repeats by.",
        input_schema=_schema(amount="number", request_id="string"),
    ),
    Tool(
        "slow", answer=_slow, description="Takes its time.", input_schema=_schema(seconds="number")
    ),
)
"""The tools that every gateway offers beside those that a test declares."""
