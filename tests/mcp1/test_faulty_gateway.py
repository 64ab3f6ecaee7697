"""The real MCP client, 1.x, against the double, in both framings."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import timedelta

import anyio
import httpx
import mcp
import pytest
from mcp.client.streamable_http import streamable_http_client

from surefoot.testing import (
    FaultyGateway,
    IsError,
    Reset,
    RpcError,
    Slow,
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


@pytest.fixture(params=[False, True], ids=["json", "sse"])
def sse(request: pytest.FixtureRequest) -> bool:
    """Answers as JSON, and as event streams."""
    return bool(request.param)


@asynccontextmanager
async def connected(gateway: FaultyGateway) -> AsyncGenerator[mcp.ClientSession]:
    """The SDK's session over its own transport, initialized and bounded."""
    with anyio.fail_after(10):
        async with (
            httpx.AsyncClient(trust_env=False) as http,
            streamable_http_client(gateway.url, http_client=http) as (read, write, _),
            mcp.ClientSession(read, write, timedelta(seconds=5)) as session,
        ):
            await session.initialize()
            yield session


def _text(result: mcp.types.CallToolResult) -> str:
    (block,) = result.content
    assert isinstance(block, mcp.types.TextContent)
    return block.text


@pytest.mark.parametrize("eras", [("2025-11-25",), ("2026-07-28", "2025-11-25")], ids=len)
async def test_the_client_connects_and_finds_everything_sound(
    sse: bool, eras: tuple[str, ...]
) -> None:
    """Whether or not the gateway speaks the modern era too."""
    schema = {"type": "object", "properties": {"sum": {"type": "integer"}}, "required": ["sum"]}
    adds = Tool("adds", answer={"sum": 3}, output_schema=schema)
    with FaultyGateway([adds], sse=sse, eras=eras) as gateway:
        async with connected(gateway) as session:
            tools = (await session.list_tools()).tools
            assert [tool.name for tool in tools] == ["search", "refund", "charge", "slow", "adds"]
            assert _text(await session.call_tool("search", {"q": "x"})) == "found x"
            assert (await session.call_tool("adds", {})).structuredContent == {"sum": 3}
            assert len((await session.list_prompts()).prompts) == 1
            await session.get_prompt("greeting")
            assert len((await session.list_resources()).resources) == 1
            await session.send_ping()
        methods = [entry.method or entry.http_method for entry in gateway.journal]
        assert methods[0] == "initialize"
        assert {"notifications/initialized", "GET", "DELETE"} < set(methods)
        assert gateway.executions("search") == 1


async def test_a_fault_kills_the_bare_session_as_it_was_measured() -> None:
    """Any status that is not 2xx, and a reset before the answer."""
    for step in (Throttle(1), Throttle(1, rpc_code=-32029), Status(401), Status(503), Reset()):
        with FaultyGateway() as gateway:
            gateway.script("charge", step)
            with pytest.raises(BaseExceptionGroup) as caught:
                async with connected(gateway) as session:
                    await session.call_tool("charge", {})
            assert caught.group_contains((httpx.HTTPStatusError, httpx.ReadError))
            assert gateway.executions("charge") == 0


async def test_a_reset_after_the_tool_ran_kills_the_session_and_is_counted() -> None:
    """The count alone tells that it ran."""
    with FaultyGateway() as gateway:
        gateway.script("charge", Reset("after-run"))
        with pytest.raises(BaseExceptionGroup) as caught:
            async with connected(gateway) as session:
                await session.call_tool("charge", {})
        assert caught.group_contains(httpx.ReadError)
        assert gateway.executions("charge") == 1


@pytest.mark.parametrize("step", [Reset("in-body"), SseCut()], ids=repr)
async def test_a_cut_answer_leaves_the_bare_session_waiting(step: Reset | SseCut) -> None:
    """Nothing arrives until the caller's own timeout; the session lives."""
    with FaultyGateway() as gateway:
        async with connected(gateway) as session:
            gateway.script("charge", step)
            with pytest.raises(mcp.McpError, match="Timed out"):
                await session.call_tool("charge", {}, read_timeout_seconds=timedelta(seconds=0.2))
            assert _text(await session.call_tool("charge", {"amount": 1})) == "charged 1"
        assert gateway.executions("charge") == 2


async def test_errors_that_are_answers_leave_the_session_alone(sse: bool) -> None:
    """A JSON-RPC error at 200, the tool's own error, and a long stream."""
    with FaultyGateway(sse=sse) as gateway:
        async with connected(gateway) as session:
            gateway.script("charge", RpcError(-32603, "broken inside"), IsError("declined"), Sse(3))
            with pytest.raises(mcp.McpError, match="broken inside"):
                await session.call_tool("charge", {})
            declined = await session.call_tool("charge", {})
            assert declined.isError
            assert _text(await session.call_tool("charge", {"amount": 1})) == "charged 1"


async def test_a_stream_that_was_cut_is_resumed_and_ran_once() -> None:
    """The SDK comes back with the event id, and is given the answer of the first run."""
    with FaultyGateway() as gateway:
        async with connected(gateway) as session:
            gateway.script("charge", SseCut(1, after_event_id="e-1", retry=1))
            assert _text(await session.call_tool("charge", {"amount": 2})) == "charged 2"
        assert gateway.executions("charge") == 1


async def test_a_caller_that_gives_up_is_not_seen() -> None:
    """On timeout 1.x says nothing, so that a later execution cannot be stopped by anybody."""
    with FaultyGateway() as gateway:
        async with connected(gateway) as session:
            gateway.script("charge", Slow(0.3))
            with pytest.raises(mcp.McpError, match="Timed out"):
                await session.call_tool("charge", {}, read_timeout_seconds=timedelta(seconds=0.1))
            await gateway.until(lambda: gateway.requests("charge")[0].status == 200)
            assert _text(await session.call_tool("search", {"q": 1})) == "found 1"
        assert gateway.executions("charge") == 1
        assert gateway.requests("notifications/cancelled") == ()
        assert not gateway.requests("charge")[0].cancelled
