"""What a FaultyGateway says in the era of sessions (2025-11-25)."""

from __future__ import annotations

import json
import socket
from collections.abc import Generator
from contextlib import contextmanager

import pytest

from support.rawhttp import ask, connect, lay_out, read_all
from surefoot.testing import (
    FaultyGateway,
    HeldStream,
    McpRequest,
    SessionLost,
    Slow,
    Sse,
    SseCut,
    Status,
    mcp_request,
    tool_call,
)

VERSION = "2025-11-25"


def _open(gateway: FaultyGateway, asked: str = VERSION) -> str:
    opening = mcp_request("initialize", {"protocolVersion": asked}, version=None)
    (session,) = ask(gateway, opening).values("mcp-session-id")
    return session.decode()


def _call(session: str | None, tool: str = "charge", *, rpc_id: int = 7) -> McpRequest:
    return tool_call(tool, rpc_id=rpc_id, version=VERSION, session=session)


def _cancel(session: str, rpc_id: int) -> McpRequest:
    params = {"requestId": rpc_id, "reason": "test"}
    return mcp_request(
        "notifications/cancelled", params, rpc_id=None, version=VERSION, session=session
    )


@contextmanager
def _standing(gateway: FaultyGateway, headers: dict[str, str]) -> Generator[socket.socket]:
    """A GET stream whose head has come."""
    with connect(gateway) as connection:
        connection.sendall(lay_out(None, method="GET", headers=headers))
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            head += connection.recv(1)
        assert head.startswith(b"HTTP/1.1 200 OK")
        yield connection


@pytest.mark.parametrize(
    ("asked", "given"),
    [(VERSION, VERSION), ("2024-11-05", "2024-11-05"), ("2026-07-28", VERSION), ("x", VERSION)],
)
def test_initialize_opens_a_session_at_a_version_that_both_know(asked: str, given: str) -> None:
    """The version asked for where it is known, else the newest with sessions."""
    with FaultyGateway() as gateway:
        opening = mcp_request("initialize", {"protocolVersion": asked}, version=None)
        answer = ask(gateway, opening)
    result = answer.json()["result"]
    assert isinstance(result, dict)
    assert result["protocolVersion"] == given
    assert "resultType" not in result
    assert len(answer.values("mcp-session-id")) == 1


def test_a_session_lives_from_initialize_to_delete() -> None:
    """Calls in between are answered; afterwards the id is unknown."""
    with FaultyGateway() as gateway:
        session = _open(gateway)
        initialized = mcp_request(
            "notifications/initialized", rpc_id=None, version=VERSION, session=session
        )
        accepted = ask(gateway, initialized)
        assert (accepted.status, accepted.body) == (202, b"")
        assert ask(gateway, _call(session)).json()["id"] == 7
        named = {"mcp-session-id": session}
        assert ask(gateway, method="DELETE", headers=named).status == 200
        assert ask(gateway, _call(session)).status == 404
        assert ask(gateway, method="GET", headers=named).status == 404
        assert gateway.executions("charge") == 1


@pytest.mark.parametrize(
    ("headers", "status", "message"),
    [
        ({}, 400, "Bad Request: Missing session ID"),
        ({"mcp-session-id": "unknown"}, 404, "Session not found"),
        ({"mcp-protocol-version": "2020-01-01"}, 400, "Bad Request: Unsupported protocol version"),
    ],
)
def test_a_request_outside_a_session_is_refused(
    headers: dict[str, str], status: int, message: str
) -> None:
    """In the words that MCP's own servers use."""
    with FaultyGateway() as gateway:
        answer = ask(gateway, _call(None), headers=headers)
        assert gateway.executions("charge") == 0
    error = answer.json()["error"]
    assert isinstance(error, dict)
    assert (answer.status, error["code"], error["message"]) == (status, -32600, message)


@pytest.mark.parametrize(
    ("era", "request_", "status", "code"),
    [
        (
            "2026-07-28",
            mcp_request("initialize", {"protocolVersion": VERSION}, version=None),
            400,
            -32022,
        ),
        (VERSION, mcp_request("server/discover"), 400, -32600),
    ],
)
def test_an_era_that_is_not_spoken_is_refused(
    era: str, request_: McpRequest, status: int, code: int
) -> None:
    """-32022 names what is spoken instead; a gateway of the older era knows no such code."""
    with FaultyGateway(eras=(era,)) as gateway:
        answer = ask(gateway, request_)
    error = answer.json()["error"]
    assert isinstance(error, dict)
    assert (answer.status, error["code"]) == (status, code)
    if code == -32022:
        assert error["data"] == {"supported": ["2026-07-28"], "requested": ""}


