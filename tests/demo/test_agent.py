"""The agent does what frameworks do, and obeys the one thing that an answer can say. B3."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import cast

import anyio
import pytest

from surefoot.demo._agent import Agent, grouped
from surefoot.demo._calls import Call
from surefoot.demo._doors import Answer, Session
from surefoot.demo._happenings import Kind

FINE = Answer(text="fine", is_error=False, may_have_run=False)
FAILED = Answer(text="it failed", is_error=True, may_have_run=False)
MAY_HAVE_RUN = Answer(text="it may have run", is_error=True, may_have_run=True)

Reply = Answer | Exception | type[BaseException] | None
"""What a call meets: an answer, an error, the end of its session, or `None`: no answer at all."""


class DeadError(Exception):
    """What the session died of."""


class World:
    """Sessions whose calls meet what a script says, in order; after it they are answered."""

    def __init__(self, script: Mapping[str, list[Reply]], *, unopened: int = 0) -> None:
        self.script = {tool: list(replies) for tool, replies in script.items()}
        self.sent: list[str] = []
        self.opened = 0
        self.told: list[tuple[Kind, int | None]] = []
        self._unopened = unopened

    def connect(self) -> AbstractAsyncContextManager[Session]:
        return self._session()

    @asynccontextmanager
    async def _session(self) -> AsyncGenerator[Session]:
        if self._unopened:
            self._unopened -= 1
            raise DeadError("cannot connect")
        self.opened += 1
        async with anyio.create_task_group() as host:
            self._host = host
            yield cast("Session", self)
            host.cancel_scope.cancel()

    async def call(self, tool: str, _: Mapping[str, object]) -> Answer:
        self.sent.append(tool)
        replies = self.script.get(tool, [])
        reply = replies.pop(0) if replies else FINE
        if isinstance(reply, Answer):
            return reply
        if isinstance(reply, Exception):
            raise reply
        if reply is not None:
            self._host.start_soon(self._die)
        await anyio.sleep_forever()
        raise AssertionError

    async def _die(self) -> None:
        raise DeadError("the connection was reset")

    def tell(self, kind: Kind, call: int | None, _: str) -> None:
        self.told.append((kind, call))

    async def prepare(self, _: Call) -> None:
        pass


def call(number: int, tool: str, *, changes: bool = False, beside: bool = False) -> Call:
    return Call(
        number=number,
        tool=tool,
        arguments={"n": number},
        gateway="",
        changes=changes,
        beside=beside,
    )


async def work(world: World, *calls: Call) -> tuple[Agent, list[str]]:
    groups = grouped(calls)
    agent = Agent(world.connect, prepare=world.prepare, tell=world.tell)
    with anyio.fail_after(5):
        await agent.work(groups)
    return agent, [task.end for group in groups for task in group]


@pytest.mark.parametrize(
    ("replies", "changes", "end", "sent"),
    [
        ([FINE], False, "answered", 1),
        ([ValueError("no")], False, "answered", 2),
        ([ValueError("no")], True, "answered", 2),
        ([FAILED, FAILED], True, "answered", 3),
        ([ValueError("no")] * 3, False, "lost", 3),
        ([FAILED, ValueError("no"), FAILED], False, "lost", 3),
        ([MAY_HAVE_RUN], True, "unknown", 1),
        ([MAY_HAVE_RUN], False, "answered", 2),
        ([MAY_HAVE_RUN] * 3, False, "lost", 3),
        ([ValueError("no"), MAY_HAVE_RUN], True, "unknown", 2),
        ([DeadError], True, "answered", 2),
        ([DeadError] * 3, True, "lost", 3),
    ],
)
async def test_a_call_is_made_again_after_an_error_unless_it_changes_something_and_may_have_run(
    replies: list[Reply], *, changes: bool, end: str, sent: int
) -> None:
    world = World({"tool": replies})
    _, ends = await work(world, call(1, "tool", changes=changes))
    assert ends == [end]
    assert world.sent == ["tool"] * sent


async def test_a_session_that_dies_takes_the_call_beside_it_down_and_a_new_one_is_opened() -> None:
    world = World({"still": [None], "breaks": [DeadError]})
    agent, ends = await work(world, call(1, "still"), call(2, "breaks", beside=True), call(3, "x"))
    assert ends == ["answered"] * 3
    assert sorted(world.sent) == ["breaks", "breaks", "still", "still", "x"]
    assert world.opened == 2
    assert world.told.count(("session-lost", None)) == 1
    assert agent.closed_soundly


async def test_a_session_that_cannot_be_opened_counts_as_a_try_and_ends_the_loop() -> None:
    world = World({}, unopened=99)
    agent, ends = await work(world, call(1, "a"), call(2, "b"))
    assert ends == ["lost", "lost"]
    assert world.sent == []
    assert not agent.closed_soundly


async def test_cancelling_the_agent_is_no_death_of_a_session() -> None:
    world = World({"still": [None]})
    with anyio.move_on_after(0.05) as scope:
        await work(world, call(1, "still"))
    assert scope.cancelled_caught
    assert world.opened == 1
    assert world.told == [("call", 1)]
