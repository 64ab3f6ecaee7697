"""R19, B2, invariant 16. What is left of a call that is over, and told of one that was left.

A cycle through a call's record would keep its body, and what was secret, until the collector runs.
"""

from __future__ import annotations

import gc
import weakref
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from support.sending import DONE, REFUSED, URL, ledger_into, message, post
from surefoot.policy import Retry
from surefoot.testing import (
    Fails,
    FakeClock,
    RecordingSink,
    ScriptedTransport,
    mcp_request,
    tool_call,
)
from surefoot.transports import AnsweringTransport, RetryingTransport

pytestmark = pytest.mark.anyio


class Sees:
    """A transport that looks at the record of each request."""

    def __init__(self) -> None:
        self.wire = ScriptedTransport(DONE, repeat=True)
        self.records: list[weakref.ref[object]] = []

    async def handle_async_request(self, request: Any) -> Any:
        """Remember the record weakly, and answer."""
        self.records.append(weakref.ref(request.extensions["surefoot.record"]))
        return await self.wire.handle_async_request(request)

    async def aclose(self) -> None:
        """Nothing is open."""


@pytest.mark.parametrize("patience", [None, 30.0])
async def test_a_call_that_is_over_needs_no_collector(family: Any, patience: float | None) -> None:
    """R19. Its record goes with its answer."""
    sees = Sees()
    layers = RetryingTransport(sees, caller_timeout=patience)
    gc.collect()
    gc.disable()
    try:
        for _ in range(5):
            asked = message()  # (handed over directly: a client of httpx keeps its last request)
            sent = family.Request("POST", URL, content=asked.body, headers=asked.headers)
            await (await layers.handle_async_request(sent)).aread()
            del sent
        sees.wire = ScriptedTransport()  # it keeps the requests that it was sent
        await anyio.lowlevel.checkpoint()
        assert [one() for one in sees.records] == [None] * 5
    finally:
        gc.enable()


@pytest.mark.parametrize(
    ("met", "outcome", "ended"),
    [(Fails("ConnectError"), "not-sent", "not_sent"), (REFUSED, "rate-limited", "refused")],
    ids=["never connected", "refused"],
)
async def test_a_wait_that_a_message_ends_is_told_as_what_it_waited_for(
    family: Any, met: Any, outcome: str, ended: str
) -> None:
    """B2, R27. A call whose connection never opened was not refused, and did not run."""
    sink, clock = RecordingSink(), FakeClock(auto=False)
    wire = ScriptedTransport(met, DONE, proves_not_sent=True)
    layers = RetryingTransport(wire, retry=Retry(base_delay=5), clock=clock)
    told = AnsweringTransport(layers, beside=wire, ledger=ledger_into(sink))
    answers: list[Any] = []

    async def call() -> None:
        answers.append(await post(family, told, tool_call("search", version="2025-11-25")))

    with anyio.fail_after(10):
        async with anyio.create_task_group() as group:
            group.start_soon(call)
            await clock.until_sleeping(1)
            gone = {"requestId": 1, "reason": "left"}
            left = mcp_request("notifications/cancelled", gone, rpc_id=None, version="2025-11-25")
            await post(family, told, left)
    facts = answers[0].json()["result"]["_meta"]["surefoot/outcome"]
    assert facts["kind"] == outcome
    assert facts["may_have_run"] is (outcome == "rate-limited")
    records: Any = sink.of("tool.request_attempts")
    (record,) = (one for one in records if one["method"] == "tools/call")
    assert (record["ended"], record["why"]) == (ended, "cancelled")
    assert len([one for one in wire.requests if b"tools/call" in one.body]) == 1
