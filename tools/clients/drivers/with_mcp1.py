# pyright: basic
"""The law of this file: mcp 1.x as its users open it, and one line adopts surefoot."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

from mcp import ClientSession
from mcp.client.streamable_http import streamable_http_client

from clients.drive import Converse, Setting
from clients.model import Script, converse

__all__ = ["session"]


def plain(url: str) -> Any:
    """Without surefoot."""
    return streamable_http_client(url)


def adopted(url: str, billing: Any) -> Any:
    """With it."""
    return streamable_http_client(url, http_client=billing.http_client())


@asynccontextmanager
async def session(setting: Setting) -> AsyncGenerator[Converse]:
    """One session, and a loop that calls its tools."""
    url, billing = setting.url, setting.billing
    patience: Any = None if setting.patience is None else timedelta(seconds=setting.patience)
    made = plain(url) if billing is None else adopted(url, billing)
    client: Any
    async with made as (read, write, _), ClientSession(read, write) as client:
        await client.initialize()

        async def call(tool: str, arguments: Any) -> str:
            result = await client.call_tool(tool, arguments, read_timeout_seconds=patience)
            return "\n".join(block.text for block in result.content)

        async def play(script: Script) -> None:
            await converse(script, call)

        yield play
