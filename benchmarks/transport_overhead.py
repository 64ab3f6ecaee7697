"""What a call costs that needs nothing: no refusal, no wait, no second attempt.

Two questions. In isolation, over a transport that answers at once: how many microseconds do
retrying, recording and vending add? Over loopback, against a responder in another process: how much
more CPU does a POST take than with the bare client?

    python benchmarks/transport_overhead.py [--rounds 25] [--requests 200]

All rows take turns within a round, and each is compared with the first row of its own round, since
other programs slow a whole round down. The second row is the first one again (A/A): what differs
there is noise. The unit `loop` is the time of a fixed piece of Python, for comparing machines.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import gc
import multiprocessing
import socket
import time
from collections.abc import Awaitable, Callable, Generator, Mapping, Sequence
from datetime import UTC, datetime
from statistics import median, quantiles
from typing import Any

import httpx2
from figures import figure

from surefoot import Gateway
from surefoot.credentials import Bearer, StaticCredentials
from surefoot.evidence import Ledger
from surefoot.transports import RetryingTransport, VendingTransport

BODY = (
    b'{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"add","arguments":{"a":1,"b":2}'
    b',"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",'
    b'"io.modelcontextprotocol/clientInfo":{"name":"mcp","version":"0.1.0"},'
    b'"io.modelcontextprotocol/clientCapabilities":{}}}}'
)
ANSWER = (
    b'{"jsonrpc":"2.0","id":3,"result":{"content":[{"text":"3","type":"text"}],"isError":false,'
    b'"resultType":"complete","structuredContent":{"result":3},"_meta":'
    b'{"io.modelcontextprotocol/serverInfo":{"name":"server","version":"1.0.0"}}}}'
)
HEADERS = {
    "accept": "application/json, text/event-stream",
    "content-type": "application/json",
    "mcp-protocol-version": "2026-07-28",
    "mcp-method": "tools/call",
    "mcp-name": "add",
}
TOKEN = "bench-" + "t" * 120
Row = Callable[[int], Awaitable[float]]
"""Makes so many requests, and says how many seconds of CPU one of them took."""


class Nowhere:
    """A sink that forgets."""

    def emit(self, event: Mapping[str, object]) -> None:
        """Forget."""


class NullTransport:
    """Answers at once."""

    lines = (
        (b"content-type", b"application/json"),
        (b"content-length", b"%d" % len(ANSWER)),
    )

    async def handle_async_request(self, request: Any) -> httpx2.Response:
        """Answer as a server would."""
        del request
        return httpx2.Response(200, headers=self.lines, stream=httpx2.ByteStream(ANSWER))

    async def aclose(self) -> None:
        """Nothing is open."""


def ledger() -> Ledger:
    """Where evidence goes while a run is open."""
    return Ledger(Nowhere(), run="bench", now=lambda: datetime.now(UTC))


def credentials() -> StaticCredentials:
    """A token of a usual length."""
    return StaticCredentials(Bearer(TOKEN))


def layers(wire: Any, **settings: Any) -> RetryingTransport:
    """Retrying, recording and vending over a transport."""
    return RetryingTransport(VendingTransport(wire, credentials=credentials()), **settings)


# ---------------------------------------------------------------------------------------- isolated


def calibration() -> float:
    """The seconds of a fixed piece of Python."""
    started = time.process_time()
    for _ in range(200):
        sum(range(100))
    return (time.process_time() - started) / 200


def isolated(transport: Any) -> Row:
    """Hand requests to a transport; nobody reads the answers."""
    client = httpx2.AsyncClient()
    requests = [
        client.build_request("POST", "http://127.0.0.1:8000/mcp", content=BODY, headers=HEADERS)
        for _ in range(20)
    ]

    async def row(count: int) -> float:
        started = time.process_time()
        for number in range(count):
            await transport.handle_async_request(requests[number % 20])
        return (time.process_time() - started) / count

    return row


async def measure(rows: Mapping[str, Row], rounds: int, count: int) -> dict[str, list[float]]:
    """Let the rows take turns, and start each round with another one."""
    seconds: dict[str, list[float]] = {name: [] for name in rows}
    seconds["loop"] = []
    names = list(rows)
    for row in rows.values():
        await row(20)
    gc.collect()
    gc.freeze()
    for number in range(rounds):
        turn = number % len(names)
        gc.collect()
        gc.disable()
        for name in names[turn:] + names[:turn]:
            seconds[name].append(await rows[name](count))
        seconds["loop"].append(calibration())
        gc.enable()
    return seconds


async def in_isolation(rounds: int, count: int) -> None:
    """Print the first table."""
    null = NullTransport()
    rows = {
        "null transport": isolated(null),
        "null transport (A/A)": isolated(null),
        "vending": isolated(VendingTransport(null, credentials=credentials())),
        "retrying, recording": isolated(RetryingTransport(null)),
        "retrying, recording, vending": isolated(layers(null)),
        "  and a run is open": isolated(layers(null, ledger=ledger())),
    }
    seconds = await measure(rows, rounds, count)
    base, loop = seconds["null transport"], seconds["loop"]
    print(f"\nin isolation: {rounds} rounds of {count} requests, medians, microseconds of CPU")
    print(f"{'':30}{'each':>9}{'above null':>12}{'least above':>13}{'in loops':>10}")
    for name in rows:
        above = [one - other for one, other in zip(seconds[name], base, strict=True)]
        loops = [one / other for one, other in zip(above, loop, strict=True)]
        least = min(seconds[name]) - min(base)
        print(
            f"{name:30}{median(seconds[name]) * 1e6:9.2f}{median(above) * 1e6:12.2f}"
            f"{least * 1e6:13.2f}{median(loops):10.1f}"
        )
        if name == "retrying, recording, vending":
            # Promised where a loop took 0.55 us; a slower machine is given as much more.
            promised = 15 * min(loop) * 1e6 / 0.55
            what = f"in isolation: {name}"
            figure(what, least * 1e6, "us", against="nothing", at_most=promised)
    print(f"a loop took {median(loop) * 1e6:.2f}, at least {min(loop) * 1e6:.2f}")


async def for_the_gate() -> None:
    """Print one number: how many loops the layers add at least, in isolation."""
    null = NullTransport()
    rows = {"null": isolated(null), "layers": isolated(layers(null))}
    seconds = await measure(rows, 40, 100)
    print((min(seconds["layers"]) - min(seconds["null"])) / min(seconds["loop"]))


# ---------------------------------------------------------------------------------------- loopback


class Responder(asyncio.Protocol):
    """Answers every POST with the same bytes, and reads no more of it than where it ends."""

    answer = (
        b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%s"
        % (len(ANSWER), ANSWER)
    )

    def connection_made(self, transport: Any) -> None:
        """Begin with nothing read."""
        self._transport = transport
        self._read = b""

    def data_received(self, data: bytes) -> None:
        """Answer each request that is complete."""
        self._read += data
        while (end := self._read.find(b"\r\n\r\n")) >= 0:
            head = self._read[:end].lower()
            length = int(head.split(b"content-length:")[1].split(b"\r\n")[0])
            if len(self._read) < end + 4 + length:
                return
            self._read = self._read[end + 4 + length :]
            self._transport.write(self.answer)


def respond(listener: socket.socket, protocol: type[asyncio.Protocol]) -> None:
    """Serve in a process of its own, until it is ended."""

    async def serve() -> None:
        server = await asyncio.get_running_loop().create_server(protocol, sock=listener)
        await server.serve_forever()

    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(serve())


@contextlib.contextmanager
def responder(protocol: type[asyncio.Protocol] = Responder) -> Generator[str]:
    """The URL of a responder in another process."""
    listener = socket.create_server(("127.0.0.1", 0), backlog=512)
    process = multiprocessing.get_context("fork").Process(target=respond, args=(listener, protocol))
    process.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/mcp"
    finally:
        listener.close()
        process.terminate()
        process.join(5)


def posting(client: httpx2.AsyncClient, url: str, headers: Mapping[str, str] = HEADERS) -> Row:
    """Post, one request after the other, and read the answers."""

    async def row(count: int) -> float:
        started = time.process_time()
        for _ in range(count):
            answer = await client.post(url, content=BODY, headers=headers)
            assert answer.content == ANSWER
        return (time.process_time() - started) / count

    return row


async def over_loopback(rounds: int, count: int) -> None:
    """Print the second table."""
    with responder() as url:
        gateway = Gateway(url, credentials=credentials())

        def through(transport: Any) -> httpx2.AsyncClient:
            return httpx2.AsyncClient(transport=transport)

        wire = httpx2.AsyncHTTPTransport
        clients = {
            "bare httpx2": through(wire()),
            "bare httpx2 (A/A)": through(wire()),
            "retrying, recording, vending": through(layers(wire())),
            "  and a run is open": through(layers(wire(), ledger=ledger())),
            "all layers of a Gateway": gateway.http_client(),
        }
        # On the wire every row is the same: the bare client is given the credential as a header.
        own = {**HEADERS, "authorization": f"Bearer {TOKEN}"}
        rows = {
            name: posting(client, url, own if name.startswith("bare") else HEADERS)
            for name, client in clients.items()
        }
        seconds = await measure(rows, rounds, count)
        for client in clients.values():
            await client.aclose()
    print(f"\nover loopback: {rounds} rounds of {count} POSTs, medians, CPU of the client")
    for name, ratio in against_the_first({name: seconds[name] for name in rows}).items():
        at_most = 1.05 if name == "retrying, recording, vending" else None
        figure(f"a POST: {name.strip()}", ratio, "x", against="bare httpx2", at_most=at_most)


def against_the_first(seconds: Mapping[str, Sequence[float]]) -> dict[str, float]:
    """Print and return how many times the first row of its own round each other row takes."""
    first = next(iter(seconds))
    found: dict[str, float] = {}
    print(f"{'':30}{'us':>9}{'ratio':>9}   middle half of the rounds")
    for name, taken in seconds.items():
        ratios = [one / other for one, other in zip(taken, seconds[first], strict=True)]
        low, _, high = quantiles(ratios, n=4)
        print(f"{name:30}{median(taken) * 1e6:9.1f}{median(ratios):9.3f}   {low:.3f} to {high:.3f}")
        if not name.startswith("bare"):
            found[name] = median(ratios)
    return found


def main() -> None:
    """Read the command line, and print both tables."""
    parser = argparse.ArgumentParser(description="The cost of a call that needs nothing.")
    parser.add_argument("--rounds", type=int, default=25)
    parser.add_argument("--requests", type=int, default=200)
    parser.add_argument("--gate", action="store_true", help="one number, for the test of it")
    options = parser.parse_args()
    if options.gate:
        asyncio.run(for_the_gate())
        return
    asyncio.run(in_isolation(options.rounds * 2, options.requests))
    # Short turns: what slows the machine down for a moment then slows all rows alike.
    asyncio.run(over_loopback(options.rounds * 16, max(1, options.requests // 25)))


if __name__ == "__main__":
    main()
