"""The real MCP client, 2.x, against the double, in both eras and framings."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Literal

import anyio
import httpx2
import mcp
import pytest
from mcp.client.auth.extensions.client_credentials import ClientCredentialsOAuthProvider
from mcp.client.streamable_http import streamable_http_client

from support.oauth_above import Remembered
from surefoot.testing import (
    ExpiringTokens,
    FaultyGateway,
    IsError,
    Reset,
    RpcError,
    Sse,
    SseCut,
    Status,
    Throttle,
    Tool,
)

pytestmark = [
    pytest.mark.anyio,
    # On trio the SDK leaves the generators of its event streams to the garbage collector.
    pytest.mark.filterwarnings("ignore:Async generator .* was garbage collected:ResourceWarning"),
    pytest.mark.filterwarnings("ignore:.*<async_generator:pytest.PytestUnraisableExceptionWarning"),
]

Mode = Literal["auto", "legacy"]


@pytest.fixture(params=["auto", "legacy"])
def mode(request: pytest.FixtureRequest) -> Mode:
    """2026-07-28 by discovery, and 2025-11-25 by handshake."""
    return request.param


@pytest.fixture(params=[False, True], ids=["json", "sse"])
def sse(request: pytest.FixtureRequest) -> bool:
    """Answers as JSON, and as event streams."""
    return bool(request.param)


@asynccontextmanager
async def connected(
    gateway: FaultyGateway, mode: Mode, auth: httpx2.Auth | None = None
) -> AsyncGenerator[mcp.Client]:
    """The SDK's client over its own transport, bounded."""
    with anyio.fail_after(10):
        async with (
            httpx2.AsyncClient(auth=auth, trust_env=False) as http,
            mcp.Client(streamable_http_client(gateway.url, http_client=http), mode=mode) as client,
        ):
            yield client


def _text(result: mcp.types.CallToolResult) -> str:
    (block,) = result.content
    assert isinstance(block, mcp.types.TextContent)
    return block.text


async def test_the_client_connects_and_finds_everything_sound(mode: Mode, sse: bool) -> None:
    """The version is that of the era, and every method validates."""
    schema = {"type": "object", "properties": {"sum": {"type": "integer"}}, "required": ["sum"]}
    adds = Tool("adds", answer={"sum": 3}, output_schema=schema)
    with FaultyGateway([adds], sse=sse) as gateway:
        async with connected(gateway, mode) as client:
            assert client.protocol_version == ("2026-07-28" if mode == "auto" else "2025-11-25")
            tools = (await client.list_tools()).tools
            assert [tool.name for tool in tools] == ["search", "refund", "charge", "slow", "adds"]
            assert tools[1].annotations is not None
            assert tools[1].annotations.destructive_hint
            assert _text(await client.call_tool("search", {"q": "x"})) == "found x"
            added = await client.call_tool("adds", {})
            assert added.structured_content == {"sum": 3}
            assert len((await client.list_prompts()).prompts) == 1
            await client.get_prompt("greeting")
            assert len((await client.list_resources()).resources) == 1
            await client.read_resource("note://one")
        methods = [entry.method or entry.http_method for entry in gateway.journal]
        opened = ["server/discover"] if mode == "auto" else ["initialize"]
        assert methods[:1] == opened
        assert ("DELETE" in methods) == (mode == "legacy")
        assert gateway.executions("search") == 1


async def test_a_gateway_of_the_older_era_alone_is_fallen_back_to() -> None:
    """The control of every test about downgrades."""
    with FaultyGateway(eras=("2025-11-25",)) as gateway:
        async with connected(gateway, "auto") as client:
            assert client.protocol_version == "2025-11-25"
            assert _text(await client.call_tool("search", {})) == "found everything"


async def test_a_gateway_of_the_modern_era_alone_does_not_take_the_handshake() -> None:
    """-32022 is the one answer that ends connecting."""
    with FaultyGateway(eras=("2026-07-28",)) as gateway:
        async with connected(gateway, "auto") as client:
            assert client.protocol_version == "2026-07-28"
        with pytest.raises(Exception, match=r".*") as caught:
            async with connected(gateway, "legacy"):
                pass
    assert "Unsupported protocol version" in repr(caught.value)


async def test_one_throttled_probe_downgrades_the_bare_client() -> None:
    """What surefoot is for; here it is shown that the double can bring it about."""
    with FaultyGateway() as gateway:
        gateway.script("server/discover", Throttle(1))
        async with connected(gateway, "auto") as client:
            assert client.protocol_version == "2025-11-25"


