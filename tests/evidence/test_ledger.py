"""A ledger numbers the events of its run, and no sink touches who files. R22, R109, B13."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Mapping
from datetime import datetime, timedelta, timezone
from textwrap import dedent
from typing import Any

import pytest

from support.records import NOON, Kept, a_request
from surefoot.evidence import (
    CredentialVended,
    Filed,
    Ledger,
    Pending,
    RequestAttempts,
    RunStarted,
)

ENTRY = CredentialVended(service="gateway", kind="bearer")


def a_ledger(sink: Any, **options: Any) -> Ledger:
    options.setdefault("now", lambda: NOON)
    return Ledger(sink, run="r1", **options)


def test_each_event_has_a_version_a_number_a_time_and_its_run() -> None:
    """B13. Numbers begin at 1 and have no gap."""
    sink = Kept()
    ledger = a_ledger(sink)
    ledger.file(ENTRY)
    ledger.file(ENTRY)
    assert [event["seq"] for event in sink.events] == [1, 2]
    assert sink.events[0] == {
        "v": 1,
        "type": "credential.vended",
        "seq": 1,
        "time": "2026-11-30T12:00:00.000005+00:00",
        "run": "r1",
        "call": None,
        "service": "gateway",
        "kind": "bearer",
    }


def test_times_are_right_across_seconds_days_and_a_clock_that_goes_back() -> None:
    """B13. What is kept for a second is kept for that second only."""
    sink = Kept()
    moments = [
        NOON,
        NOON.replace(microsecond=999_999),
        NOON + timedelta(seconds=1),
        NOON + timedelta(days=1),
        NOON,
        NOON - timedelta(hours=1),
    ]
    clock = iter(moments)
    ledger = a_ledger(sink, now=lambda: next(clock))
    for _ in moments:
        ledger.file(ENTRY)
    assert [datetime.fromisoformat(event["time"]) for event in sink.events] == moments


def test_the_first_event_begins_the_run_and_closing_ends_it_with_a_count() -> None:
    """B13. A reader sees from the last event how many there are."""
    sink = Kept()
    ledger = a_ledger(sink, start=RunStarted(name="turn", parent="r0", library="1"))
    ledger.file(ENTRY)
    ledger.close("KeyError")
    assert [event["type"] for event in sink.events] == [
        "run.started",
        "credential.vended",
        "run.ended",
    ]
    last = sink.events[-1]
    assert (last["events"], last["dropped"], last["error"]) == (3, 0, "KeyError")
    assert last["duration_seconds"] == 0


def test_what_was_held_back_is_filed_at_the_latest_when_the_run_is_closed() -> None:
    """B13. What was released is not, and what cannot be made costs itself alone."""

    def fails() -> tuple[CredentialVended]:
        raise RuntimeError

    sink = Kept()
    ledger = a_ledger(sink, start=RunStarted())
    for key in ("filed", "in flight"):
        ledger.hold_back(key, lambda: (ENTRY,))
    ledger.hold_back("broken", fails)
    ledger.release("filed")
    ledger.release("never held")
    ledger.close()
    ledger.hold_back("too late", lambda: (ENTRY,))
    ledger.close()
    types = [event["type"] for event in sink.events]
    assert types == ["run.started", "credential.vended", "run.ended"]
    assert sink.events[-1]["events"] == 3


def test_a_ledger_in_which_nothing_was_filed_says_nothing() -> None:
    """B13. A Gateway that was never used leaves no run behind."""
    sink = Kept()
    a_ledger(sink, start=RunStarted()).close()
    assert sink.events == []


def test_closing_twice_ends_the_run_once_and_calls_close_once() -> None:
    """B13. Both doors of a program may close it."""
    sink, closed = Kept(), list[int]()
    ledger = a_ledger(sink, start=RunStarted(), close=lambda: closed.append(1))
    ledger.begin()
    ledger.close()
    ledger.close()
    assert [event["type"] for event in sink.events] == ["run.started", "run.ended"]
    assert closed == [1]


def test_a_sink_that_raises_never_reaches_who_files_and_is_loud_once() -> None:
    """B13. Counted, told once by class name alone, and on record when it works again."""
    sink, told = Kept(), list[str]()
    ledger = a_ledger(sink, alarm=told.append)
    sink.broken = True
    ledger.file(ENTRY)
    ledger.file(ENTRY)
    sink.broken = False
    ledger.file(ENTRY)
    ledger.close()
    assert len(told) == 1
    assert "Kept" in told[0]
    assert "OSError" in told[0]
    assert "a text that stays here" not in told[0]
    assert [event["type"] for event in sink.events] == [
        "sink.failed",
        "credential.vended",
        "run.ended",
    ]
    failed, third, last = sink.events
    assert (failed["sink"], failed["error"], failed["dropped"]) == ("Kept", "OSError", 2)
    assert (failed["seq"], failed["run"]) == (None, "r1")
    assert third["seq"] == 3
    assert (last["events"], last["dropped"]) == (4, 2)


def test_an_alarm_that_raises_changes_nothing_either() -> None:
    """B13. Nothing in the way of evidence reaches a call."""
    sink = Kept()
    sink.broken = True

    def alarm(message: str) -> None:
        raise RuntimeError(message)

    ledger = a_ledger(sink, alarm=alarm, start=RunStarted())
    ledger.file(ENTRY)
    ledger.close()
    ledger.file(ENTRY)
    assert ledger.dropped == 4  # begun, filed, ended, and one too late


def test_an_event_that_comes_after_the_end_is_counted_and_told_once() -> None:
    """B13, D33. An answer that is closed after its run cannot be in it, and that is said."""
    sink, told = Kept(), list[str]()
    ledger = a_ledger(sink, alarm=told.append)
    ledger.close()
    before = len(sink.events)
    ledger.file(ENTRY)
    ledger.file(ENTRY)
    assert len(sink.events) == before
    assert ledger.dropped == 2
    assert len(told) == 1
    assert "after its run was closed" in told[0]


def test_what_a_sink_lost_before_the_run_is_not_counted_against_the_run() -> None:
    """B13. A sink's own count is read from where it stood."""

    class Losing(Kept):
        dropped = 7

    sink = Losing()
    ledger = a_ledger(sink)
    assert ledger.dropped == 0
    sink.dropped = 9
    assert ledger.dropped == 2


