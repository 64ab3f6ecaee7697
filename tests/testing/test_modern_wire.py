"""What a sound FaultyGateway says under 2026-07-28."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from typing import Any

import pytest

from support.rawhttp import ask, connect, lay_out, read_all
from surefoot.testing import FaultyGateway, McpRequest, Slow, Tool, mcp_request, tool_call


def test_a_tool_call_is_answered_as_the_era_asks() -> None:
    """JSON, with the result type and the server's name that 2026-07-28 requires."""
    with FaultyGateway() as gateway:
        answer = ask(gateway, tool_call("search", {"q": "W-7712"}, rpc_id="a-1"))
    assert answer.status == 200
    assert answer.values("content-type") == [b"application/json"]
    assert answer.json() == {
        "jsonrpc": "2.0",
        "id": "a-1",
        "result": {
            "resultType": "complete",
            "content": [{"type": "text", "text": "found W-7712"}],
            "isError": False,
            "_meta": {
                "io.modelcontextprotocol/serverInfo": {
                    "name": "surefoot.testing.FaultyGateway",
                    "version": "1",
                }
            },
        },
    }


def test_discovery_names_the_modern_version_and_how_long_it_may_be_kept() -> None:
    """This is the answer whose loss downgrades a client."""
    with FaultyGateway() as gateway:
        result = ask(gateway, mcp_request("server/discover")).json()["result"]
    assert isinstance(result, dict)
    assert result["supportedVersions"] == ["2026-07-28"]
    assert (result["ttlMs"], result["cacheScope"]) == (0, "private")


def _without_meta(request: McpRequest) -> McpRequest:
    message = json.loads(request.body)
    del message["params"]["_meta"]
    return McpRequest(headers=request.headers, body=json.dumps(message).encode())


def _changed(request: McpRequest, **headers: str) -> McpRequest:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return McpRequest(headers={**request.headers, **named}, body=request.body)


SEARCH = tool_call("search")


@pytest.mark.parametrize(
    ("request_", "status", "code"),
    [
        (_without_meta(SEARCH), 400, -32602),
        (_changed(SEARCH, mcp_method="tools/list"), 400, -32020),
        (_changed(SEARCH, mcp_name="charge"), 400, -32020),
        (tool_call("no-such-tool"), 400, -32602),
        (mcp_request("no/such"), 404, -32601),
        (mcp_request("initialize"), 404, -32601),
        (mcp_request("ping"), 404, -32601),
        (McpRequest(headers=SEARCH.headers, body=b"{"), 400, -32700),
        (McpRequest(headers=SEARCH.headers, body=b'{"id":1}'), 400, -32600),
        (McpRequest(headers=SEARCH.headers, body=b'{"id":1,"result":{}}'), 400, -32600),
    ],
    ids=[
        "no envelope",
        "another method in the header",
        "another name in the header",
        "unknown tool",
        "unknown method",
        "initialize",
        "ping",
        "no JSON",
        "no method",
        "an answer",
    ],
)
def test_what_a_server_must_refuse_has_its_status_and_its_code(
    request_: McpRequest, status: int, code: int
) -> None:
    """Refusals that have a meaning are what a client may be told; nothing ran for them."""
    with FaultyGateway() as gateway:
        answer = ask(gateway, request_)
        assert not any(entry.ran for entry in gateway.journal)
    error = answer.json()["error"]
    assert isinstance(error, dict)
    assert (answer.status, error["code"]) == (status, code)


@pytest.mark.parametrize(
    ("method", "path", "accept", "status"),
    [
        ("GET", "/mcp", "text/event-stream", 405),
        ("DELETE", "/mcp", "application/json", 405),
        ("PUT", "/mcp", "application/json", 405),
        ("POST", "/mcp", "application/json", 406),
        ("POST", "/elsewhere", "application/json, text/event-stream", 404),
        ("POST", "/mcp2", "application/json, text/event-stream", 404),
        ("POST", "/mcp/moved", "application/json, text/event-stream", 200),
    ],
)
def test_methods_paths_and_accept_are_looked_at(
    method: str, path: str, accept: str, status: int
) -> None:
    """The endpoint is one path and what lies below it."""
    version = {"accept": accept, "mcp-protocol-version": "2026-07-28"}
    with FaultyGateway() as gateway:
        answer = ask(gateway, tool_call("search"), method=method, path=path, headers=version)
    assert answer.status == status
    assert answer.values("allow") == ([b"POST"] if status == 405 else [])


def test_a_name_beyond_ascii_travels_in_base64() -> None:
    """`Mcp-Name` holds what a header cannot, in the form that MCP gives it."""
    with FaultyGateway([Tool("такси")]) as gateway:
        request = tool_call("такси")
        assert request.headers["mcp-name"] == "=?base64?0YLQsNC60YHQuA==?="
        assert ask(gateway, request).status == 200
        assert gateway.executions("такси") == 1


def test_a_notification_is_accepted_and_does_nothing() -> None:
    """It has no id, so it is owed no answer."""
    with FaultyGateway() as gateway:
        answer = ask(gateway, mcp_request("notifications/cancelled", {"requestId": 1}, rpc_id=None))
    assert (answer.status, answer.body) == (202, b"")


def test_an_event_stream_is_one_event_and_ends_soundly() -> None:
    """With sse=True the answer is an event, and the chunk that ends the body follows."""
    with FaultyGateway(sse=True) as gateway:
        answer = ask(gateway, tool_call("search", {"q": 1}))
        refused = ask(gateway, mcp_request("no/such"))
    content, ended = answer.unchunked()
    assert answer.values("content-type") == [b"text/event-stream"]
    assert content.startswith(b'event: message\r\ndata: {"jsonrpc":"2.0","id":1,')
    assert content.endswith(b"}\r\n\r\n")
    assert ended
    assert (refused.status, refused.values("content-type")) == (404, [b"application/json"])


