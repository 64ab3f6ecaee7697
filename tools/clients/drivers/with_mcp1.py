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


@asynccontextmanager
async def plain(url: str) -> AsyncGenerator[Any]:
    """Without surefoot."""
    async with streamable_http_client(url) as streams, ClientSession(*streams[:2]) as session:
        yield session


@asynccontextmanager
async def adopted(billing: Any) -> AsyncGenerator[Any]:
    """With it."""
    async with (
        billing.http_client() as http,
        streamable_http_client(billing.url, http_client=http) as streams,
        ClientSession(*streams[:2]) as session,
    ):
        yield session


@asynccontextmanager
async def session(setting: Setting) -> AsyncGenerator[Converse]:
    """One session, and a loop that calls its tools."""
    patience: Any = None if setting.patience is None else timedelta(seconds=setting.patience)
    made = plain(setting.url) if setting.billing is None else adopted(setting.billing)
    async with made as client:
        await client.initialize()

        async def call(tool: str, arguments: Any) -> str:
            result = await client.call_tool(tool, arguments, read_timeout_seconds=patience)
            return "\n".join(block.text for block in result.content)

        async def play(script: Script) -> None:
            await converse(script, call)

        yield play
