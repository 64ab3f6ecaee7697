"""What each fault puts on the wire, and whether the tool ran."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from urllib.parse import unquote

import pytest

from support.rawhttp import ask
from surefoot.testing import (
    Answer,
    Exchange,
    FaultyGateway,
    IsError,
    Redirect,
    Reset,
    RpcError,
    SessionLost,
    Slow,
    Status,
    Step,
    Throttle,
    mcp_request,
    tool_call,
)

CALL = tool_call("charge", {"amount": 5}, rpc_id=7)


@pytest.mark.parametrize(
    ("retry_after", "lines"),
    [
        (None, []),
        (2, [b"2"]),
        (0, [b"0"]),
        (1.5, [b"1.5"]),
        ("soon", [b"soon"]),
        ("\u0665", [b"\xd9\xa5"]),
        (b"\xb2", [b"\xb2"]),
        (datetime(2026, 11, 6, 8, 49, 37, tzinfo=UTC), [b"Fri, 06 Nov 2026 08:49:37 GMT"]),
        ((2, 5), [b"2", b"5"]),
        ((2, "x", None), [b"2", b"x"]),
    ],
)
def test_a_throttle_states_its_wait_as_declared(retry_after: object, lines: list[bytes]) -> None:
    """Seconds, dates, garbage, several lines and none."""
    with FaultyGateway() as gateway:
        gateway.script("charge", Throttle(retry_after))  # pyright: ignore[reportArgumentType]
        answer = ask(gateway, CALL)
        assert gateway.executions("charge") == 0
    assert answer.status == 429
    assert answer.values("retry-after") == lines
    assert answer.body == b"Too many requests\n"


def test_a_relative_date_counts_from_the_moment_of_the_answer() -> None:
    """A timedelta becomes a date when the refusal is sent, not when it is declared."""
    with FaultyGateway() as gateway:
        gateway.script("charge", Throttle(timedelta(hours=1)))
        (stated,) = ask(gateway, CALL).values("retry-after")
    wait = parsedate_to_datetime(stated.decode()) - datetime.now(UTC)
    assert timedelta(minutes=59) < wait <= timedelta(hours=1)


def test_a_throttle_may_be_json_rpc_and_may_come_after_the_tool_ran() -> None:
    """A 429 is not proof that nothing ran."""
    with FaultyGateway() as gateway:
        gateway.script("charge", Throttle(1, rpc_code=-32029, body="Slow down", ran=True))
        answer = ask(gateway, CALL)
        assert gateway.executions("charge") == 1
        assert gateway.journal[0].ran
    assert answer.status == 429
    assert answer.json()["id"] == 7
    assert answer.json()["error"] == {"code": -32029, "message": "Slow down"}


@pytest.mark.parametrize("code", [401, 403, 404, 500, 503])
def test_a_status_is_sent_with_its_headers_and_body(code: int) -> None:
    """Whatever a gateway may say in the place of an answer; nothing ran."""
    with FaultyGateway() as gateway:
        status = Status(
            code, "<p>no</p>", headers=[("x-a", "1"), ("x-a", "2")], content_type="text/html"
        )
        gateway.script("charge", status)
        answer = ask(gateway, CALL)
        assert gateway.executions("charge") == 0
        assert gateway.journal[0].step is status
    assert (answer.status, answer.body) == (code, b"<p>no</p>")
    assert answer.values("x-a") == [b"1", b"2"]
    assert answer.values("content-type") == [b"text/html"]
    challenge = [b'Bearer error="invalid_token"'] if code == 401 else []
    assert answer.values("www-authenticate") == challenge


def test_a_challenge_of_the_tests_own_takes_the_place_of_the_standing_one() -> None:
    """What a 401 challenges with is up to the test."""
    with FaultyGateway() as gateway:
        gateway.script("charge", Status(401, headers={"WWW-Authenticate": "DPoP"}))
        assert ask(gateway, CALL).values("www-authenticate") == [b"DPoP"]


@pytest.mark.parametrize("how", ["plain", "json-escaped", "percent", "base64"])
@pytest.mark.parametrize("content_type", ["text/plain", "application/json"])
def test_an_echo_quotes_what_was_received(how: str, content_type: str) -> None:
    """The canary comes back, in each disguise; without echo it does not."""
    canary = "Bearer canary/+\u00e9"
    with FaultyGateway() as gateway:
        echo = Status(403, content_type=content_type, echo=how)  # pyright: ignore[reportArgumentType]
        gateway.script("charge", echo, Status(403, "no"))
        body = ask(gateway, CALL, headers={"authorization": canary}).body
        control = ask(gateway, CALL, headers={"authorization": canary}).body
    assert b"canary" not in control
    assert (canary.encode("latin-1") in body or canary.encode() in body) == (how == "plain")
    text = json.loads(body)["message"] if content_type == "application/json" else body.decode()
    match how:
        case "plain":
            assert canary in text
        case "percent":
            assert canary in unquote(text)
        case "base64":
            assert "QmVhcmVyIGNhbmFyeS8r6Q==" in text
        case _:
            assert b"\\u0063\\u0061\\u006e\\u0061\\u0072\\u0079" in body
            assert content_type == "text/plain" or canary in text


def test_an_echo_may_hide_in_a_good_answer_and_in_a_json_rpc_error() -> None:
    """At any status."""
    with FaultyGateway() as gateway:
        gateway.script(
            "charge",
            Answer(echo="plain"),
            Answer(echo="json-escaped"),
            Status(400, echo=True, rpc_code=-32602),
        )
        answers = [
            ask(gateway, CALL, headers={"authorization": "Bearer canary-1"}) for _ in range(3)
        ]
    assert [answer.status for answer in answers] == [200, 200, 400]
    assert [b"canary-1" in answer.body for answer in answers] == [True, False, True]
    assert ["canary-1" in json.dumps(answer.json()) for answer in answers] == [True, True, True]


def test_a_redirect_points_and_the_next_request_takes_the_next_step() -> None:
    """Within the origin it can be followed; the tool runs once."""
    with FaultyGateway() as gateway:
        gateway.script("charge", Redirect(), Redirect(302, to="http://elsewhere.test/mcp"))
        first, second = ask(gateway, CALL), ask(gateway, CALL)
        assert gateway.executions("charge") == 0
        assert (first.status, first.values("location")) == (307, [b"/mcp/moved"])
        assert (second.status, second.values("location")) == (302, [b"http://elsewhere.test/mcp"])
        assert ask(gateway, CALL, path="/mcp/moved").status == 200
        assert gateway.executions("charge") == 1


def test_slow_lets_time_pass_before_or_after_the_tool_ran() -> None:
    """The journal's own clock shows it."""
    with FaultyGateway() as gateway:
        gateway.script("charge", Slow(0.05), Slow(0.05, when="after", then=Throttle(1)))
        assert ask(gateway, CALL).status == 200
        assert ask(gateway, CALL).status == 429
        before, after = gateway.journal
        assert gateway.executions("charge") == 2
    for entry in (before, after):
        assert entry.ended_at is not None
        assert entry.ended_at - entry.at >= 0.05


