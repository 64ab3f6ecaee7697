"""record() opens a run around anything, and what is in it is complete or says so. R22, B13."""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from time import monotonic
from typing import Any

import anyio
import anyio.to_thread
import pytest

from support.records import NOON, Kept, a_request, an_attempt, validator
from surefoot.evidence import current_ledger, current_run
from surefoot.sinks import FanOutSink, JsonLinesSink, ledger_for, record

pytestmark = pytest.mark.both_majors


def events_in(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def nowhere(_event: Mapping[str, Any]) -> None:
    """A sink that forgets."""


def call(tool: str = "search") -> None:
    """What a call leaves in the run that is open here, if one is."""
    ledger = current_ledger()
    if ledger is not None:
        ledger.file(a_request(tool=tool, attempts=(an_attempt(status=200),)))


def test_a_run_is_in_the_file_when_the_with_is_over(tmp_path: Path) -> None:
    """R22, R51, B13. Begun, filled, ended, and every event as the schema says."""
    path = tmp_path / "run.jsonl"
    with record(path, name="turn 7") as run:
        call()
        call("refund")
    events = events_in(path)
    assert [event["type"] for event in events] == [
        "run.started",
        "tool.request_attempts",
        "tool.request_attempts",
        "run.ended",
    ]
    assert [event["seq"] for event in events] == [1, 2, 3, 4]
    assert {event["run"] for event in events} == {run.id}
    assert (events[0]["name"], events[0]["parent"], events[0]["content"]) == (
        "turn 7",
        None,
        "digests",
    )
    assert (events[-1]["events"], events[-1]["dropped"]) == (4, 0)
    for event in events:
        validator.validate(event)


def test_outside_of_the_with_nothing_is_recorded(tmp_path: Path) -> None:
    """R22. The control: a call that is in no run leaves nothing."""
    path = tmp_path / "run.jsonl"
    call()
    with record(path):
        pass
    call()
    assert len(events_in(path)) == 2
    assert current_run() is None


def test_an_exception_passes_and_its_class_is_recorded(tmp_path: Path) -> None:
    """B13. The name only; a text could hold anything."""
    path = tmp_path / "run.jsonl"

    def turn() -> None:
        with record(path):
            raise KeyError("canary-text")

    with pytest.raises(KeyError):
        turn()
    assert events_in(path)[-1]["error"] == "KeyError"
    assert "canary-text" not in path.read_text("utf-8")


def test_runs_nest_and_each_call_is_in_the_innermost_one(tmp_path: Path) -> None:
    """R22. The inner run names the one around it."""
    outer_path, inner_path = tmp_path / "outer.jsonl", tmp_path / "inner.jsonl"
    with record(outer_path) as outer:
        call("before")
        with record(inner_path) as inner:
            assert current_run() is inner
            call("within")
        assert current_run() is outer
        call("after")
    tools = {path: [e["tool"] for e in events_in(path) if "tool" in e]
             for path in (outer_path, inner_path)}  # fmt: skip
    assert tools == {outer_path: ["before", "after"], inner_path: ["within"]}
    assert events_in(inner_path)[0]["parent"] == outer.id


def test_two_runs_may_share_a_file(tmp_path: Path) -> None:
    """B13. Each keeps its own numbers."""
    path = tmp_path / "run.jsonl"
    with record(path) as outer:
        call()
        with record(path) as inner:
            call()
    for run in (outer, inner):
        mine = [event["seq"] for event in events_in(path) if event["run"] == run.id]
        assert mine == [1, 2, 3]


def test_a_run_is_opened_once(tmp_path: Path) -> None:
    """R71. The same object again would mix two runs."""
    again = record(tmp_path / "run.jsonl")
    with again, pytest.raises(RuntimeError, match="opened once"):
        again.__enter__()


async def test_a_hundred_calls_in_each_of_ten_concurrent_runs_stay_in_their_run(
    tmp_path: Path,
) -> None:
    """R22, B13. Tasks and threads: none lost, none doubled, none in another run."""

    async def turn(number: int) -> None:
        with record(tmp_path / f"{number}.jsonl"):
            async with anyio.create_task_group() as tasks:
                for index in range(10):
                    tasks.start_soon(task, number, index)

    async def task(number: int, index: int) -> None:
        for repeat in range(5):
            await anyio.lowlevel.checkpoint()
            call(f"{number}/{index}/{repeat}")
        await anyio.to_thread.run_sync(
            lambda: [call(f"{number}/{index}/{repeat}") for repeat in range(5, 10)]
        )

    async with anyio.create_task_group() as tasks:
        for number in range(10):
            tasks.start_soon(turn, number)
    for number in range(10):
        events = events_in(tmp_path / f"{number}.jsonl")
        assert [event["seq"] for event in events] == list(range(1, 103))
        tools = sorted(event["tool"] for event in events if "tool" in event)
        assert tools == sorted(f"{number}/{i}/{r}" for i in range(10) for r in range(10))


async def test_a_task_that_outlives_its_run_is_counted_or_files_into_the_run_around(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """R22, B13. What comes after the end goes to the run that is still open."""
    inner_ended = anyio.Event()
    done = anyio.Event()

    async def late() -> None:
        await inner_ended.wait()
        call("late")
        done.set()

    async with anyio.create_task_group() as tasks:
        with record(tmp_path / "outer.jsonl"):
            with record(tmp_path / "inner.jsonl"):
                tasks.start_soon(late)
            inner_ended.set()
            with anyio.fail_after(5):
                await done.wait()
    assert [e["tool"] for e in events_in(tmp_path / "outer.jsonl") if "tool" in e] == ["late"]
    assert not caplog.records


def test_any_function_can_be_a_sink() -> None:
    """B13. It gets each event as a dict, all of them before the with is over."""
    events: list[Mapping[str, Any]] = []
    with record(events.append):
        call()
    assert [event["type"] for event in events] == [
        "run.started",
        "tool.request_attempts",
        "run.ended",
    ]


def test_a_sink_of_the_user_is_flushed_and_left_open(tmp_path: Path) -> None:
    """B13. What the user made is the user's to close; several runs may go there."""
    sink = JsonLinesSink(tmp_path / "run.jsonl")
    for _ in range(2):
        with record(sink):
            call()
    assert len(events_in(tmp_path / "run.jsonl")) == 6
    sink.close()


@pytest.mark.parametrize("broken", ["raises", "is slow", "exits", "raises something odd"])
def test_a_sink_that_fails_touches_no_call_and_is_loud_once(
    broken: str, caplog: pytest.LogCaptureFixture
) -> None:
    """B13, R55. The run goes on; one ERROR says that evidence is incomplete."""
    gate = threading.Event()

    def sink(event: Mapping[str, Any]) -> None:
        assert event
        if broken == "is slow":
            gate.wait(20)
        elif broken == "raises":
            raise OSError(5, "canary-of-the-sink")
        elif broken == "exits":
            raise SystemExit(3)
        raise ExceptionGroup("odd", [ValueError()])

    began = monotonic()
    with record(sink):
        for _ in range(20):
            call()
        assert monotonic() - began < 1
    assert monotonic() - began < 4
    gate.set()
    errors = [one for one in caplog.records if one.name == "surefoot"]
    assert [one.levelno for one in errors] == [logging.ERROR]
    assert "evidence is incomplete" in errors[0].getMessage()
    assert "canary-of-the-sink" not in caplog.text


def test_one_sink_of_several_that_fails_does_not_touch_the_others(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """B13. Each has its own thread and its own count."""
    kept = Kept()
    heard: list[Mapping[str, Any]] = []

    def broken(event: Mapping[str, Any]) -> None:
        assert event
        raise ValueError

    fan = FanOutSink(tmp_path / "run.jsonl", broken, kept, heard.append)
    with record(fan):
        call()
        call()
    for events in (events_in(tmp_path / "run.jsonl"), kept.events, heard):
        assert [event["seq"] for event in events] == [1, 2, 3, 4]
    assert fan.dropped == 4
    assert fan.close()
    assert len(caplog.records) == 1
    with suppress(OSError):
        (tmp_path / "run.jsonl").unlink()


def test_what_a_sink_dropped_is_in_the_runs_last_event(tmp_path: Path) -> None:
    """B13. A sink that counts its losses is believed."""
    kept = Kept()
    kept.dropped = 3  # type: ignore[attr-defined]
    with record(kept):
        call()
        kept.dropped = 5  # type: ignore[attr-defined]
    assert kept.events[-1]["dropped"] == 2
    assert tmp_path.exists()


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"target": None}, TypeError, "target: must be a path"),
        ({"target": 7}, TypeError, "target: must be a path"),
        ({"target": nowhere, "name": ""}, ValueError, "name: "),
        ({"target": nowhere, "name": 7}, TypeError, "name: "),
        ({"target": nowhere, "content": "all"}, ValueError, "content: must be one of digests"),
    ],
)
def test_an_option_that_means_nothing_is_refused_by_name(
    options: dict[str, Any], error: type[Exception], words: str
) -> None:
    """R71, R72. At the `with`, and not at the first call."""
    target = options.pop("target")

    def turn() -> None:
        with record(target, **options):
            call()

    with pytest.raises(error, match=words):
        turn()


def test_an_async_function_is_refused_as_a_sink() -> None:
    """R71. It would be called by a thread, and never awaited."""

    async def sink(event: Mapping[str, Any]) -> None:
        assert event

    with pytest.raises(TypeError, match="plain function"):
        ledger_for(sink)


def test_a_ledger_for_a_gateway_is_a_run_of_its_own_that_begins_with_its_first_event() -> None:
    """R22. Where no run is open, the Gateway's own takes the evidence."""
    kept = Kept()
    ledger = ledger_for(kept, name="billing", now=lambda: NOON)
    assert kept.events == []
    ledger.file(a_request())
    ledger.close()
    assert kept.types() == ["run.started", "tool.request_attempts", "run.ended"]
    assert kept.events[0]["name"] == "billing"


def test_content_is_kept_only_where_the_app_asked() -> None:
    """B13, R53. Who files looks at the ledger's `content`."""
    with record(nowhere) as run:
        assert run.ledger.content == "digests"
    with record(nowhere, content="full") as run:
        assert run.ledger.content == "full"
