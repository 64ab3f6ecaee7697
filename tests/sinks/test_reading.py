"""What was recorded is read as far as it goes, whoever wrote it and however it ended. B13."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.records import a_request, filed
from surefoot.evidence import Completeness
from surefoot.sinks import Unreadable, read_events

pytestmark = pytest.mark.both_majors

WHOLE = b'{"v":1,"type":"x"}\n'


@pytest.mark.parametrize(
    ("line", "why"),
    [
        (b'{"v":1,"ty', "cut"),
        (b'{"v":1,"ty\n', "cut"),
        (b'{"v"\n', "cut"),
        (b"{\n", "cut"),
        (b'{"v":1,"type":"x"', "cut"),
        (b"hello\n", "not-json"),
        (b"\x00\xff\n", "not-json"),
        (b"\xef\xbb\xbf{}\n", "not-json"),
        (b'{"v":1,"v":2,"type":"x"}\n', "cut"),
        (b"[1]\n", "not-an-event"),
        (b'"text"\n', "not-an-event"),
        (b"null\n", "not-an-event"),
        (b"{}\n", "not-an-event"),
        (b'{"type":"x"}\n', "not-an-event"),
        (b'{"v":1}\n', "not-an-event"),
        (b'{"v":true,"type":"x"}\n', "not-an-event"),
        (b'{"v":"1","type":"x"}\n', "not-an-event"),
        (b'{"v":1,"type":7}\n', "not-an-event"),
    ],
)
def test_a_line_that_is_no_event_is_named_with_its_number(line: bytes, why: str) -> None:
    """B13. And reading goes on where there is more."""
    found = list(read_events([WHOLE, b"\n", line, WHOLE]))
    assert found == [{"v": 1, "type": "x"}, Unreadable(line=3, why=why), {"v": 1, "type": "x"}]  # type: ignore[arg-type]


def test_events_of_other_versions_and_unknown_types_pass_through_untouched() -> None:
    """B13. A newer writer does not make an older reader blind."""
    events = [
        {"v": 0, "type": "old"},
        {"v": 7, "type": "tool.future", "more": {"a": [1]}},
        {"v": 1, "type": "call.dreamt", "seq": 1},
    ]
    assert list(read_events(json.dumps(event).encode() + b"\n" for event in events)) == events


def test_a_last_line_that_is_whole_but_for_its_newline_is_an_event() -> None:
    """B13. The newline may be all that a killed process did not write."""
    assert list(read_events([WHOLE.rstrip()])) == [{"v": 1, "type": "x"}]


@given(st.lists(st.binary(max_size=60), max_size=10))
def test_reading_never_raises_whatever_the_lines_are(lines: list[bytes]) -> None:
    """B13. Every line is an event, is named, or is blank."""
    ended = [line.replace(b"\n", b"") + b"\n" for line in lines]
    found = list(read_events(ended))
    assert len(found) == sum(not line.isspace() for line in ended)


def events_of_a_run(calls: int) -> list[dict[str, Any]]:
    return filed(*[a_request() for _ in range(calls)])


def tally(events: list[dict[str, Any]]) -> Completeness:
    completeness = Completeness()
    for event in events:
        completeness.take(event)
    return completeness


def test_a_run_with_all_its_events_is_complete() -> None:
    """B13. The control for what follows."""
    found = tally(events_of_a_run(5))
    assert (found.complete, found.missing, found.dropped, found.in_order) == (True, 0, 0, True)


@given(calls=st.integers(1, 12), gone=st.sets(st.integers(0, 13)))
def test_whatever_is_taken_out_of_a_run_is_missed(calls: int, gone: set[int]) -> None:
    """B13. Gaps are counted exactly where the end is there; without it, that is said."""
    events = events_of_a_run(calls)
    left = [event for index, event in enumerate(events) if index not in gone]
    taken = len(events) - len(left)
    found = tally(left)
    if len(events) - 1 not in gone:
        assert found.ended
        assert found.missing == taken
        assert found.complete is (taken == 0)
    else:
        assert not found.ended
        assert not found.complete
        assert found.missing <= taken


def test_what_a_sink_confessed_is_counted() -> None:
    """B13. A number from the sink itself, where there is one."""
    events = events_of_a_run(3)
    events.insert(2, {"v": 1, "type": "sink.failed", "seq": None, "run": "r1", "dropped": 4})
    assert tally(events).dropped == 4


@pytest.mark.parametrize("number", [None, "1", True, -1, 0, 1.5, [], {}])
def test_a_number_that_means_nothing_is_as_good_as_absent(number: object) -> None:
    """B13. A foreign file cannot upset the count."""
    events: list[dict[str, Any]] = [
        {"type": "x", "seq": number},
        {"type": "run.ended", "seq": number, "events": number, "dropped": number},
    ]
    assert (tally(events).missing, tally(events).dropped) == (0, 0)


KILLED = """
import os, random, signal, sys, time
from support.records import a_request, an_attempt
from surefoot.sinks import JsonLinesSink, record
folder, seed = sys.argv[1], int(sys.argv[2])
chance = random.Random(seed)
request = a_request(tool="t" * 200, attempts=tuple(an_attempt() for _ in range(3)))
for number in range(50):
    ready, go = os.pipe()
    child = os.fork()
    if not child:
        sink = JsonLinesSink(f"{folder}/{number}.jsonl")
        sink._courier._pause = 0.0005  # so that most kills fall into a write
        with record(sink) as run:
            os.write(go, b".")
            while True:
                run.ledger.file(request)
                time.sleep(0.0001)
    os.read(ready, 1)
    time.sleep(chance.uniform(0.0, 0.08))
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    os.close(ready), os.close(go)
"""


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork") or not hasattr(signal, "SIGKILL"), reason="forks")
def test_after_a_kill_at_a_random_moment_the_file_reads_and_says_what_is_missing(
    tmp_path: Path,
) -> None:
    """B13. Fifty processes killed while they record: whole lines, at most the last one cut."""
    subprocess.run(
        [sys.executable, "-W", "ignore", "-c", dedent(KILLED), str(tmp_path), "7"],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])},
        timeout=55,
        check=True,
    )
    read = 0
    for number in range(50):
        path = tmp_path / f"{number}.jsonl"
        found = list(read_events(path.read_bytes().splitlines(keepends=True)))
        unreadable = [one for one in found if isinstance(one, Unreadable)]
        assert len(unreadable) <= 1
        if unreadable:
            assert found[-1] == unreadable[0]
            assert unreadable[0].why == "cut"
        events = [one for one in found if isinstance(one, dict)]
        completeness = tally(events)
        assert not completeness.complete
        assert not completeness.ended
        assert completeness.in_order
        assert completeness.missing == completeness.dropped
        read += len(events)
    assert read > 500  # the control: something was recorded before the kills