def test_words_of_http_that_mcp_does_not_use_are_refused() -> None:
    """405 says which are used."""
    with FaultyGateway() as gateway:
        answer = ask(gateway, method="PUT", headers={"mcp-session-id": _open(gateway)})
    assert (answer.status, answer.values("allow")) == (405, [b"GET, POST, DELETE"])


def test_a_ping_is_answered_with_nothing() -> None:
    """It is a read, and belongs to this era alone."""
    with FaultyGateway() as gateway:
        ping = mcp_request("ping", version=VERSION, session=_open(gateway))
        assert ask(gateway, ping).json() == {"jsonrpc": "2.0", "id": 1, "result": {}}


def test_discovery_is_an_unknown_method_in_a_session() -> None:
    """The methods of the eras are not mixed."""
    with FaultyGateway() as gateway:
        session = _open(gateway)
        request = mcp_request("server/discover", version=VERSION, session=session)
        answer = ask(gateway, request)
    error = answer.json()["error"]
    assert isinstance(error, dict)
    assert (answer.status, error["code"]) == (200, -32601)


def test_answers_may_be_event_streams_here_too() -> None:
    """Initialize as well, with its session in the head."""
    with FaultyGateway(sse=True) as gateway:
        answer = ask(gateway, mcp_request("initialize", version=None))
        session = answer.values("mcp-session-id")[0].decode()
        called = ask(gateway, _call(session))
    for streamed in (answer, called):
        assert streamed.values("content-type") == [b"text/event-stream"]
        assert streamed.unchunked()[1]


def test_the_standing_stream_stands_until_its_session_ends() -> None:
    """It is opened once, says nothing, and ends soundly with the session."""
    with FaultyGateway() as gateway:
        session = _open(gateway)
        headers = {"mcp-session-id": session, "accept": "text/event-stream"}
        with _standing(gateway, headers) as stream:
            assert gateway.requests("GET")[0].in_flight
            gateway.forget_sessions()
            assert read_all(stream).data == b"0\r\n\r\n"
        gateway.wait_until(lambda: not gateway.requests("GET")[0].in_flight)
        assert not gateway.requests("GET")[0].cancelled
        assert ask(gateway, _call(session)).status == 404


def test_the_standing_stream_ends_when_its_client_leaves() -> None:
    """Nothing is left behind."""
    with FaultyGateway() as gateway:
        headers = {"mcp-session-id": _open(gateway)}
        with _standing(gateway, headers):
            assert gateway.connections.open == 1
        gateway.wait_until(lambda: gateway.connections.open == 0)


def test_the_standing_stream_may_be_refused_held_or_cut() -> None:
    """405 is final; a stream that is cut comes back, and is counted."""
    with FaultyGateway() as gateway:
        headers = {"mcp-session-id": _open(gateway)}
        gateway.script("GET", Status(405), SseCut(how="end"), HeldStream(0.01))
        assert ask(gateway, method="GET", headers=headers).status == 405
        assert ask(gateway, method="GET", headers=headers).unchunked() == (b"", True)
        assert ask(gateway, method="GET", headers=headers).unchunked() == (b"", True)
        assert gateway.remaining("GET") == 0
        assert len(gateway.requests("GET")) == 3


@pytest.mark.parametrize(
    ("step", "event_id"),
    [
        (SseCut(after_event_id="e-1"), "e-1"),
        (SseCut(2, after_event_id="e-2", how="reset"), "e-2"),
        (Sse(1, ids=True), "2-1"),
    ],
)
def test_a_cut_stream_is_resumed_with_the_answer_of_the_first_run(
    step: SseCut | Sse, event_id: str
) -> None:
    """The GET brings the answer, and the tool ran once."""
    with FaultyGateway() as gateway:
        session = _open(gateway)
        gateway.script("charge", step)
        ask(gateway, _call(session))
        headers = {"mcp-session-id": session, "last-event-id": event_id}
        content, ended = ask(gateway, method="GET", headers=headers).unchunked()
        assert gateway.executions("charge") == 1
    assert json.loads(content.split(b"data: ")[1])["id"] == 7
    assert ended


