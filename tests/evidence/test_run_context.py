"""A run reaches what the caller's context reaches, nests, and never mixes. R22, B13."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import threading
from collections.abc import AsyncIterator, Mapping
from datetime import UTC, datetime
from typing import Any

import anyio
import anyio.lowlevel
import anyio.to_thread
import pytest

from surefoot.evidence import Ledger, Run, bind, current_ledger, current_run


class Nowhere:
    def emit(self, event: Mapping[str, Any], /) -> None:
        """Take it."""


def a_run(name: str, parent: Run | None = None) -> Run:
    ledger = Ledger(Nowhere(), run=name, now=lambda: datetime(2026, 1, 1, tzinfo=UTC))
    return Run(ledger=ledger, name=name, parent=parent)


def test_outside_of_any_run_there_is_no_ledger() -> None:
    """R22. Then the Gateway's own decides."""
    assert current_run() is None
    assert current_ledger() is None


def test_runs_nest_and_the_innermost_is_the_current_one() -> None:
    """R22. Leaving one gives the one around it back, an exception or not."""
    outer, inner = a_run("outer"), a_run("inner")
    with bind(outer):
        with contextlib.suppress(KeyError), bind(inner):
            assert current_ledger() is inner.ledger
            raise KeyError
        assert current_run() is outer
        with bind(None):
            assert current_run() is None
    assert current_run() is None


def test_a_run_that_is_closed_hands_over_to_the_one_around_it() -> None:
    """R22, B13. A task that outlives its run files into the run that is still open."""
    outer = a_run("outer")
    inner = a_run("inner", parent=outer)
    with bind(inner):
        inner.ledger.close()
        assert current_run() is outer
        outer.ledger.close()
        assert current_run() is None


async def test_concurrent_tasks_each_have_their_own_run() -> None:
    """R22. Ten runs beside each other, with tasks inside them, never mix."""
    seen: list[tuple[str, str]] = []

    async def inside(name: str) -> None:
        await anyio.lowlevel.checkpoint()
        run = current_run()
        seen.append((name, "none" if run is None else run.id))

    async def turn(name: str) -> None:
        with bind(a_run(name)):
            async with anyio.create_task_group() as tasks:
                for _ in range(10):
                    tasks.start_soon(inside, name)
            await anyio.to_thread.run_sync(lambda: seen.append((name, current_run().id)))  # type: ignore[union-attr]

    async with anyio.create_task_group() as tasks:
        for number in range(10):
            tasks.start_soon(turn, f"run{number}")
    assert len(seen) == 110
    assert all(name == run for name, run in seen)
    assert current_run() is None


def test_a_thread_has_the_run_only_if_it_is_given_the_context() -> None:
    """R22. What Python does with context variables, and nothing on top of it."""
    seen: list[Run | None] = []
    with bind(a_run("r")) as run:
        context = contextvars.copy_context()
        for target in (
            lambda: seen.append(current_run()),
            lambda: context.run(lambda: seen.append(current_run())),
        ):
            thread = threading.Thread(target=target)
            thread.start()
            thread.join(5)
    assert seen == [None, run]


def test_a_generator_that_is_closed_in_another_context_does_not_raise() -> None:
    """R22. An async fixture may leave its run in a task that never entered it."""

    async def fixture() -> AsyncIterator[None]:
        with bind(a_run("r")):
            yield

    async def main() -> None:
        generator = fixture()
        await asyncio.create_task(anext(generator))  # type: ignore[arg-type]
        assert current_run() is None
        with pytest.raises(StopAsyncIteration):
            await anext(generator)

    asyncio.run(main())
