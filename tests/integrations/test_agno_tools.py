"""B1. agno's toolkit over a Gateway lives as agno's own: connected, closed, and connected anew.

agno itself is driven in an environment of its own (`make check-clients`); here stand doubles for
what is imported, with the shape and the life that agno gives them.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any, Self

import pytest
from anyio import create_task_group
from anyio.lowlevel import checkpoint

from surefoot import Gateway
from surefoot.integrations import agno_tools

HAPPENED: list[str] = []


class MCPTools:
    """As agno's: it wants to know where the server is, and connects no session that it is given."""

    def __init__(self, *, url: str, transport: str, timeout_seconds: float, **options: Any) -> None:
        self.given = {"url": url, "transport": transport, "seconds": timeout_seconds, **options}
        self.session: Any = None
        self.initialized = False

    async def connect(self, force: bool = False) -> None:
        assert not force
        assert self.session.open
        self.initialized = True
        HAPPENED.append("listed")

    async def close(self) -> None:
        self.initialized = False


class Transport:
    """As FastMCP's."""

    def __init__(self, url: str, *, httpx_client_factory: Any) -> None:
        self.url, self.factory = url, httpx_client_factory


class Client:
    """As FastMCP's: entered to connect, left to close."""

    def __init__(self, transport: Transport, *, timeout: float) -> None:
        self.transport, self.timeout, self.open = transport, timeout, False

    async def __aenter__(self) -> Self:
        if self.transport.url.endswith("/down"):
            raise ConnectionError("nobody is there")
        await checkpoint()  # as a connection takes its time
        self.open = True
        HAPPENED.append("opened")
        return self

    async def __aexit__(self, *exc: object) -> None:
        self.open = False
        HAPPENED.append("closed")


@pytest.fixture(autouse=True)
def packages(monkeypatch: pytest.MonkeyPatch) -> None:
    """Stand in for agno and FastMCP."""
    HAPPENED.clear()
    modules: dict[str, Any] = {
        name: ModuleType(name)
        for name in ("agno.tools.mcp", "fastmcp", "fastmcp.client.transports")
    }
    modules["agno.tools.mcp"].MCPTools = MCPTools
    modules["fastmcp"].Client = Client
    modules["fastmcp.client.transports"].StreamableHttpTransport = Transport
    for name, module in modules.items():
        monkeypatch.setitem(sys.modules, name, module)


async def test_an_agent_connects_it_closes_it_and_connects_it_again() -> None:
    """B1. One client for each life; closing twice is closing once."""
    gateway = Gateway("https://gateway.example.com/mcp")
    tools = agno_tools(gateway, timeout_seconds=3, include_tools=["search"])
    assert MCPTools in type(tools).__mro__
    assert tools.given == {
        "url": gateway.url, "transport": "streamable-http", "seconds": 3,
        "include_tools": ["search"],
    }  # fmt: skip
    await tools.connect()
    first = tools.session
    assert (first.transport.url, first.timeout) == (gateway.url, 3)
    assert first.transport.factory == gateway.http_client_factory
    await tools.connect()
    assert tools.session is first
    await tools.close()
    await tools.close()
    assert (tools.session, tools.initialized, first.open) == (None, False, False)
    async with tools as entered:
        assert entered is tools
        assert tools.session is not first
    assert HAPPENED == ["opened", "listed", "listed", "closed", "opened", "listed", "closed"]


async def test_a_forced_connection_is_a_new_one() -> None:
    """B1. As agno asks for it, where the old one is no longer alive."""
    tools = agno_tools(Gateway("https://gateway.example.com/mcp"))
    await tools.connect()
    first = tools.session
    await tools.connect(force=True)
    assert not first.open
    assert tools.session.open
    await tools.close()


async def test_two_runs_of_an_agent_that_connect_it_at_once_leave_one_client_open() -> None:
    """B1. Which the one closes who closes it; nobody would have closed the other."""
    tools = agno_tools(Gateway("https://gateway.example.com/mcp"))
    async with create_task_group() as runs:
        runs.start_soon(tools.connect)
        runs.start_soon(tools.connect)
    assert tools.session.open
    assert (HAPPENED.count("opened"), HAPPENED.count("closed")) == (2, 1)
    await tools.close()
    assert HAPPENED.count("closed") == 2


async def test_a_server_that_is_not_there_is_an_error_and_leaves_nothing_open() -> None:
    """B1. Connecting may be tried again."""
    tools = agno_tools(Gateway("https://gateway.example.com/down"))
    for _ in range(2):
        with pytest.raises(ConnectionError):
            await tools.connect()
        assert tools.session is None
    assert HAPPENED == []
