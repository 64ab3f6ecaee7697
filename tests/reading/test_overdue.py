"""B1, B6, B12, D26. An answer whose headers do not come ends in words, like one that never ends.

An HTTP library's own read timeout begins anew with every byte, so that a head that drips, or a
flood of 1xx, outlasts it for ever.
"""

from __future__ import annotations

import asyncio
import json
from typing import Any, Final

import anyio
import anyio.lowlevel
import pytest

from support.answers_read import CALL, SOUND, answer_to, answering, outcome_of, whole
from support.sending import filed, ledger_into
from surefoot.errors import DeadlineExceededError
from surefoot.testing import RecordingSink, mcp_request

pytestmark = pytest.mark.anyio

TOTAL: Final = 0.05


class Holds:
    """A transport that holds its answers back: so many seconds, or for ever."""

    def __init__(self, family: Any, *seconds: float | None, stubborn: bool = False) -> None:
        self.family = family
        self.seconds = list(seconds)
        self.stubborn = stubborn
        self.sends = self.cancelled = 0

    async def handle_async_request(self, request: Any) -> Any:
        """Wait, then answer."""
        seconds = self.seconds[min(self.sends, len(self.seconds) - 1)]
        self.sends += 1
        try:
            if seconds is None:
                await anyio.sleep_forever()
            await anyio.sleep(seconds or 0)
        except anyio.get_cancelled_exc_class():
            self.cancelled += 1
            if not self.stubborn:
                raise
        rpc_id = json.loads(request.content)["id"] if request.content else 1
        lines = {"content-type": "application/json"}
        return self.family.Response(200, headers=lines, content=answer_to(rpc_id))

    async def aclose(self) -> None:
        """Nothing is open."""


@pytest.mark.parametrize("asked", [CALL, mcp_request("tools/list")], ids=["a call", "a list"])
async def test_headers_that_do_not_come_end_in_words(family: Any, asked: Any) -> None:
    """B1, B12, D26. Whether it ran is unknown, so it is not sent again; and nothing stays open."""
    sink, wire = RecordingSink(), Holds(family, None)
    transport = answering(wire, total=TOTAL, above={"ledger": ledger_into(sink)})
    with anyio.fail_after(5):
        answer = await whole(family, transport, asked)
    assert (answer.status_code, outcome_of(answer)["kind"]) == (200, "deadline")
    assert (wire.sends, wire.cancelled) == (1, 1)
    record = filed(sink)
    assert (record["ended"], record["why"]) == ("cut", "deadline")
    assert [one["effect"] for one in record["attempts"]] == ["unknown"]
    await anyio.lowlevel.checkpoint()  # and the task of the call is cancelled no longer


async def test_each_call_waits_for_as_long_as_any_other(family: Any) -> None:
    """B12. The timer is one; each has its own time, and an answer in time is that answer."""
    wire = Holds(family, None, 0.15, None)
    transport = answering(wire, total=0.2)
    told: dict[int, Any] = {}
    ended: list[float] = []

    async def call(number: int) -> None:
        began = anyio.current_time()
        told[number] = await whole(family, transport)
        ended.append(anyio.current_time() - began)

    with anyio.fail_after(5):
        async with anyio.create_task_group() as group:
            for number in range(3):
                group.start_soon(call, number)
                await anyio.sleep(0.06)
        await call(3)
    assert [outcome_of(told[number])["kind"] for number in (0, 2, 3)] == ["deadline"] * 3
    assert json.loads(told[1].content)["result"] == SOUND
    assert min(ended) >= 0.14
    assert all(seconds >= 0.19 for seconds in ended[-2:])


async def test_a_caller_who_leaves_is_cancelled_and_nothing_else(family: Any) -> None:
    """B6. The control: a cancellation of somebody else's stays one, before the time and at it."""
    for patience in (0.01, TOTAL):
        wire = Holds(family, None)
        with anyio.fail_after(5):
            with anyio.move_on_after(patience) as left:
                await whole(family, answering(wire, total=TOTAL if patience == TOTAL else 1.0))
                assert patience == TOTAL  # where both are due at once, either may come first
            assert left.cancelled_caught or patience == TOTAL
            await anyio.lowlevel.checkpoint()
        assert wire.cancelled == 1


async def test_a_standing_stream_may_begin_when_it_likes(family: Any) -> None:
    """B12. Nobody's answer hangs on it."""
    wire = Holds(family, 4 * TOTAL)
    answer = await whole(family, answering(wire, total=TOTAL), method="GET")
    assert (answer.status_code, wire.cancelled) == (200, 0)


async def test_the_end_of_a_session_waits_no_longer_than_a_call(family: Any) -> None:
    """B12. Whoever leaves a session waits for the answer to its DELETE; it has no words."""
    wire = Holds(family, None)
    with anyio.fail_after(5), pytest.raises(DeadlineExceededError):
        await whole(family, answering(wire, total=TOTAL), method="DELETE")
    assert (wire.sends, wire.cancelled) == (1, 1)
    await anyio.lowlevel.checkpoint()


async def test_an_answer_in_the_moment_of_its_cancellation_leaves_none_behind(
    family: Any, anyio_backend_name: str
) -> None:
    """B12. A transport that answers all the same has answered too late, or just in time."""
    wire = Holds(family, None, stubborn=True)
    answer = await whole(family, answering(wire, total=TOTAL))
    if anyio_backend_name == "asyncio":
        assert outcome_of(answer)["kind"] == "deadline"
    else:
        assert answer.json()["result"] == SOUND
    for _ in range(3):
        await anyio.lowlevel.checkpoint()


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_a_client_that_is_closed_leaves_no_timer_of_an_hour(
    family: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Invariant 16. LangChain makes a client for each call; a server runs for weeks."""
    loop = asyncio.get_running_loop()
    timers: list[asyncio.TimerHandle] = []
    call_at = loop.call_at

    def noted(when: float, *args: Any, **more: Any) -> Any:
        timers.append(call_at(when, *args, **more))
        return timers[-1]

    monkeypatch.setattr(loop, "call_at", noted)
    await whole(family, answering(Holds(family, 0.0)), CALL)
    left = [one.when() - loop.time() for one in timers if not one.cancelled()]
    assert left, "there was one at all"
    assert max(left) < 10
