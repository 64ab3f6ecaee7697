"""The law of this file: one loop for both runs, and it does what agent frameworks do.

It calls again after an error, at once and up to three times in all; it opens a new session when the
old one died under it, which it takes for a failure of every call that was under way. One thing it
obeys where it is said: a call that changes something, and of which the answer itself says that it
may have run, is not sent again. Without surefoot no answer says so.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Final, Literal, cast

import anyio

from ._calls import Call
from ._doors import Answer, Session
from ._happenings import Tell

__all__ = ["TRIES", "Agent", "End", "Task", "grouped"]

TRIES: Final = 3
"""How often the agent makes one call before it gives it up."""

End = Literal["open", "answered", "unknown", "lost"]
"""How a call ended for the agent; `unknown` is left alone because it may have run."""


@dataclass(slots=True)
class Task:
    """One call while the agent is at it."""

    call: Call
    end: End = "open"
    answer: str | None = None
    """The text that the agent was given, where it was given one."""

    tries: int = 0
    under_way: bool = False
    begun: bool = False


def grouped(calls: Sequence[Call]) -> list[list[Task]]:
    """The calls in the order in which they are made; those side by side in one group."""
    groups: list[list[Task]] = []
    for call in calls:
        if call.beside and groups:
            groups[-1].append(Task(call))
        else:
            groups.append([Task(call)])
    return groups


class Agent:
    """Works through the calls, whatever happens to its sessions.

    Args:
        connect: opens a session.
        prepare: awaited before the agent turns to a call for the first time.
        tell: told what happens.
    """

    def __init__(
        self,
        connect: Callable[[], AbstractAsyncContextManager[Session]],
        *,
        prepare: Callable[[Call], Awaitable[None]],
        tell: Tell,
    ) -> None:
        self._connect = connect
        self._prepare = prepare
        self._tell = tell
        self.closed_soundly = False
        """The last session was closed by the agent."""

    async def work(self, groups: Sequence[Sequence[Task]]) -> None:
        """End every call, answered or not."""
        while _next(groups):
            opened = False
            try:
                async with self._connect() as session:
                    opened = True
                    for group in groups:
                        await self._together(_open(group), session)
                self.closed_soundly = True
            except Exception as error:  # noqa: BLE001 - whatever it is, the session is gone
                self._session_died(error, groups, opened=opened)

    async def _together(self, group: Sequence[Task], session: Session) -> None:
        for task in group:
            if not task.begun:
                task.begun = True
                await self._prepare(task.call)
                self._tell("call", task.call.number, task.call.gateway)
        async with anyio.create_task_group() as side_by_side:
            for task in group:
                side_by_side.start_soon(self._ask, task, session)

    async def _ask(self, task: Task, session: Session) -> None:
        """Call, and call again. A session that dies cancels this, and leaves it under way."""
        while task.end == "open":
            task.tries += 1
            task.under_way = True
            try:
                answer = await session.call(task.call.tool, task.call.arguments)
            except Exception as error:  # noqa: BLE001 - a framework catches what the SDK raises
                task.under_way = False
                self._failed(task, _said(error))
            else:
                task.under_way = False
                self._take(task, answer)

    def _take(self, task: Task, answer: Answer) -> None:
        number = task.call.number
        if not answer.is_error:
            task.end, task.answer = "answered", answer.text
            self._tell("answered", number, answer.text)
        elif answer.may_have_run and task.call.changes:
            task.end = "unknown"
            self._tell("unknown", number, answer.text)
        else:
            self._tell("told", number, answer.text)
            self._give_up_when_spent(task)

    def _failed(self, task: Task, said: str) -> None:
        self._tell("error", task.call.number, said)
        self._give_up_when_spent(task)

    def _give_up_when_spent(self, task: Task) -> None:
        if task.tries >= TRIES:
            task.end = "lost"
            self._tell("lost", task.call.number, f"{task.tries} tries")

    def _session_died(
        self, error: Exception, groups: Sequence[Sequence[Task]], *, opened: bool
    ) -> None:
        said = _said(error)
        if opened:
            self._tell("session-lost", None, said)
        waiting = _next(groups)
        cut = [task for task in waiting if task.under_way]
        for task in cut:
            task.under_way = False
            self._failed(task, said)
        for task in () if cut else waiting:  # there was no session to send it on: that counts, too
            task.tries += 1
            self._failed(task, f"no session: {said}")


def _next(groups: Sequence[Sequence[Task]]) -> list[Task]:
    """The open tasks of the first group that has any."""
    for group in groups:
        if found := _open(group):
            return found
    return []


def _open(group: Sequence[Task]) -> list[Task]:
    return [task for task in group if task.end == "open"]


def _said(error: BaseException) -> str:
    """What an agent gets to see of an error: its text, or its class where it has none."""
    if isinstance(error, BaseExceptionGroup):
        group = cast("BaseExceptionGroup[BaseException]", error)
        return _said(group.exceptions[0])
    first = str(error).splitlines()
    return first[0] if first else type(error).__name__
