"""R20 to R22, R41, R51, R52, B13, D27, D33. The evidence of a run is what the gateway saw.

Counts and order of attempts are compared with the gateway's own journal. A call belongs to the run
that is open where it is made, on every kind of session; a sink that raises or stalls touches none.
"""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, cast

import anyio
import pytest

from support.sessions import KINDS, SDK_ON_TRIO, Kind, nothing_left, opened
from surefoot import Gateway, Replay, Retry, ToolRule, record
from surefoot.testing import (
    FaultyGateway,
    RecordingSink,
    Reset,
    Slow,
    SseCut,
    Status,
    Step,
    Throttle,
    tool_call,
)

pytestmark = [pytest.mark.both_majors, pytest.mark.anyio, *SDK_ON_TRIO]

QUICK: Final = Retry(max_attempts=3, base_delay=0.01)


def _requests(sink: RecordingSink) -> list[dict[str, Any]]:
    return [cast("dict[str, Any]", event) for event in sink.of("tool.request_attempts")]


def _sends(events: list[dict[str, Any]]) -> list[str]:
    """What the evidence says went out, in its order."""
    return [event["tool"] or event["method"] for event in events for _ in event["attempts"]]


STORY: Final[list[tuple[str, list[Step]]]] = [
    ("search", []),
    ("charge", [Throttle(0), Throttle(0)]),
    ("refund", [Reset("after-run")]),
    ("search", [Reset(), Throttle(0)]),
    ("charge", [Status(503)]),
    ("refund", [SseCut()]),
    ("charge", [Throttle(60)]),
    ("search", []),
]


@pytest.mark.parametrize("kind", KINDS)
async def test_attempts_are_the_sends_that_the_gateway_counted(kind: Kind) -> None:
    """R20 to R22, R51. For every request of a session; for its calls in order, too."""
    sink = RecordingSink()
    replay = Replay(tools={"search": ToolRule(repeat_on={"network", "throttle"})})
    with FaultyGateway() as faulty:
        gateway = Gateway(faulty.url, retry=QUICK, replay=replay, name="billing")
        async with nothing_left(faulty):
            with record(sink):
                async with opened(gateway.transport(), kind) as session:
                    for tool, steps in STORY:
                        if steps:
                            faulty.script(tool, *steps)
                        await session.call(tool, {"amount": 1})
        events = _requests(sink)
        told = Counter(_sends(events))
        seen = Counter(one.tool or one.method or one.http_method for one in faulty.journal)
        assert told == seen
        calls = [event for event in events if event["method"] == "tools/call"]
        assert _sends(calls) == [one.tool for one in faulty.journal if one.tool is not None]
        assert [event["tool"] for event in calls] == [tool for tool, _ in STORY]
    ends = [(event["ended"], event["why"], event["may_have_run"]) for event in calls]
    assert ends == [
        ("answered", "final-answer", False),
        ("answered", "final-answer", False),
        ("unanswered", "no-permission", True),
        ("answered", "final-answer", False),
        ("answered", "final-answer", True),
        ("cut", "stream-cut", True),
        ("refused", "waiting-spent", False),
        ("answered", "final-answer", False),
    ]
    assert {event["endpoint"] for event in events} == {"billing"}
    assert [event["seq"] for event in sink.events] == list(range(1, len(sink.events) + 1))


async def test_an_endpoint_is_named_by_its_label_or_its_origin_and_never_by_its_path() -> None:
    """R41, R52. Not in the events, not in the notices, not in the log."""
    for name in ("billing", None):
        sink, notices = RecordingSink(), list[Any]()
        with FaultyGateway(path="/tenant-secret/mcp") as faulty:
            retry = Retry(base_delay=0.01, on_retry=notices.append)
            gateway = Gateway(f"{faulty.url}?key=canary", name=name, retry=retry, evidence=sink)
            faulty.script("search", Throttle(0))
            asked = tool_call("search")
            async with gateway.http_client() as client:
                await client.post(gateway.url, headers=asked.headers, content=asked.body)
            (event,) = _requests(sink)
            assert event["endpoint"] == (name or faulty.origin)
            (notice,) = notices
            assert (notice.url, notice.endpoint) == (faulty.origin, name)
        told = json.dumps(sink.events) + repr(notices)
        assert "tenant-secret" not in told
        assert "canary" not in told


