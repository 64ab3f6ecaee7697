"""Real calls in real runs: every attempt is in its own run, nowhere else. R22, R51, R107, B13."""

from __future__ import annotations

import json
import logging
from collections import Counter
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

import anyio
import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from support.recorded import shown
from support.records import validator
from support.sessions import KINDS, SDK_ON_TRIO, Kind, opened
from surefoot import Bearer, Gateway, Replay, Retry, ToolRule
from surefoot.cli import main
from surefoot.evidence import Content
from surefoot.sinks import FanOutSink, LoggingSink, OpenTelemetrySpans, record
from surefoot.testing import FaultyGateway, Reset, Status, Throttle

pytestmark = [pytest.mark.unmeasured, pytest.mark.both_majors, pytest.mark.anyio, *SDK_ON_TRIO]

CANARY = "canary-token-9f2e77c1"
QUICK = Retry(max_attempts=3, base_delay=0.005, max_wait=5.0)


def events_in(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def attempts_in(events: list[dict[str, Any]], tool: str | None = None) -> list[dict[str, Any]]:
    return [
        attempt
        for event in events
        if event["type"] == "tool.request_attempts" and (tool is None or event["tool"] == tool)
        for attempt in event["attempts"]
    ]


@pytest.mark.parametrize("kind", KINDS)
async def test_a_throttled_call_is_recorded_with_its_waits_and_its_permission(
    kind: Kind, tmp_path: Path
) -> None:
    """R22, R51, D32. As the server saw it, and complete."""
    path = tmp_path / "run.jsonl"
    with FaultyGateway() as server:
        server.script("search", Throttle(0), Throttle(0))
        async with Gateway(server.url, name="shop", retry=QUICK) as gateway:
            with record(path, name="turn"):
                async with opened(gateway.transport(), kind) as session:
                    told = await session.call("search", {"q": "W-1"})
        assert not told.is_error
        sends = [entry for entry in server.journal if entry.tool == "search"]
    events = events_in(path)
    for event in events:
        validator.validate(event)
    attempts = attempts_in(events, "search")
    assert (
        [one["status"] for one in attempts] == [entry.status for entry in sends] == [429, 429, 200]
    )
    assert [one["reason"] for one in attempts] == ["first", "throttle", "throttle"]
    for refused in attempts[:2]:
        assert refused["permission"] == {"by": "policy", "assumes": "refused-before-execution"}
        assert refused["wait_seconds"] > 0
    assert events[-1]["events"] == len(events)
    text = " ".join(shown(events).split())
    assert "search at shop answered 200; 3 attempts" in text
    assert "ASSUMING that the server refused it before it ran" in text


@pytest.mark.parametrize("kind", KINDS)
async def test_a_lost_answer_is_recorded_as_may_have_run(kind: Kind, tmp_path: Path) -> None:
    """R27, R51. And shown so."""
    path = tmp_path / "run.jsonl"
    with FaultyGateway() as server:
        server.script("refund", Reset(when="after-run"))
        replay = Replay(tools={"refund": ToolRule(makes_changes=True)})
        async with Gateway(server.url, retry=QUICK, replay=replay) as gateway:
            with record(path):
                async with opened(gateway.transport(), kind) as session:
                    told = await session.call("refund", {"order": "W-1", "amount": 5})
        assert told.is_error
        assert server.executions("refund") == 1
    events = events_in(path)
    (request,) = (e for e in events if e.get("tool") == "refund" and "attempts" in e)
    assert request["may_have_run"] is True
    assert [one["outcome"] for one in request["attempts"]] == ["unanswered"]
    assert "MAY HAVE RUN without a result: refund" in " ".join(shown(events).split())


RUNS: Final = 10
CALLS: Final = 100
"""Calls of one run, all of them under way at once."""


@pytest.mark.slow
async def test_a_thousand_calls_in_ten_concurrent_runs_are_each_in_their_own_run(
    tmp_path: Path,
) -> None:
    """R22, B13. None lost, none doubled; each request's attempts are what the server saw of it."""
    with FaultyGateway() as server:
        server.script("search", *[Throttle(0)] * 150)
        patient = Retry(max_attempts=50, base_delay=0.005, max_wait=60.0, spread=0.2)
        async with (
            Gateway(server.url, retry=patient, credentials=Bearer(CANARY)) as gateway,
            gateway.session() as session,
        ):
            await session.tools()  # outside of every run

            async def turn(number: int) -> None:
                with record(tmp_path / f"{number}.jsonl"):
                    async with anyio.create_task_group() as tasks:
                        for index in range(CALLS):
                            tasks.start_soon(session.call, "search", {"q": f"{number}/{index}"})

            with anyio.fail_after(50):
                async with anyio.create_task_group() as tasks:
                    for number in range(RUNS):
                        tasks.start_soon(turn, number)
        sends: Counter[str] = Counter(
            json.loads(entry.body)["params"]["arguments"]["q"]
            for entry in server.journal
            if entry.tool == "search"
        )
    assert (len(sends), sends.total()) == (RUNS * CALLS, RUNS * CALLS + 150)
    for number in range(RUNS):
        events = events_in(tmp_path / f"{number}.jsonl")
        assert events[-1]["events"] == len(events)
        assert events[-1]["dropped"] == 0
        assert [event["seq"] for event in events] == list(range(1, len(events) + 1))
        assert len({event["run"] for event in events}) == 1
        of_this_run = {_digest(f"{number}/{index}"): f"{number}/{index}" for index in range(CALLS)}
        by_type = {
            kind: [event for event in events if event["type"] == kind]
            for kind in ("call.started", "tool.request_attempts", "call.ended", "credential.vended")
        }
        begun = {event["arguments"]["sha256"]: event["call"] for event in by_type["call.started"]}
        assert begun.keys() == of_this_run.keys()
        requests = by_type["tool.request_attempts"]
        assert {one["request"]["sha256"]: one["call"] for one in requests} == begun
        assert len(requests) == len(by_type["call.started"]) == CALLS
        assert sorted(one["call"] for one in by_type["call.ended"]) == sorted(begun.values())
        for one in requests:
            assert len(one["attempts"]) == sends[of_this_run[one["request"]["sha256"]]]
        vended = Counter(one["call"] for one in by_type["credential.vended"])
        assert vended == Counter({one["call"]: len(one["attempts"]) for one in requests})


def _digest(question: str) -> str:
    return sha256(json.dumps({"q": question}, separators=(",", ":")).encode()).hexdigest()


@pytest.mark.parametrize("content", ["digests", "full"])
@pytest.mark.parametrize("kind", KINDS)
async def test_no_secret_is_in_any_sink_any_span_the_timeline_or_the_page(
    kind: Kind,
    content: Content,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """R107, R109, B7, B13, B14. The controls: the server got it, and every output has the call."""
    caplog.set_level(logging.DEBUG, "surefoot")  # httpx logs the URL, which is not ours to hide
    path, handed, exporter = tmp_path / "run.jsonl", list[Any](), InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    spans = OpenTelemetrySpans(provider)
    with FaultyGateway() as server:
        server.script("search", Throttle(0), Status(500, f"you sent {CANARY}"))
        gateway = Gateway(
            f"{server.url}?key={CANARY}", credentials=Bearer(CANARY), retry=QUICK, evidence=spans
        )
        everywhere = FanOutSink(path, LoggingSink(), handed.append)
        with record(everywhere, content=content):
            async with opened(gateway.transport(), kind) as session:
                await session.call("search", {"q": f"my token is {CANARY}"})
                await session.call("search", {"q": "W-2"})
        everywhere.close()
        authorised = [
            e for e in server.journal if CANARY.encode() in (e.header("authorization") or b"")
        ]
    assert authorised
    text = path.read_text("utf-8")
    assert attempts_in(events_in(path), "search")[0]["credential"] == "bearer"
    assert ("my token is [secret removed]" in text) is (content == "full")
    page = tmp_path / "page.html"
    assert main(["show", "--html", str(page), str(path)]) == 0
    assert main(["show", "--json", str(path)]) == 0
    outputs = {
        "the file": text,
        "the log": "".join(
            one.getMessage() for one in caplog.records if one.name.startswith("surefoot")
        ),
        "the function": repr(handed),
        "the spans": "".join(span.to_json() for span in exporter.get_finished_spans()),
        "the timeline": shown(events_in(path)),
        "the JSON": capsys.readouterr().out,
        "the page": page.read_text("utf-8"),
    }
    assert [name for name, output in outputs.items() if "search" not in output] == []
    assert [name for name, output in outputs.items() if CANARY in output] == []
