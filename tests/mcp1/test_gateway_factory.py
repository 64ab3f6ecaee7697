"""R105, R111, B1. The older door of mcp 1.x, which frameworks still use: a client factory.

It calls the factory with headers, a timeout and an auth, by name, and closes the client itself.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any, Final

import anyio
import httpx
import mcp
import pytest
from mcp.client import streamable_http

from support.sessions import SDK_ON_TRIO, nothing_left, told
from surefoot import Bearer, Gateway, Retry
from surefoot.testing import FaultyGateway, Reset, Status, Throttle

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.filterwarnings("ignore:.*streamable_?http_?client:DeprecationWarning"),
    *SDK_ON_TRIO,
]

# Deprecated, and what frameworks call.
OLDER: Final[Any] = getattr(streamable_http, "streamablehttp_client")  # noqa: B009
QUICK: Final = Retry(max_attempts=2, base_delay=0.01)


async def test_the_older_transport_takes_the_factory_of_a_gateway() -> None:
    """R105, R111. Its headers and timeouts arrive, the credential is ours, the session lives on."""
    clients: list[httpx.AsyncClient] = []
    with FaultyGateway() as faulty:
        gateway = Gateway(faulty.url, credentials=Bearer("token-of-the-vault"), retry=QUICK)

        def factory(
            headers: dict[str, str] | None = None,
            timeout: httpx.Timeout | None = None,
            auth: httpx.Auth | None = None,
        ) -> httpx.AsyncClient:
            client: httpx.AsyncClient = gateway.http_client_factory(headers, timeout, auth)
            clients.append(client)
            return client

        with anyio.fail_after(10):
            async with (
                nothing_left(faulty),
                OLDER(
                    faulty.url,
                    headers={"x-by": "the framework"},
                    timeout=7,
                    sse_read_timeout=77,
                    httpx_client_factory=factory,
                ) as (read, write, _),
                mcp.ClientSession(read, write, timedelta(seconds=5)) as session,
            ):
                await session.initialize()
                kinds: list[Any] = []
                for step in (Throttle(0), Status(503), Reset("after-run"), Status(401)):
                    faulty.script("charge", step)
                    kinds.append((await told(session.call_tool("charge", {"amount": 1}))).kind)
                assert (await told(session.call_tool("search", {"q": "it"}))).text == "found it"
        assert kinds == [None, "server-failure", "no-answer", "unauthorized"]
        (client,) = clients
        assert (client.timeout.connect, client.timeout.read) == (7, 77)
        assert {entry.header("x-by") for entry in faulty.journal} == {b"the framework"}
        assert {entry.header("authorization") for entry in faulty.journal} == {
            b"Bearer token-of-the-vault"
        }
        assert faulty.executions("charge") == 2
