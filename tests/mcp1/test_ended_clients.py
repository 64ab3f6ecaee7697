"""B3, D35. What ends the SDK's client of mcp 1.x without a word costs nobody his call."""

from __future__ import annotations

from typing import Any

import anyio
import mcp
import pytest
from mcp.shared.session import BaseSession

from surefoot import Gateway
from surefoot.testing import FaultyGateway, Slow


class Late:
    """Where the SDK hands an answer over, with turns of the loop in between for its caller."""

    def __init__(self, stream: Any, leaving: anyio.CancelScope) -> None:
        self._stream = stream
        self._leaving = leaving

    async def send(self, answer: Any) -> None:
        self._leaving.cancel()
        for _ in range(10):
            await anyio.lowlevel.checkpoint()
        await self._stream.send(answer)


async def test_a_caller_who_leaves_in_the_turn_of_his_answer_ends_nobody_elses_call(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """B3. The SDK takes the stream that he closed for the connection's."""
    base: Any = BaseSession
    handle = base._handle_response
    leaving = anyio.CancelScope()
    handled: list[object] = []

    async def answered(self: Any, message: Any) -> None:
        streams = self._response_streams
        if message.message.root.id == his:
            streams[his] = Late(streams[his], leaving)
        try:
            await handle(self, message)
        except anyio.ClosedResourceError as error:
            handled.append(error)
            raise

    answers: list[str] = []

    async def neighbour(session: Any) -> None:
        answers.append((await session.call("search", {"q": "beside"})).text)

    with FaultyGateway() as faulty:
        async with Gateway(faulty.url).session() as session:
            await session.call("search", {"q": "first"})
            client = session.client
            faulty.script("search", Slow(0.5))
            monkeypatch.setattr(base, "_handle_response", answered)
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(neighbour, session)
                await faulty.until(lambda: len(faulty.requests("search")) == 2)
                his = client._request_id
                with leaving:
                    await session.call("refund", {"order": "W-7712"})
                assert leaving.cancelled_caught
                answers.append((await session.call("search", {"q": "after"})).text)
            assert session.client is client
    assert sorted(answers) == ["found after", "found beside"]
    assert len(handled) == 1, "the control: it is what would have ended the client"
    assert faulty.executions("refund") == 1


async def test_a_client_that_ended_by_itself_is_replaced_by_the_next_call() -> None:
    """D35. Nothing was written to it, and so nothing is sent twice."""
    with FaultyGateway() as faulty:
        async with Gateway(faulty.url).session() as session:
            await session.call("search", {"q": "first"})
            ended = session.client
            await ended._write_stream.aclose()
            assert (await session.call("search", {"q": "later"})).text == "found later"
            assert session.client is not ended
    assert faulty.executions("search") == 2


async def test_the_same_ends_a_session_of_the_sdks_own_and_tells_its_neighbours(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """B3. The control of the first: there, the neighbours are told of a closed connection."""
    base: Any = BaseSession
    handle = base._handle_response
    told: list[str] = []

    async def closed(self: Any, message: Any) -> None:
        if message.message.root.id == ends:
            raise anyio.ClosedResourceError
        await handle(self, message)

    async def neighbour(client: mcp.ClientSession) -> None:
        with pytest.raises(mcp.McpError) as caught:
            await client.call_tool("search", {"q": "it"})
        told.append(str(caught.value))

    with FaultyGateway() as faulty:
        faulty.script("search", Slow(5))
        faulty.script("refund", Slow(0.6))
        async with (
            Gateway(faulty.url).transport() as (read, write),
            mcp.ClientSession(read, write) as client,
        ):
            await client.initialize()
            ends = client._request_id + 1
            monkeypatch.setattr(base, "_handle_response", closed)
            with anyio.fail_after(4):
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(neighbour, client)
                    await faulty.until(lambda: len(faulty.requests("search")) == 1)
                    with anyio.move_on_after(0.2) as leaving:
                        await client.call_tool("refund", {"order": "W-7712"})
                    assert leaving.cancelled_caught
    assert told == ["Connection closed"]
