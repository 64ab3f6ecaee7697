"""Real calls in real runs: every attempt is in its own run, nowhere else. R22, R51, R107, B13."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import anyio
import pytest

from support.recorded import shown
from support.records import validator
from support.sessions import KINDS, MCP_MAJOR, SDK_ON_TRIO, Kind, opened
from surefoot import Bearer, Gateway, Replay, Retry, ToolRule
from surefoot.sinks import record
from surefoot.testing import FaultyGateway, Reset, Status, Throttle

pytestmark = [pytest.mark.both_majors, pytest.mark.anyio, *SDK_ON_TRIO]

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
    assert "MAY HAVE RUN without an answer: refund" in " ".join(shown(events).split())


@pytest.mark.skipif(MCP_MAJOR == 1, reason="mcp 1.x hands no context on through transport()")
async def test_calls_of_concurrent_runs_over_one_connection_stay_in_their_runs(
    tmp_path: Path,
) -> None:
    """R22, B13. None lost, none doubled, and as many attempts as the server saw."""
    kind: Kind = KINDS[0]
    with FaultyGateway() as server:
        server.script("search", *[Throttle(0)] * 15)
        patient = Retry(max_attempts=20, base_delay=0.005, max_wait=20.0)
        async with (
            Gateway(server.url, retry=patient) as gateway,
            opened(gateway.transport(), kind, patience=20.0) as session,
        ):

            async def turn(number: int) -> None:
                with record(tmp_path / f"{number}.jsonl"):
                    async with anyio.create_task_group() as tasks:
                        for index in range(10):
                            tasks.start_soon(session.call, "search", {"q": f"{number}/{index}"})

            async with anyio.create_task_group() as tasks:
                for number in range(10):
                    tasks.start_soon(turn, number)
        sends = [entry for entry in server.journal if entry.tool == "search"]
    total = 0
    for number in range(10):
        events = events_in(tmp_path / f"{number}.jsonl")
        assert events[-1]["events"] == len(events)
        assert [event["seq"] for event in events] == list(range(1, len(events) + 1))
        requests = [e for e in events if e.get("tool") == "search" and "attempts" in e]
        assert len(requests) == 10
        total += len(attempts_in(requests))
    assert total == len(sends) == 115


@pytest.mark.parametrize("kind", KINDS)
async def test_no_secret_is_in_the_record_in_the_timeline_or_on_the_page(
    kind: Kind, tmp_path: Path
) -> None:
    """R107, R109, B13. The controls: the server got the secret, and the record has the call."""
    path = tmp_path / "run.jsonl"
    with FaultyGateway() as server:
        server.script("search", Throttle(0), Status(500, f"you sent {CANARY}"))
        async with Gateway(server.url, credentials=Bearer(CANARY), retry=QUICK) as gateway:
            with record(path):
                async with opened(gateway.transport(), kind) as session:
                    await session.call("search", {"q": "W-1"})
                    await session.call("search", {"q": "W-2"})
        authorised = [
            e for e in server.journal if CANARY.encode() in (e.header("authorization") or b"")
        ]
    assert authorised
    text = path.read_text("utf-8")
    assert attempts_in(events_in(path), "search")[0]["credential"] == "bearer"
    assert CANARY not in text
    assert CANARY not in shown(events_in(path))
