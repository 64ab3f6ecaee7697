"""D18, D22, B3, B12. An answer over a resumption is held to what holds for one over its own stream.

Its id is that of the call that waits, its bytes and its time are bounded, and until it comes the
fence says of the call what is known: it may have run. A standing stream is bounded by none of that.
"""

from __future__ import annotations

import gc
import json
import weakref
from collections.abc import AsyncIterator
from typing import Any, Final

import pytest

from support.answers_read import (
    SOUND,
    answer_to,
    answering,
    event,
    outcome_of,
    streamed,
    whole,
)
from surefoot.policy import Fence, Replay, ToolRule
from surefoot.testing import FakeClock, Replies, ScriptedTransport, tool_call
from surefoot.transports._fencing import Fencing
from surefoot.wire import JsonLimits

pytestmark = pytest.mark.anyio

OLDER: Final = "2025-11-25"
PRIMED: Final = streamed(b"id: e-1\nretry: 100\n\n")
NOTE: Final = event(b'{"jsonrpc":"2.0","method":"notifications/message","params":{}}', id="n-1")


class Client:
    """One client in a session, over words, reading and a fence."""

    def __init__(self, family: Any, *plays: Any, check: Any = None, **settings: Any) -> None:
        replay = Replay(tools={"pay": ToolRule(makes_changes=True, check_effect=check)})
        self.family = family
        self.wire = ScriptedTransport(*plays)
        self.fence = Fence()
        above = {"replay": replay, "fencing": Fencing(self.fence, replay)}
        self.transport = answering(self.wire, above=above, attempts=1, **settings)

    async def pay(self, rpc_id: Any = 1) -> Any:
        """Make the payment."""
        asked = tool_call("pay", version=OLDER, session="s-1", rpc_id=rpc_id)
        return await whole(self.family, self.transport, asked)

    async def resume(self, event_id: str | None = "e-1") -> Any:
        """Come back with an event id, or open a standing stream."""
        lines = {"mcp-session-id": "s-1", "accept": "text/event-stream"}
        if event_id is not None:
            lines["last-event-id"] = event_id
        return await whole(self.family, self.transport, method="GET", headers=lines.items())


def last_of(answer: Any) -> dict[str, Any]:
    """The message of the last event."""
    return dict(json.loads(answer.text.rsplit("data: ", 1)[1]))


OTHERS: Final[dict[str, Any]] = {
    "another": 2, "a text of its digits": "1", "a word": "of another call",
}  # fmt: skip


async def test_a_call_that_was_resumed_is_kept_by_nobody_once_it_is_over(family: Any) -> None:
    """R19. Nor its arguments, by what counts the resumptions; it is kept while it waits."""
    kept: list[weakref.ref[object]] = []

    def looked_at(request: Any) -> Replies:
        kept.append(weakref.ref(request.extensions["surefoot.record"]))
        return PRIMED if len(kept) == 1 else streamed(event(answer_to()))

    client = Client(family, looked_at, looked_at)
    await client.pay()
    client.wire.requests.clear()  # it keeps what was sent
    gc.collect()
    assert kept[0]() is not None
    assert last_of(await client.resume())["result"] == SOUND
    client.wire.requests.clear()
    gc.collect()
    assert [one() for one in kept] == [None, None]


@pytest.mark.parametrize("rpc_id", OTHERS.values(), ids=OTHERS)
async def test_a_reply_of_another_id_is_no_answer_to_the_call_that_waits(
    family: Any, rpc_id: Any
) -> None:
    """D18, B3. The SDKs write their own id over it; the payment stays one that may have run."""
    client = Client(family, PRIMED, streamed(event(answer_to(rpc_id))), streamed())
    await client.pay()
    closing = await client.resume()
    facts = outcome_of(closing)
    assert (facts["kind"], facts["rule"]) == ("unreadable", "wrong-id")
    assert facts["may_have_run"] is True
    assert (last_of(closing)["id"], last_of(closing)["result"]["isError"]) == (1, True)
    assert outcome_of(await client.pay(2))["kind"] == "fenced"
    assert len(client.wire.requests) == 2


@pytest.mark.parametrize("rpc_id", [1, "1"])
async def test_the_reply_of_its_own_id_is_its_answer_and_settles_it(
    family: Any, rpc_id: Any
) -> None:
    """D18, B3. The control. After it the same payment may be made again, as after any answer."""
    done = streamed(NOTE, event(answer_to(rpc_id)))
    client = Client(family, PRIMED, done, Replies(result=SOUND))
    await client.pay(rpc_id)
    assert last_of(await client.resume())["result"] == SOUND
    assert len(client.fence) == 0
    assert (await client.pay(2)).json()["result"] == SOUND


async def _drops(clock: FakeClock) -> AsyncIterator[bytes]:
    """A comment every ten minutes; whoever reads it for two hours reads it for ever."""
    for _ in range(12):
        yield b": on it\n\n"
        await clock.advance(600)


FLOOD: Final = [b": " + b"x" * 4000 + b"\n\n"] * 5


async def test_the_bytes_of_a_resumption_are_bounded(family: Any) -> None:
    """B12. Comments count, too; on a standing stream they do not (the control)."""
    small = JsonLimits(max_bytes=16_000)
    client = Client(family, PRIMED, streamed(*FLOOD), streamed(*FLOOD), limits=small)
    await client.pay()
    assert outcome_of(await client.resume())["kind"] == "too-large"
    assert b"surefoot" not in (await client.resume(None)).content


async def test_the_time_of_a_resumption_is_bounded(family: Any) -> None:
    """B12. An hour, however lively it is; a standing stream lives on (the control)."""
    clock = FakeClock()
    drip = streamed(by=lambda: _drops(clock))
    client = Client(family, PRIMED, drip, drip, clock=clock)
    await client.pay()
    began = clock.monotonic()
    assert outcome_of(await client.resume())["kind"] == "deadline"
    assert 3600 <= clock.monotonic() - began < 4300
    began = clock.monotonic()
    assert b"surefoot" not in (await client.resume(None)).content
    assert clock.monotonic() - began == 7200


async def test_a_call_whose_client_may_never_come_back_is_one_that_may_have_run(
    family: Any,
) -> None:
    """B3, D29. Nobody is told to wait for its answer, and the app is asked what became of it."""
    asked: list[str] = []

    def check(tool: str, _: Any) -> bool:
        asked.append(tool)
        return False

    unchecked = Client(family, PRIMED)
    await unchecked.pay()
    assert outcome_of(await unchecked.pay(2))["kind"] == "fenced"
    checked = Client(family, PRIMED, Replies(result=SOUND), check=check)
    await checked.pay()
    assert (await checked.pay(2)).json()["result"] == SOUND
    assert asked == ["pay"]
    # The answer that comes after all is the first one's still, and takes nothing from anybody.
    late = Client(family, PRIMED, PRIMED, streamed(event(answer_to())), check=check)
    await late.pay()
    await late.pay(2)
    assert last_of(await late.resume())["result"] == SOUND
    assert len(late.fence) == 1
