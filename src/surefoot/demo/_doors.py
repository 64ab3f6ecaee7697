"""The law of this file: two ways to the same gateway, which differ in one line.

Both give the SDK's own client, of whichever major is installed, and the same patience.
"""

from __future__ import annotations

import importlib
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from importlib.metadata import version
from typing import Any, Final

from surefoot.gateway import Gateway
from surefoot.wire import OUTCOME_KEY

__all__ = [
    "PATIENCE",
    "SDK",
    "Answer",
    "Session",
    "lines_to_change",
    "load_sdk",
    "plain",
    "protected",
]

PATIENCE: Final = 4.0
"""Seconds after which the agent stops waiting for one answer; frameworks have such a bound."""

SDK: Final = version("mcp")
"""The installed version of the MCP SDK."""

_MAJOR: Final = int(SDK.partition(".")[0])


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A tool's result, as the agent reads it."""

    text: str
    is_error: bool
    may_have_run: bool
    """The answer itself says so, in its facts."""


class Session:
    """An open session of the SDK's own client."""

    def __init__(self, client: Any) -> None:
        self._client = client

    async def call(self, tool: str, arguments: Mapping[str, object]) -> Answer:
        """Call a tool. Raises whatever the SDK raises."""
        result = await self._client.call_tool(tool, dict(arguments))
        failed = result.is_error if _MAJOR > 1 else result.isError
        meta: dict[str, Any] = result.meta or {}
        facts: dict[str, Any] = meta.get(OUTCOME_KEY, {})
        return Answer(
            text=" ".join(block.text for block in result.content if block.type == "text"),
            is_error=bool(failed),
            may_have_run=facts.get("may_have_run") is True,
        )


def load_sdk() -> None:
    """Import the SDK, which takes a second or two, before anything is timed."""
    for module in ("mcp", "mcp.client.streamable_http", "httpx2" if _MAJOR > 1 else "httpx"):
        importlib.import_module(module)


@asynccontextmanager
async def plain(url: str, token: str) -> AsyncGenerator[Session]:
    """The client as it comes, with a token that was set when it connected."""
    library = importlib.import_module("httpx2" if _MAJOR > 1 else "httpx")
    open_streams: Any = importlib.import_module("mcp.client.streamable_http")
    async with library.AsyncClient(
        headers={"authorization": f"Bearer {token}"},
        timeout=library.Timeout(30.0, read=300.0),  # the SDK's own
    ) as client:
        streams = open_streams.streamable_http_client(url, http_client=client)
        async with _client(streams) as session:
            yield session


@asynccontextmanager
async def protected(billing: Gateway) -> AsyncGenerator[Session]:
    """The client with one changed line."""
    async with _client(billing.transport()) as session:
        yield session


@asynccontextmanager
async def _client(transport: Any) -> AsyncGenerator[Session]:
    mcp: Any = importlib.import_module("mcp")
    if _MAJOR > 1:
        async with mcp.Client(transport, read_timeout_seconds=PATIENCE) as client:
            yield Session(client)
        return
    async with (
        transport as streams,
        mcp.ClientSession(*streams[:2], timedelta(seconds=PATIENCE)) as client,
    ):
        await client.initialize()
        yield Session(client)


def lines_to_change() -> tuple[str, str]:
    """The line of a program that changes: as it was, and as it becomes."""
    if _MAJOR > 1:
        return (
            "async with mcp.Client(url) as client:",
            "async with mcp.Client(billing.transport()) as client:",
        )
    return (
        "async with streamable_http_client(url) as streams:",
        "async with billing.transport() as streams:",
    )
