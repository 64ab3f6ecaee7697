# pyright: basic, reportMissingImports=false
"""The law of this file: FastMCP's client as its users open it, and one line adopts surefoot."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

from fastmcp import Client
from fastmcp.client.transports import StreamableHttpTransport

from clients.drive import Converse, Setting
from clients.model import Script, converse

__all__ = ["session"]


def plain(url: str) -> Any:
    """Without surefoot."""
    return Client(StreamableHttpTransport(url))


def adopted(url: str, billing: Any) -> Any:
    """With it."""
    return Client(StreamableHttpTransport(url, httpx_client_factory=billing.http_client_factory))


@asynccontextmanager
async def session(setting: Setting) -> AsyncGenerator[Converse]:
    """One client, and a loop that calls its tools."""
    url, billing = setting.url, setting.billing
    async with plain(url) if billing is None else adopted(url, billing) as client:

        async def call(tool: str, arguments: Any) -> str:
            result = await client.call_tool(
                tool, arguments, timeout=setting.patience, raise_on_error=False
            )
            return "\n".join(block.text for block in result.content)

        async def play(script: Script) -> None:
            await converse(script, call)

        yield play