def test_a_tools_own_error_is_a_result() -> None:
    """IsError is content: the tool ran and said so."""
    with FaultyGateway() as gateway:
        gateway.script("charge", IsError("The card was declined."))
        result = ask(gateway, CALL).json()["result"]
        assert gateway.executions("charge") == 1
    assert isinstance(result, dict)
    assert result["isError"] is True
    assert result["content"] == [{"type": "text", "text": "The card was declined."}]
    assert result["resultType"] == "complete"


@pytest.mark.parametrize(
    ("error", "version", "status"),
    [
        (RpcError(-32602, "bad"), "2026-07-28", 400),
        (RpcError(-32601, "bad"), "2026-07-28", 404),
        (RpcError(-32603, "bad"), "2026-07-28", 200),
        (RpcError(-32603, "bad", status=502), "2026-07-28", 502),
        (RpcError(-32602, "bad"), "2025-11-25", 200),
    ],
)
def test_a_json_rpc_error_has_the_status_of_its_era(
    error: RpcError, version: str, status: int
) -> None:
    """In the modern era the code decides the status, before it the status was 200."""
    with FaultyGateway() as gateway:
        gateway.script("charge", error)
        answer = ask(gateway, tool_call("charge", version=version))
        assert gateway.executions("charge") == 0
    assert answer.status == status
    assert answer.json()["error"] == {"code": error.code, "message": "bad"}


def test_an_answer_may_be_dressed_up() -> None:
    """Header lines, a content type, and other words, in a sound answer."""
    with FaultyGateway() as gateway:
        gateway.script(
            "charge",
            Answer("other words", headers={"set-cookie": "a=b"}),
            Answer(content_type="application/json; charset=utf-7"),
            Answer({"content": []}, ran=False),
        )
        dressed, typed, idle = (ask(gateway, CALL) for _ in range(3))
        assert gateway.executions("charge") == 2
    assert dressed.values("set-cookie") == [b"a=b"]
    assert b"other words" in dressed.body
    assert typed.values("content-type") == [b"application/json; charset=utf-7"]
    assert b'"content":[]' in idle.body


def test_a_lost_session_is_a_404_in_either_era() -> None:
    """Its words are those of MCP's own servers."""
    with FaultyGateway() as gateway:
        gateway.script("charge", SessionLost())
        answer = ask(gateway, CALL)
        assert gateway.executions("charge") == 0
    assert answer.status == 404
    assert answer.json()["error"] == {"code": -32600, "message": "Session not found"}


def test_methods_that_are_no_tool_may_fail_too() -> None:
    """The probe, the lists and the notifications have scripts of their own."""
    with FaultyGateway() as gateway:
        gateway.script("server/discover", Throttle(1))
        gateway.script("tools/list", Status(503))
        gateway.script("notifications/initialized", Reset())
        assert ask(gateway, mcp_request("server/discover")).status == 429
        assert ask(gateway, mcp_request("server/discover")).status == 200
        assert ask(gateway, mcp_request("tools/list")).status == 503
        notification = mcp_request("notifications/initialized", rpc_id=None)
        assert ask(gateway, notification).ending == "reset"
        assert ask(gateway, notification).status == 202


def test_a_fault_of_ones_own_is_a_step_with_a_play() -> None:
    """Whoever meets a gateway that no step resembles writes one."""

    class Teapot(Step):
        async def play(self, exchange: Exchange) -> None:
            await exchange.run()
            await exchange.send(418, ((b"x-pot", b"1"),), b"short and stout")

    with FaultyGateway() as gateway:
        gateway.script("charge", Teapot())
        answer = ask(gateway, CALL)
        assert gateway.executions("charge") == 1
    assert (answer.status, answer.values("x-pot")) == (418, [b"1"])


def test_a_step_that_fails_inside_fails_the_test() -> None:
    """The double is not quiet about its own faults; after a test's own error it is."""

    class Broken(Step):
        async def play(self, exchange: Exchange) -> None:
            raise LookupError(exchange.received.tool)

    def break_one(error: type[Exception] | None) -> None:
        with FaultyGateway() as gateway:
            gateway.script("charge", Broken())
            ask(gateway, CALL)
            if error is not None:
                raise error

    with pytest.raises(RuntimeError, match="a step failed") as caught:
        break_one(None)
    assert isinstance(caught.value.__cause__, LookupError)
    with pytest.raises(KeyError):
        break_one(KeyError)
