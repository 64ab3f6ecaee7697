"""R22, B3, B13. A call that is resumed is one call, in one run, and none is kept for nobody.

Its client comes back in a request of its own, which on mcp 1.x is sent from outside of the run.
"""

from __future__ import annotations

import gc
import weakref
from hashlib import sha256
from typing import Any, Final

import anyio
import pytest

from support.answers_read import SOUND, answer_to, answering, event, outcome_of, streamed, whole
from surefoot.evidence import bind
from surefoot.policy import Fence, Replay, ToolRule
from surefoot.sinks import record
from surefoot.testing import FakeClock, RecordingSink, Replies, ScriptedTransport, tool_call
from surefoot.transports._fencing import Fencing

pytestmark = pytest.mark.anyio

PRIMED: Final = streamed(b"id: e-1\nretry: 100\n\n")


class Client:
    """One client in a session, over words, reading and a fence."""

    def __init__(self, family: Any, *plays: Any) -> None:
        replay = Replay(tools={"pay": ToolRule(makes_changes=True)})
        self.family = family
        self.wire = ScriptedTransport(*plays)
        self.fencing = Fencing(Fence(), replay)
        above = {"replay": replay, "fencing": self.fencing, "clock": FakeClock()}
        self.transport = answering(self.wire, above=above, attempts=1)

    async def pay(self, rpc_id: int = 1) -> Any:
        """Make the payment."""
        asked = tool_call("pay", version="2025-11-25", session="s-1", rpc_id=rpc_id)
        return await whole(self.family, self.transport, asked)

    async def resume(self, event_id: str = "e-1") -> Any:
        """Come back with an event id."""
        lines = {"mcp-session-id": "s-1", "last-event-id": event_id}
        return await whole(self.family, self.transport, method="GET", headers=lines.items())


async def test_a_resumption_from_outside_of_the_run_is_filed_in_the_run_of_its_call(
    family: Any,
) -> None:
    """R22, D33. Its attempts, and the digest of what answered the call."""
    sink = RecordingSink()
    client = Client(family, PRIMED, streamed(event(answer_to())))
    with record(sink):
        await client.pay()
        with bind(None):
            answer = await client.resume()
    (ended,) = sink.of("call.ended")
    told: Any = ended["answer"]
    assert told["sha256"] == sha256(answer.content).hexdigest()
    assert [one["method"] for one in sink.of("tool.request_attempts")] == ["GET", "tools/call"]
    (run_ended,) = sink.of("run.ended")
    assert run_ended["dropped"] == 0


async def test_a_resumption_after_the_run_of_its_call_is_not_lost_with_it(family: Any) -> None:
    """R22. The run is closed: what comes later is in the run that is open then."""
    first, second = RecordingSink(), RecordingSink()
    client = Client(family, PRIMED, streamed(event(answer_to())))
    with record(first):
        await client.pay()
    with record(second):
        await client.resume()
    assert [one["method"] for one in second.of("tool.request_attempts")] == ["GET"]


async def test_a_caller_who_leaves_while_the_call_is_resumed_is_the_end_of_the_call(
    family: Any,
) -> None:
    """B3, B13, R19. It may have run, the record says so in its run, and nobody keeps it."""
    asked = anyio.Event()
    kept: list[weakref.ref[Any]] = []

    def looked_at(request: Any) -> Replies:
        kept.append(weakref.ref(request.extensions["surefoot.record"]))
        return PRIMED

    async def held(_: Any) -> Replies:
        asked.set()
        await anyio.sleep_forever()
        raise AssertionError

    sink = RecordingSink()
    client = Client(family, looked_at, held, Replies(result=SOUND))
    with record(sink):
        await client.pay()
        async with anyio.create_task_group() as group:
            group.start_soon(client.resume)
            with anyio.fail_after(5):
                await asked.wait()
            group.cancel_scope.cancel()
        (ended,) = sink.of("call.ended")
        assert (ended["is_error"], ended["effect"]) == (None, "unknown")
        call = sink.of("tool.request_attempts")[0]
        assert (call["ended"], call["why"], call["may_have_run"]) == ("cut", "cancelled", True)
    client.wire.requests.clear()
    gc.collect()
    assert [one() for one in kept] == [None]
    assert outcome_of(await client.pay(2))["kind"] == "fenced"
