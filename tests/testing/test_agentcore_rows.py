"""What the AgentCore stand-in puts on the wire: every row of its tables, in answer to a call."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime

import pytest

from support.rawhttp import RawAnswer
from support.sigv4 import ask_signed
from surefoot.testing import (
    AGENTCORE_ROWS,
    AgentCoreRow,
    AgentCoreStandIn,
    GatewayThrottle,
    Step,
    tool_call,
)

CALL = tool_call("charge", {"amount": 5}, rpc_id=7)
SSE_HEAD = b"event: message\r\ndata: "

BUSY = "Session operation in progress, please retry"

MCP_FORMS = [
    # name, status, code, message
    ("busy", 200, -32005, BUSY),
    ("busy-json", 200, -32005, BUSY),
    ("busy-sse", 200, -32005, BUSY),
    ("conflict", 200, -32005, "Resource conflict - Resource already exists"),
    ("throttle", 200, -32003, "Rate limit exceeded - Too many requests"),
    ("throttle-sse", 200, -32003, "Rate limit exceeded - Too many requests"),
    ("no-bearer", 401, -32001, "Authentication error - Invalid credentials"),
    ("denied", 403, -32002, "Authorization error - Insufficient permissions"),
    ("validation", 200, -32006, "Validation error - Invalid request data"),
    ("not-found", 200, -32004, "Resource not found - Requested resource does not exist"),
    ("session-not-found", 404, -32001, "Session not found"),
    (
        "not-acceptable",
        406,
        -32011,
        (
            "Accept Header Error - MCP protocol requires Accept header: "
            "application/json, text/event-stream"
        ),
    ),
    (
        "runtime-error",
        200,
        -32010,
        "Tool execution error - Please check your CloudWatch logs for more information",
    ),
    ("internal", 200, -32603, "Internal error - Server error"),
    ("gateway-throttle", 200, -32003, "Rate limit exceeded"),
    ("gateway-throttle-429", 429, -32003, "Rate limit exceeded"),
    ("gateway-session-missing", 400, -32600, "Bad Request: Missing session ID"),
    ("gateway-session-lost", 404, -32001, "Session not found"),
    ("gateway-unknown-tool", 404, -32602, "Unknown tool: charge"),
    ("gateway-no-bearer", 401, -32001, "Missing Bearer token"),
    ("gateway-scope", 403, -32002, "Insufficient scope"),
    ("gateway-consent", 200, -32042, "This request requires more information."),
    ("gateway-header-mismatch", 400, -32020, "mcp-method header does not match the body"),
    ("gateway-capability", 400, -32021, "Missing required client capability"),
    ("gateway-version", 400, -32022, "Unsupported protocol version"),
    ("knowledge-throttle", 429, -32004, "Too many requests. Please try again later."),
]

API_FORMS = [
    # name, status, type, how the message begins
    ("busy-409", 409, "RetryableConflictException", BUSY),
    ("conflict-409", 409, "ConflictException", "Resource conflict"),
    ("throttle-429", 429, "ThrottlingException", "Rate exceeded"),
    ("throttle-429-seconds", 429, "ThrottlingException", "Rate exceeded"),
    ("throttle-429-date", 429, "ThrottlingException", "Rate exceeded"),
    ("throttle-429-garbage", 429, "ThrottlingException", "Rate exceeded"),
    ("quota-402", 402, "ServiceQuotaExceededException", "Service quota exceeded"),
    ("bad-signature", 403, "InvalidSignatureException", "The request signature we calculated"),
    ("signature-expired", 403, "InvalidSignatureException", "Signature expired: 20"),
    ("signature-not-yet", 403, "InvalidSignatureException", "Signature not yet current: 20"),
    ("incomplete-signature", 403, "IncompleteSignatureException", "Authorization header"),
    ("missing-token", 403, "MissingAuthenticationTokenException", "Missing Authentication Token"),
    ("expired-token", 403, "ExpiredTokenException", "The security token included"),
    ("unrecognized-client", 403, "UnrecognizedClientException", "The security token included"),
    ("other-auth", 403, "AccessDeniedException", "Authorization method mismatch."),
    ("denied-api", 403, "AccessDeniedException", "User: arn:aws:sts::"),
    ("validation-api", 400, "ValidationException", "1 validation error detected: Value '"),
    ("not-found-api", 404, "ResourceNotFoundException", "No endpoint or agent found: /runtimes/"),
    ("runtime-error-424", 424, "RuntimeClientError", "Received error (500) from runtime."),
    ("runtime-start-424", 424, "RuntimeClientError", "Runtime initialization time exceeded."),
    ("internal-500", 500, "InternalServerException", "Internal failure"),
    ("gateway-tool-500", 500, "ToolExecutionError", "Tool execution failed"),
]

QUOTING = {
    "bad-signature",
    "incomplete-signature",
    "validation-api",
    "internal-500",
    "bad-gateway-502",
    "unavailable-503",
    "gateway-timeout-504",
    "gateway-tool-500",
    "gateway-tool-debug",
    "error-data",
    "unknown-message",
}
"""Rows that quote the session token, or the whole Authorization line."""


def play(row: Step | str, *, sse: bool = False) -> tuple[RawAnswer, int, AgentCoreStandIn]:
    """The answer of a row to a signed call, how often the tool ran, and the stand-in."""
    with AgentCoreStandIn(sse=sse) as stand_in:
        stand_in.script("charge", row)
        answer = ask_signed(stand_in, CALL)
        assert stand_in.signature_faults == ()
        return answer, stand_in.executions("charge"), stand_in


def content(answer: RawAnswer) -> bytes:
    """The JSON of an answer, from its body or from its only event."""
    if answer.values("content-type") == [b"text/event-stream"]:
        stream, whole = answer.unchunked()
        assert whole
        assert stream.startswith(SSE_HEAD)
        return stream.removeprefix(SSE_HEAD).rstrip()
    assert answer.values("content-type") == [b"application/json"]
    return answer.body


def test_every_row_is_in_one_of_the_tables_of_this_file() -> None:
    """A row that is added is tested."""
    tables = {row[0] for row in (*MCP_FORMS, *API_FORMS)}
    elsewhere = {
        name
        for name, row in AGENTCORE_ROWS.items()
        if not isinstance(row, AgentCoreRow) or name.startswith("identity-") or row.ran
    }
    assert tables <= set(AGENTCORE_ROWS)
    rest = {"busy-409-type-in-body", "method-not-allowed"}
    assert set(AGENTCORE_ROWS) - tables - elsewhere == rest


@pytest.mark.parametrize("sse", [False, True], ids=["json", "sse"])
@pytest.mark.parametrize(("name", "status", "code", "message"), MCP_FORMS)
def test_a_failure_of_the_mcp_form(
    name: str, status: int, code: int, message: str, sse: bool
) -> None:
    """Status, code, words and the request's own id; nothing ran, and the row is in the journal."""
    answer, ran, stand_in = play(name, sse=sse)
    assert answer.status == status
    said = json.loads(content(answer))
    assert (said["error"]["code"], said["error"]["message"]) == (code, message)
    assert (said["jsonrpc"], said["id"]) == ("2.0", 7)
    streamed = status == 200 and (sse or name.endswith("-sse")) and name != "busy-json"
    wanted = b"text/event-stream" if streamed else b"application/json"
    assert answer.values("content-type") == [wanted]
    (requested,) = answer.values("x-amzn-requestid")
    assert re.fullmatch(rb"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", requested)
    assert ran == 0
    (entry,) = stand_in.journal
    assert entry.step is AGENTCORE_ROWS[name]