def test_a_sink_may_file_while_it_is_handed_an_event() -> None:
    """B13. Something recorded that happens inside a sink does not lock the ledger up."""
    events: list[Mapping[str, Any]] = []

    class Nosy:
        def emit(self, event: Mapping[str, Any], /) -> None:
            events.append(event)
            if len(events) == 1:
                ledger.file(ENTRY)

    ledger = a_ledger(Nosy())
    ledger.file(ENTRY)
    assert sorted(event["seq"] for event in events) == [1, 2]


def test_a_record_may_be_put_together_when_it_is_written_out() -> None:
    """B13, R51. Filing it does not; reading it does, once, whoever reads."""
    made: list[int] = []

    def make() -> RequestAttempts:
        made.append(1)
        return a_request(tool="late")

    kept: list[Filed] = []

    class Lazy(Kept):
        def emit_later(self, filed: Filed, /) -> None:
            kept.append(filed)

    a_ledger(Lazy()).file(Pending("tool.request_attempts", make))
    assert made == []
    (filed,) = kept
    assert filed.event() is filed.event()
    assert filed.event() == {**filed.event(), **a_request(tool="late").body(), "seq": 1}
    assert made == [1]


def test_a_record_that_cannot_be_put_together_costs_itself_and_no_call() -> None:
    """B13, R55. Counted as lost; its number is missing."""

    def make() -> RequestAttempts:
        return a_request(ended="never heard of it")

    sink, told = Kept(), list[str]()
    ledger = a_ledger(sink, alarm=told.append)
    ledger.file(Pending("tool.request_attempts", make))
    ledger.file(ENTRY)
    assert [event["seq"] for event in sink.events] == [None, 2]
    assert (ledger.dropped, len(told)) == (1, 1)


def test_a_sink_that_cannot_even_queue_never_reaches_who_files() -> None:
    """B13. What it raises is counted, once told, and the next event is handed to it again."""

    class Full(Kept):
        def emit_later(self, _filed: Filed, /) -> None:
            raise MemoryError

    told: list[str] = []
    ledger = a_ledger(Full(), alarm=told.append)
    ledger.file(ENTRY, ENTRY)
    ledger.file(ENTRY)
    assert (ledger.filed, ledger.dropped, len(told)) == (3, 3, 1)


def test_events_of_one_moment_are_filed_together_and_have_one_time() -> None:
    """B13. Each has its own number, in order; too late, each of them is counted."""
    moments = iter(NOON + timedelta(seconds=number) for number in range(9))
    sink = Kept()
    ledger = a_ledger(sink, now=lambda: next(moments))
    ledger.file(ENTRY, ENTRY)
    assert [event["seq"] for event in sink.events] == [1, 2]
    assert len({event["time"] for event in sink.events}) == 1
    ledger.close()
    ledger.file(ENTRY, ENTRY)
    assert ledger.dropped == 2


@pytest.mark.parametrize("threads", [8])
def test_many_threads_file_without_a_gap_and_in_order(threads: int) -> None:
    """B13, R22. Each number once, and handed over in the order of numbers."""
    sink = Kept()
    ledger = a_ledger(sink)
    gate = threading.Barrier(threads)

    def work() -> None:
        gate.wait(5)
        for _ in range(250):
            ledger.file(ENTRY)

    workers = [threading.Thread(target=work) for _ in range(threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(20)
    assert [event["seq"] for event in sink.events] == list(range(1, threads * 250 + 1))


def test_a_clock_in_another_zone_is_still_written_in_utc() -> None:
    """B13. One form of time in every record."""
    sink = Kept()
    ahead = NOON.astimezone(timezone(timedelta(hours=5)))
    a_ledger(sink, now=lambda: ahead).file(ENTRY)
    assert sink.events[0]["time"] == "2026-11-30T12:00:00.000005+00:00"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks here")
def test_a_child_process_waits_for_no_thread_of_its_parent() -> None:
    """B13. Forked while another thread files: the child files, counts losses, and goes on."""
    program = """
    import os, threading
    from datetime import UTC, datetime
    from surefoot.evidence import CredentialVended, Ledger, Losses
    class Sink:
        def emit(self, event):
            os.write(1, b"event ")
    ledger = Ledger(Sink(), run="r1", now=lambda: datetime(2026, 1, 1, tzinfo=UTC))
    losses = Losses("Sink")
    held, done = threading.Event(), threading.Event()
    def hold():
        with ledger._lock, losses._lock:
            held.set()
            done.wait(30)
    thread = threading.Thread(target=hold)
    thread.start()
    held.wait(10)
    child = os.fork()
    if not child:
        ledger.file(CredentialVended(service="gateway", kind="bearer"))
        losses.add("OSError")
        os._exit(7)
    for _ in range(1000):
        if (ended := os.waitpid(child, os.WNOHANG))[0]:
            break
        done.wait(0.01)
    else:
        os.kill(child, 9)
        os.waitpid(child, 0)
        ended = None
    done.set()
    print("hung" if ended is None else os.waitstatus_to_exitcode(ended[1]))
    """
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", dedent(program)],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert done.stdout.split() == ["event", "7"]
