"""`surefoot check`: it says what a gateway is, what is wrong with it, and nothing that is secret.

R41, R92 to R98, R107, R109: through the real SDK, over loopback, in both eras.
"""

from __future__ import annotations

import socket
import time
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

from support.checking import Check, seen
from surefoot import ToolRule
from surefoot.cli import _exit_codes as codes
from surefoot.cli._check_look import Look, Plan, ToolSeen, look
from surefoot.cli._check_words import advice_for, as_json, as_text
from surefoot.testing import (
    BadJson,
    CutJson,
    ExpiringTokens,
    FaultyGateway,
    HeldStream,
    Redirect,
    Reset,
    SseCut,
    Status,
    Step,
    Throttle,
    Tool,
    TruncatedGzip,
)

pytestmark = pytest.mark.both_majors

MAJOR = int(version("mcp").partition(".")[0])
MODERN, SHAKEN = "2026-07-28", "2025-11-25"


@pytest.mark.parametrize("sse", [False, True])
@pytest.mark.parametrize("era", [MODERN, SHAKEN])
def test_a_sound_gateway_is_told_in_about_a_dozen_lines(
    era: str, check: Check, monkeypatch: pytest.MonkeyPatch, *, sse: bool
) -> None:
    if era == MODERN and MAJOR == 1:
        pytest.skip("mcp 1.x does not speak it")
    monkeypatch.setenv("COLUMNS", "80")
    with FaultyGateway(eras=(era,), sse=sse) as gateway:
        code, out, err = check(gateway.url)
        assert gateway.executions("search") + gateway.executions("refund") == 0
    assert (code, err) == (codes.OK, "")
    lines = out.splitlines()
    assert lines[0] == gateway.origin
    assert len(lines) <= 16
    assert max(map(len, lines)) <= 80
    assert f"protocol   {era}, with" in out
    assert f"asked by mcp {version('mcp')}" in out
    assert "calls itself surefoot.testing.FaultyGateway 1" in out
    assert 'search: reads -> ToolRule(repeat_on={"throttle", "network"})' in out
    assert "refund: changes, may destroy -> ToolRule(makes_changes=True)" in out
    assert "surefoot   waits out a 429: at most 3 attempts and 10 s of waits a call;" in out
    assert "wrong      nothing, read strictly" in out


def test_the_same_is_said_to_programs(check: Check) -> None:
    tools = [Tool("bare", annotations={"title": "x"}), Tool("add", annotations=ADDS)]
    with FaultyGateway(tools) as gateway:
        told = seen(check(gateway.url, "--json"))
    assert told["connected"] is True
    assert told["protocol"] == (MODERN if MAJOR > 1 else SHAKEN)
    assert told["era"] == ("stateless" if MAJOR > 1 else "sessions")
    assert told["auth"] == {"demanded": [], "oauth_metadata": False, "credential": "none"}
    hints = {tool["name"]: tool["hints"] for tool in told["tools"]}
    assert hints["search"] == {"readOnly": True, "destructive": False}
    assert hints["bare"] == {}
    assert hints["add"] == {"readOnly": False, "destructive": False, "idempotent": True}
    assert told["answers"]["problems"] == []
    assert told["answers"]["read"] >= 2


ADDS = {"readOnlyHint": False, "destructiveHint": False, "idempotentHint": True}

ELSEWHERE = 'Bearer resource_metadata="https://elsewhere.example/x"'

FAULTS: list[tuple[Step, str, int]] = [
    (Throttle(retry_after="soon"), "retry-after", codes.FLAWED),
    (Throttle(), "no-retry-after", codes.FLAWED),
    (BadJson("duplicate-keys"), "duplicate-key", codes.FAILED),
    (Status(500, "<html>boom</html>", content_type="text/html"), "no-reply", codes.FAILED),
    (Redirect(to="http://elsewhere.example/mcp"), "redirect", codes.FAILED),
    (Reset(when="before-headers"), "no-answer", codes.FLAWED),
    (SseCut(), "cut", codes.FAILED),
    (SseCut(how="end"), "unanswered", codes.FAILED),
    (CutJson(), "cut", codes.FLAWED),
    (TruncatedGzip(), "compressed", codes.FAILED),
    (Status(401, headers={"www-authenticate": ELSEWHERE}), "challenge", codes.FAILED),
]


