"""The demo shows what it says, on both majors of the SDK: its numbers are asserted from a real run.

B1, B3, R10, R11, R36, R105.
"""

from __future__ import annotations

import io
import json
from dataclasses import replace
from importlib.metadata import version

import pytest

from surefoot.demo import Performance, Run, Terminal, perform, twelve_calls

pytestmark = [pytest.mark.both_majors, pytest.mark.slow]

MAJOR = int(version("mcp").partition(".")[0])

# On 1.x every refusal ends the session: four throttled calls and the expired token, each as often
# as a session could be opened for it, beside the two resets and the 503.
SESSIONS_LOST = 3 if MAJOR > 1 else 16


def _ends(run: Run) -> dict[int, str]:
    return {task.call.number: task.end for task in run.tasks}


def _attempts(run: Run, number: int) -> list[list[tuple[object, object]]]:
    """Status and wait of each attempt of a call, for each time that the agent made it."""
    call = next(task.call for task in run.tasks if task.call.number == number)
    return [
        [(one["status"], one["wait_seconds"]) for one in event["attempts"]]
        for event in run.evidence
        if event["type"] == "tool.request_attempts"
        if f"{event['tool']}:{event['request']['sha256']}" == call.fingerprint
    ]


def _check_plain(run: Run) -> None:
    counts = run.counts
    assert (counts.calls, counts.answered, counts.lost, counts.unknown) == (12, 7, 5, 0)
    assert [number for number, end in _ends(run).items() if end == "lost"] == [2, 3, 4, 5, 12]
    assert counts.sessions_lost == SESSIONS_LOST
    assert counts.payments_made == {"charge": 0, "refund": 2}
    assert (counts.paid_too_often, counts.paid_too_seldom) == (1, 1)
    assert run.sends[9].ran == 2
    assert run.sends[6].ran == 2, "the call in flight went down with the session, and ran again"
    assert counts.waits_kept == 0 < counts.waits_stated
    assert counts.tokens_seen == 1
    assert run.evidence == ()


def _check_surefoot(run: Run) -> None:
    counts = run.counts
    assert (counts.calls, counts.answered, counts.lost, counts.unknown) == (12, 11, 0, 1)
    assert _ends(run)[9] == "unknown"
    assert (counts.sessions_opened, counts.sessions_lost) == (1, 0)
    assert counts.payments_made == {"charge": 1, "refund": 1}
    assert run.sends[9].ran == 1
    assert run.sends[6].ran == 1, "the call in flight was not touched by the reset beside it"
    assert (counts.waits_kept, counts.waits_stated) == (2, 2)
    assert counts.tokens_seen == 2
    answers = {task.call.number: task.answer or "" for task in run.tasks}
    assert "refunded once" in answers[10]


def _check_evidence(run: Run) -> None:
    """What was filed is what the gateway's journal saw."""
    requests = [e for e in run.evidence if e["type"] == "tool.request_attempts"]
    calls = [event for event in requests if event["method"] == "tools/call"]
    sent = sum(len(event["attempts"]) for event in calls)
    assert sent == run.counts.tool_calls_received
    waited = sum(event["waited_seconds"] for event in calls)
    assert 0 < waited <= run.counts.waited_seconds
    assert [status for status, _ in _attempts(run, 2)[0]] == [429, 200]
    assert [status for status, _ in _attempts(run, 12)[0]] == [401, 200]
    assert _attempts(run, 9) == [[(None, None)]], "not sent again"
    assert [[status for status, _ in made] for made in _attempts(run, 11)] == [[503], [200]]


def _check_told(run: Run, text: str) -> None:
    """A wait is told before it is over, and everything that happened is told."""
    waits = [happening for happening in run.happenings if happening.kind == "waits"]
    assert {happening.call for happening in waits} == {2, 3, 4, 5, 7, 8}
    second = [happening for happening in run.happenings if happening.call == 2]
    assert [one.kind for one in second] == ["call", "waits", "answered"]
    assert second[2].at - second[1].at >= 1.0
    for call in twelve_calls():
        assert text.count(f"{call.number:>3}  {call.label}") >= 3, call


def test_the_plain_run_loses_calls_sessions_and_money_and_the_surefoot_run_loses_nothing() -> None:
    """B1, B3, R10, R11, R36, R105."""
    stream = io.StringIO()
    performance = perform(seed=7, terminal=Terminal(stream, width=80))
    plain, protected = performance.runs
    assert (plain.client, protected.client) == ("plain", "surefoot")
    _check_plain(plain)
    _check_surefoot(protected)
    _check_evidence(protected)
    assert performance.kept is True
    assert Performance(seed=7, runs=(plain,)).kept is None, "it did not run"
    assert Performance(seed=7, runs=(replace(protected, counts=plain.counts),)).kept is False
    assert plain.seconds + protected.seconds < 30
    text = stream.getvalue()
    _check_told(protected, text)
    assert "LOST after 3 tries" in text
    assert "THE SESSION DIED" in text
    assert "DONE TWICE" in text
    assert "billing.transport()" in text
    assert max(map(len, text.splitlines())) <= 80
    assert "\x1b" not in text
    assert json.loads(json.dumps(performance.as_json()))["kept"] is True
