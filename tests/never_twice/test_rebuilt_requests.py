"""B3, R20, R30. A wrapper that builds the request anew between two stacks makes no second call.

The mark that keeps the inner stack aside hangs on the request, and such a wrapper loses it: a
payment then met itself in the fence, and was never sent.
"""

from __future__ import annotations

from typing import Any, Final

import anyio
import pytest

from support.exchanges import FAMILIES, client_of, outcome_in
from surefoot import Gateway, Replay, Retry, ToolRule
from surefoot.testing import Fails, RecordingSink, Replies, ScriptedTransport, tool_call

pytestmark = [pytest.mark.both_majors, pytest.mark.anyio]

URL: Final = "http://127.0.0.1:1/mcp"
PAYS: Final = Replay(tools={"pay": ToolRule(makes_changes=True)})
PAID: Final = Replies(result={"content": [], "isError": False})
REFUSED: Final = Replies(429, headers={"retry-after": "0"})


class Rebuilds:
    """Somebody's transport, which hands on another request of the same content."""

    def __init__(self, inner: Any, also: dict[str, Any] | None = None) -> None:
        self.inner = inner
        self.also = also

    async def handle_async_request(self, request: Any) -> Any:
        """Send what was asked, and before it whatever else."""
        kind: Any = request.__class__
        if self.also is not None:
            asked = tool_call("pay", self.also)
            await self.inner.handle_async_request(
                kind("POST", URL, headers=asked.headers, content=asked.body)
            )
        return await self.inner.handle_async_request(
            kind(request.method, request.url, headers=request.headers, content=request.read())
        )

    async def aclose(self) -> None:
        """Close."""
        await self.inner.aclose()


def wrapped_twice(gateway: Gateway, family: str, wire: Any, **options: Any) -> Any:
    """A client with a stack of the Gateway on either side of such a wrapper."""
    client: Any = gateway.protect(client_of(family, transport=wire))
    client._transport = Rebuilds(client._transport, **options)  # as people do it
    return gateway.protect(client)


async def pay(client: Any, **arguments: Any) -> dict[str, Any]:
    """What surefoot says of one payment; empty where the answer is the server's own."""
    asked = tool_call("pay", arguments)
    answer = await client.post(URL, content=asked.body, headers=dict(asked.headers))
    return dict(outcome_in(answer.json()))


@pytest.mark.parametrize("family", FAMILIES)
async def test_a_payment_in_a_request_that_was_built_anew_is_made_once(family: str) -> None:
    """B3. It is sent, and after a lost answer it is not made again; one record tells of each."""
    sink = RecordingSink()
    wire = ScriptedTransport(PAID, Fails("ReadError"), PAID)
    client = wrapped_twice(Gateway(URL, replay=PAYS, evidence=sink), family, wire)
    assert await pay(client) == {}
    lost = await pay(client)
    assert (lost["kind"], lost["attempts"]) == ("no-answer", 1)
    assert (await pay(client))["earlier_call_id"] == lost["call_id"]
    assert len(wire.requests) == 2
    assert len(sink.of("tool.request_attempts")) == 3


@pytest.mark.parametrize("family", FAMILIES)
async def test_a_series_is_one_series_across_it(family: str) -> None:
    """R20. Attempts do not multiply."""
    wire = ScriptedTransport(*[REFUSED] * 9)
    gateway = Gateway(URL, retry=Retry(max_attempts=3, base_delay=0.001))
    told = await pay(wrapped_twice(gateway, family, wire))
    assert (told["kind"], told["attempts"]) == ("rate-limited", 3)
    assert len(wire.requests) == 3


@pytest.mark.parametrize("family", FAMILIES)
async def test_another_call_that_a_wrapper_makes_is_a_call_of_its_own(family: str) -> None:
    """B3. The control: it has its own place in the fence, and stands in it while it is open."""
    wire = ScriptedTransport(Fails("ReadError"), PAID, PAID)
    client = wrapped_twice(Gateway(URL, replay=PAYS), family, wire, also={"amount": 2})
    assert await pay(client, amount=1) == {}
    assert len(wire.requests) == 2
    assert await pay(client, amount=1) == {}  # the other one is fenced, and this one sent
    assert len(wire.requests) == 3


@pytest.mark.parametrize("family", FAMILIES)
async def test_two_callers_of_one_moment_are_two(family: str) -> None:
    """B3. A task that is started within a call, and outlives it, makes calls of its own."""
    gateway = Gateway(URL, replay=PAYS)
    client = gateway.protect(client_of(family, transport=ScriptedTransport(PAID, PAID, PAID)))
    told: list[dict[str, Any]] = []

    async def later(over: anyio.Event) -> None:
        await over.wait()
        told.append(await pay(client))

    class Starts:
        async def handle_async_request(self, request: Any) -> Any:
            group.start_soon(later, over)
            return await ScriptedTransport(Fails("ReadError")).handle_async_request(request)

        async def aclose(self) -> None:
            return None

    over = anyio.Event()
    lost: dict[str, Any] = {}
    async with anyio.create_task_group() as group:
        lost |= await pay(gateway.protect(client_of(family, transport=Starts())))
        over.set()
    assert lost["kind"] == "no-answer"
    assert [one["earlier_call_id"] for one in told] == [lost["call_id"]]