@pytest.mark.parametrize(("fault", "rule", "code"), FAULTS, ids=lambda value: str(value)[:24])
def test_what_is_wrong_with_an_answer_is_named_and_decides_the_exit_code(
    fault: Step, rule: str, code: int, check: Check
) -> None:
    with FaultyGateway(eras=(SHAKEN,)) as gateway:
        gateway.script("tools/list", fault)
        told = seen(check(gateway.url, "--json", "--timeout", "8"))
    assert [(one["method"], one["rule"]) for one in told["answers"]["problems"]] == [
        ("tools/list", rule)
    ]
    assert told["exit_code"] == code


def test_a_sound_refusal_is_told_and_is_nothing_wrong(check: Check) -> None:
    with FaultyGateway() as gateway:
        gateway.script("tools/list", Throttle(retry_after=1, headers={"x-ratelimit-limit": "5"}))
        told = seen(check(gateway.url, "--json"))
    assert told["throttle"] == {"refusals": 1, "headers": ["retry-after", "x-ratelimit-limit"]}
    assert told["answers"]["problems"] == []
    assert told["exit_code"] == codes.OK


def test_a_gateway_that_wants_a_token_is_told_with_what_it_asks_for(check: Check) -> None:
    with FaultyGateway(tokens=ExpiringTokens(60)) as gateway:
        told = seen(check(gateway.url, "--json"))
        assert told["exit_code"] == codes.FAILED
        assert told["connected"] is False
        assert told["auth"]["demanded"] == ["bearer"]
        _, out, _ = check(gateway.url)
    assert "no entry" in out
    assert "asks for a credential (bearer); none was given" in out


