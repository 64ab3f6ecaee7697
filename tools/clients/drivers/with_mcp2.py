# pyright: basic
"""The law of this file: `mcp.Client` as its users open it, and one line adopts surefoot."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import mcp

from clients.drive import Converse, Setting
from clients.model import Script, converse

__all__ = ["session"]


def plain(url: str) -> Any:
    """Without surefoot."""
    return mcp.Client(url)


def adopted(billing: Any) -> Any:
    """With it."""
    return mcp.Client(billing.transport())


@asynccontextmanager
async def session(setting: Setting) -> AsyncGenerator[Converse]:
    """One client, and a loop that calls its tools."""
    made = plain(setting.url) if setting.billing is None else adopted(setting.billing)
    async with made as client:

        async def call(tool: str, arguments: Any) -> str:
            result = await client.call_tool(tool, arguments, read_timeout_seconds=setting.patience)
            return "\n".join(block.text for block in result.content)

        async def play(script: Script) -> None:
            await converse(script, call)

        yield play
