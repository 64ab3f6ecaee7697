"""B9, B10, R123. Who waits for a credential that another event loop fetches is not forgotten."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncGenerator, Callable
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any

import anyio
import httpx
import pytest
from anyio import to_thread

from support.issuers import PLAIN, Issuer, token_of
from surefoot.credentials import CredentialRequest, SharedCredentials, adopt

URL = "https://tools.example/mcp"


class Locked(httpx.Auth):
    """As the SDK's providers: keeps a token, and holds a lock of one loop while it makes one."""

    def __init__(self, make: Callable[[], Any]) -> None:
        self.context = SimpleNamespace(
            current_tokens=None, lock=anyio.Lock(), token_expiry_time=None, server_url=URL
        )
        self.make = make
        self.made = 0

    async def async_auth_flow(
        self, request: httpx.Request
    ) -> AsyncGenerator[httpx.Request, httpx.Response]:
        async with self.context.lock:
            self.made += 1
            number = self.made
            await self.make()
            request.headers["authorization"] = f"Bearer t{number}"
            yield request


def _left_behind(
    loop: asyncio.AbstractEventLoop, vend: Callable[[], Any], begun: Callable[[], object]
) -> asyncio.Task[Any]:
    """Begin a vend on a loop, and stop the loop in the middle of it."""

    async def begin() -> asyncio.Task[Any]:
        task = asyncio.ensure_future(vend())
        with anyio.fail_after(10):
            while not begun():
                await asyncio.wait({task}, timeout=0.01)
        return task

    return loop.run_until_complete(begin())


def _ended(loop: asyncio.AbstractEventLoop, task: asyncio.Task[Any]) -> None:
    task.cancel()
    loop.run_until_complete(asyncio.wait({task}))
    loop.close()


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_a_refresh_on_a_loop_that_was_stopped_holds_up_nobody_elsewhere(backend: str) -> None:
    """B9. What the stopped one brings when its loop goes on after all disturbs nobody."""
    issuer = Issuer()
    gate = issuer.gate = anyio.Event()
    shared = SharedCredentials(issuer)
    loop = asyncio.new_event_loop()
    task = _left_behind(loop, lambda: shared.vend(PLAIN), lambda: issuer.entered)
    issuer.gate = None

    async def here() -> list[str]:
        with anyio.fail_after(10):
            return [await token_of(shared), await token_of(shared)]

    assert anyio.run(here, backend=backend) == ["t1", "t1"]

    async def goes_on() -> None:
        gate.set()
        await task

    loop.run_until_complete(goes_on())
    loop.close()
    assert issuer.entered == 2


def test_an_adopted_provider_whose_loop_was_stopped_serves_another_loop() -> None:
    """B10. The lock of the provider was never let go of."""
    hangs = [True]

    async def make() -> None:
        if hangs[0]:
            await anyio.sleep_forever()

    auth = Locked(make)
    adopted = adopt(auth, url=URL)
    loop = asyncio.new_event_loop()
    task = _left_behind(loop, lambda: adopted.vend(PLAIN), lambda: auth.made)
    hangs[0] = False

    async def here() -> tuple[bytes, ...]:
        with anyio.fail_after(10):
            vended: Any = await adopted.vend(PLAIN)
            return vended.secrets()

    assert asyncio.run(here()) == (b"t2",)
    _ended(loop, task)


def test_an_adopted_provider_asked_for_different_scopes_on_two_loops_wakes_both() -> None:
    """B10. Its own lock wakes nobody on another loop until something else does."""
    gate = threading.Event()
    begun = [threading.Event(), threading.Event()]

    async def make() -> None:
        begun[0].set()
        await to_thread.run_sync(gate.wait)

    adopted = adopt(Locked(make), url=URL)

    def ask(number: int) -> float:
        async def vend() -> None:
            if number:
                begun[number].set()
            await adopted.vend(CredentialRequest(scopes=("x",) if number else ()))

        async def bounded() -> None:
            with anyio.fail_after(10):
                await vend()

        asyncio.run(bounded())
        return time.monotonic()

    with ThreadPoolExecutor(2) as threads:
        first = threads.submit(ask, 0)
        assert begun[0].wait(5)
        second = threads.submit(ask, 1)
        assert begun[1].wait(5)
        time.sleep(0.3)  # noqa: TID251 - until it waits for the other, of which nothing tells
        gate.set()
        assert abs(second.result() - first.result()) < 5
