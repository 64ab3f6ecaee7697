"""The real MCP client, 2.x, against the AgentCore stand-in, in both eras and framings.

What the bare client makes of each answer is what surefoot is there to mend.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import asynccontextmanager
from typing import Any, Literal

import anyio
import httpx2
import mcp
import pytest
from mcp.client.streamable_http import streamable_http_client

from support.hand_clock import HandClock
from support.sigv4 import sign_request
from surefoot.testing import AgentCoreStandIn, RewritingHop
from surefoot.transports import Clock, SystemClock

pytestmark = [
    pytest.mark.anyio,
    # On trio the SDK leaves the generators of its event streams to the garbage collector.
    pytest.mark.filterwarnings("ignore:Async generator .* was garbage collected:ResourceWarning"),
    pytest.mark.filterwarnings("ignore:.*<async_generator:pytest.PytestUnraisableExceptionWarning"),
]

Mode = Literal["auto", "legacy"]
REAL = SystemClock()


@pytest.fixture(params=["auto", "legacy"])
def mode(request: pytest.FixtureRequest) -> Mode:
    """2026-07-28 by discovery, and 2025-11-25 by handshake."""
    return request.param


@pytest.fixture(params=[False, True], ids=["json", "sse"])
def sse(request: pytest.FixtureRequest) -> bool:
    """Answers as JSON, and as event streams."""
    return bool(request.param)


class Signed(httpx2.Auth):
    """Signs with the keys that the stand-in gave out."""

    requires_request_body = True

    def __init__(self, stand_in: AgentCoreStandIn, clock: Clock) -> None:
        self._stand_in = stand_in
        self._clock = clock

    def auth_flow(self, request: httpx2.Request) -> Generator[httpx2.Request, Any, None]:
        sign_request(request, self._stand_in.keys, at=self._clock.now())
        yield request


@asynccontextmanager
async def connected(
    stand_in: AgentCoreStandIn, url: str, mode: Mode, clock: Clock = REAL
) -> AsyncGenerator[mcp.Client]:
    """The SDK's client over its own transport, signed and bounded."""
    with anyio.fail_after(10):
        async with (
            httpx2.AsyncClient(auth=Signed(stand_in, clock), trust_env=False) as http,
            mcp.Client(streamable_http_client(url, http_client=http), mode=mode) as client,
        ):
            yield client


def text_of(result: mcp.types.CallToolResult) -> str:
    """The only text of a result."""
    (block,) = result.content
    assert isinstance(block, mcp.types.TextContent)
    return block.text


ADDRESSES: list[tuple[str, Callable[[AgentCoreStandIn], str]]] = [
    ("search", lambda stand_in: stand_in.runtime_url),
    ("search", lambda stand_in: stand_in.runtime_id_url),
    ("orders___search", lambda stand_in: stand_in.gateway_url),
]


@pytest.mark.parametrize(("tool", "url"), ADDRESSES, ids=["arn", "id", "gateway"])
async def test_the_client_connects_lists_and_calls_through_a_hop(
    tool: str, url: Callable[[AgentCoreStandIn], str], mode: Mode, sse: bool
) -> None:
    """Every request is signed, and every signature good."""
    sessions = 3600 if sse else None  # one framing with sessions, the other without
    with AgentCoreStandIn(
        sse=sse, stateful=sse, gateway_sessions=sessions, hop=RewritingHop()
    ) as stand_in:
        async with connected(stand_in, url(stand_in), mode) as client:
            assert client.protocol_version == ("2026-07-28" if mode == "auto" else "2025-11-25")
            assert tool in [one.name for one in (await client.list_tools()).tools]
            assert text_of(await client.call_tool(tool, {"q": "x"})) == "found x"
        assert stand_in.executions(tool) == 1
        assert stand_in.signature_faults == ()
        assert len(stand_in.signatures) == len(stand_in.journal)


@pytest.mark.parametrize(
    ("row", "says"),
    [
        ("busy", "Session operation in progress"),
        ("busy-sse", "Session operation in progress"),
        ("busy-409", "Server returned an error response"),
        ("throttle", "Rate limit exceeded - Too many requests"),
        ("gateway-throttle-429", "Rate limit exceeded"),
        ("bad-signature", "Server returned an error response"),
        ("denied", "Insufficient permissions"),
        ("runtime-error", "Tool execution error"),
    ],
)
async def test_a_refusal_reaches_the_bare_client_as_an_error(
    row: str, says: str, mode: Mode
) -> None:
    """Nothing ran; the next call works."""
    with AgentCoreStandIn() as stand_in:
        async with connected(stand_in, stand_in.runtime_url, mode) as client:
            stand_in.script("charge", row)
            with pytest.raises(mcp.MCPError, match=says):
                await client.call_tool("charge", {"amount": 5})
            assert stand_in.executions("charge") == 0
            assert text_of(await client.call_tool("charge", {"amount": 5})) == "charged 5"


async def test_the_bare_client_fails_while_its_session_is_provisioned(mode: Mode) -> None:
    """Connecting has begun the session; the first call comes too early, a later one does not."""
    clock = HandClock()
    with AgentCoreStandIn(provisioning=12, clock=clock) as stand_in:
        async with connected(stand_in, stand_in.runtime_url, mode, clock) as client:
            with pytest.raises(mcp.MCPError, match="Session operation in progress"):
                await client.call_tool("search", {})
            assert stand_in.executions("search") == 0
            clock.move(12)
            assert text_of(await client.call_tool("search", {})) == "found everything"


async def test_a_stopped_stateful_runtime_has_lost_the_bare_clients_session() -> None:
    """404; a stateless one goes on."""
    for stateful in (True, False):
        with AgentCoreStandIn(stateful=stateful) as stand_in:
            async with connected(stand_in, stand_in.runtime_url, "legacy") as client:
                await client.call_tool("search", {})
                stand_in.stop_sessions()
                if stateful:
                    with pytest.raises(mcp.MCPError, match="Session not found"):
                        await client.call_tool("search", {})
                else:
                    assert text_of(await client.call_tool("search", {})) == "found everything"


@pytest.mark.parametrize(
    "name", ["sse-bare-returns", "sse-split-letter", "sse-comments", "sse-primed"]
)
async def test_odd_but_sound_streams_are_answers(name: str, mode: Mode) -> None:
    """Line ends, cuts, comments and priming events that the SDK reads, too."""
    with AgentCoreStandIn() as stand_in:
        async with connected(stand_in, stand_in.runtime_url, mode) as client:
            stand_in.script("search", name)
            assert text_of(await client.call_tool("search", {"q": 1})) == "found 1"