@pytest.mark.parametrize(("name", "status", "kind", "begins"), API_FORMS)
def test_a_failure_of_the_api_form(name: str, status: int, kind: str, begins: str) -> None:
    """Status, type and message."""
    answer, ran, _ = play(name)
    assert answer.status == status
    (named,) = answer.values("x-amzn-errortype")
    assert named.decode().partition(":")[0] == kind
    assert answer.values("content-type") == [b"application/json"]
    assert str(answer.json()["message"]).startswith(begins)
    row = AGENTCORE_ROWS[name]
    assert isinstance(row, AgentCoreRow)
    assert ran == int(row.ran)


@pytest.mark.parametrize("name", sorted(QUOTING))
def test_a_row_that_quotes_gives_back_the_token_it_was_sent(name: str) -> None:
    """So that a test of secrecy has something to find; the control is a row that does not."""
    answer, _, stand_in = play(name)
    token = stand_in.keys.session_token
    assert token is not None
    assert token.encode() in answer.body
    assert stand_in.canary.encode() in answer.body
    assert token.encode() not in play("throttle")[0].body


@pytest.mark.parametrize(
    "name",
    ["denied-api", "gateway-throttle", "gateway-throttle-http", "gateway-consent", "sse-comments"],
)
def test_a_row_that_says_too_much_has_the_canary(name: str) -> None:
    """An ARN, a limit's key, a URL, a comment."""
    answer, _, stand_in = play(name)
    assert stand_in.canary.encode() in answer.body


