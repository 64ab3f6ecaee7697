"""What it costs to keep the evidence: a recorded call against the same call with nothing recorded.

Against a responder in another process, how much more CPU, all threads together and the writing to
the end included, does a call take when its run is recorded? Once for a tool call as an agent makes
it, through the SDK's own client, and once for the bare POST below it, through all layers of a
Gateway. And in isolation: what do a span of an attempt, a filed event and a line cost?

    python benchmarks/recording.py [--rounds 25] [--requests 200]

All rows take turns within a round, and each is compared with the first row of its own round. The
second row is the first one again (A/A): what differs there is noise.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import tempfile
import time
from collections.abc import Callable, Generator, Mapping
from contextlib import AbstractContextManager, AsyncExitStack, contextmanager, nullcontext
from datetime import UTC, datetime
from pathlib import Path
from statistics import median, quantiles
from typing import Any

import httpx2
import mcp
from figures import figure
from opentelemetry.sdk.trace import TracerProvider
from transport_overhead import (
    ANSWER,
    BODY,
    HEADERS,
    Responder,
    Row,
    credentials,
    measure,
    responder,
)

from surefoot import Gateway
from surefoot.evidence import Attempt, Ledger, RequestAttempts, Run, bind
from surefoot.sinks import JsonLinesSink, OpenTelemetrySpans, ledger_for

Opened = Callable[[], AbstractContextManager[object]]


class Forgets:
    """A sink that forgets, at once."""

    never_stalls = True

    def emit(self, event: Mapping[str, Any], /) -> None:
        """Forget."""


class Server(Responder):
    """Answers what the SDK's client asks of a server of the era with sessions."""

    results: Mapping[str, object] = {
        "initialize": {
            "protocolVersion": "2025-11-25",
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "server", "version": "1.0.0"},
        },
        "tools/list": {"tools": [{"name": "add", "inputSchema": {"type": "object"}}]},
        "tools/call": {"content": [{"type": "text", "text": "3"}], "isError": False},
    }

    def data_received(self, data: bytes) -> None:
        """Answer each request that is complete."""
        self._read += data
        while (end := self._read.find(b"\r\n\r\n")) >= 0:
            head = self._read[:end].lower()
            length = 0
            if b"content-length:" in head:
                length = int(head.split(b"content-length:")[1].split(b"\r\n")[0])
            if len(self._read) < end + 4 + length:
                return
            body = self._read[end + 4 : end + 4 + length]
            self._read = self._read[end + 4 + length :]
            self._transport.write(self._answer(body))

    def _answer(self, body: bytes) -> bytes:
        message: dict[str, Any] = json.loads(body) if body else {}
        if "id" not in message:
            status = b"202 Accepted" if body else b"405 Method Not Allowed"
            return b"HTTP/1.1 %s\r\ncontent-length: 0\r\n\r\n" % status
        result = self.results[message["method"]]
        text = json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}).encode()
        head = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n"
        return head % len(text) + text


@contextmanager
def into(run: Run, flush: Callable[[], object]) -> Generator[None]:
    """A turn inside of a run that is open all the while; what it filed is written when it ends."""
    with bind(run):
        yield
    flush()


def posting(client: httpx2.AsyncClient, url: str, opened: Opened) -> Row:
    """Post, one request after the other, inside of what is opened."""

    async def row(count: int) -> float:
        started = time.process_time()
        with opened():
            for _ in range(count):
                answer = await client.post(url, content=BODY, headers=HEADERS)
                assert answer.content == ANSWER
        return (time.process_time() - started) / count

    return row


def calling(client: Any, opened: Opened) -> Row:
    """Call a tool as an agent does, one call after the other, inside of what is opened."""

    async def row(count: int) -> float:
        started = time.process_time()
        with opened():
            for _ in range(count):
                assert not (await client.call_tool("add", {"a": 1, "b": 2})).is_error
        return (time.process_time() - started) / count

    return row


def kinds(folder: Path) -> dict[str, Opened]:
    """What a run is recorded to. Opening one is not part of a call, and writing it out is."""
    forgets, lines = Forgets(), JsonLinesSink(folder / "run.jsonl")
    forgotten = Run(ledger=ledger_for(forgets))
    written = Run(ledger=ledger_for(lines))
    return {
        "nothing recorded": nullcontext,
        "nothing recorded (A/A)": nullcontext,
        "a sink that forgets": lambda: into(forgotten, lambda: None),
        "JSON Lines": lambda: into(written, lines.flush),
    }


async def as_an_agent(rounds: int, count: int, folder: Path) -> None:
    """Print the table of tool calls through the SDK's client."""
    with responder(Server) as url:
        async with AsyncExitStack() as stack:

            async def opened(**settings: Any) -> Any:
                gateway = Gateway(url, credentials=credentials(), **settings)
                client: Any = mcp.Client(gateway.transport(), mode="legacy")
                await stack.enter_async_context(client)
                return client

            client = await opened()
            rows = {name: calling(client, kind) for name, kind in kinds(folder).items()}
            traced = await opened(evidence=OpenTelemetrySpans(TracerProvider()))
            rows["spans"] = calling(traced, nullcontext)
            seconds = await measure(rows, rounds, count)
    told(f"a tool call through mcp.Client: {rounds} rounds of {count}", seconds, at_most=1.05)


