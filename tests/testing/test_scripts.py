"""A script is checked when declared, and gives one step to each attempt."""

from __future__ import annotations

import re
from typing import Any

import pytest

from support.rawhttp import ask
from surefoot.testing import (
    Answer,
    BadJson,
    CutJson,
    EndlessComments,
    EndlessStream,
    ExpiringTokens,
    FaultyGateway,
    GzipBomb,
    HeldStream,
    IsError,
    Raw,
    Redirect,
    Reset,
    RpcError,
    Slow,
    Sse,
    SseCut,
    Status,
    Throttle,
    Tool,
    Trickle,
    TruncatedGzip,
    WrongLength,
    mcp_request,
    tool_call,
)

CALL, SEARCH = tool_call("charge"), tool_call("search")


def _statuses(gateway: FaultyGateway, times: int) -> list[int]:
    return [ask(gateway, CALL).status for _ in range(times)]


def test_each_attempt_takes_a_step_and_then_all_is_well() -> None:
    """One step for one attempt, in order; other tools are not concerned."""
    with FaultyGateway() as gateway:
        gateway.script("charge", Throttle(1), Answer(), Status(503))
        assert gateway.remaining("charge") == 3
        assert ask(gateway, SEARCH).status == 200
        assert _statuses(gateway, 5) == [429, 200, 503, 200, 200]
        assert gateway.remaining("charge") == 0
        assert gateway.executions("charge") == 3


def test_the_last_step_may_answer_every_attempt_that_follows() -> None:
    """A gateway that never stops refusing."""
    with FaultyGateway() as gateway:
        gateway.script("charge", Status(500), Throttle(1), repeat=True)
        assert _statuses(gateway, 4) == [500, 429, 429, 429]
        assert gateway.remaining("charge") == 1
        gateway.clear_scripts()
        assert _statuses(gateway, 1) == [200]


def test_a_new_script_takes_the_place_of_what_was_left() -> None:
    """Declared while the gateway serves."""
    with FaultyGateway() as gateway:
        gateway.script("charge", Status(500), Status(500))
        assert _statuses(gateway, 1) == [500]
        gateway.script("charge", Status(503))
        assert _statuses(gateway, 2) == [503, 200]


def test_a_tools_own_script_goes_before_that_of_all_tools() -> None:
    """The method stands for every tool that has nothing of its own left."""
    with FaultyGateway() as gateway:
        gateway.script("tools/call", Status(500), Status(503))
        gateway.script("charge", Throttle(1))
        assert ask(gateway, SEARCH).status == 500
        assert _statuses(gateway, 3) == [429, 503, 200]


def test_a_tool_may_be_called_like_a_method_or_a_word_of_http() -> None:
    """The tool's name wins where a script is declared for it."""
    with FaultyGateway([Tool("GET"), Tool("prompts/list")]) as gateway:
        gateway.script("prompts/list", Status(500))
        assert ask(gateway, tool_call("prompts/list")).status == 500
        assert ask(gateway, mcp_request("prompts/list")).status == 200


def test_the_journal_shows_the_step_that_was_played() -> None:
    """The step itself, so that a test can compare it."""
    throttle = Throttle(3)
    with FaultyGateway() as gateway:
        gateway.script("charge", throttle)
        _statuses(gateway, 2)
        assert [entry.step for entry in gateway.journal] == [throttle, None]


@pytest.mark.parametrize(
    ("key", "steps", "error", "says"),
    [
        ("serach", (Throttle(),), ValueError, "'serach'.*charge.*search"),
        ("tools/lists", (Throttle(),), ValueError, "tools/list"),
        ("PUT", (Throttle(),), ValueError, "'PUT'"),
        (5, (Throttle(),), TypeError, "int"),
        ("search", (), ValueError, "no steps"),
        ("search", (Throttle,), TypeError, re.escape("Throttle(), with brackets")),
        ("search", (429,), TypeError, "not int"),
        ("search", ([Throttle()],), TypeError, "not list"),
        ("search", (Throttle(), None), TypeError, "not NoneType"),
        ("search", (Reset("on-accept"),), ValueError, '"connect"'),
        ("search", (Slow(1, then=Reset("on-accept")),), ValueError, '"connect"'),
        ("connect", (Throttle(),), ValueError, "Throttle cannot answer 'connect'"),
        ("connect", (Reset(),), ValueError, "Reset cannot answer 'connect'"),
        ("tools/list", (IsError(),), ValueError, "IsError cannot answer 'tools/list'"),
        ("GET", (CutJson(),), ValueError, "CutJson cannot answer 'GET'"),
        ("DELETE", (Sse(),), ValueError, "Sse cannot answer 'DELETE'"),
        ("notifications/initialized", (BadJson("bom"),), ValueError, "BadJson cannot answer"),
        ("notifications/initialized", (Slow(1, then=IsError()),), ValueError, "IsError cannot"),
        ("token", (Throttle(),), ValueError, "ExpiringTokens"),
    ],
)
def test_a_script_that_cannot_mean_anything_is_refused_when_declared(
    key: Any, steps: Any, error: type[Exception], says: str
) -> None:
    """Before any request; the error says what would do."""
    with FaultyGateway() as gateway:
        with pytest.raises(error, match=says):
            gateway.script(key, *steps)
        assert ask(gateway, SEARCH).status == 200