@pytest.mark.parametrize(
    ("step", "says"),
    [
        (Throttle(1), "Server returned an error response"),
        (Throttle(1, rpc_code=-32029, body="Slow down"), "Slow down"),
        (Status(401), "Server returned an error response"),
        (Status(503), "Server returned an error response"),
        (RpcError(-32603, "broken inside"), "broken inside"),
        (SseCut(), "SSE stream ended"),
    ],
    ids=repr,
)
async def test_a_fault_reaches_the_bare_client_as_it_was_measured(
    step: Throttle, says: str, mode: Mode, sse: bool
) -> None:
    """The session lives on after these; the next call works."""
    with FaultyGateway(sse=sse) as gateway:
        async with connected(gateway, mode) as client:
            gateway.script("charge", step)
            with pytest.raises(mcp.MCPError, match=says):
                await client.call_tool("charge", {"amount": 5})
            assert _text(await client.call_tool("charge", {"amount": 5})) == "charged 5"


@pytest.mark.parametrize("when", ["before-headers", "in-body", "after-run"])
async def test_a_reset_kills_the_bare_clients_session(
    when: Literal["before-headers", "in-body", "after-run"], mode: Mode
) -> None:
    """And every call in flight on it; the count alone tells whether the tool ran."""
    with FaultyGateway() as gateway:
        gateway.script("charge", Reset(when))
        with pytest.raises(BaseExceptionGroup) as caught:
            async with connected(gateway, mode) as client:
                await client.call_tool("charge", {})
        assert caught.group_contains(httpx2.ReadError)
        assert gateway.executions("charge") == (0 if when == "before-headers" else 1)


async def test_a_tools_error_is_a_result_and_a_long_stream_is_an_answer(mode: Mode) -> None:
    """What is content stays content."""
    with FaultyGateway() as gateway:
        async with connected(gateway, mode) as client:
            gateway.script("charge", IsError("declined"), Sse(3, ids=True, primed=True))
            declined = await client.call_tool("charge", {})
            assert declined.is_error
            assert _text(declined) == "declined"
            assert _text(await client.call_tool("charge", {"amount": 1})) == "charged 1"


async def test_a_stream_that_was_cut_is_resumed_and_ran_once() -> None:
    """The SDK comes back with the event id, and is given the answer of the first run."""
    with FaultyGateway() as gateway:
        async with connected(gateway, "legacy") as client:
            gateway.script("charge", SseCut(1, after_event_id="e-1", retry=1))
            assert _text(await client.call_tool("charge", {"amount": 2})) == "charged 2"
        assert gateway.executions("charge") == 1
        resumed = [entry.header("last-event-id") for entry in gateway.requests("GET")]
        assert b"e-1" in resumed


async def test_a_caller_that_gives_up_is_seen_in_either_era(mode: Mode) -> None:
    """By hanging up under 2026-07-28, by notification under 2025-11-25."""
    with FaultyGateway() as gateway:
        async with connected(gateway, mode) as client:
            with anyio.move_on_after(0.1):
                await client.call_tool("slow", {"seconds": 30})
            await gateway.until(lambda: gateway.requests("slow")[0].cancelled)
            await gateway.until(lambda: not gateway.requests("slow")[0].in_flight)
            assert _text(await client.call_tool("search", {"q": 1})) == "found 1"
        notified = gateway.requests("notifications/cancelled")
        assert len(notified) == (0 if mode == "auto" else 1)
        assert gateway.requests("slow")[0].status == (None if mode == "auto" else 200)


async def test_a_lost_session_is_told_as_such() -> None:
    """The SDK knows the 404 of a session that is gone."""
    with FaultyGateway() as gateway:
        async with connected(gateway, "legacy") as client:
            await client.call_tool("search", {})
            gateway.forget_sessions()
            with pytest.raises(mcp.MCPError, match="Session not found"):
                await client.call_tool("search", {})


async def test_the_sdks_client_credentials_flow_gets_its_token_here() -> None:
    """Metadata, token and calls, at one origin; a revoked token is fetched anew."""
    with FaultyGateway(tokens=ExpiringTokens(60, endpoint="/token")) as gateway:
        auth = ClientCredentialsOAuthProvider(
            gateway.url, Remembered(), "id", "canary-secret", issuer=gateway.origin
        )
        async with connected(gateway, "auto", auth) as client:
            assert _text(await client.call_tool("search", {"q": 1})) == "found 1"
            gateway.tokens.revoke_all()
            assert _text(await client.call_tool("search", {"q": 2})) == "found 2"
        assert gateway.tokens.count == 2
        assert gateway.executions("search") == 2
        paths = {entry.path for entry in gateway.journal}
        assert {"/token", "/mcp"} < paths
