"""R123 to R125, B2: what is awaited through us ends with the caller, whatever swallows it."""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from surefoot.transports._watched import watched

pytestmark = pytest.mark.anyio


async def _at_once() -> str:
    return "at once"


async def _later() -> str:
    for _ in range(3):
        await anyio.lowlevel.checkpoint()
    await anyio.sleep(0.001)
    return "later"


class _Awaitable:
    """Something that can be awaited, and is no coroutine."""

    def __await__(self) -> Generator[Any, Any, str]:
        yield from anyio.lowlevel.checkpoint().__await__()
        return "awaitable"


async def test_the_result_is_what_was_awaited() -> None:
    """R123. At once, later, or of a thing that is no coroutine."""
    assert await watched(_at_once()) == "at once"
    assert await watched(_later()) == "later"
    assert await watched(_Awaitable()) == "awaitable"


async def test_an_error_is_raised_as_it_is_with_its_frames() -> None:
    """R125. At once or later."""

    async def fails(*, wait: bool) -> None:
        if wait:
            await anyio.lowlevel.checkpoint()
        raise KeyError("mine")

    for wait in (False, True):
        with pytest.raises(KeyError, match="mine") as caught:
            await watched(fails(wait=wait))
        assert any(frame.name == "fails" for frame in caught.traceback)


async def test_what_cannot_be_awaited_is_a_type_error() -> None:
    """R125. As with ``await`` itself."""
    with pytest.raises(TypeError):
        await watched(7)  # type: ignore[arg-type]


async def test_a_cancellation_passes_through_and_cleans_up_below() -> None:
    """R123. Once, on either loop."""
    seen: list[str] = []

    async def waits() -> None:
        try:
            await anyio.sleep(30)
        except anyio.get_cancelled_exc_class():
            seen.append("cancelled")
            raise

    with anyio.move_on_after(0.01) as scope:
        await watched(waits())
    assert scope.cancelled_caught
    assert seen == ["cancelled"]


async def test_a_swallowed_cancellation_is_raised_after_all() -> None:
    """R124. By the scope that asked for it: a scope inside, which cut its own part, is none."""

    async def swallows() -> str:
        try:
            await anyio.sleep(30)
        except anyio.get_cancelled_exc_class():
            pass
        return "late"

    with anyio.move_on_after(0.01) as scope:
        await watched(swallows())
    assert scope.cancelled_caught

    async def has_a_scope_of_its_own() -> str:
        with anyio.move_on_after(0.01):
            await anyio.sleep(30)
        return "in time"

    assert await watched(has_a_scope_of_its_own()) == "in time"


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_so_is_one_of_asyncios_own_unless_it_was_taken_back() -> None:
    """R124. ``uncancel`` is how a timeout says that a cancellation was its own."""
    finished: list[str] = []

    async def swallows() -> str:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            finished.append("own work")
        return "late"

    async def times_out() -> str:
        try:
            async with asyncio.timeout(0.01):
                await asyncio.Event().wait()
        except TimeoutError:
            return "in time"
        return "never"

    task = asyncio.ensure_future(watched(swallows()))
    await anyio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert finished == ["own work"]
    assert await watched(times_out()) == "in time"


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_a_coroutine_that_is_closed_half_way_closes_what_it_awaits() -> None:
    """R123, B2. As a loop that is shut down does."""
    closed: list[str] = []

    async def waits() -> None:
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            closed.append("below")

    coroutine = watched(waits())
    coroutine.send(None)
    coroutine.close()
    assert closed == ["below"]