@pytest.mark.parametrize(
    ("key", "step"),
    [
        ("search", IsError()),
        ("tools/call", BadJson("bom")),
        ("tools/list", Sse()),
        ("initialize", SseCut()),
        ("server/discover", GzipBomb(1)),
        ("GET", HeldStream()),
        ("GET", EndlessComments()),
        ("DELETE", Reset()),
        ("notifications/cancelled", Slow(1, then=Throttle())),
        ("connect", Reset("on-accept")),
        ("connect", Answer()),
        ("token", Redirect(to="/elsewhere")),
    ],
)
def test_a_script_that_fits_is_taken(key: str, step: Any) -> None:
    """The control of the table above."""
    gateway = FaultyGateway(tokens=ExpiringTokens(1, endpoint="/token"))
    gateway.script(key, step, repeat=True)
    assert gateway.remaining(key) == 1


@pytest.mark.parametrize(
    ("kind", "args", "options", "error", "names"),
    [
        (Throttle, (True,), {}, TypeError, "retry_after"),
        (Throttle, (object(),), {}, TypeError, "retry_after"),
        (Throttle, ((1, object()),), {}, TypeError, "retry_after"),
        (Throttle, (), {"ran": 1}, TypeError, "ran"),
        (Status, ("503",), {}, TypeError, "code"),
        (Status, (42,), {}, ValueError, "code"),
        (Status, (200,), {"echo": "loud"}, ValueError, "echo"),
        (Redirect, (200,), {}, ValueError, "code"),
        (Redirect, (), {"to": ""}, ValueError, "to"),
        (Slow, (-1,), {}, ValueError, "seconds"),
        (Slow, ("1",), {}, TypeError, "seconds"),
        (Slow, (float("inf"),), {}, ValueError, "seconds"),
        (Slow, (1,), {"when": "never"}, ValueError, "when"),
        (Slow, (1,), {"then": 1}, TypeError, "then"),
        (Reset, ("sometime",), {}, ValueError, "when"),
        (Reset, (), {"how": "gently"}, ValueError, "how"),
        (Reset, ("after-run",), {"ran": False}, ValueError, "contradicts"),
        (Reset, ("on-accept",), {"ran": True}, ValueError, "contradicts"),
        (CutJson, ("half",), {}, ValueError, "framing"),
        (CutJson, (), {"keep": -1}, ValueError, "keep"),
        (WrongLength, ("odd",), {}, ValueError, "kind"),
        (Raw, ("text",), {}, TypeError, "data"),
        (Trickle, (), {"size": 0}, ValueError, "size"),
        (BadJson, ("worse",), {}, ValueError, "kind"),
        (BadJson, (None,), {}, TypeError, "kind"),
        (GzipBomb, (0,), {}, ValueError, "size"),
        (TruncatedGzip, (0,), {}, ValueError, "cut"),
        (Sse, (-1,), {}, ValueError, "before"),
        (Sse, ("x",), {}, TypeError, "before"),
        (Sse, ([1],), {}, TypeError, "before"),
        (SseCut, (), {"how": "gently"}, ValueError, "how"),
        (SseCut, (), {"after_event_id": ""}, ValueError, "after_event_id"),
        (SseCut, (), {"half_event": True, "ran": False}, ValueError, "half_event"),
        (HeldStream, (-1,), {}, ValueError, "seconds"),
        (EndlessComments, ("x",), {}, TypeError, "interval"),
        (EndlessStream, ("pages",), {}, ValueError, "what"),
        (RpcError, ("x",), {}, TypeError, "code"),
        (RpcError, (1,), {"status": 99}, ValueError, "status"),
        (Answer, (), {"ran": False}, ValueError, "value"),
        (Answer, (), {"echo": "loud"}, ValueError, "echo"),
        (Tool, ("",), {}, ValueError, "name"),
        (Tool, ("t",), {"answer": 3}, TypeError, "answer"),
        (Tool, ("t",), {"makes_changes": "no"}, TypeError, "makes_changes"),
        (FaultyGateway, (["search"],), {}, TypeError, "tools"),
        (FaultyGateway, (), {"eras": ()}, ValueError, "eras"),
        (FaultyGateway, (), {"eras": ("2020-01-01",)}, ValueError, "eras"),
        (FaultyGateway, (), {"path": "mcp"}, ValueError, "path"),
        (FaultyGateway, (), {"path": "/mcp/"}, ValueError, "path"),
        (FaultyGateway, (), {"sse": "yes"}, TypeError, "sse"),
    ],
)
def test_an_option_that_cannot_mean_anything_is_refused_when_built(
    kind: Any, args: Any, options: dict[str, Any], error: type[Exception], names: str
) -> None:
    """The error names the option, and echoes no text."""
    with pytest.raises(error, match=names) as caught:
        kind(*args, **options)
    for echoed in ("loud", "gently", "sometime", "worse"):
        assert echoed not in str(caught.value)


def test_a_tool_that_nobody_declared_is_asked_after_in_vain() -> None:
    """A misspelt name must not count as never run."""
    gateway = FaultyGateway()
    with pytest.raises(ValueError, match="search"):
        gateway.executions("serach")
    with pytest.raises(ValueError, match="search"):
        gateway.remaining("serach")
