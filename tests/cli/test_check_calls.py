"""`surefoot check --call`: the tool runs once, and it is told whether it may have run.

R9, R27, B6: through the real SDK, over loopback.
"""

from __future__ import annotations

import math
import time
from pathlib import Path
from typing import Any, Literal

import anyio
import pytest

from support.checking import Check, seen
from surefoot.cli import _exit_codes as codes
from surefoot.cli._check_look import Called, Look, Plan, _ended_before, _look_inside
from surefoot.cli._check_tap import Exchange, TappedGateway
from surefoot.errors import DeadlineExceededError, MayHaveRunError, RateLimitedError
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
from surefoot.wire import read_request

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


class Ends:
    """A session of one tool, whose call ends as it is told."""

    def __init__(self, error: Exception) -> None:
        self.error = error
        self.timeout = math.nan
        self.asked: object = None

    async def tools(self) -> list[Any]:
        """One tool."""
        return [type("Named", (), {"name": "search"})()]

    async def call(self, name: str, arguments: object, *, timeout: float) -> None:  # noqa: ASYNC109
        """End."""
        self.asked = (name, arguments)
        self.timeout = timeout
        raise self.error


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("error", "says"),
    [
        (DeadlineExceededError(max_elapsed=1), "not called: the 9 s were over before it was sent"),
        (MayHaveRunError(cause="deadline", attempts=1), "no answer within the 9 s of this check: "),
        (MayHaveRunError(cause="no-answer", attempts=1), "the request may have run: no-answer"),
        (RateLimitedError(attempts=1), "rate limited: sent once"),
        (LookupError("canary"), "the SDK gave up: LookupError"),
    ],
    ids=lambda value: type(value).__name__,
)
async def test_each_end_of_a_call_has_its_words(error: Exception, says: str) -> None:
    """R27, B6. The call has what is left of the time; its end has a little more, for leaving."""
    seen_so_far = Look(origin="https://a.example", encrypted=True)
    plan = Plan(url="https://a.example/", timeout=9.0, call="search")
    session: Any = Ends(error)
    patience = anyio.CancelScope(deadline=anyio.current_time() + 5)
    before = patience.deadline
    with patience:
        await _look_inside(session, plan, seen_so_far, patience)
    assert session.asked == ("search", {})
    assert 0 < session.timeout <= 5
    assert patience.deadline > before
    called = seen_so_far.called
    assert called is not None
    assert (called.tool, called.answered) == ("search", False)
    assert called.words.startswith(says)
    assert "canary" not in called.words


def _sent(
    method: str, status: int | None, ended: Literal["left", "broken", "unreached"]
) -> Exchange:
    asked = f'{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{{"name":"search"}}}}'
    return Exchange(
        http_method="POST",
        outgoing=read_request(asked.encode()),
        version=None,
        in_session=False,
        signed=False,
        status=status,
        ended=ended,
    )


@pytest.mark.parametrize(
    ("sent", "may_have_run"),
    [
        ([], False),
        ([_sent("tools/list", None, "left")], False),
        ([_sent("tools/call", None, "unreached")], False),
        ([_sent("tools/call", None, "left")], True),
        ([_sent("tools/call", None, "broken")], True),
        ([_sent("tools/call", 200, "left")], True),
        ([_sent("tools/call", None, "unreached"), _sent("tools/call", None, "left")], True),
    ],
    ids=range(7),
)
def test_a_check_that_is_cut_off_in_a_call_knows_it_from_the_wire(
    sent: list[Exchange], *, may_have_run: bool
) -> None:
    """R27, D3. Whatever ended it: what was sent may have run, and nothing else has."""
    gateway = TappedGateway("https://a.example/", credential_headers=frozenset())
    for exchange in sent:
        gateway.sent.add(exchange)
    assert _ended_before("search", gateway) == (
        Called(
            tool="search",
            answered=False,
            words="it may have run: the check ended before its answer came",
        )
        if may_have_run
        else Called(tool=None, answered=False, words="not called: the check ended before that")
    )