def test_a_stream_that_cannot_be_resumed_is_only_held() -> None:
    """With resumes=False, or an id that nobody gave, there is no answer to bring."""
    with FaultyGateway() as gateway:
        session = _open(gateway)
        gateway.script("charge", SseCut(after_event_id="e-1", resumes=False))
        ask(gateway, _call(session))
        for event_id in ("e-1", "e-9"):
            headers = {"mcp-session-id": session, "last-event-id": event_id}
            answer = ask(gateway, method="GET", headers=headers, patience=0.03)
            assert (answer.status, answer.body, answer.ending) == (200, b"", "open")


@pytest.mark.parametrize("sse", [False, True])
def test_a_cancelled_notification_ends_the_call_it_names(sse: bool) -> None:
    """In this era it is the signal; the call is then answered with -32800."""
    with FaultyGateway(sse=sse) as gateway:
        session = _open(gateway)
        gateway.script("charge", Slow(30))
        with connect(gateway) as slow, connect(gateway) as waiting:
            slow.sendall(lay_out(_call(session, "slow", rpc_id=1)))
            waiting.sendall(lay_out(_call(session, "charge", rpc_id=2)))
            gateway.wait_until(
                lambda: len(gateway.requests("tools/call")) == 2 and gateway.executions("slow") == 1
            )
            assert ask(gateway, _cancel(session, 99)).status == 202
            assert ask(gateway, _cancel(session, 2)).status == 202
            cancelled = read_all(waiting)
            assert b'"error":{"code":-32800,"message":"Request cancelled"}' in cancelled.body
            assert b"done at last" in read_all(slow).body
        assert gateway.executions("charge") == 0
        assert [entry.cancelled for entry in gateway.requests("charge")] == [True]
        assert [entry.cancelled for entry in gateway.requests("slow")] == [False]


def test_a_cancelled_stream_that_was_begun_ends_with_the_same_words() -> None:
    """The head is out already, so the error is its last event."""
    with FaultyGateway() as gateway:
        session = _open(gateway)
        gateway.script("charge", HeldStream())
        with connect(gateway) as connection:
            connection.sendall(lay_out(_call(session)))
            gateway.wait_until(lambda: gateway.requests("charge") != ())
            gateway.wait_until(lambda: gateway.requests("charge")[0].status == 200)
            ask(gateway, _cancel(session, 7))
            content, ended = read_all(connection).unchunked()
    assert b'"code":-32800' in content
    assert ended


def test_hanging_up_does_not_stop_a_tool_of_this_era() -> None:
    """A lost connection is no cancellation; the call runs on, and its answer reaches nobody."""
    with FaultyGateway() as gateway:
        session = _open(gateway)
        gateway.script("charge", Slow(0.05))
        with connect(gateway) as connection:
            connection.sendall(lay_out(_call(session)))
            gateway.wait_until(lambda: gateway.requests("charge") != ())
        gateway.wait_until(lambda: gateway.executions("charge") == 1)
        gateway.wait_until(lambda: not gateway.requests("charge")[0].in_flight)
        assert gateway.requests("charge")[0].cancelled


def test_a_session_is_lost_by_a_step_for_one_and_by_word_for_all() -> None:
    """Later requests of a lost session need no script to fail."""
    with FaultyGateway() as gateway:
        first, second, third = _open(gateway), _open(gateway), _open(gateway)
        gateway.script("charge", SessionLost())
        assert ask(gateway, _call(first)).status == 404
        assert ask(gateway, _call(first)).status == 404
        assert ask(gateway, _call(second)).status == 200
        gateway.forget_sessions()
        assert [ask(gateway, _call(name)).status for name in (second, third)] == [404, 404]
        assert ask(gateway, _call(_open(gateway))).status == 200


def test_a_clients_own_answer_is_accepted() -> None:
    """A POST may be a JSON-RPC response of the client's; it is owed nothing."""
    with FaultyGateway() as gateway:
        session = _open(gateway)
        body = b'{"jsonrpc":"2.0","id":1,"result":{}}'
        headers = mcp_request("ping", version=VERSION, session=session).headers
        answer = ask(gateway, McpRequest(headers=headers, body=body))
        assert (answer.status, answer.body) == (202, b"")
        assert ask(gateway, McpRequest(headers=headers, body=b"[]")).status == 400
