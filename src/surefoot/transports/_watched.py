"""The law of this file: a cancellation that somebody below swallowed still ends the request (R124).

A provider or a signer may ignore cancellation and finish its own work (R125); what it then hands
over comes too late and is never used. Asking the event loop on every request costs more than all
the rest of vending, so it is asked only where the awaited thing really let others run: one that
answers at once cannot have missed anything.
"""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Coroutine, Generator
from typing import Any, Generic, TypeVar, cast

import anyio.lowlevel

__all__ = ["watched"]

_T = TypeVar("_T")
_Steps = Coroutine[Any, Any, _T]


async def watched(awaited: Awaitable[_T]) -> _T:
    """Await one thing, and raise the cancellation that came meanwhile if nobody else did."""
    steps: _Steps[_T]
    steps = cast("_Steps[_T]", awaited) if isinstance(awaited, Coroutine) else _wrapped(awaited)
    del awaited
    try:
        trap = steps.send(None)
    except StopIteration as done:
        return done.value
    cancels = _cancels()
    result = await _Rest(steps, trap)
    # anyio's and trio's cancellations stay in force until they are let through. One of asyncio's
    # own is gone when it was caught; the task has only counted it.
    await anyio.lowlevel.checkpoint_if_cancelled()
    if _cancels() > cancels:
        raise anyio.get_cancelled_exc_class()
    return result


class _Rest(Generic[_T]):
    """Awaits what is left of a coroutine whose first step was taken by hand."""

    __slots__ = ("_steps", "_trap")

    def __init__(self, steps: _Steps[_T], trap: object) -> None:
        self._steps = steps
        self._trap = trap

    def __await__(self) -> Generator[Any, Any, _T]:
        steps, trap = self._steps, self._trap
        sent: object = None
        error: BaseException | None = None
        while True:
            try:
                sent = yield trap
            except GeneratorExit:
                steps.close()
                raise
            except BaseException as thrown:  # noqa: BLE001 - thrown at whom it is meant for
                error = thrown
            try:
                trap = steps.send(sent) if error is None else steps.throw(error)
            except StopIteration as done:
                return done.value
            finally:
                error = None  # a frame that keeps an exception keeps all the frames below it


async def _wrapped(awaited: Awaitable[_T]) -> _T:
    return await awaited


def _cancels() -> int:
    """How many cancellations were asked of this asyncio task; 0 elsewhere."""
    asyncio = sys.modules.get("asyncio")
    if asyncio is None:
        return 0
    try:
        task = asyncio.current_task()
    except RuntimeError:
        return 0
    return 0 if task is None else task.cancelling()
