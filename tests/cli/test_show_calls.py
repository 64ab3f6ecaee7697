"""Events are joined to calls and runs as they come, in bounded memory. R22, D33, B13."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest

from support.recorded import Story, shown
from support.records import an_attempt
from surefoot.cli._show_calls import Call, Run, RunEnd, steps
from surefoot.cli._show_json import JsonView
from surefoot.cli._show_totals import Totals
from surefoot.evidence import CallStarted


def kinds(events: list[dict[str, Any]]) -> list[str]:
    return [
        type(step).__name__ if isinstance(step, (Run, Call, RunEnd)) else "event"
        for step in steps(events)
    ]


def test_a_call_is_whole_when_it_ended_and_then_at_once() -> None:
    """D33. Its requests are joined to it; the order of the record decides."""
    story = Story()
    story.call(an_attempt(status=200))
    story.request(an_attempt(status=200), method="tools/list", tool=None)
    assert kinds(story.end()) == ["Run", "Call", "Call", "RunEnd"]


def test_the_requests_of_one_call_are_shown_together() -> None:
    """D33. A follow-up on `requestState` is the same call."""
    story = Story()
    story.call(an_attempt(status=200))
    events = json.loads(json.dumps(story.end()))
    events.insert(3, events[2])
    (call,) = (step for step in steps(events) if isinstance(step, Call))
    assert len(call.requests) == 2
    assert "answered 200; 2 attempts" in " ".join(shown(events).split())


@pytest.mark.parametrize(
    ("gone", "expected", "says"),
    [
        (
            "call.started",
            ["Run", "Call", "RunEnd"],
            "1 call in 1 run, 1 attempt: 1 answered, 0 failed",
        ),
        ("call.ended", ["Run", "Call", "RunEnd"], "the end of this call is not recorded"),
        ("tool.request_attempts", ["Run", "Call", "RunEnd"], "its requests are not recorded"),
        ("run.started", ["Run", "Call", "RunEnd"], "its start is not recorded"),
        ("run.ended", ["Run", "Call", "RunEnd"], "its end is not recorded"),
    ],
)
def test_a_call_with_a_hole_is_shown_as_far_as_it_goes(
    gone: str, expected: list[str], says: str
) -> None:
    """B13. `not recorded` for what is missing."""
    story = Story()
    story.call(an_attempt(status=200))
    events = [event for event in story.end() if event["type"] != gone]
    assert kinds(events) == expected
    assert says in " ".join(shown(events).split())


@pytest.mark.parametrize("killed", [False, True], ids=["its run was closed", "it was killed"])
def test_a_call_of_which_nothing_came_after_its_beginning_may_have_run(killed: bool) -> None:
    """B13, R27. It was in flight when its run was closed, or its process killed."""
    story = Story()
    story.call(an_attempt(status=200))
    began = CallStarted(call_id="in-flight", endpoint="billing", tool="refund")
    story.ledger.file(began)
    events = story.end()
    if killed:
        del events[-1]
    text = " ".join(shown(events).split())
    assert "MAY HAVE RUN: what became of it is not recorded" in text
    assert "2 calls in 1 run, 1 attempt: 1 answered, 0 failed, 1 not recorded" in text
    assert "MAY HAVE RUN without a result: refund" in text
    assert "NOT RECORDED: what became of 1 call: in flight when its run was closed" in text
    assert "complete" not in text
    assert "no call may have run" not in text
    closed = "run A ended after 0.25 s: what became of 1 call is not recorded"
    assert (closed in text) is not killed
    stream, totals = io.StringIO(), Totals()
    view = JsonView(stream)
    for step in steps(events):
        totals.take(step)
        view.take(step)
    view.close(totals)
    *_, call, end, told = map(json.loads, stream.getvalue().splitlines())
    assert (call["name"], call["may_have_run"], end["complete"]) == ("refund", True, False)
    assert (told["complete"], told["unrecorded_calls"], told["may_have_run"]) == (False, 1, 1)


def test_what_is_recorded_of_a_run_without_its_end_is_not_all_there_was() -> None:
    """B13. The control: with its end it is."""
    story = Story()
    story.call(an_attempt(status=200))
    events = story.end()
    whole, cut = (" ".join(shown(some).split()) for some in (events, events[:-1]))
    assert "no call may have run without a result the record is complete" in whole
    assert "of what is recorded, no call may have run without a result" in cut


def test_a_call_that_is_shown_early_is_not_taken_for_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    """B13. Where too many are open at once, the oldest are shown before their ends come by."""
    from surefoot.cli import _show_calls

    monkeypatch.setattr(_show_calls, "_MOST_OPEN", 2)
    story = Story()
    for number in range(4):
        story.ledger.file(CallStarted(call_id=f"c{number}", endpoint="billing", tool="search"))
    for number in range(4):
        story.request(an_attempt(status=200), call_id=f"c{number}")
    text = " ".join(shown(story.end()).split())
    assert "the record is complete" in text
    assert "4 calls in 1 run, 4 attempts: 4 answered, 0 failed" in text


def test_calls_that_never_end_and_runs_that_never_end_do_not_pile_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """B13. Memory is bounded, whatever the record is."""
    from surefoot.cli import _show_calls

    monkeypatch.setattr(_show_calls, "_MOST_OPEN", 10)
    events = (
        {"v": 1, "type": "call.started", "run": f"r{number}", "call": "c", "seq": 1}
        for number in range(100)
    )
    joiner = _show_calls._Joiner()
    most = 0
    out: list[Any] = []
    for event in events:
        out += joiner.take(event)
        most = max(most, len(joiner._runs), len(joiner._calls))
    out += joiner.rest()
    assert most <= 11
    assert sum(isinstance(step, Call) for step in out) == 100
    assert sum(isinstance(step, RunEnd) for step in out) == 100


def test_runs_are_lettered_like_columns() -> None:
    """R22. After Z comes AA."""
    events = [{"v": 1, "type": "x", "run": f"r{number}"} for number in range(28)]
    labels = [step.label for step in steps(events) if isinstance(step, Run)]
    assert labels[:2] + labels[25:] == ["A", "B", "Z", "AA", "AB"]


def test_a_request_that_calls_no_tool_is_counted_apart() -> None:
    """D33. A call is one use of a tool; the rest is what the protocol needs."""
    story = Story()
    story.request(an_attempt(status=200), method="server/discover", tool=None)
    story.request(an_attempt(status=200), method="tools/list", tool=None)
    story.request(an_attempt(status=200))
    assert "1 call and 2 other requests in 1 run, 3 attempts" in shown(story.end())
