"""The law of this file: an example is taken from the page as a reader sees it, never from a copy.

A fenced `python` block is one program. A fenced `text` block right after it is what it prints. An
HTML comment right before it may say more:

    <!-- needs: pydantic_ai -->   modules; where one is missing the example is skipped, with that
                                  as the reason
    <!-- fragment -->             part of a program: it is compiled, not run
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

__all__ = ["PLACEHOLDER", "Example", "examples_in"]

PLACEHOLDER: Final = "https://gateway.example.com/mcp"
"""The address that examples connect to; running one puts a real address in its place."""

_BLOCK: Final = re.compile(
    r"(?:^<!-- *(?P<mark>[^>]*?) *-->\n\n?)?"
    r"^```python\n(?P<code>.*?)^```$"
    r"(?:\n\n?^```text\n(?P<prints>.*?)^```$)?",
    re.MULTILINE | re.DOTALL,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """One program on a page."""

    page: Path
    line: int
    code: str
    needs: tuple[str, ...]
    fragment: bool
    prints: str | None

    def __str__(self) -> str:
        return f"{self.page.name}:{self.line}"


def examples_in(page: Path) -> list[Example]:
    """Every example of one Markdown page, in order.

    Raises:
        ValueError: a comment before a block says something that has no meaning.
    """
    text = page.read_text("utf-8")
    examples: list[Example] = []
    for block in _BLOCK.finditer(text):
        mark = block["mark"] or ""
        kind, _, rest = mark.partition(":")
        if mark and kind not in {"needs", "fragment"}:
            message = f"{page.name}: an example is marked needs or fragment"
            raise ValueError(message)
        examples.append(
            Example(
                page=page,
                line=text.count("\n", 0, block.start("code")) + 1,
                code=block["code"],
                needs=tuple(re.findall(r"[\w.]+", rest)),
                fragment=kind == "fragment",
                prints=block["prints"],
            )
        )
    return examples
