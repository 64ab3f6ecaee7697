"""What a call costs is held in CI: what it takes to pass, and what it holds while it waits.

The unit of the first is the time of a fixed piece of Python, which is 0.55 microseconds where the
promise of 15 microseconds was made, so that a slow machine has it, too. The least of many rounds is
compared, since noise only ever adds.
"""

from __future__ import annotations

import asyncio
import gc
import os
import subprocess
import sys
import tracemalloc
from pathlib import Path
from typing import Any, Final

import anyio
import anyio.lowlevel
import httpx2
import pytest

from support.sending import URL, message
from surefoot.credentials import Bearer, StaticCredentials
from surefoot.policy import Retry
from surefoot.transports import RetryingTransport, VendingTransport

BENCHMARK: Final = Path(__file__).parents[2] / "benchmarks" / "transport_overhead.py"
PROMISED_LOOPS: Final = 15 / 0.55
TRIES: Final = 3
"""A machine that is busy all the while is given more than one chance."""


def _loops() -> float:
    # Not measured by coverage, which makes our own code slow and not the unit.
    kept = {name: value for name, value in os.environ.items() if not name.startswith("COVERAGE")}
    done = subprocess.run(
        [sys.executable, str(BENCHMARK), "--gate"],
        env=kept,
        check=True,
        capture_output=True,
        text=True,
        timeout=50,
    )
    return float(done.stdout)


def test_retrying_recording_and_vending_cost_no_more_than_was_promised() -> None:
    """R79, R105. On by default, for every request: so it has to cost next to nothing."""
    measured = [_loops()]
    while measured[-1] > PROMISED_LOOPS and len(measured) < TRIES:
        measured.append(_loops())
    assert min(measured) <= PROMISED_LOOPS, measured
    # The control: something was measured at all.
    assert min(measured) > 1


# ------------------------------------------------------------------------------- calls that wait

PARKED: Final = 300
PROMISED_BYTES: Final = 2.5 * 1024


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


async def _held(wire: Sleeps, transport: Any) -> float:
    """Bytes that each waiting call holds; then all of them are cancelled, and are gone."""
    client = httpx2.AsyncClient(transport=transport, timeout=None)
    before = asyncio.all_tasks()
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
        held = (tracemalloc.get_traced_memory()[0] - began) / calls
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks, timeout=20)
        assert all(task.cancelled() for task in tasks)
        tasks.clear()
    assert asyncio.all_tasks() == before
    await client.aclose()
    return held


@pytest.mark.anyio
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_a_call_that_waits_holds_little_more_than_one_asleep_in_a_bare_transport(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """B2, D11, invariant 16. Thousands may wait at once; cancelled, they are gone at once."""
    refuses, sleeps = Refuses(), Sleeps()
    vending = VendingTransport(refuses, credentials=StaticCredentials(Bearer("token-of-1")))
    patient = RetryingTransport(vending, retry=Retry(max_wait=None, spread=0))
    caplog.set_level("ERROR", logger="surefoot")  # records that are kept are no call's
    tracemalloc.start()
    try:
        bare = await _held(sleeps, sleeps)
        waiting = min([await _held(refuses, patient) for _ in range(3)])
    finally:
        tracemalloc.stop()
    assert bare > 1024  # (the control: something was measured at all)
    assert waiting - bare <= PROMISED_BYTES