def test_a_busy_answer_may_name_its_type_in_the_body_alone() -> None:
    """As other AWS services do."""
    answer, ran, _ = play("busy-409-type-in-body")
    assert (answer.status, ran) == (409, 0)
    assert answer.values("x-amzn-errortype") == []
    assert str(answer.json()["__type"]).endswith("#RetryableConflictException")


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("throttle-429", []),
        ("throttle-429-seconds", [b"2"]),
        ("throttle-429-garbage", [b"2 seconds"]),
        ("gateway-throttle-429", []),
    ],
)
def test_a_throttle_states_its_wait_in_its_head(name: str, values: list[bytes]) -> None:
    """Or not at all; a gateway never does."""
    assert play(name)[0].values("retry-after") == values


def test_a_throttle_may_state_a_date() -> None:
    """Two seconds after the answer's own Date, whatever the client's clock says."""
    answer = play("throttle-429-date")[0]
    (stated,) = answer.values("retry-after")
    (dated,) = answer.values("date")
    sent = parsedate_to_datetime(dated.decode())
    assert parsedate_to_datetime(stated.decode()) - sent == timedelta(seconds=2)
    assert abs(sent - datetime.now(UTC)) < timedelta(minutes=1)


@pytest.mark.parametrize(
    ("row", "status", "stated"),
    [
        ("gateway-throttle", 200, 1),
        ("gateway-throttle-short", 429, 0.2),
        ("gateway-throttle-long", 429, 60.0),
        ("gateway-throttle-text", 429, "1"),
        ("gateway-throttle-negative", 429, -1),
        ("gateway-throttle-huge", 429, 1e9),
        ("gateway-throttle-null", 429, None),
        (GatewayThrottle(7, 200), 200, 7),
    ],
)
def test_a_gateways_throttle_states_its_wait_in_its_body(
    row: Step | str, status: int, stated: object
) -> None:
    """As it is declared, sound or not."""
    answer, ran, _ = play(row)
    error = json.loads(answer.body)["error"]
    assert (answer.status, ran) == (status, 0)
    assert error["data"]["retryAfter"] == stated
    assert type(error["data"]["retryAfter"]) is type(stated)
    assert error["data"]["metric"] == "requests"


def test_a_gateways_throttle_may_state_nothing_or_be_no_json_rpc() -> None:
    """Without the member, and in the form of gateways that speak plain HTTP."""
    error = json.loads(play("gateway-throttle-unstated")[0].body)["error"]
    assert set(error["data"]) == {"limitKey", "metric"}
    answer, _, _ = play("gateway-throttle-http")
    said = answer.json()
    assert answer.status == 429
    assert (said["error"], said["success"], said["retryAfter"]) == ("Rate limit exceeded", False, 1)


