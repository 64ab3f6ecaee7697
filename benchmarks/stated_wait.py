"""Whether a stated wait is ever cut short, by the clock of the server that stated it.

Calls in waves are refused once each, with a number of seconds; when a call comes back, the server
looks how long it was away. One process serves and another one calls, over loopback; both read the
same monotonic clock of the machine.

    python benchmarks/stated_wait.py [--calls 1000]
"""

from __future__ import annotations

import argparse
import asyncio
import multiprocessing
import socket
import time
from multiprocessing.connection import Connection
from statistics import median
from typing import Any

import httpx2
from figures import figure

from surefoot import Retry
from surefoot.transports import RetryingTransport

AWAY = 1.0
"""Seconds: `Retry-After` counts whole ones."""

OK = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\ncontent-type: application/json\r\n\r\n{}"
REFUSED = b"HTTP/1.1 429 Too Many Requests\r\ncontent-length: 0\r\nretry-after: %d\r\n\r\n" % AWAY


class Server(asyncio.Protocol):
    """Refuses each number once, and notes when it was back."""

    refused: dict[bytes, float]
    back: dict[bytes, float]

    def connection_made(self, transport: Any) -> None:
        """Begin with nothing read."""
        self._transport = transport
        self._read = b""

    def data_received(self, data: bytes) -> None:
        """Refuse or answer, by the number in the path."""
        now = time.monotonic()
        self._read += data
        while (end := self._read.find(b"\r\n\r\n")) >= 0:
            head, self._read = self._read[:end], self._read[end + 4 :]
            number = head.split(b" ")[1]
            if number in self.refused:
                self.back[number] = now
                self._transport.write(OK)
            else:
                self._transport.write(REFUSED)
                # Noted when it was written: on the wire it was not before.
                self.refused[number] = time.monotonic()


def serve(listener: socket.socket, results: Connection, calls: int) -> None:
    """Serve until all are back, and say how long each was away."""
    Server.refused, Server.back = {}, {}

    async def run() -> None:
        server = await asyncio.get_running_loop().create_server(Server, sock=listener)
        ends = time.monotonic() + 120
        while len(Server.back) < calls and time.monotonic() < ends:  # noqa: ASYNC110
            await asyncio.sleep(0.05)
        server.close()

    asyncio.run(run())
    results.send([Server.back[number] - Server.refused[number] for number in Server.back])


async def call(port: int, calls: int, *, spread: float) -> None:
    """Let them all go at once, over a pool of connections."""
    retry = Retry(spread=spread, max_wait=AWAY * 4)
    limits = httpx2.Limits(max_connections=200, max_keepalive_connections=200)
    wire = httpx2.AsyncHTTPTransport(limits=limits)
    async with httpx2.AsyncClient(transport=RetryingTransport(wire, retry=retry)) as client:

        async def one(number: int) -> None:
            response = await client.get(f"http://127.0.0.1:{port}/{number}", timeout=60)
            assert response.status_code == 200

        async with asyncio.TaskGroup() as tasks:
            for number in range(calls):
                tasks.create_task(one(number))
                if number % 50 == 49:
                    await asyncio.sleep(0.02)


def measure(calls: int, *, spread: float) -> list[float]:
    """Seconds that each call was away."""
    listener = socket.create_server(("127.0.0.1", 0), backlog=512)
    ours, theirs = multiprocessing.Pipe()
    process = multiprocessing.get_context("fork").Process(
        target=serve, args=(listener, theirs, calls)
    )
    process.start()
    port = listener.getsockname()[1]
    listener.close()
    asyncio.run(call(port, calls, spread=spread))
    away: list[float] = ours.recv()
    process.join(10)
    return sorted(away)


def main() -> None:
    """Read the command line, and print the table."""
    parser = argparse.ArgumentParser(description="Whether a stated wait is ever cut short.")
    parser.add_argument("--calls", type=int, default=1000)
    options = parser.parse_args()
    print(f"{options.calls} calls that were told {AWAY:g} s, by the server's clock")
    print(f"{'spread':>8}{'waits':>8}{'early':>7}{'shortest':>12}{'median':>10}{'longest':>10}")
    for spread in (0.0, 0.5):
        away = measure(options.calls, spread=spread)
        early = sum(seconds < AWAY for seconds in away)
        print(
            f"{spread:8g}{len(away):8d}{early:7d}{away[0]:12.6f}{median(away):10.3f}"
            f"{away[-1]:10.3f}"
        )
        what = f"stated waits of {AWAY:g} s cut short, spread {spread:g}"
        figure(what, early, f"of {len(away)}", at_most=0)


if __name__ == "__main__":
    main()
