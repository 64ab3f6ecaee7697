"""RecordingSink: events are kept as emitted, from any thread."""

from __future__ import annotations

import threading

import anyio
import pytest

from surefoot.evidence import EventSink, Ledger, RunStarted
from surefoot.sinks import record
from surefoot.testing import FakeClock, RecordingSink


def test_events_are_kept_in_order_and_found_by_type() -> None:
    """What was emitted is what is kept."""
    sink = RecordingSink()
    sink.emit({"type": "a", "seq": 1})
    sink.emit({"type": "b", "seq": 2})
    sink.emit({"type": "a", "seq": 3})
    assert [event["seq"] for event in sink.events] == [1, 2, 3]
    assert [event["seq"] for event in sink.of("a")] == [1, 3]
    assert sink.of("c") == []


def test_it_is_a_sink_to_a_ledger_and_to_a_run() -> None:
    """What surefoot files arrives at once, numbered, with no thread between."""
    sink = RecordingSink()
    as_declared: EventSink = sink
    ledger = Ledger(
        as_declared,
        run="r",
        now=FakeClock().now,
        start=RunStarted(name="n"),
    )
    ledger.begin()
    ledger.close()
    with record(sink, name="another"):
        assert len(sink.of("run.started")) in {1, 2}
    started, ended = sink.of("run.started"), sink.of("run.ended")
    assert [event["seq"] for event in started[:1] + ended[:1]] == [1, 2]
    assert [event.get("run") for event in started[:1]] == ["r"]
    assert ledger.dropped == 0


def test_an_event_is_kept_as_it_was_when_it_was_emitted() -> None:
    """A copy is kept, down to the last level."""
    sink = RecordingSink()
    event: dict[str, object] = {"type": "a", "attempts": [1]}
    sink.emit(event)
    attempts = event["attempts"]
    assert isinstance(attempts, list)
    attempts.append(2)  # pyright: ignore[reportUnknownMemberType]
    assert sink.events == [{"type": "a", "attempts": [1]}]


def test_a_thread_may_wait_for_events_of_another() -> None:
    """`wait_for` blocks until there are enough, and gives them."""
    sink = RecordingSink()

    waiting = threading.Event()

    def emit() -> None:
        waiting.wait(5)
        for seq in range(3):
            sink.emit({"type": "a", "seq": seq})

    thread = threading.Thread(target=emit)
    thread.start()
    threading.Timer(0.02, waiting.set).start()
    found = sink.wait_for("a", 3)
    thread.join(5)
    assert [event["seq"] for event in found] == [0, 1, 2]


def test_waiting_ends_with_what_was_seen() -> None:
    """Every wait of a double ends, and its error helps."""
    sink = RecordingSink()
    sink.emit({"type": "other"})
    with pytest.raises(TimeoutError, match=r"0 of 1 'a' events.*last seen: other"):
        sink.wait_for("a", timeout=0.01)


@pytest.mark.anyio
async def test_a_task_may_wait_without_blocking_its_loop() -> None:
    """`until` lets the emitter run on the same loop."""
    sink = RecordingSink()

    async def emit() -> None:
        await anyio.sleep(0.01)
        sink.emit({"type": "a"})

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(emit)
        assert await sink.until("a") == [{"type": "a"}]
    with pytest.raises(TimeoutError):
        await sink.until("a", 2, timeout=0.01)


def test_closing_and_clearing_are_seen() -> None:
    """A test can tell that its sink was closed."""
    sink = RecordingSink()
    sink.emit({"type": "a"})
    sink.clear()
    assert sink.events == []
    assert not sink.closed
    sink.close()
    assert sink.closed
