"""What docs/comparison.md says of other ways to repeat is what they do, in one run with ours.

R18, R31, R37, B3: each row sends the same POST to the same difficult gateway.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from typing import Any

import httpx
import httpx2
import pytest
import tenacity
from httpx_retries import Retry as TheirRetry
from httpx_retries import RetryTransport

from surefoot import Gateway, Replay, Retry, ToolRule
from surefoot.testing import FaultyGateway, Reset, Status, Throttle, tool_call

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.parametrize("anyio_backend", ["asyncio"]),
]

Post = Callable[[str, str], Awaitable[Any]]

THREE = TheirRetry(total=2, allowed_methods=["POST"], status_forcelist=[429], backoff_factor=0.01)


async def post(client: Any, url: str, tool: str) -> Any:
    """Call a tool by one POST."""
    asked = tool_call(tool, {"order": "W-7712"})
    return await client.post(url, content=asked.body, headers=dict(asked.headers))


async def bare(url: str, tool: str) -> Any:
    async with httpx.AsyncClient() as client:
        return await post(client, url, tool)


async def with_httpx_retries(url: str, tool: str) -> Any:
    async with httpx.AsyncClient(transport=RetryTransport(retry=THREE)) as client:
        return await post(client, url, tool)


async def with_tenacity(url: str, tool: str) -> Any:
    again = tenacity.AsyncRetrying(
        stop=tenacity.stop_after_attempt(3), wait=tenacity.wait_fixed(0.01), reraise=True
    )
    return await again(bare, url, tool)


async def with_surefoot(url: str, tool: str) -> Any:
    gateway = Gateway(url, replay=Replay(tools={"refund": ToolRule(makes_changes=True)}))
    async with gateway.protect(httpx.AsyncClient()) as client:
        return await post(client, url, tool)


@pytest.mark.parametrize(
    ("client", "refunds"),
    [(with_httpx_retries, 3), (with_tenacity, 3), (with_surefoot, 1)],
    ids=lambda value: getattr(value, "__name__", value),
)
async def test_a_refund_whose_answer_is_lost(client: Post, refunds: int) -> None:
    with FaultyGateway() as gateway:
        gateway.script("refund", *[Reset(when="after-run")] * 3)
        try:
            answer = await client(gateway.url, "refund")
        except httpx.HTTPError:
            answer = None
        assert gateway.executions("refund") == refunds
    told = "" if answer is None else answer.json()["result"]["content"][0]["text"]
    assert ("may have run" in told) == (client is with_surefoot)


async def test_a_stated_wait_that_does_not_fit() -> None:
    """R37. It is cut and sent too early there; here the refusal is delivered at once."""
    short = TheirRetry(
        total=2, allowed_methods=["POST"], status_forcelist=[429], max_backoff_wait=0.1
    )
    with FaultyGateway() as gateway:
        gateway.script("search", Throttle(retry_after=5))
        async with httpx.AsyncClient(transport=RetryTransport(retry=short)) as client:
            started = time.monotonic()
            answer = await post(client, gateway.url, "search")
            assert time.monotonic() - started < 4
        assert answer.status_code == 200
        assert len(gateway.requests("search")) == 2
    with FaultyGateway() as gateway:
        gateway.script("search", Throttle(retry_after=5))
        ours = Gateway(gateway.url, retry=Retry(max_wait=0.1))
        async with ours.protect(httpx.AsyncClient()) as client:
            answer = await post(client, gateway.url, "search")
        assert "5 s" in answer.json()["result"]["content"][0]["text"]
        assert len(gateway.requests("search")) == 1


async def test_two_layers_of_three_attempts() -> None:
    """R31. They multiply there; here they are one."""
    with FaultyGateway() as gateway:
        gateway.script("search", Throttle(retry_after=0), repeat=True)
        inner = RetryTransport(retry=THREE)
        async with httpx.AsyncClient(
            transport=RetryTransport(transport=inner, retry=THREE)
        ) as client:
            await post(client, gateway.url, "search")
        assert len(gateway.requests("search")) == 9
    with FaultyGateway() as gateway:
        gateway.script("search", Throttle(retry_after=0), repeat=True)
        ours = Gateway(gateway.url, retry=Retry(base_delay=0.01))
        async with ours.protect(ours.protect(httpx.AsyncClient())) as client:
            await post(client, gateway.url, "search")
        assert len(gateway.requests("search")) == 3


async def test_the_http_family_of_mcp_2() -> None:
    with FaultyGateway() as gateway:
        theirs: Any = RetryTransport(retry=THREE)
        async with httpx2.AsyncClient(transport=theirs) as client:
            with pytest.raises(AssertionError):
                await post(client, gateway.url, "search")
        async with Gateway(gateway.url).protect(httpx2.AsyncClient()) as client:
            assert (await post(client, gateway.url, "search")).status_code == 200


@pytest.mark.parametrize(
    ("client", "leaks"),
    [(with_httpx_retries, True), (with_tenacity, True), (with_surefoot, False)],
    ids=lambda value: getattr(value, "__name__", value),
)
async def test_what_a_failure_says_to_whoever_reads_it(client: Post, *, leaks: bool) -> None:
    with FaultyGateway() as gateway:
        gateway.script("search", Status(500, "<html>secret of the server</html>"))
        answer = await client(gateway.url, "search")
    assert ("secret of the server" in answer.text) == leaks