def _raises(_: Mapping[str, object]) -> str:
    raise ValueError("no such order")


async def _later(arguments: Mapping[str, object]) -> dict[str, object]:
    return {"sum": arguments["a"]}


@pytest.mark.parametrize(
    ("tool", "expected"),
    [
        (
            Tool("t", answer="plain"),
            {"content": [{"type": "text", "text": "plain"}], "isError": False},
        ),
        (
            Tool("t", answer={"sum": 3}),
            {
                "content": [{"type": "text", "text": '{"sum":3}'}],
                "structuredContent": {"sum": 3},
                "isError": False,
            },
        ),
        (
            Tool("t", answer=_later),
            {
                "content": [{"type": "text", "text": '{"sum":3}'}],
                "structuredContent": {"sum": 3},
                "isError": False,
            },
        ),
        (Tool("t", answer={"content": [], "isError": True}), {"content": [], "isError": True}),
        (
            Tool("t", answer={"resultType": "input_required", "requestState": "s"}),
            {"resultType": "input_required", "requestState": "s"},
        ),
        (
            Tool("t", answer=_raises),
            {
                "content": [{"type": "text", "text": "The tool failed: no such order"}],
                "isError": True,
            },
        ),
    ],
    ids=["text", "mapping", "async", "whole result", "asks back", "raises"],
)
def test_what_a_tool_gives_back_becomes_its_result(tool: Tool, expected: dict[str, object]) -> None:
    """A failure of the tool is an answer, and the tool ran."""
    with FaultyGateway([tool]) as gateway:
        result = ask(gateway, tool_call("t", {"a": 3})).json()["result"]
        assert gateway.executions("t") == 1
    assert isinstance(result, dict)
    assert {key: result[key] for key in expected} == expected


def test_tools_are_listed_with_what_was_declared() -> None:
    """Annotations and schemas are there to be distrusted."""
    own = Tool(
        "own",
        makes_changes=True,
        input_schema={"type": "object", "required": ["a"]},
        output_schema={"type": "object"},
        annotations={"idempotentHint": True},
    )
    with FaultyGateway([own]) as gateway:
        message: Any = ask(gateway, mcp_request("tools/list")).json()
    listed: dict[str, Any] = {tool["name"]: tool for tool in message["result"]["tools"]}
    assert set(listed) == {"search", "refund", "charge", "slow", "own"}
    assert listed["own"]["annotations"] == {"idempotentHint": True}
    assert listed["own"]["inputSchema"] == {"type": "object", "required": ["a"]}
    assert listed["own"]["outputSchema"] == {"type": "object"}
    assert listed["search"]["annotations"] == {"readOnlyHint": True, "destructiveHint": False}
    assert listed["refund"]["annotations"] == {"readOnlyHint": False, "destructiveHint": True}


def test_hanging_up_stops_a_running_tool() -> None:
    """In this era the closed response stream is the cancellation, and there is no other."""
    with FaultyGateway() as gateway:
        with connect(gateway) as connection:
            connection.sendall(lay_out(tool_call("slow", {"seconds": 30})))
            gateway.wait_until(lambda: gateway.executions("slow") == 1)
        gateway.wait_until(lambda: not gateway.journal[0].in_flight)
        (entry,) = gateway.journal
    assert (entry.ran, entry.cancelled, entry.status) == (True, True, None)


def test_hanging_up_before_the_tool_ran_means_that_it_never_runs() -> None:
    """Slow("before") leaves time to leave in."""
    with FaultyGateway() as gateway:
        gateway.script("charge", Slow(30))
        with connect(gateway) as connection:
            connection.sendall(lay_out(tool_call("charge")))
            gateway.wait_until(lambda: len(gateway.journal) == 1)
        gateway.wait_until(lambda: not gateway.journal[0].in_flight)
        assert gateway.journal[0].cancelled
        assert gateway.executions("charge") == 0


def test_leaving_after_the_answer_is_no_cancellation() -> None:
    """The control: a client that closes when it has its answer withdrew nothing."""
    for sse in (False, True):
        with FaultyGateway(sse=sse) as gateway:
            ask(gateway, tool_call("search"))
            gateway.wait_until(lambda: gateway.connections.open == 0)
            assert not gateway.journal[0].cancelled


def test_a_connection_is_kept_and_several_requests_share_it() -> None:
    """Kept connections are counted by the test of a client that should keep them."""
    with FaultyGateway() as gateway:
        with connect(gateway) as connection:
            connection.sendall(lay_out(tool_call("search"), close=False))
            connection.sendall(lay_out(tool_call("search")))
            answer = read_all(connection)
        assert answer.data.count(b"HTTP/1.1 200 OK") == 2
        assert [entry.connection for entry in gateway.journal] == [1, 1]
        assert gateway.connections.opened == 1


def test_bytes_that_are_no_http_are_refused() -> None:
    """The double itself survives what a client gets wrong."""
    with FaultyGateway() as gateway:
        with connect(gateway) as connection:
            connection.sendall(b"\x16\x03\x01 hello\r\n\r\n")
            assert read_all(connection).status == 400
        assert ask(gateway, tool_call("search")).status == 200
        assert len(gateway.journal) == 1


def test_many_clients_are_served_side_by_side() -> None:
    """A slow call holds nobody else up."""
    with FaultyGateway() as gateway:
        slow = threading.Thread(target=ask, args=(gateway, tool_call("slow", {"seconds": 0.2})))
        slow.start()
        gateway.wait_until(lambda: gateway.executions("slow") == 1)
        assert ask(gateway, tool_call("search")).status == 200
        assert gateway.journal[0].in_flight
        slow.join(5)
        assert gateway.journal[0].status == 200
