"""`surefoot check --call`: the tool runs once, and it is told whether it may have run.

R9, R27, B6: through the real SDK, over loopback.
"""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from support.checking import Check, seen
from surefoot.cli import _exit_codes as codes
from surefoot.testing import (
    EndlessComments,
    ExpiringTokens,
    FaultyGateway,
    HeldStream,
    IsError,
    Reset,
    Slow,
    Step,
    Throttle,
)

pytestmark = pytest.mark.both_majors


def test_a_call_runs_the_tool_once_and_says_so_first(check: Check) -> None:
    with FaultyGateway() as gateway:
        code, out, err = check(gateway.url, "--call", "search", "--args", '{"q": "W-7712"}')
        assert gateway.executions("search") == 1
    assert code == codes.OK
    assert err == "surefoot check: --call runs that tool at the gateway, once\n"
    assert "search: it ran, and answered: found W-7712" in out


@pytest.mark.parametrize(
    ("fault", "says"),
    [
        (Throttle(retry_after=0), "rate limited: sent once"),
        (Reset(when="after-run"), "may have run: no-answer, sent once"),
        (IsError("no such order"), "it ran, and says that it failed: no such order"),
    ],
)
def test_a_call_that_fails_is_sent_once_and_told(fault: Step, says: str, check: Check) -> None:
    """R9: it is the user's one call, so nothing is assumed."""
    with FaultyGateway() as gateway:
        gateway.script("search", fault)
        told = seen(check(gateway.url, "--call", "search", "--json"))
        assert len(gateway.requests("search")) == 1
    assert told["exit_code"] == codes.FAILED
    assert told["call"]["answered"] is False
    assert says in told["call"]["words"]


def test_a_tool_that_is_not_listed_is_not_called(check: Check) -> None:
    with FaultyGateway() as gateway:
        told = seen(check(gateway.url, "--call", "serch", "--json"))
        assert gateway.requests("tools/call") == ()
    assert told["exit_code"] == codes.FAILED
    assert told["call"]["words"] == "not called: the server lists no such tool"
    assert told["call"]["tool"] is None


@pytest.mark.parametrize(
    ("fault", "ran"),
    [
        (HeldStream(), 1),
        (EndlessComments(), 1),
        (Slow(30, when="after"), 1),
        (Slow(30, when="before"), 0),
        (HeldStream(ran=False), 0),
    ],
    ids=lambda value: str(value)[:32],
)
def test_a_call_that_takes_too_long_may_have_run_and_is_told_so(
    fault: Step, ran: int, check: Check
) -> None:
    """R27, B6. Nobody here can know whether it ran, so that both are told in the same words.

    It is no failure of the connection, and nothing is wrong with an answer that was not waited for.
    """
    with FaultyGateway() as gateway:
        gateway.script("search", fault)
        started = time.monotonic()
        told = seen(check(gateway.url, "--call", "search", "--timeout", "1.5", "--json"))
        assert time.monotonic() - started < 10
        assert len(gateway.requests("search")) == 1
        assert gateway.executions("search") == ran
    assert told["call"] == {
        "tool": "search",
        "answered": False,
        "words": "no answer within the 1.5 s of this check: tool 'search' may have run: deadline, "
        "sent once, not sent again (MayHaveRunError)",
    }
    assert (told["connected"], told["failed"]) == (True, None)
    assert told["exit_code"] == codes.FAILED
    assert told["answers"]["problems"] == []
    assert [(one["method"], one["why"]) for one in told["answers"]["unjudged"]] == [
        ("tools/call", "left")
    ]


def test_a_person_reads_that_it_may_have_run(check: Check) -> None:
    """R27. The lines say it too, and blame nobody."""
    with FaultyGateway() as gateway:
        gateway.script("search", HeldStream())
        code, out, _ = check(gateway.url, "--call", "search", "--timeout", "1")
    told = " ".join(out.split())
    assert code == codes.FAILED
    assert "called search: no answer within the 1 s of this check: tool 'search' may have" in told
    assert "wrong nothing, read strictly" in told
    assert "unjudged tools/call: the check was over before its answer was" in told
    assert "no entry" not in out
    assert "stopped" not in out


@pytest.mark.parametrize("where", ["initialize", "tools/list"])
def test_a_call_that_the_time_did_not_reach_is_told_as_not_made(where: str, check: Check) -> None:
    """R27, its other half: what never left did not run, whatever else there is to tell."""
    with FaultyGateway(eras=("2025-11-25",)) as gateway:
        gateway.script(where, Slow(30), repeat=True)
        told = seen(check(gateway.url, "--call", "search", "--timeout", "1.5", "--json"))
        assert gateway.requests("tools/call") == ()
    assert told["failed"] == "not done after 1.5 s"
    assert told["call"]["words"] == "not called: the check ended before that"
    assert told["answers"]["problems"] == []


def test_a_call_is_not_made_where_nobody_may_enter(check: Check) -> None:
    """It is said of the call, too: a report of a call that was asked for never leaves it open."""
    with FaultyGateway(tokens=ExpiringTokens(60)) as gateway:
        told = seen(check(gateway.url, "--call", "search", "--json"))
        assert gateway.requests("tools/call") == ()
    assert told["call"]["words"] == "not called: the check ended before that"


def test_arguments_may_stand_in_a_file(check: Check, tmp_path: Path) -> None:
    file = tmp_path / "arguments.json"
    file.write_text('{"q": "from a file"}', "utf-8")
    with FaultyGateway() as gateway:
        _, out, _ = check(gateway.url, "--call", "search", "--args", f"@{file}")
    assert "found from a file" in out
