"""What a whole Gateway costs a call that needs nothing: over nothing, over loopback, under the SDK.

    python benchmarks/stack_overhead.py [--rounds 25] [--requests 200] [--only json,sse,...]

Three questions. Over a transport that answers at once: how many microseconds do all layers add?
Over loopback, against a responder in another process that is no HTTP library: how much more does a
POST cost than with the bare client, for a JSON answer of 300 bytes and for an event stream? And how
much more, or less, does ``mcp.Client.call_tool`` cost? (Less is possible: the SDK drops the
connection of each streamed answer, and a Gateway keeps it.)

All rows take turns within a round and are compared with the first row of their own round; the
second row is the first one again (A/A), and what differs there is noise. Figures are CPU time of
this process; the last column is the clock, which also counts waiting for the responder.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import gc
import re
import socket
import time
from collections.abc import Awaitable, Callable, Mapping
from statistics import median, quantiles
from typing import Any, Final

import httpx2
import mcp
from figures import figure
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client
from transport_overhead import (
    ANSWER,
    BODY,
    HEADERS,
    TOKEN,
    NullTransport,
    credentials,
    responder,
)

from surefoot import Gateway
from surefoot.transports import AnsweringTransport, ReadingTransport

URL: Final = "http://127.0.0.1:8000/mcp"
EVENT: Final = b"event: message\r\ndata: %b\r\n\r\n" % ANSWER
STREAM: Final = ((b"content-type", b"text/event-stream"), (b"cache-control", b"no-store"))

Row = Callable[[int], Awaitable[None]]
"""Makes so many requests, one after the other."""

_ID: Final = re.compile(rb'"id":([0-9]+)')
_TOOLS: Final = (
    b'{"tools":[{"name":"add","inputSchema":{"type":"object"}}],"ttlMs":3600000,'
    b'"cacheScope":"private","resultType":"complete"}'
)
_DISCOVERED: Final = (
    b'{"supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"ttlMs":0,'
    b'"cacheScope":"private","resultType":"complete"}'
)


class Server(asyncio.Protocol):
    """Answers what the SDK asks, and reads no more of it than it has to."""

    events = False

    def connection_made(self, transport: Any) -> None:
        """Begin with nothing read."""
        self._transport = transport
        self._read = b""
        # As every server does: two small writes in a row would otherwise wait for 40 ms.
        transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def data_received(self, data: bytes) -> None:
        """Answer each request that is complete."""
        self._read += data
        while (end := self._read.find(b"\r\n\r\n")) >= 0:
            head = self._read[:end].lower()
            length = int(head.split(b"content-length:")[1].split(b"\r\n")[0])
            if len(self._read) < end + 4 + length:
                return
            body = self._read[end + 4 : end + 4 + length]
            self._read = self._read[end + 4 + length :]
            self._answer(body)

    def _answer(self, body: bytes) -> None:
        found = _ID.search(body)
        number = b"null" if found is None else found[1]
        if b'"server/discover"' in body or b'"tools/list"' in body:
            result = _DISCOVERED if b'"server/discover"' in body else _TOOLS
            self._whole(b'{"jsonrpc":"2.0","id":%b,"result":%b}' % (number, result))
            return
        answer = ANSWER.replace(b'"id":3', b'"id":%b' % number, 1)
        if not self.events:
            self._whole(answer)
            return
        event = b"event: message\r\ndata: %b\r\n\r\n" % answer
        self._transport.write(
            b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncache-control: no-store\r\n"
            b"transfer-encoding: chunked\r\n\r\n%x\r\n%b\r\n" % (len(event), event)
        )
        # A server ends its stream a moment after the event, in a write of its own.
        asyncio.get_running_loop().call_soon(self._transport.write, b"0\r\n\r\n")

    def _whole(self, answer: bytes) -> None:
        self._transport.write(
            b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%b"
            % (len(answer), answer)
        )


class EventServer(Server):
    """The same, with event streams."""

    events = True


class NullStream(httpx2.AsyncByteStream):
    """One event, and the end."""

    async def __aiter__(self) -> Any:
        """Yield it."""
        yield EVENT

    async def aclose(self) -> None:
        """Nothing is open."""


class NullEvents(NullTransport):
    """Answers at once, with an event stream."""

    async def handle_async_request(self, request: Any) -> httpx2.Response:
        """Answer as a server would."""
        del request
        return httpx2.Response(200, headers=STREAM, stream=NullStream())


async def measure(rows: Mapping[str, Row], rounds: int, count: int) -> dict[str, Any]:
    """Let the rows take turns; CPU and clock of each turn, for one request."""
    taken: dict[str, Any] = {name: ([], []) for name in rows}
    names = list(rows)
    for row in rows.values():
        await row(20)
    for number in range(rounds):
        turn = number % len(names)
        for name in names[turn:] + names[:turn]:
            gc.collect()
            gc.disable()
            clock, cpu = time.perf_counter(), time.process_time()
            await rows[name](count)
            taken[name][0].append((time.process_time() - cpu) / count * 1e6)
            taken[name][1].append((time.perf_counter() - clock) / count * 1e6)
            gc.enable()
    return taken


TARGETS: Final[Mapping[str, float]] = {
    "in isolation, JSON of 300 bytes": 20.0,
    "a POST over loopback, JSON of 300 bytes": 1.08,
    "a POST over loopback, an event stream": 1.17,
    "mcp.Client.call_tool, JSON of 300 bytes": 1.07,
    "mcp.Client.call_tool, an event stream": 0.90,
}
"""What a whole Gateway was to cost at most: microseconds, or times the bare client."""


def show(title: str, taken: Mapping[str, Any], *, ratio: bool) -> None:
    """Print one table."""
    first = next(iter(taken.values()))
    print(f"\n{title}")
    print(f"{'':34}{'us':>8}{'least':>8}{'above':>8}{'ratio':>8}   middle half   by the clock")
    for name, (cpu, clock) in taken.items():
        ratios = [one / other for one, other in zip(cpu, first[0], strict=True)]
        clocks = [one / other for one, other in zip(clock, first[1], strict=True)]
        low, _, high = quantiles(ratios, n=4)
        above = min(cpu) - min(first[0])
        figures = f"{median(cpu):8.1f}{min(cpu):8.1f}{above:8.1f}"
        if ratio:
            figures += f"{median(ratios):8.3f}   {low:.3f}-{high:.3f}   {median(clocks):.3f}"
        print(f"{name:34}{figures}")
        if "Gateway" not in name:
            continue
        value, unit = (median(ratios), "x") if ratio else (above, "us")
        against, at_most = next(iter(taken)), TARGETS.get(title)
        figure(f"{title}: {name}", value, unit, against=against, at_most=at_most)


def isolated(transport: Any) -> Row:
    """Hand requests to a transport, and read the answers as a client does."""
    client = httpx2.AsyncClient()
    requests = [client.build_request("POST", URL, content=BODY, headers=HEADERS) for _ in range(20)]

    async def row(count: int) -> None:
        for number in range(count):
            response = await transport.handle_async_request(requests[number % 20])
            if not isinstance(response.stream, httpx2.ByteStream):
                async for _ in response.stream:
                    pass
                await response.stream.aclose()

    return row


def stack_over(transport: Any) -> Any:
    """All layers of a Gateway over a transport."""
    gateway = Gateway(URL, credentials=credentials())
    client: Any = gateway.protect(httpx2.AsyncClient(transport=transport))
    return client._transport  # noqa: SLF001 - what is measured


async def in_isolation(null: Any, title: str, rounds: int, count: int) -> None:
    """Print the table of one kind of answer."""
    rows = {
        "null transport": isolated(null),
        "null transport (A/A)": isolated(null),
        "reading": isolated(ReadingTransport(null)),
        "answering, reading": isolated(AnsweringTransport(ReadingTransport(null))),
        "all layers of a Gateway": isolated(stack_over(null)),
    }
    show(f"in isolation, {title}", await measure(rows, rounds, count), ratio=False)


def posting(client: httpx2.AsyncClient, url: str) -> Row:
    """Post, one request after the other, and read the answers to their end."""

    async def row(count: int) -> None:
        for _ in range(count):
            answer = await client.post(url, content=BODY, headers=HEADERS)
            assert b'"structuredContent"' in answer.content

    return row


async def over_loopback(server: type[Server], title: str, rounds: int, count: int) -> None:
    """Print the table of POSTs."""
    with responder(server) as url:
        gateway = Gateway(url, credentials=credentials())
        secret = {"authorization": f"Bearer {TOKEN}"}
        bare = {
            name: httpx2.AsyncClient(headers=secret)
            for name in ("bare httpx2", "bare httpx2 (A/A)")
        }
        clients = {**bare, "through a Gateway": gateway.http_client()}
        rows = {name: posting(client, url) for name, client in clients.items()}
        taken = await measure(rows, rounds, count)
        for client in clients.values():
            await client.aclose()
    show(f"a POST over loopback, {title}", taken, ratio=True)


def calling(client: mcp.Client) -> Row:
    """Call a tool, one call after the other."""

    async def row(count: int) -> None:
        for _ in range(count):
            result = await client.call_tool("add", {"a": 1, "b": 2})
            assert not result.is_error

    return row


async def under_the_sdk(server: type[Server], title: str, rounds: int, count: int) -> None:
    """Print the table of the SDK's own calls."""
    with responder(server) as url:
        gateway = Gateway(url, credentials=credentials())
        async with contextlib.AsyncExitStack() as stack:
            rows: dict[str, Row] = {}
            for name in ("bare mcp.Client", "bare mcp.Client (A/A)", "through a Gateway"):
                if "Gateway" in name:
                    opened = gateway.transport()
                else:
                    http = create_mcp_http_client(headers={"authorization": f"Bearer {TOKEN}"})
                    await stack.enter_async_context(http)
                    opened = streamable_http_client(url, http_client=http)
                client = await stack.enter_async_context(mcp.Client(opened))
                await client.list_tools()
                rows[name] = calling(client)
            taken = await measure(rows, rounds, count)
    show(f"mcp.Client.call_tool, {title}", taken, ratio=True)


async def main() -> None:
    """Read the command line, and print the tables."""
    parser = argparse.ArgumentParser(description="The cost of a whole Gateway.")
    parser.add_argument("--rounds", type=int, default=25)
    parser.add_argument("--requests", type=int, default=200)
    parser.add_argument("--only", default="", help="words that the tables must have one of")
    options = parser.parse_args()
    tables: list[tuple[str, Any, Any]] = [
        ("isolated json", in_isolation, NullTransport()),
        ("isolated sse", in_isolation, NullEvents()),
        ("post json", over_loopback, Server),
        ("post sse", over_loopback, EventServer),
        ("call json", under_the_sdk, Server),
        ("call sse", under_the_sdk, EventServer),
    ]
    wanted = set(filter(None, options.only.split(",")))
    for name, table, of in tables:
        if not wanted or wanted & {name, *name.split()}:
            title = "JSON of 300 bytes" if "json" in name else "an event stream"
            await table(of, title, options.rounds, options.requests)


if __name__ == "__main__":
    asyncio.run(main())