@pytest.mark.parametrize("source", ["env", "file", "key"])
def test_a_token_comes_from_a_variable_or_a_file(
    source: str, check: Check, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with FaultyGateway(tokens=None if source == "key" else ExpiringTokens(60)) as gateway:
        token = "CANARY-key-71/x" if source == "key" else gateway.tokens.mint()
        monkeypatch.setenv("CHECK_TOKEN", token)
        file = tmp_path / "token"
        file.write_text(f"{token}\n", "utf-8")
        file.chmod(0o600)
        options = {
            "env": ["--token-env", "CHECK_TOKEN"],
            "file": ["--token-file", str(file)],
            "key": ["--token-env", "CHECK_TOKEN", "--api-key", "X-Api-Key"],
        }[source]
        code, out, err = check(gateway.url, *options)
        assert gateway.received(token)
    assert code == codes.OK, out
    assert "the one that was given was accepted" in out
    assert token not in out + err


CANARY = "CANARY-3d9a77/+b"


@pytest.mark.parametrize("json_too", [(), ("--json",)])
@pytest.mark.parametrize("echo", ["plain", "json-escaped", "percent", "base64"])
@pytest.mark.parametrize("rpc_code", [None, -32000])
def test_no_token_is_in_what_it_says_though_the_gateway_throws_it_back(
    echo: Any, rpc_code: int | None, json_too: tuple[str, ...], check: Check,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """R107, R109, B7: the positive control is that the token was sent, and was thrown back."""
    monkeypatch.setenv("CHECK_TOKEN", CANARY)
    with FaultyGateway() as gateway:
        gateway.script("tools/list", Status(500, echo=echo, rpc_code=rpc_code), repeat=True)
        code, out, err = check(gateway.url, "--token-env", "CHECK_TOKEN", *json_too)
        assert gateway.received(CANARY)
    assert code == codes.FAILED
    assert CANARY not in out + err
    assert CANARY.encode().hex() not in out + err
    assert "CANARY" not in out + err


def test_a_tool_that_answers_with_the_token_is_shown_without_it(
    check: Check, monkeypatch: pytest.MonkeyPatch
) -> None:
    """B7: with the control that the rest of the answer is shown."""
    monkeypatch.setenv("CHECK_TOKEN", CANARY)
    with FaultyGateway([Tool("whoami", answer=f"you are {CANARY}, hello")]) as gateway:
        code, out, _ = check(gateway.url, "--token-env", "CHECK_TOKEN", "--call", "whoami")
    assert code == codes.OK
    assert "CANARY" not in out
    assert "hello" in out


def test_all_of_it_ends_in_time(check: Check) -> None:
    """B12: what was seen by then is told."""
    with FaultyGateway() as gateway:
        gateway.script("tools/list", HeldStream(), repeat=True)
        started = time.monotonic()
        told = seen(check(gateway.url, "--timeout", "1", "--json"))
    assert time.monotonic() - started < 10
    assert told["connected"] is True
    assert told["failed"] == "not done after 1 s"
    assert told["exit_code"] == codes.FAILED
    assert told["answers"]["problems"] == []
    assert [one["why"] for one in told["answers"]["unjudged"]] == ["left"]


def test_nobody_there_is_one_line(check: Check) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    code, out, err = check(f"http://127.0.0.1:{port}/mcp", "--timeout", "20")
    assert (code, err) == (codes.FAILED, "")
    assert "no entry" in out
    assert "Traceback" not in out


def test_what_a_server_says_of_itself_cannot_move_the_cursor(check: Check) -> None:
    with FaultyGateway([Tool("\x1b[31mred\x07" + "x" * 200)]) as gateway:
        _, out, _ = check(gateway.url)
    assert "\x1b" not in out
    assert "\x07" not in out
    assert "\\x1b[31mred" in out


def test_many_tools_are_counted_and_all_of_them_are_listed_to_programs(check: Check) -> None:
    tools = [Tool(f"tool-{number}") for number in range(20)]
    with FaultyGateway(tools) as gateway:
        _, out, _ = check(gateway.url)
        told = seen(check(gateway.url, "--json"))
    assert len([line for line in out.splitlines() if "tool-" in line]) == 12 - 4, "four are its own"
    assert "tools      24, with what the server says of them" in out
    assert "and 12 more; --json lists all" in out
    assert {tool.name for tool in tools} <= {tool["name"] for tool in told["tools"]}


@pytest.mark.parametrize("encrypted", [False, True])
def test_plain_http_beyond_this_machine_is_warned_of(*, encrypted: bool) -> None:
    """B8. The control: https, and loopback, are private."""
    told = Look(origin="http://a.example", encrypted=encrypted)
    warned = "plain http: whoever is on the way reads the credentials" in as_text(told)
    assert warned is not encrypted
    assert as_json(told, exit_code=0)["encrypted"] is encrypted


@pytest.mark.parametrize(
    ("url", "private"),
    [("http://127.0.0.1:1/", True), ("http://192.0.2.1/", False), ("https://192.0.2.1/", True)],
)
@pytest.mark.anyio
async def test_whether_it_is_private_is_what_the_address_says(url: str, *, private: bool) -> None:
    """B8. Before anything is sent."""
    told = await look(Plan(url=url, timeout=0.01))
    assert told.encrypted is private


@pytest.mark.parametrize(
    ("hints", "rule"),
    [
        ({}, ToolRule(makes_changes=True)),
        ({"readOnly": True}, ToolRule(repeat_on={"throttle", "network"})),
        ({"readOnly": False}, ToolRule(makes_changes=True)),
        ({"idempotent": True}, ToolRule(makes_changes=True)),
        ({"destructive": False}, ToolRule(makes_changes=True)),
    ],
)
def test_what_stands_after_the_arrow_can_be_pasted(hints: Any, rule: ToolRule) -> None:
    """R9. And what the server does not call a read is not repeated by it."""
    advice = advice_for(ToolSeen(name="x", hints=hints))
    assert eval(advice, {"ToolRule": ToolRule}) == rule  # noqa: S307
