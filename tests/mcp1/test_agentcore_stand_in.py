"""The real MCP client, 1.x, against the AgentCore stand-in, in both framings."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

import anyio
import httpx
import mcp
import pytest
from mcp.client.streamable_http import streamable_http_client

from support.sigv4 import sign_request
from surefoot.testing import AgentCoreStandIn, RewritingHop

pytestmark = [
    pytest.mark.anyio,
    # On trio the SDK leaves the generators of its event streams to the garbage collector.
    pytest.mark.filterwarnings("ignore:Async generator .* was garbage collected:ResourceWarning"),
    pytest.mark.filterwarnings("ignore:.*<async_generator:pytest.PytestUnraisableExceptionWarning"),
]


class Signed(httpx.Auth):
    """Signs with the keys that the stand-in gave out."""

    requires_request_body = True

    def __init__(self, stand_in: AgentCoreStandIn) -> None:
        self._stand_in = stand_in

    def auth_flow(self, request: httpx.Request) -> Generator[httpx.Request, Any, None]:
        sign_request(request, self._stand_in.keys)
        yield request


@asynccontextmanager
async def connected(stand_in: AgentCoreStandIn, url: str) -> AsyncGenerator[mcp.ClientSession]:
    """The SDK's session over its own transport, signed, initialized and bounded."""
    with anyio.fail_after(10):
        async with (
            httpx.AsyncClient(auth=Signed(stand_in), trust_env=False) as http,
            streamable_http_client(url, http_client=http) as (read, write, _),
            mcp.ClientSession(read, write, timedelta(seconds=5)) as session,
        ):
            await session.initialize()
            yield session


def text_of(result: mcp.types.CallToolResult) -> str:
    """The only text of a result."""
    (block,) = result.content
    assert isinstance(block, mcp.types.TextContent)
    return block.text


@pytest.mark.parametrize("sse", [False, True], ids=["json", "sse"])
async def test_the_client_connects_lists_and_calls_through_a_hop(sse: bool) -> None:
    """At both addresses of the runtime and at the gateway; every signature is good."""
    sessions = 3600 if sse else None  # one framing with sessions, the other without
    with AgentCoreStandIn(
        sse=sse, stateful=sse, gateway_sessions=sessions, hop=RewritingHop()
    ) as stand_in:
        for tool, url in (
            ("search", stand_in.runtime_url),
            ("search", stand_in.runtime_id_url),
            ("orders___search", stand_in.gateway_url),
        ):
            async with connected(stand_in, url) as session:
                assert tool in [one.name for one in (await session.list_tools()).tools]
                assert text_of(await session.call_tool(tool, {"q": "x"})) == "found x"
        assert stand_in.executions("search") == 2
        assert stand_in.executions("orders___search") == 1
        assert stand_in.signature_faults == ()
        assert len(stand_in.signatures) == len(stand_in.journal)


@pytest.mark.parametrize(
    ("row", "says"),
    [
        ("busy", "Session operation in progress"),
        ("busy-sse", "Session operation in progress"),
        ("throttle", "Rate limit exceeded - Too many requests"),
        ("gateway-throttle", "Rate limit exceeded"),
    ],
)
async def test_a_refusal_at_200_reaches_the_bare_client_as_an_error(row: str, says: str) -> None:
    """Nothing ran; the next call works."""
    with AgentCoreStandIn() as stand_in:
        async with connected(stand_in, stand_in.runtime_url) as session:
            stand_in.script("charge", row)
            with pytest.raises(mcp.McpError, match=says):
                await session.call_tool("charge", {"amount": 5})
            assert stand_in.executions("charge") == 0
            assert text_of(await session.call_tool("charge", {"amount": 5})) == "charged 5"


@pytest.mark.parametrize("row", ["busy-409", "bad-signature"])
async def test_a_refusal_with_a_status_kills_the_bare_clients_session(row: str) -> None:
    """Why surefoot answers a 1.x client at 200."""
    with AgentCoreStandIn() as stand_in:
        stand_in.script("charge", row)
        with pytest.raises(BaseExceptionGroup) as caught:
            async with connected(stand_in, stand_in.runtime_url) as session:
                await session.call_tool("charge", {"amount": 5})
        assert caught.group_contains(httpx.HTTPStatusError)
