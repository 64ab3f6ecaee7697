"""DESIGN 7. A streamed answer that was read keeps its connection, as any other answer does.

The SDK leaves a stream as soon as the reply has gone by, a moment before the stream ends; without
the drain each streamed answer costs a new connection.
"""

from __future__ import annotations

import importlib
from collections.abc import AsyncIterator
from typing import Any, Final

import anyio
import pytest

from support.answers_read import answer_to, answering, event, streamed
from support.answers_read import opened as opened_answer
from support.exchanges import FAMILIES
from support.sessions import FAMILY, KINDS, SDK_ON_TRIO, Kind, nothing_left, opened, sdk_streams
from surefoot import Gateway
from surefoot.testing import FaultyGateway, ScriptedTransport

pytestmark = [pytest.mark.both_majors, pytest.mark.anyio, *SDK_ON_TRIO]

CALLS: Final = 8


async def connections(streams: Any, kind: Kind, faulty: FaultyGateway) -> int:
    """How many connections a row of streamed calls opens."""
    async with opened(streams, kind) as session:
        await session.call("search", {"q": "warm"})
        before = faulty.connections.opened
        for n in range(CALLS):
            assert (await session.call("search", {"q": f"W-{n}"})).text == f"found W-{n}"
        return faulty.connections.opened - before


@pytest.mark.parametrize("kind", KINDS)
async def test_streamed_calls_share_a_connection(kind: Kind) -> None:
    """DESIGN 7. The control is the bare SDK, which opens one for each."""
    with FaultyGateway(sse=True) as faulty:
        gateway = Gateway(faulty.url)
        async with nothing_left(faulty):
            assert await connections(gateway.transport(), kind, faulty) == 0
    with FaultyGateway(sse=True) as faulty:
        async with FAMILY.AsyncClient() as client:
            assert await connections(sdk_streams(faulty.url, client), kind, faulty) >= CALLS // 2


@pytest.mark.parametrize("family", FAMILIES)
async def test_a_stream_that_goes_on_after_its_reply_holds_nobody_up(family: str) -> None:
    """DESIGN 7, B1. It is read on for 20 ms, and then let go of."""
    after: list[str] = []

    async def goes_on() -> AsyncIterator[bytes]:
        yield event(answer_to())
        try:
            await anyio.sleep_forever()
        finally:
            after.append("let go")

    async def ends() -> AsyncIterator[bytes]:
        yield event(answer_to())
        await anyio.lowlevel.checkpoint()
        yield b": done\n\n"
        after.append("at its end")

    module = importlib.import_module(family)
    for stream, ending in ((ends, "at its end"), (goes_on, "let go")):
        wire = ScriptedTransport(streamed(by=stream))
        with anyio.fail_after(2):
            async with opened_answer(module, answering(wire)) as answer:
                assert b"found it" in await anext(aiter(answer.stream))
        assert after[-1:] == [ending]
        assert wire.open_responses == 0


@pytest.mark.parametrize("family", FAMILIES)
async def test_a_cancelled_reader_still_lets_go(family: str) -> None:
    """B2, DESIGN 7. Closing is shielded, and bounded."""

    async def stuck() -> AsyncIterator[bytes]:
        yield event(answer_to())
        await anyio.sleep_forever()

    wire = ScriptedTransport(streamed(by=stuck))
    with anyio.fail_after(5):
        async with anyio.create_task_group() as group:
            module = importlib.import_module(family)
            async with opened_answer(module, answering(wire)) as answer:
                await anext(aiter(answer.stream))
                group.cancel_scope.cancel()
    assert wire.open_responses == 0
