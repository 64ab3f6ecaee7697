"""The law of this file: every answer of AgentCore Gateway that a client has to tell from another.

Sources: the AWS developer guide (rate limits, sessions, inbound authorization, calling tools,
elicitation). Which status a throttle of the MCP form has is not documented, so there are both.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Final, Literal

from surefoot.testing import _checks as check
from surefoot.testing._agentcore_rows import (
    AGENTCORE_CANARY,
    AgentCoreRow,
    api,
    error_type,
    given,
    request_id,
    rpc,
)
from surefoot.testing._exchange import Exchange
from surefoot.testing._methods import error_message
from surefoot.testing._request import Kind, Received, Reply
from surefoot.testing._steps import Step
from surefoot.testing._wire import Headers, compact_json

__all__ = ["GATEWAY_ROWS", "GatewayThrottle"]

Wait = int | float | str | None
"""A stated wait in a body, sound or not."""

_LIMIT_KEY: Final = f"rl-4f1d/sub={AGENTCORE_CANARY}/targetName=orders"
_ARN: Final = f"arn:aws:lambda:us-west-2:123456789012:function:{AGENTCORE_CANARY}"


@dataclass(frozen=True, slots=True)
class GatewayThrottle(Step):
    """AgentCore Gateway's "too many requests", whose wait is in the body. The tool did not run.

    On the wire: no Retry-After line. `form="mcp"` is a JSON-RPC error -32003 with
    `data.retryAfter`, `form="http"` a plain object with `retryAfter`, always at 429.
    """

    retry_after: Wait = 1
    """Seconds; a text or a negative number goes out as it stands, `None` as `null`."""
    status: Literal[200, 429] = 429
    form: Literal["mcp", "http"] = "mcp"
    stated: bool = True
    """`False` leaves `retryAfter` out."""

    fits: ClassVar[frozenset[Kind]] = frozenset({"call", "request", "notification"})

    def __post_init__(self) -> None:
        check.one_of("GatewayThrottle(form)", self.form, ("mcp", "http"))
        check.a_bool("GatewayThrottle(stated)", self.stated)
        if self.status not in {200, 429}:
            raise ValueError("GatewayThrottle(status) takes 200 or 429")
        if self.form == "http" and self.status != 429:
            raise ValueError('GatewayThrottle(form="http") goes out at 429 alone')

    async def play(self, exchange: Exchange) -> None:
        """Refuse."""
        facts: dict[str, object] = {"limitKey": _LIMIT_KEY, "metric": "requests"}
        if self.stated:
            facts["retryAfter"] = self.retry_after
        text = "Rate limit exceeded"
        message: dict[str, object] = {"error": text, "success": False, **facts}
        if self.form == "mcp":
            message = error_message(exchange.received.rpc_id, -32003, text, facts)
        reply = Reply(status=self.status, message=message, lines=(request_id(),))
        await exchange.send_body(reply, compact_json(message))


def _metadata(received: Received) -> str:
    host = received.header("host") or "127.0.0.1"
    return f'resource_metadata="http://{host}/.well-known/oauth-protected-resource"'


def _unauthorized(received: Received) -> Headers:
    scope = 'scope="orders/read orders/write"'
    return (("www-authenticate", f"Bearer {_metadata(received)}, {scope}"),)


def _insufficient(received: Received) -> Headers:
    what = 'error="insufficient_scope", scope="orders/write"'
    return (("www-authenticate", f"Bearer {what}, {_metadata(received)}"),)


def _result(received: Received, text: str, meta: Mapping[str, object] | None = None) -> bytes:
    result: dict[str, object] = {"content": [{"type": "text", "text": text}], "isError": True}
    if received.modern:
        result["resultType"] = "complete"
    if meta is not None:
        result["_meta"] = meta
    return compact_json({"jsonrpc": "2.0", "id": received.rpc_id, "result": result})


def _null_result(received: Received) -> bytes:
    error = {"code": -32004, "message": "Too many requests. Please try again later."}
    return compact_json({"jsonrpc": "2.0", "id": received.rpc_id, "result": None, "error": error})


_CONSENT: Final = {
    "elicitations": [
        {
            "mode": "url",
            "elicitationId": "4f1d2c",
            "url": f"https://consent.example/authorize?request_uri={AGENTCORE_CANARY}",
            "message": "Please sign in to continue.",
        }
    ]
}

_ROWS: tuple[AgentCoreRow, ...] = (
    AgentCoreRow(
        "gateway-session-missing",
        "a gateway with sessions wants its session named",
        status=400,
        body=rpc(-32600, "Bad Request: Missing session ID"),
    ),
    AgentCoreRow(
        "gateway-session-lost",
        "the session is unknown, expired, or somebody else's",
        status=404,
        body=rpc(-32001, "Session not found"),
    ),
    AgentCoreRow(
        "gateway-unknown-tool",
        "there is no such tool, which says nothing about the session",
        status=404,
        body=lambda received: compact_json(
            error_message(received.rpc_id, -32602, f"Unknown tool: {received.tool}")
        ),
    ),
    AgentCoreRow(
        "gateway-no-bearer",
        "a gateway with JWT authorization wants a token, and says where its metadata is",
        status=401,
        headers=_unauthorized,
        body=rpc(-32001, "Missing Bearer token"),
    ),
    AgentCoreRow(
        "gateway-scope",
        "the token lacks a scope",
        status=403,
        headers=_insufficient,
        body=rpc(-32002, "Insufficient scope"),
    ),
    AgentCoreRow(
        "gateway-consent",
        "the user has to open a URL first",
        body=rpc(-32042, "This request requires more information.", _CONSENT),
    ),
    AgentCoreRow(
        "gateway-tool-error",
        "the target failed, said as a result",
        body=lambda received: _result(received, "An internal error occurred. Please retry later."),
        ran=True,
    ),
    AgentCoreRow(
        "gateway-tool-debug",
        "the target failed, said as a result that quotes the target",
        body=lambda received: _result(
            received, f"Error from {_ARN}", {"debug": {"target": _ARN, "message": given(received)}}
        ),
        ran=True,
    ),
    AgentCoreRow(
        "gateway-tool-500",
        "the target failed after it ran",
        status=500,
        headers=error_type("ToolExecutionError"),
        body=api(lambda received: f"Tool execution failed {given(received)}"),
        ran=True,
    ),
    AgentCoreRow(
        "gateway-header-mismatch",
        "a header and the body name different things",
        status=400,
        body=rpc(-32020, "mcp-method header does not match the body"),
    ),
    AgentCoreRow(
        "gateway-capability",
        "the client has not declared a capability that the target needs",
        status=400,
        body=rpc(
            -32021,
            "Missing required client capability",
            {"requiredCapabilities": {"elicitation": {}}},
        ),
    ),
    AgentCoreRow(
        "gateway-version",
        "the protocol version is not spoken",
        status=400,
        body=rpc(
            -32022,
            "Unsupported protocol version",
            {"supported": ["2026-07-28", "2025-11-25"], "requested": "2099-01-01"},
        ),
    ),
    AgentCoreRow(
        "knowledge-throttle",
        "too many requests, as the AWS Knowledge server says it: result null beside the error",
        status=429,
        body=_null_result,
    ),
)

GATEWAY_ROWS: Final[Mapping[str, AgentCoreRow]] = {row.name: row for row in _ROWS}
"""What AgentCore Gateway answers, by name; its throttle is `GatewayThrottle`."""

GATEWAY_THROTTLES: Final[Mapping[str, GatewayThrottle]] = {
    "gateway-throttle": GatewayThrottle(1, 200),
    "gateway-throttle-429": GatewayThrottle(1),
    "gateway-throttle-short": GatewayThrottle(0.2),
    "gateway-throttle-long": GatewayThrottle(60.0),
    "gateway-throttle-text": GatewayThrottle("1"),
    "gateway-throttle-negative": GatewayThrottle(-1),
    "gateway-throttle-huge": GatewayThrottle(1e9),
    "gateway-throttle-null": GatewayThrottle(None),
    "gateway-throttle-unstated": GatewayThrottle(stated=False),
    "gateway-throttle-http": GatewayThrottle(1, form="http"),
}