@pytest.mark.parametrize("kind", KINDS)
async def test_a_call_belongs_to_the_run_that_is_open_where_it_is_made(kind: Kind) -> None:
    """R22. Opened after connecting, and two that are open at the same time in two tasks."""
    own, runs = RecordingSink(), {name: RecordingSink() for name in ("first", "second")}
    with FaultyGateway() as faulty:
        gateway = Gateway(faulty.url, retry=QUICK, evidence=own)
        async with nothing_left(faulty), opened(gateway.transport(), kind) as session:
            await session.call("search", {"q": "warm"})

            # In turns: mcp 1.30 on trio itself mixes two requests up that are made in one moment.
            mine, theirs = anyio.Event(), anyio.Event()

            async def first() -> None:
                with record(runs["first"]):
                    await session.call("charge", {"of": "first", "number": 1})
                    mine.set()
                    await theirs.wait()
                    await session.call("charge", {"of": "first", "number": 2})

            async def second() -> None:
                with record(runs["second"]):
                    await mine.wait()
                    for number in (1, 2):
                        await session.call("charge", {"of": "second", "number": number})
                    theirs.set()

            async with anyio.create_task_group() as group:
                group.start_soon(first)
                group.start_soon(second)
            await session.call("refund", {"order": "after"})
        for name, sink in runs.items():
            calls = [event for event in _requests(sink) if event["method"] == "tools/call"]
            assert [event["tool"] for event in calls] == ["charge", "charge"]
            digests = {event["request"]["sha256"] for event in calls}
            assert len(digests) == 2
            others = [event["request"]["sha256"] for one in runs if one != name
                      for event in _requests(runs[one])]  # fmt: skip
            assert digests.isdisjoint(others)
        outside = [event["tool"] for event in _requests(own) if event["method"] == "tools/call"]
        assert outside == ["search", "refund"]


LEAVING: Final[dict[str, Step]] = {
    "in a wait": Throttle(5),
    "in flight": Slow(30),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("where", LEAVING)
@pytest.mark.parametrize("how", ["cancelled", "timed out"])
async def test_a_call_that_its_caller_left_is_recorded_once(
    how: str, where: str, kind: Kind
) -> None:
    """D27, D33, B2. Whether the SDK hangs up, notifies or is silent; and nothing is sent later."""
    sink = RecordingSink()
    with FaultyGateway() as faulty:
        gateway = Gateway(faulty.url, retry=Retry(spread=0, max_wait=60), evidence=sink)
        async with nothing_left(faulty), opened(gateway.transport(), kind) as session:
            faulty.script("charge", LEAVING[where], repeat=True)
            if how == "cancelled":
                with anyio.move_on_after(0.15):
                    await session.call("charge", {"amount": 1})
            else:
                told = await session.call("charge", {"amount": 1}, patience=0.15)
                assert told.code in (-32001, 408)
            faulty.clear_scripts()
            assert (await session.call("search", {"q": "it"})).text == "found it"
        assert len(faulty.requests("charge")) == 1
        assert faulty.executions("charge") == 0
    records = [event for event in _requests(sink) if event["tool"] == "charge"]
    assert len(records) == 1
    assert len(records[0]["attempts"]) == 1


async def test_a_sink_that_raises_or_stalls_touches_no_call(tmp_path: Path) -> None:
    """B13. The call returns at once, and so does its neighbour; the sink fails alone."""
    released = threading.Event()

    def stalls(event: Mapping[str, Any]) -> None:
        del event
        released.wait(10)

    def raises(event: Mapping[str, Any]) -> None:
        del event
        message = "the sink is broken"
        raise RuntimeError(message)

    class Broken:
        def emit(self, event: Mapping[str, Any], /) -> None:
            raises(event)

    with FaultyGateway() as faulty:
        asked = tool_call("search", {"q": "it"})
        for evidence in (stalls, raises, Broken(), tmp_path / "events.jsonl"):
            gateway = Gateway(faulty.url, retry=QUICK, evidence=evidence)
            with anyio.fail_after(1.5):
                async with gateway.http_client() as client:
                    for _ in range(3):
                        answer = await client.post(
                            faulty.url, headers=asked.headers, content=asked.body
                        )
                        assert "found it" in answer.text
            released.set()
            await gateway.aclose()
    lines = (tmp_path / "events.jsonl").read_text("utf-8").splitlines()
    types = [json.loads(line)["type"] for line in lines]
    call = ["call.started", "tool.request_attempts", "call.ended"]
    assert types == ["run.started", *call * 3, "run.ended"]


async def test_two_gateways_may_share_a_sink() -> None:
    """B13, R22. Closing one of them does not close it for the other."""
    sink = RecordingSink()
    with FaultyGateway() as faulty:
        one, other = (Gateway(faulty.url, name=name, evidence=sink) for name in ("one", "other"))
        asked = tool_call("search")
        for gateway in (one, other):
            async with gateway, gateway.http_client() as client:
                await client.post(faulty.url, headers=asked.headers, content=asked.body)
    assert [event["endpoint"] for event in _requests(sink)] == ["one", "other"]
    assert not sink.closed
