"""The law of this file: a test opens a session of whatever kind its environment has, in one way.

mcp 2.x has two kinds, one for each protocol era; mcp 1.x has one. Behind one face stands the SDK's
own client or session and nothing else: what a call is told is what the SDK's caller reads. Waits
are bounded.
"""

from __future__ import annotations

import asyncio
import importlib
from collections.abc import AsyncGenerator, Awaitable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from importlib.metadata import version
from typing import Any, Final, Literal, cast

import anyio
import anyio.lowlevel
import pytest

from surefoot.testing import FaultyGateway

__all__ = [
    "FAMILY",
    "KINDS",
    "MCP_MAJOR",
    "SDK_ON_TRIO",
    "Gate",
    "Kind",
    "Session",
    "Told",
    "nothing_left",
    "opened",
    "sdk_streams",
    "told",
]

MCP_MAJOR: Final = int(version("mcp").partition(".")[0])

Kind = Literal["modern", "handshake", "mcp1"]
"""mcp 2.x under 2026-07-28, mcp 2.x under 2025-11-25, and mcp 1.x, which has only the latter."""

KINDS: Final[tuple[Kind, ...]] = ("modern", "handshake") if MCP_MAJOR > 1 else ("mcp1",)
"""The kinds of session that this environment can open."""

FAMILY: Final[Any] = importlib.import_module("httpx2" if MCP_MAJOR > 1 else "httpx")
"""The HTTP library that the installed SDK uses."""

SDK_ON_TRIO: Final = (
    # On trio the SDK leaves the generators of its event streams to the garbage collector.
    pytest.mark.filterwarnings("ignore:Async generator .* was garbage collected:ResourceWarning"),
    pytest.mark.filterwarnings("ignore:.*<async_generator:pytest.PytestUnraisableExceptionWarning"),
)

_BOUND: Final = 10.0
_SOON: Final = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What the caller of one request reads: a result or a JSON-RPC error."""

    text: str
    is_error: bool = False
    """The result says `isError`."""
    code: int | None = None
    """The code of the JSON-RPC error that came in the place of a result."""
    facts: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """`surefoot/outcome`, from the result's `_meta` or the error's `data`."""
    raw: Any = field(default=None, repr=False)
    """What the SDK gave or raised."""

    @property
    def kind(self) -> str | None:
        """The outcome that surefoot names, or `None` where the answer is somebody else's."""
        return self.facts.get("kind")


class Session:
    """One open session of the SDK."""

    def __init__(self, sdk: Any, kind: Kind, protocol: str) -> None:
        self.sdk = sdk
        self.kind = kind
        self.protocol = protocol
        """The protocol version that was negotiated."""

    async def call(
        self,
        tool: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        patience: float | None = None,
    ) -> Told:
        """Call a tool; `patience` is the SDK's own timeout for the answer, in seconds."""
        limit: Any = patience
        if self.kind == "mcp1" and patience is not None:
            limit = timedelta(seconds=patience)
        return await told(
            self.sdk.call_tool(tool, dict(arguments or {}), read_timeout_seconds=limit)
        )


async def told(asked: Awaitable[Any]) -> Told:
    """Await anything that the SDK gives, and say what its caller reads."""
    try:
        result = await asked
    except Exception as raised:
        if not isinstance(raised, _error_class()):
            raise
        error: Any = raised
        data: object = error.error.data
        members = cast("dict[str, Any]", data) if isinstance(data, dict) else {}
        return Told(
            text=error.error.message,
            code=error.error.code,
            facts=members.get("surefoot/outcome", {}),
            raw=error,
        )
    dumped: dict[str, Any] = result.model_dump(by_alias=True, mode="json")
    texts = [block["text"] for block in dumped.get("content") or () if block["type"] == "text"]
    meta: dict[str, Any] = dumped.get("_meta") or {}
    return Told(
        text="\n".join(texts),
        is_error=bool(dumped.get("isError")),
        facts=meta.get("surefoot/outcome", {}),
        raw=result,
    )


def _error_class() -> type[Any]:
    mcp: Any = importlib.import_module("mcp")
    return mcp.MCPError if MCP_MAJOR > 1 else mcp.McpError


@asynccontextmanager
async def opened(
    streams: AbstractAsyncContextManager[Any],
    kind: Kind,
    *,
    patience: float = 5.0,
    bound: float = _BOUND,
) -> AsyncGenerator[Session]:
    """Open a session over the streams that a transport yields; everything in it is bounded."""
    mcp: Any = importlib.import_module("mcp")
    with anyio.fail_after(bound):
        if kind == "mcp1":
            limit = timedelta(seconds=patience)
            async with streams as pair, mcp.ClientSession(*pair[:2], limit) as sdk:
                hello = await sdk.initialize()
                yield Session(sdk, kind, str(hello.protocolVersion))
        else:
            mode = "auto" if kind == "modern" else "legacy"
            async with mcp.Client(streams, mode=mode, read_timeout_seconds=patience) as sdk:
                yield Session(sdk, kind, sdk.protocol_version)


def sdk_streams(url: str, client: Any) -> AbstractAsyncContextManager[Any]:
    """The SDK's own Streamable HTTP transport over a client."""
    module: Any = importlib.import_module("mcp.client.streamable_http")
    return module.streamable_http_client(url, http_client=client)


class Gate:
    """A tool's body that ends when the test lets it: its call is in flight for certain."""

    def __init__(self) -> None:
        self._held: list[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = []

    async def __call__(self, arguments: Mapping[str, object]) -> str:
        """Wait, in the gateway's own loop."""
        loop, event = asyncio.get_running_loop(), asyncio.Event()
        self._held.append((loop, event))
        await event.wait()
        return f"held {arguments.get('for', 'a while')}"

    def open(self) -> None:
        """Let go of every call that is held."""
        for loop, event in self._held:
            loop.call_soon_threadsafe(event.set)
        self._held.clear()


@asynccontextmanager
async def nothing_left(*gateways: FaultyGateway) -> AsyncGenerator[None]:
    """Hold what happens inside to leaving no task and no connection behind.

    Raises:
        TimeoutError: something was still there a while after the end.
    """
    before = {task.id for task in anyio.get_running_tasks()}
    yield
    for gateway in gateways:
        await gateway.until(lambda one=gateway: one.connections.open == 0, _SOON)
    with anyio.fail_after(_SOON):
        while {task.id for task in anyio.get_running_tasks()} - before:
            await anyio.lowlevel.checkpoint()
