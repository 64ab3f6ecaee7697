"""B1, B2, B6, B12, D26, R12, R45. Kind h of the bug reports: nobody waits for what cannot come.

A stream that ends without its answer ends its call; one that only says that it is alive ends it
too, at a limit of its own. A wait that cannot end in time is not begun, and is told as what it
would have been for; one that is cancelled is over, and leaves nothing.
"""

from __future__ import annotations

import gc
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Final

import anyio
import pytest

from support.exchanges import FAMILIES, client_of
from support.reports import as_stream, record_of, say
from support.sessions import KINDS, SDK_ON_TRIO, Kind, nothing_left, opened
from surefoot import Gateway, MayHaveRunError, RateLimitedError, Replay, Retry, ToolRule
from surefoot.testing import (
    EndlessComments,
    Exchange,
    FakeClock,
    FaultyGateway,
    HeldStream,
    RecordingSink,
    SseCut,
    Step,
    Throttle,
    Trickle,
    tool_call,
)
from surefoot.testing._steps import ANSWERED

pytestmark = [pytest.mark.both_majors, pytest.mark.anyio, *SDK_ON_TRIO]

SOON: Final = 2.0


@dataclass(frozen=True, slots=True)
class Drip(Step):
    """An event stream of one byte at a time, which never comes to an end."""

    interval: float = 0.02
    fits: ClassVar[Any] = ANSWERED

    async def play(self, exchange: Exchange) -> None:
        """Let it drip."""
        await exchange.run()
        await exchange.start_stream()
        for byte in _for_ever(b'data: {"jsonrpc":"2.0",'):
            await exchange.stream(byte)
            await exchange.pause(self.interval)


def _for_ever(beginning: bytes) -> Iterator[bytes]:
    yield from (beginning[at : at + 1] for at in range(len(beginning)))
    while True:
        yield b" "