def test_other_facts_of_single_rows() -> None:
    """What the tables above leave out."""
    assert play("method-not-allowed")[0].status == 405
    assert json.loads(play("knowledge-throttle")[0].body)["result"] is None
    versions = json.loads(play("gateway-version")[0].body)["error"]["data"]
    assert versions["supported"] == ["2026-07-28", "2025-11-25"]
    consent = json.loads(play("gateway-consent")[0].body)["error"]["data"]["elicitations"]
    assert consent[0]["url"].startswith("https://")
    for name in ("gateway-tool-error", "gateway-tool-debug"):
        answer, ran, _ = play(name)
        result = json.loads(answer.body)["result"]
        assert (answer.status, ran, result["isError"]) == (200, 1, True)
        assert ("debug" in result.get("_meta", {})) == (name == "gateway-tool-debug")


@pytest.mark.parametrize(
    ("name", "status"),
    [("bad-gateway-502", 502), ("unavailable-503", 503), ("gateway-timeout-504", 504)],
)
def test_a_proxys_page_is_html_and_the_tool_may_have_run(name: str, status: int) -> None:
    """It ran."""
    answer, ran, _ = play(name)
    assert (answer.status, ran) == (status, 1)
    assert answer.values("content-type") == [b"text/html"]


ODD: dict[str, Callable[[bytes], bool]] = {
    "duplicate-keys": lambda body: body.count(b'"result"') == 2,
    "bom": lambda body: body.startswith(b"\xef\xbb\xbf"),
    "trailing-data": lambda body: body.count(b'{"jsonrpc"') == 2,
    "batch": lambda body: body.startswith(b"["),
    "nan": lambda body: b"NaN" in body,
    "lone-surrogate": lambda body: b"\\ud800" in body,
    "not-utf8": lambda body: b"\xff\xfe" in body,
    "too-deep": lambda body: b"[" * 1000 in body,
    "wrong-id": lambda body: b'"id":7007' in body,
    "json-seq": lambda body: b'"result"' in body,
    "utf-16": lambda body: body.startswith(b"\xff\xfe{\x00"),
    "error-data": lambda body: b'"seen"' in body,
    "unknown-message": lambda body: b'"Refused: ' in body,
    "too-large": lambda body: len(body) > 17 << 20,
    "sse-two-messages": lambda body: body.count(b"\r\ndata: ") == 2,
    "sse-bare-returns": lambda body: b"\rdata: " in body and b"\r\r" in body,
    "sse-split-letter": lambda body: b"\xe2\r\n" in body and b"\xe2\x82\xac" not in body,
    "sse-comments": lambda body: b": keep-alive\r\n" in body,
    "sse-primed": lambda body: b"retry: 500\r\n" in body,
    "sse-dropped": lambda body: b"0\r\n\r\n" not in body,
    "reset-after": lambda body: body == b"",
}
CONTENT_TYPES = {
    "json-seq": b"application/json-seq",
    "utf-16": b"application/json; charset=utf-16",
}


@pytest.mark.parametrize("name", sorted(ODD))
def test_an_odd_answer_is_odd_in_its_own_way_and_the_tool_ran(name: str) -> None:
    """At status 200."""
    answer, ran, _ = play(name)
    assert ran == 1
    assert ODD[name](answer.body), answer.body[:200]
    if name != "reset-after":
        assert answer.status == 200
        kind = b"text/event-stream" if name.startswith("sse-") else b"application/json"
        assert answer.values("content-type") == [CONTENT_TYPES.get(name, kind)]


def test_a_connection_that_dies_first_left_the_tool_alone() -> None:
    """The other half of `reset-after`."""
    answer, ran, _ = play("reset-before")
    assert (answer.data, ran) == (b"", 0)
