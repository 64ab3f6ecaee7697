"""What it costs to keep the evidence: a recorded call against the same call with nothing recorded.

Over loopback, against a responder in another process: how much more CPU, all threads together and
the writing to the end included, does a POST through all layers of a Gateway take when a run is
recorded? And in isolation: what do a span, a filed event and a line cost, in microseconds?

    python benchmarks/recording.py [--rounds 25] [--requests 200]

All rows take turns within a round, and each is compared with the first row of its own round. The
second row is the first one again (A/A): what differs there is noise.
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from datetime import UTC, datetime
from pathlib import Path
from statistics import median, quantiles
from typing import Any

import httpx2
from figures import figure
from opentelemetry.sdk.trace import TracerProvider
from transport_overhead import ANSWER, BODY, HEADERS, Row, credentials, measure, responder

from surefoot import Gateway
from surefoot.evidence import Attempt, Ledger, RequestAttempts
from surefoot.sinks import JsonLinesSink, OpenTelemetrySpans, record

Opened = Callable[[], AbstractContextManager[object]]


class Forgets:
    """A sink that forgets, at once."""

    never_stalls = True

    def emit(self, event: Mapping[str, Any], /) -> None:
        """Forget."""


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


async def over_loopback(rounds: int, count: int, folder: Path) -> None:
    """Print the first table."""
    with responder() as url:
        client = Gateway(url, credentials=credentials()).http_client()
        kinds: dict[str, Opened] = {
            "nothing recorded": nullcontext,
            "nothing recorded (A/A)": nullcontext,
            "a sink that forgets": lambda: record(Forgets()),
            "JSON Lines": lambda: record(folder / "run.jsonl"),
        }
        rows = {name: posting(client, url, opened) for name, opened in kinds.items()}
        seconds = await measure(rows, rounds, count)
        await client.aclose()
    base = seconds["nothing recorded"]
    print(f"over loopback: {rounds} rounds of {count} POSTs, medians, CPU of the client")
    print(f"{'':30}{'us':>9}{'ratio':>9}{'least':>9}{'ratio':>9}   middle half of the ratios")
    for name in rows:
        ratios = [one / other for one, other in zip(seconds[name], base, strict=True)]
        low, _, high = quantiles(ratios, n=4)
        least = min(seconds[name])
        print(
            f"{name:30}{median(seconds[name]) * 1e6:9.1f}{median(ratios):9.3f}"
            f"{least * 1e6:9.1f}{least / min(base):9.3f}   {low:.3f} to {high:.3f}"
        )
        if name == "JSON Lines":
            what = "a POST through a Gateway, recorded as JSON Lines"
            figure(what, median(ratios), "x", against="the same, nothing recorded")


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
    ledger = Ledger(Forgets(), run="bench", now=lambda: datetime.now(UTC), fresh_id=lambda: "c")
    sink = JsonLinesSink(folder / "isolated.jsonl")
    request, attempt = a_request(), an_attempt()
    events: list[Mapping[str, Any]] = []
    ledger_of_one = Ledger(
        type("Keeps", (), {"emit": staticmethod(events.append)})(),
        run="bench",
        now=lambda: datetime.now(UTC),
        fresh_id=lambda: "c",
    )
    ledger_of_one.file(request)
    bare = TracerProvider().get_tracer("bench")
    spans, without = OpenTelemetrySpans(TracerProvider()), OpenTelemetrySpans()

    def span(source: OpenTelemetrySpans) -> None:
        opened = source.open(number=1, endpoint="billing", origin="https://gateway.example.com")
        if opened is not None:
            opened.end(attempt)

    pieces: dict[str, Callable[[], object]] = {
        "making the record": a_request,
        "filing it": lambda: ledger.file(request),
        "queueing it": lambda: sink.emit(events[0]),
        "a look for a tracer": lambda: span(without),
        "a bare span of the SDK": lambda: bare.start_span("POST").end(),
        "a span of an attempt": lambda: span(spans),
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
    sink.close()


def main() -> None:
    """Read the command line, and print both tables."""
    parser = argparse.ArgumentParser(description="What it costs to keep the evidence.")
    parser.add_argument("--rounds", type=int, default=25)
    parser.add_argument("--requests", type=int, default=200)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(over_loopback(options.rounds, options.requests, Path(folder)))
        in_isolation(options.rounds, Path(folder))


if __name__ == "__main__":
    main()