ENDS: Final[dict[str, Step]] = {
    "after a ping": as_stream(": ping\n\n"),
    "after many": as_stream(": ping\n\n" * 50, "in a chunk, ended"),
    "at once": as_stream(""),
    "after a notification": SseCut(2, how="end"),
    "with a reset": SseCut(how="reset"),
    "with a close": SseCut(),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("how", ENDS)
async def test_a_stream_that_ends_without_its_answer_ends_its_call_at_once(
    how: str, kind: Kind
) -> None:
    """B1, C37 of the bug reports. As a cut, not as a timeout; it may have run; calls go on."""
    with FaultyGateway() as faulty:
        async with nothing_left(faulty), opened(Gateway(faulty.url).transport(), kind) as session:
            faulty.script("charge", ENDS[how])
            with anyio.fail_after(SOON):
                told = await session.call("charge", {"amount": 1})
            assert (told.kind, told.facts["may_have_run"]) == ("cut-stream", True)
            assert (await session.call("search", {"q": "it"})).text == "found it"
        assert (len(faulty.requests("charge")), faulty.executions("charge")) == (1, 1)


LIVELY: Final[dict[str, Step]] = {
    "pings": EndlessComments(0.02),
    "a byte at a time": Drip(),
    "silence": HeldStream(),
    "a body in drops": Trickle(0.05),
}


@pytest.mark.parametrize("how", LIVELY)
async def test_a_caller_with_patience_for_so_long_waits_no_longer(how: str) -> None:
    """B2, B6, C37 of the bug reports. However lively the answer is."""
    with FaultyGateway() as faulty:
        async with Gateway(faulty.url).session() as session:
            await session.tools()
            faulty.script("charge", LIVELY[how])
            with anyio.fail_after(SOON), pytest.raises(MayHaveRunError) as caught:
                await session.call("charge", {"amount": 1}, timeout=0.3)
            assert caught.value.cause == "deadline"
            assert (await session.call("search", {"q": "it"})).text == "found it"
        assert (len(faulty.requests("charge")), faulty.executions("charge")) == (1, 1)


@pytest.mark.parametrize("how", ["pings", "a byte at a time"])
@pytest.mark.parametrize("family", FAMILIES)
async def test_a_stream_that_only_lives_on_ends_at_a_limit_of_its_own(
    family: str, how: str
) -> None:
    """B12, D26, C37 of the bug reports. Pings count against silence, and not against the total."""
    clock, sink = FakeClock(), RecordingSink()
    with FaultyGateway() as faulty:
        faulty.script("charge", LIVELY[how])
        gateway = Gateway(faulty.url, clock=clock, evidence=sink)

        async def an_hour_passes() -> None:
            await faulty.until(lambda: faulty.executions("charge") == 1)
            await anyio.sleep(0.1)
            await clock.sleep(3601)

        async with gateway.protect(client_of(family, timeout=5)) as client:
            with anyio.fail_after(SOON):
                async with anyio.create_task_group() as group:
                    group.start_soon(an_hour_passes)
                    said = await say(client, faulty.url)
                    assert (said.kind, said.outcome["may_have_run"]) == ("deadline", True)
                    assert said.outcome["rule"] == "stream-total-seconds"
    assert record_of(sink)["may_have_run"] is True


@pytest.mark.parametrize("family", FAMILIES)
async def test_a_deadline_covers_a_body_that_comes_in_drops(family: str) -> None:
    """R46, D26, C37 of the bug reports. A read timeout never would: each drop is in time."""
    with FaultyGateway() as faulty:
        faulty.script("charge", Trickle(0.05))
        gateway = Gateway(faulty.url, retry=Retry(max_elapsed=0.2))
        async with gateway.protect(client_of(family, timeout=1)) as client:
            with anyio.fail_after(SOON):
                said = await say(client, faulty.url)
        assert (said.kind, said.outcome["may_have_run"]) == ("deadline", True)
        assert (len(faulty.requests("charge")), faulty.executions("charge")) == (1, 1)


NO_ROOM: Final[dict[str, dict[str, Any]]] = {
    "the budget of waiting": {"retry": Retry()},
    "the deadline of the call": {"retry": Retry(max_wait=None, max_elapsed=2)},
    "the patience of the caller": {"retry": Retry(max_wait=None), "caller_timeout": 2},
}


@pytest.mark.parametrize("bound", NO_ROOM)
@pytest.mark.parametrize("kind", KINDS)
async def test_a_wait_past_the_deadline_is_told_as_the_refusal_that_it_is(
    kind: Kind, bound: str
) -> None:
    """R45, B6, C39 of the bug reports. Not a timeout, and not two seconds later."""
    with FaultyGateway() as faulty:
        gateway = Gateway(faulty.url, **NO_ROOM[bound])
        async with opened(gateway.transport(), kind) as session:
            faulty.script("charge", Throttle(60))
            with anyio.fail_after(1):
                told = await session.call("charge", {"amount": 1})
        assert (told.kind, told.facts["retry_after_seconds"]) == ("rate-limited", 60)
        assert "wait about 60 seconds" in told.text
        assert (len(faulty.requests("charge")), faulty.executions("charge")) == (1, 0)


async def test_a_timeout_of_one_call_counts_as_its_deadline() -> None:
    """B6, C39 of the bug reports. Our own client knows it, and raises the rate limit at once."""
    with FaultyGateway() as faulty:
        async with Gateway(faulty.url, retry=Retry(max_wait=None)).session() as session:
            await session.tools()
            faulty.script("charge", Throttle(60))
            with anyio.fail_after(1), pytest.raises(RateLimitedError) as caught:
                await session.call("charge", {"amount": 1}, timeout=2)
    assert (caught.value.retry_after, caught.value.attempts) == (60, 1)


@pytest.mark.parametrize("family", FAMILIES)
async def test_a_wait_that_is_cancelled_is_over_at_once_and_sends_nothing_later(
    family: str,
) -> None:
    """B2, R12, C39 of the bug reports. In real time, until after the wait would have ended."""
    sink = RecordingSink()
    with FaultyGateway() as faulty:
        faulty.script("charge", Throttle(1))
        gateway = Gateway(faulty.url, retry=Retry(spread=0), evidence=sink)
        async with nothing_left(faulty), gateway.protect(client_of(family)) as client:
            began = anyio.current_time()
            async with anyio.create_task_group() as group:
                group.start_soon(say, client, faulty.url)
                await faulty.until(lambda: bool(faulty.requests("charge")))
                await anyio.sleep(0.2)
                group.cancel_scope.cancel()
            assert anyio.current_time() - began < 1
            await anyio.sleep(1)
        assert (len(faulty.requests("charge")), faulty.executions("charge")) == (1, 0)
    record = record_of(sink)
    assert (record["why"], record["may_have_run"]) == ("cancelled", False)


MANY: Final = 40


def _ours() -> Counter[str]:
    """What is alive of what a call makes."""
    kinds = {
        kind
        for name, module in list(sys.modules.items())
        if name.startswith("surefoot.") and not name.startswith("surefoot.testing")
        for kind in vars(module).values()
        if isinstance(kind, type) and kind.__module__.startswith("surefoot.")
        if not kind.__module__.startswith("surefoot.testing")  # a gateway's journal may grow
    }
    gc.collect()
    return Counter(type(one).__name__ for one in gc.get_objects() if type(one) in kinds)


@pytest.mark.parametrize("family", FAMILIES)
async def test_of_dozens_of_cancelled_waits_nothing_is_kept(family: str) -> None:
    """B2, invariant 16, C39 of the bug reports. No task, no sleeper, no object, no request."""
    clock = FakeClock(auto=False)
    tools = {"charge": ToolRule(repeat_on={"throttle", "network"})}
    with FaultyGateway() as faulty:
        faulty.script("charge", Throttle(60), repeat=True)
        gateway = Gateway(
            faulty.url, retry=Retry(max_wait=None), replay=Replay(tools=tools), clock=clock
        )
        async with nothing_left(faulty), gateway.protect(client_of(family)) as client:

            async def wait(number: int) -> None:
                await say(client, faulty.url, tool_call("charge", {"amount": number}))

            async def cancelled(many: int) -> None:
                async with anyio.create_task_group() as group:
                    for number in range(many):
                        group.start_soon(wait, number)
                    await clock.until_sleeping(many, timeout=20)
                    assert _ours()["Record"] >= many, "what waits would have been seen"
                    group.cancel_scope.cancel()

            await cancelled(3)
            before = _ours()
            await cancelled(MANY)
            assert clock.sleeping == 0
            grown = {name: more for name, more in (_ours() - before).items() if more > 3}
            assert grown == {}
            await clock.advance(1000)
            assert len(faulty.requests("charge")) == MANY + 3
            faulty.clear_scripts()
            assert (await say(client, faulty.url)).text == "charged 1"
