"""What ten thousand calls cost that wait, and how fast they are gone when they are cancelled.

Each row runs in a process of its own: so many calls through ``client.post``, all asleep at once, in
a transport that only sleeps (bare), or in the wait after a refusal. Resident memory is read before
and after, and compared with the bare row. Then all of them are cancelled at once.

    python benchmarks/parked_calls.py [--calls 10000] [--rounds 3]
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import anyio
import httpx2
from figures import figure

from surefoot import Gateway, Retry
from surefoot.credentials import Bearer, StaticCredentials
from surefoot.transports import RetryingTransport, VendingTransport

URL = "http://127.0.0.1:8000/mcp"
BODY = (
    b'{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"add","arguments":{"a":1,"b":2}'
    b',"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}'
)
HEADERS = {"content-type": "application/json", "mcp-protocol-version": "2026-07-28"}
PATIENT = Retry(max_wait=None, spread=0)
SECONDS = 600


class Sleeps:
    """Sleeps as long as the others wait."""

    parked = 0

    async def handle_async_request(self, request: Any) -> Any:
        """Sleep."""
        del request
        self.parked += 1
        await anyio.sleep(SECONDS)

    async def aclose(self) -> None:
        """Nothing is open."""


class Refuses:
    """Refuses at once, and says for how long."""

    parked = 0

    async def handle_async_request(self, request: Any) -> Any:
        """Refuse."""
        del request
        self.parked += 1
        return httpx2.Response(
            429,
            headers=[(b"retry-after", b"%d" % SECONDS), (b"content-length", b"0")],
            stream=httpx2.ByteStream(b""),
        )

    async def aclose(self) -> None:
        """Nothing is open."""


def _bare() -> tuple[httpx2.AsyncClient, Any]:
    wire = Sleeps()
    return httpx2.AsyncClient(transport=wire, timeout=None), wire


def _layers() -> tuple[httpx2.AsyncClient, Any]:
    wire = Refuses()
    vending = VendingTransport(wire, credentials=StaticCredentials(Bearer("bench-token")))
    transport = RetryingTransport(vending, retry=PATIENT)
    return httpx2.AsyncClient(transport=transport, timeout=None), wire


def _gateway() -> tuple[httpx2.AsyncClient, Any]:
    wire = Refuses()
    gateway = Gateway(URL, credentials=Bearer("bench-token"), retry=PATIENT)
    client = httpx2.AsyncClient(transport=wire, timeout=None)
    gateway.protect(client)
    return client, wire


ROWS: dict[str, Callable[[], tuple[httpx2.AsyncClient, Any]]] = {
    "asleep in a bare transport": _bare,
    "asleep in a bare transport (A/A)": _bare,
    "waiting in retrying, vending": _layers,
    "waiting in a Gateway": _gateway,
}


def _resident() -> int:
    gc.collect()
    lines = Path("/proc/self/status").read_text("utf-8").splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmRSS:"))


async def _park(row: str, calls: int) -> dict[str, float]:
    client, wire = ROWS[row]()
    before_tasks = asyncio.all_tasks()
    # A few first, so that nothing that is built once is counted.
    await _cancelled(await _started(client, wire, 50))
    before = _resident()
    tasks = await _started(client, wire, calls)
    held = _resident() - before
    seconds = await _cancelled(tasks)
    assert all(task.cancelled() for task in tasks)
    del tasks
    assert asyncio.all_tasks() == before_tasks
    left = sum(type(one).__name__ in ("Record", "Series") for one in gc.get_objects())
    return {"each": held / calls, "cancelled": seconds, "left": left}


async def _started(client: httpx2.AsyncClient, wire: Any, calls: int) -> list[asyncio.Task[Any]]:
    wire.parked = 0
    tasks = [
        asyncio.ensure_future(client.post(URL, content=BODY, headers=HEADERS)) for _ in range(calls)
    ]
    while wire.parked < calls:  # noqa: ASYNC110 - nobody in there says when it is asleep
        await asyncio.sleep(0.01)
    for _ in range(20):
        await asyncio.sleep(0)
    return tasks


async def _cancelled(tasks: list[asyncio.Task[Any]]) -> float:
    # In seconds of CPU: on a machine that does nothing else they are the same.
    started = time.process_time()
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)
    return time.process_time() - started


def main() -> None:
    """Read the command line, and print the table."""
    parser = argparse.ArgumentParser(description="The cost of calls that wait.")
    parser.add_argument("--calls", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--row", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.row is not None:
        print(json.dumps(asyncio.run(_park(options.row, options.calls))))
        return
    found: dict[str, list[dict[str, float]]] = {name: [] for name in ROWS}
    for _ in range(options.rounds):
        for name in ROWS:
            command = [sys.executable, __file__, "--row", name, "--calls", str(options.calls)]
            out = subprocess.run(command, check=True, capture_output=True, text=True)  # noqa: S603
            found[name].append(json.loads(out.stdout))
    base = median(one["each"] for one in found["asleep in a bare transport"])
    print(f"{options.calls} calls, {options.rounds} rounds, medians")
    print(f"{'':36}{'KiB each':>10}{'above bare':>12}{'cancelled, CPU s':>18}{'left':>6}")
    for name, runs in found.items():
        each = median(one["each"] for one in runs)
        seconds = median(one["cancelled"] for one in runs)
        left = max(one["left"] for one in runs)
        print(f"{name:36}{each / 1024:10.2f}{(each - base) / 1024:12.2f}{seconds:18.3f}{left:6.0f}")
        if "bare" not in name:
            what = f"a waiting call: {name}"
            more = (each - base) / 1024
            figure(what, more, "KiB", against="the same call asleep, bare", at_most=2.5)
            figure(f"{what}: all {options.calls} cancelled at once", seconds, "s of CPU", at_most=1)
            figure(f"{what}: kept after that", left, "records and series", at_most=0)


if __name__ == "__main__":
    main()
