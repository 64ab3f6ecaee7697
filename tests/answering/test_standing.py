"""D37. A standing stream is opened at most four times a second for each session, and no later.

A server that answers ``retry: 0`` and closes would otherwise be asked a thousand times in a moment.
The conformance suite allows a pause of half a second to be late by a fifth of one.
"""

from __future__ import annotations

from typing import Any

import anyio
import pytest

from support.answers_read import answering, streamed, whole
from surefoot.testing import FakeClock, Replies, ScriptedTransport, tool_call

pytestmark = pytest.mark.anyio

PRIMED = streamed(b"id: e-1\nretry: 0\n\n")


def paced(*plays: Any) -> tuple[FakeClock, ScriptedTransport, Any]:
    clock = FakeClock()
    wire = ScriptedTransport(*plays, repeat=True)
    return clock, wire, answering(wire, above={"clock": clock})


async def opened_again(
    family: Any, transport: Any, session: str | None = "s-1", event_id: str | None = None
) -> Any:
    lines = [] if session is None else [("mcp-session-id", session)]
    lines += [] if event_id is None else [("last-event-id", event_id)]
    return await whole(family, transport, method="GET", headers=lines)


async def test_a_storm_is_four_a_second(family: Any) -> None:
    """D37, C45 of the bug reports. The first goes at once."""
    clock, wire, transport = paced(Replies(200, headers={"content-type": "text/event-stream"}))
    began = clock.monotonic()
    await opened_again(family, transport)
    assert clock.monotonic() == began
    for _ in range(40):
        await opened_again(family, transport)
    assert clock.monotonic() - began == pytest.approx(10)
    assert len(wire.requests) == 41


async def test_who_waited_long_enough_waits_no_more(family: Any) -> None:
    """D37. A pause that the server asked for is not made longer."""
    clock, _, transport = paced(Replies(405))
    await opened_again(family, transport)
    await clock.sleep(0.5)
    before = clock.monotonic()
    await opened_again(family, transport)
    assert clock.monotonic() == before


async def test_sessions_do_not_wait_for_one_another(family: Any) -> None:
    """D37. Nor do calls for a stream."""
    clock, _, transport = paced(Replies(405))
    before = clock.monotonic()
    for session in ("s-1", "s-2", "s-3", None):
        await opened_again(family, transport, session)
    for _ in range(5):
        await whole(family, transport, tool_call("search", session="s-1"))
    assert clock.monotonic() == before


async def test_who_waits_together_goes_one_after_the_other(family: Any) -> None:
    """D37. Four a second are four, however many ask at once."""
    clock = FakeClock(auto=False)
    wire = ScriptedTransport(Replies(405), repeat=True)
    transport = answering(wire, above={"clock": clock})
    async with anyio.create_task_group() as group:
        for _ in range(5):
            group.start_soon(opened_again, family, transport)
        await clock.until_sleeping(4)
        assert len(wire.requests) == 1
        for sent in range(2, 6):
            await clock.advance(0.25)
            assert len(wire.requests) == sent


async def test_the_resumptions_of_a_call_are_counted_by_themselves(family: Any) -> None:
    """D37. A call that comes back for its answer waits for no standing stream, no other call."""
    clock, _, transport = paced(PRIMED)
    await opened_again(family, transport)
    call = tool_call("search", version="2025-11-25", session="s-1")
    await whole(family, transport, call)
    before = clock.monotonic()
    await opened_again(family, transport, event_id="e-1")
    assert clock.monotonic() == before
    await opened_again(family, transport, event_id="e-1")
    assert clock.monotonic() - before == pytest.approx(0.25)


async def test_a_caller_that_leaves_in_its_pause_opens_nothing(family: Any) -> None:
    """B2. A cancelled wait sends nothing later."""
    clock = FakeClock(auto=False)
    wire = ScriptedTransport(Replies(405), repeat=True)
    transport = answering(wire, above={"clock": clock})
    await opened_again(family, transport)
    async with anyio.create_task_group() as group:
        group.start_soon(opened_again, family, transport)
        await clock.until_sleeping(1)
        group.cancel_scope.cancel()
    await clock.advance(10)
    assert len(wire.requests) == 1


async def test_nobody_waits_for_the_turns_of_those_who_left(family: Any) -> None:
    """D37. However often a client begins to wait and leaves, its next stream waits once."""
    clock = FakeClock(auto=False)
    wire = ScriptedTransport(Replies(405), repeat=True)
    transport = answering(wire, above={"clock": clock})
    await opened_again(family, transport)
    for _ in range(20):
        async with anyio.create_task_group() as group:
            group.start_soon(opened_again, family, transport)
            await clock.until_sleeping(1)
            group.cancel_scope.cancel()
    async with anyio.create_task_group() as group:
        group.start_soon(opened_again, family, transport)
        await clock.until_sleeping(1)
        await clock.advance(0.3)
        with anyio.move_on_after(5):
            while len(wire.requests) < 2:  # noqa: ASYNC110 - no event says that it was sent
                await anyio.sleep(0.001)
        group.cancel_scope.cancel()
    assert len(wire.requests) == 2


async def test_405_is_final_and_is_handed_on(family: Any) -> None:
    """D37. The SDK asks for no standing stream again where a server has none."""
    _, wire, transport = paced(Replies(405))
    assert (await opened_again(family, transport)).status_code == 405
    assert len(wire.requests) == 1
