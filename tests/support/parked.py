"""What a waiting call holds, measured in a process that runs nothing else.

Coverage and the records that others keep would be counted as well. Prints the bytes of a call that
is asleep in a bare transport and, below, of one that waits in our layers.
"""

from __future__ import annotations

import asyncio
import gc
import sys
import tracemalloc
from typing import Any, Final

import anyio
import anyio.lowlevel
import httpx2

from support.sending import URL, message
from surefoot.credentials import Bearer, StaticCredentials
from surefoot.policy import Retry
from surefoot.transports import RetryingTransport, VendingTransport

PARKED: Final = 300


class Sleeps:
    """Sleeps inside the transport, as long as the others wait."""

    asleep = 0

    async def handle_async_request(self, request: Any) -> Any:
        """Sleep."""
        del request
        self.asleep += 1
        await anyio.sleep(600)

    async def aclose(self) -> None:
        """Nothing is open."""


class Refuses(Sleeps):
    """Refuses, and says for how long."""

    async def handle_async_request(self, request: Any) -> Any:
        """Refuse."""
        del request
        self.asleep += 1
        headers = {"retry-after": "600"}
        return httpx2.Response(429, headers=headers, stream=httpx2.ByteStream(b""))


async def held(wire: Sleeps, transport: Any) -> float:
    """Bytes that each waiting call holds; then all of them are cancelled, and are gone."""
    client = httpx2.AsyncClient(transport=transport, timeout=None)
    before = asyncio.all_tasks()
    each = 0.0
    for calls in (20, PARKED):  # (a few first, so that what is made once is not counted)
        wire.asleep = 0
        gc.collect()
        began, _ = tracemalloc.get_traced_memory()
        tasks = [
            asyncio.ensure_future(client.post(URL, content=message().body)) for _ in range(calls)
        ]
        with anyio.fail_after(20):
            while wire.asleep < calls:  # noqa: ASYNC110 - nobody in there says when it is asleep
                await anyio.sleep(0.005)
            for _ in range(20):
                await anyio.lowlevel.checkpoint()
        gc.collect()
        each = (tracemalloc.get_traced_memory()[0] - began) / calls
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks, timeout=20)
        assert all(task.cancelled() for task in tasks)
        tasks.clear()
    assert asyncio.all_tasks() == before
    await client.aclose()
    return each


async def main() -> None:
    """Measure both."""
    refuses, sleeps = Refuses(), Sleeps()
    vending = VendingTransport(refuses, credentials=StaticCredentials(Bearer("token-of-1")))
    patient = RetryingTransport(vending, retry=Retry(max_wait=None, spread=0))
    tracemalloc.start()
    bare = await held(sleeps, sleeps)
    waiting = min([await held(refuses, patient) for _ in range(3)])
    sys.stdout.write(f"{bare} {waiting}\n")


if __name__ == "__main__":
    asyncio.run(main())
