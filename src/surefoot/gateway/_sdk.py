"""The law of this file: everything that depends on the installed MCP SDK's major is decided here.

mcp 2.x speaks httpx2 and yields two streams; mcp 1.x speaks httpx and yields a third thing beside
them. The installed major decides, and never "what can be imported" (DESIGN section 6).
"""

from __future__ import annotations

import importlib
from collections.abc import AsyncGenerator, Mapping
from contextlib import (
    AbstractAsyncContextManager,
    AsyncExitStack,
    asynccontextmanager,
    suppress,
)
from functools import lru_cache
from importlib.metadata import version
from types import ModuleType
from typing import Any, Final

import anyio

__all__ = [
    "call_settings",
    "connect",
    "default_timeout",
    "http_library",
    "sdk_major",
    "streams",
]

_CONNECT_SECONDS: Final = 30.0
_READ_SECONDS: Final = 300.0
"""The SDK's own defaults for a client that it makes itself: 30 s, and 300 s to read."""


@lru_cache(maxsize=1)
def sdk_major() -> int:
    """The major version of the installed ``mcp`` package."""
    return int(version("mcp").partition(".")[0])


def http_library() -> ModuleType:
    """The HTTP library that the installed SDK uses."""
    return importlib.import_module("httpx2" if sdk_major() > 1 else "httpx")


def default_timeout() -> Any:
    """The SDK's own timeouts, as the library at hand writes them."""
    return http_library().Timeout(_CONNECT_SECONDS, read=_READ_SECONDS)


@asynccontextmanager
async def streams(url: str, client: Any, **settings: Any) -> AsyncGenerator[tuple[Any, Any], None]:
    """Open the SDK's Streamable HTTP transport over ``client``; two streams on both majors."""
    from mcp.client import streamable_http  # noqa: PLC0415 - the SDK is heavy and not always needed

    open_streams: Any = streamable_http.streamable_http_client
    async with open_streams(url, http_client=client, **settings) as opened:
        yield opened[0], opened[1]


async def connect(stack: AsyncExitStack, opening: AbstractAsyncContextManager[Any]) -> Any:
    """Enter the SDK's own client over streams that are yet to be opened, and return it."""
    import mcp  # noqa: PLC0415 - as above

    sdk: Any = mcp
    if sdk_major() > 1:
        return await stack.enter_async_context(sdk.Client(opening))
    read, write = await stack.enter_async_context(opening)
    client = await stack.enter_async_context(_client_session(sdk.ClientSession)(read, write))
    await client.initialize()
    return client


@lru_cache(maxsize=1)
def _client_session(base: Any) -> Any:
    """The client of mcp 1.x, which outlives an answer that nobody takes.

    Where an answer comes in the very turn of the loop in which its caller leaves, the SDK's own
    takes the caller's closed stream for the connection's, and ends for all (B3). A major that calls
    this otherwise is as it was.
    """

    class ClientSession(base):
        async def _handle_response(self, message: Any) -> None:
            above: Any = super()
            with suppress(anyio.ClosedResourceError):
                await above._handle_response(message)  # noqa: SLF001 - its own base's

    return ClientSession


def call_settings(meta: Mapping[str, Any] | None) -> dict[str, Any]:
    """What ``call_tool`` takes beside name and arguments, on both majors."""
    return {} if meta is None else {"meta": dict(meta)}