async def over_loopback(rounds: int, count: int, folder: Path) -> None:
    """Print the table of bare POSTs."""
    with responder() as url:
        client = Gateway(url, credentials=credentials()).http_client()
        rows = {name: posting(client, url, kind) for name, kind in kinds(folder).items()}
        seconds = await measure(rows, rounds, count)
        await client.aclose()
    told(f"a bare POST through all layers: {rounds} rounds of {count}", seconds)


def told(title: str, seconds: dict[str, list[float]], at_most: float | None = None) -> None:
    """Print one table, each row against the first of its own round."""
    base = seconds["nothing recorded"]
    print(f"{title}, medians, CPU of the client")
    print(f"{'':30}{'us':>9}{'ratio':>9}{'least':>9}{'ratio':>9}   middle half of the ratios")
    for name, took in seconds.items():
        if name == "loop":
            continue
        ratios = [one / other for one, other in zip(took, base, strict=True)]
        low, _, high = quantiles(ratios, n=4)
        if name in ("JSON Lines", "spans"):
            what = f"{title.partition(':')[0]}, {name}"
            against = "the same, nothing recorded"
            limit = at_most if name == "JSON Lines" else None
            figure(what, median(ratios), "x", against=against, at_most=limit)
        print(
            f"{name:30}{median(took) * 1e6:9.1f}{median(ratios):9.3f}"
            f"{min(took) * 1e6:9.1f}{min(took) / min(base):9.3f}   {low:.3f} to {high:.3f}"
        )


def an_attempt() -> Attempt:
    """A usual one."""
    return Attempt(
        number=1,
        outcome="answered",
        effect="unknown",
        reason="first",
        started_seconds=0.00012,
        duration_seconds=0.05,
        status=200,
        credential="bearer",
    )


def a_request() -> RequestAttempts:
    """The record of a usual call."""
    return RequestAttempts(
        method="tools/call",
        tool="add",
        endpoint="billing",
        attempts=(an_attempt(),),
        ended="answered",
        why="final-answer",
        status=200,
        answer_form="json",
        answer_length=200,
        answer_sha256="0f" * 32,
    )


def in_isolation(rounds: int, folder: Path) -> None:
    """Print the second table."""
    ledger = Ledger(Forgets(), run="bench", now=lambda: datetime.now(UTC))
    sink = JsonLinesSink(folder / "isolated.jsonl")
    request, attempt = a_request(), an_attempt()
    events: list[Mapping[str, Any]] = []
    keeps: Any = type("Keeps", (), {"emit": staticmethod(events.append)})()
    ledger_of_one = Ledger(keeps, run="bench", now=lambda: datetime.now(UTC))
    ledger_of_one.file(request)
    bare = TracerProvider().get_tracer("bench")
    spans, without = OpenTelemetrySpans(TracerProvider()), OpenTelemetrySpans()

    def span(source: OpenTelemetrySpans) -> None:
        opened = source.open(
            number=1,
            endpoint="billing",
            origin="https://gateway.example.com",
            http_method="POST",
            method="tools/call",
            tool="add",
        )
        if opened is not None:
            opened.end(attempt)

    def tracing() -> None:
        span(spans)

    pieces: dict[str, Callable[[], object]] = {
        "making the record": a_request,
        "filing it": lambda: ledger.file(request),
        "queueing it": lambda: sink.emit(events[0]),
        "a look for a tracer": lambda: span(without),
        "a bare span of the SDK": lambda: bare.start_span("POST").end(),
        "a span of an attempt": tracing,
    }
    print(f"\nin isolation: the least of {rounds} rounds, microseconds of CPU")
    for name, piece in pieces.items():
        least = float("inf")
        for _ in range(rounds):
            started = time.thread_time()
            for _ in range(500):
                piece()
            least = min(least, (time.thread_time() - started) / 500)
        print(f"{name:30}{least * 1e6:9.2f}")
        if piece is tracing:
            figure("the span of an attempt, a recording SDK", least * 1e6, "us", at_most=20)
    sink.close()


def main() -> None:
    """Read the command line, and print both tables."""
    parser = argparse.ArgumentParser(description="What it costs to keep the evidence.")
    parser.add_argument("--rounds", type=int, default=25)
    parser.add_argument("--requests", type=int, default=200)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        # Turns as short as they can be, so that what slows the machine down slows all rows alike;
        # and long enough that flushing at their end, which no call does, is no part of a call.
        rounds, count = options.rounds * 2, max(1, options.requests // 2)
        asyncio.run(as_an_agent(rounds, count, Path(folder)))
        asyncio.run(over_loopback(rounds, count, Path(folder)))
        in_isolation(options.rounds, Path(folder))


if __name__ == "__main__":
    main()
