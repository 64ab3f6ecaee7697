"""B3. Messages that are written at once go out once each, whatever the SDK makes of them.

mcp 1.x starts a task for each request that reads a variable of its writer's loop; on trio the loop
may have gone on to the next message by then, and one goes out twice and the other never. So our
writer hands over the next message when the last one was taken. The bare SDK is the control.
"""

from __future__ import annotations

import json
from collections import Counter
from typing import Any, Final

import anyio
import anyio.lowlevel
import pytest

from support.sessions import KINDS, SDK_ON_TRIO, Kind, nothing_left, opened, sdk_streams
from surefoot import Gateway, Replay, ToolRule
from surefoot.testing import FaultyGateway, Slow

pytestmark = [pytest.mark.both_majors, pytest.mark.anyio, *SDK_ON_TRIO]

CALLS: Final = 50


def _numbers(faulty: FaultyGateway, tool: str) -> list[int]:
    bodies: list[Any] = [json.loads(entry.body) for entry in faulty.requests(tool)]
    return [one["params"]["arguments"]["q"] for one in bodies]


@pytest.mark.parametrize("kind", KINDS)
async def test_fifty_calls_at_once_are_fifty_calls(kind: Kind) -> None:
    """B3, R21. Through the streams and through our own session; each gets its own answer."""
    with FaultyGateway() as faulty:
        gateway = Gateway(faulty.url, replay=Replay(tools={"search": ToolRule()}))
        told: Counter[str] = Counter()
        async with nothing_left(faulty), opened(gateway.transport(), kind) as session:

            async def one(number: int) -> None:
                told[(await session.call("search", {"q": number})).text] += 1

            async with anyio.create_task_group() as group:
                for number in range(CALLS):
                    group.start_soon(one, number)
        assert told == Counter(f"found {number}" for number in range(CALLS))
        assert sorted(_numbers(faulty, "search")) == list(range(CALLS))


@pytest.mark.parametrize("kind", KINDS)
async def test_callers_who_leave_while_others_write_lose_nobodys_call(kind: Kind) -> None:
    """B2, B3. Every other caller is cancelled at a moment of its own, before any answer comes.

    (An answer that comes in the very moment in which its caller leaves ends the receiving loop of
    mcp 1.x, with every call of the session; no layer below the SDK can prevent that.)
    """
    with FaultyGateway(eras=("2026-07-28" if kind == "modern" else "2025-11-25",)) as faulty:
        faulty.script("search", Slow(0.7, when="after"), repeat=True)
        told: set[int] = set()
        async with nothing_left(faulty), Gateway(faulty.url).session() as session:
            await session.tools()

            async def one(number: int) -> None:
                with anyio.CancelScope() as scope:
                    async with anyio.create_task_group() as group:
                        if number % 2:
                            group.start_soon(_leave_after, number // 4, scope)
                        answer = await session.call("search", {"q": number})
                        assert answer.text == f"found {number}"
                        told.add(number)
                        group.cancel_scope.cancel()

            async with anyio.create_task_group() as group:
                for number in range(CALLS):
                    group.start_soon(one, number)
        assert set(range(0, CALLS, 2)) <= told
        ran = Counter(_numbers(faulty, "search"))
        assert max(ran.values()) == 1


async def _leave_after(checkpoints: int, scope: anyio.CancelScope) -> None:
    for _ in range(checkpoints):
        await anyio.lowlevel.checkpoint()
    scope.cancel()


@pytest.mark.skipif("mcp1" not in KINDS, reason="the fault is that of mcp 1.x")
async def test_the_bare_sdk_sends_one_twice_and_another_never(anyio_backend: str) -> None:
    """B3. The control: on trio; should this fail, the SDK has mended it."""
    if anyio_backend != "trio":
        pytest.skip("asyncio takes its tasks in the order in which they began")
    with FaultyGateway() as faulty:
        async with (
            Gateway(faulty.url).http_client() as client,
            opened(sdk_streams(faulty.url, client), "mcp1", patience=1.0) as session,
            anyio.create_task_group() as group,
        ):
            for number in range(10):
                group.start_soon(session.call, "search", {"q": number})
        assert max(Counter(_numbers(faulty, "search")).values()) > 1
