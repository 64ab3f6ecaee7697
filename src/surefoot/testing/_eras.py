"""The law of this file: a sound server's answer to a request, in the era of the request.

Sessions belong to the handshake era alone; the modern era keeps nothing between two requests.
Sources: MCP 2025-11-25 and 2026-07-28, transports; statuses as the Python SDK's server gives them.
"""

from __future__ import annotations

import asyncio
import math
import secrets
from collections import Counter
from typing import TYPE_CHECKING

from surefoot.testing._methods import (
    HANDSHAKE_VERSIONS,
    PARSE_ERROR,
    error_message,
    initialize_result,
    result_message,
    simple_result,
    status_of,
)
from surefoot.testing._request import MODERN_VERSIONS, Received, Reply, as_object
from surefoot.testing._tools import tool_result

if TYPE_CHECKING:
    from collections.abc import Mapping

    from surefoot.testing._exchange import Exchange
    from surefoot.testing._limits import TokenMint
    from surefoot.testing._tools import Tool

__all__ = ["ERAS", "Service", "Session"]

ERAS = (MODERN_VERSIONS[-1], HANDSHAKE_VERSIONS[-1])

_PROTOCOL_KEY = "io.modelcontextprotocol/protocolVersion"
_CAPABILITIES_KEY = "io.modelcontextprotocol/clientCapabilities"
_NAMED_BY = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
"""Methods whose params are mirrored as `Mcp-Name`, and the key that is."""


class Session:
    """One session of the handshake era."""

    def __init__(self) -> None:
        self.ended = asyncio.Event()
        self.in_flight: dict[int | str, Exchange] = {}


class Service:
    """The sound server below the faults. Lives in the gateway's loop."""

    def __init__(
        self, tools: Mapping[str, Tool], eras: tuple[str, ...], mint: TokenMint | None = None
    ) -> None:
        self.sessions: dict[str, Session] = {}
        self.executions: Counter[str] = Counter()
        self.replays: dict[str, Reply] = {}
        """Answers kept for a client that comes back with Last-Event-ID."""
        self._tools = tools
        self._mint = mint
        self._modern = MODERN_VERSIONS[-1] in eras
        self._handshake = HANDSHAKE_VERSIONS[-1] in eras

    async def run(self, exchange: Exchange) -> Reply:
        """Do what a request asks, and say how a sound server would answer."""
        received = exchange.received
        if received.kind == "token" and self._mint is not None:
            mint = self._mint
            grant = {
                "access_token": mint.mint(),
                "token_type": "Bearer",
                "expires_in": math.ceil(mint.lifetime),
            }
            return Reply(message=grant, lines=((b"cache-control", b"no-store"),))
        if received.modern and self._modern:
            return await self._run_modern(exchange)
        if self._handshake:
            return await self._run_handshake(exchange)
        return _error(
            received, 400, -32022, "Unsupported protocol version", self._unsupported(received)
        )

    def session_of(self, received: Received) -> Session | None:
        """The live session that a request names, or `None`."""
        return self.sessions.get(received.header("mcp-session-id") or "")

    def enter(self, exchange: Exchange) -> None:
        """Let `notifications/cancelled` find a request of the handshake era from its arrival on."""
        session, rpc_id = self.session_of(exchange.received), exchange.received.rpc_id
        if session is not None and rpc_id is not None:
            session.in_flight[rpc_id] = exchange

    def leave(self, exchange: Exchange) -> None:
        """The opposite of `enter`; a request that re-used the id stays."""
        session, rpc_id = self.session_of(exchange.received), exchange.received.rpc_id
        if session is not None and rpc_id is not None and session.in_flight.get(rpc_id) is exchange:
            del session.in_flight[rpc_id]

    def forget_sessions(self) -> None:
        """End every session, as a restart would: its streams end and its id is unknown."""
        for name in list(self.sessions):
            self.forget(name)

    def forget(self, name: str | None) -> None:
        """End one session, where it is known."""
        session = self.sessions.pop(name or "", None)
        if session is not None:
            session.ended.set()

    def _unsupported(self, received: Received) -> dict[str, object]:
        supported = [
            *(MODERN_VERSIONS if self._modern else ()),
            *(HANDSHAKE_VERSIONS if self._handshake else ()),
        ]
        return {"supported": supported, "requested": received.header("mcp-protocol-version") or ""}

    async def _run_modern(self, exchange: Exchange) -> Reply:
        received = exchange.received
        if received.http_method != "POST":
            return Reply(status=405, lines=((b"allow", b"POST"),))
        if received.kind == "notification":
            return Reply(status=202)
        accept = (received.header("accept") or "").lower()
        if "application/json" not in accept or "text/event-stream" not in accept:
            return Reply(status=406)
        if received.message is None:
            return _error(received, 400, PARSE_ERROR, "Parse error")
        if received.kind not in {"call", "request"} or received.method is None:
            return _error(
                received,
                400,
                -32600,
                "Body must be a single JSON-RPC request or notification object",
            )
        return _misaddressed(received) or await self._dispatch(
            exchange, received.method, modern=True
        )

    async def _run_handshake(self, exchange: Exchange) -> Reply:
        received = exchange.received
        if received.http_method not in {"GET", "POST", "DELETE"}:
            return Reply(status=405, lines=((b"allow", b"GET, POST, DELETE"),))
        version = received.header("mcp-protocol-version")
        if version is not None and version not in HANDSHAKE_VERSIONS:
            return _error(received, 400, -32600, "Bad Request: Unsupported protocol version")
        if received.kind == "request" and received.method == "initialize":
            name = secrets.token_hex(16)
            self.sessions[name] = Session()
            message = result_message(
                received.rpc_id,
                "initialize",
                initialize_result(received.params.get("protocolVersion")),
                modern=False,
            )
            return Reply(message=message, lines=((b"mcp-session-id", name.encode()),))
        name = received.header("mcp-session-id")
        if name is None:
            return _error(received, 400, -32600, "Bad Request: Missing session ID")
        session = self.sessions.get(name)
        if session is None:
            return _error(received, 404, -32600, "Session not found")
        return await self._run_in_session(exchange, session, name)

    async def _run_in_session(self, exchange: Exchange, session: Session, name: str) -> Reply:
        received = exchange.received
        match received.kind:
            case "get":
                kept = self.replays.get(received.header("last-event-id") or "")
                return kept or Reply(stands=True)
            case "delete":
                self.forget(name)
                return Reply(status=200)
            case "notification":
                if received.method == "notifications/cancelled":
                    self._cancel(session, received.params.get("requestId"))
                return Reply(status=202)
            case "reply":
                return Reply(status=202)
            case "call" | "request" if received.method is not None:
                return await self._dispatch(exchange, received.method, modern=False)
            case _:
                code, text = (
                    (PARSE_ERROR, "Parse error")
                    if received.message is None
                    else (-32600, "Invalid Request")
                )
                return _error(received, 400, code, text)

    def _cancel(self, session: Session, rpc_id: object) -> None:
        exchange = session.in_flight.get(rpc_id) if isinstance(rpc_id, int | str) else None
        if exchange is not None:
            exchange.withdraw()

    async def _dispatch(self, exchange: Exchange, method: str, *, modern: bool) -> Reply:
        received = exchange.received
        if method == "tools/call":
            return await self._call(exchange, modern=modern)
        if method == "tools/list":
            result: dict[str, object] | None = {
                "tools": [tool.listed() for tool in self._tools.values()]
            }
        elif method == ("ping" if modern else "server/discover"):
            result = None  # each belongs to the other era
        else:
            result = simple_result(method, received.params, MODERN_VERSIONS)
        if result is None:
            return _error(received, status_of(-32601, modern=modern), -32601, "Method not found")
        return Reply(message=result_message(received.rpc_id, method, result, modern=modern))

    async def _call(self, exchange: Exchange, *, modern: bool) -> Reply:
        received = exchange.received
        tool = self._tools.get(received.tool or "")
        if tool is None:
            return _error(received, status_of(-32602, modern=modern), -32602, "Unknown tool")
        arguments = as_object(received.params.get("arguments")) or {}
        self.executions[tool.name] += 1
        exchange.note_run()
        try:
            result = tool_result(await tool.run(arguments))
        except Exception as error:  # noqa: BLE001  (a tool's failure is an answer)
            result = {
                "content": [{"type": "text", "text": f"The tool failed: {error}"}],
                "isError": True,
            }
        return Reply(message=result_message(received.rpc_id, "tools/call", result, modern=modern))


def _misaddressed(received: Received) -> Reply | None:
    """The refusal of a modern request that lacks its envelope, or disagrees with its headers."""
    meta = as_object(received.params.get("_meta")) or {}
    if _PROTOCOL_KEY not in meta or _CAPABILITIES_KEY not in meta:
        return _error(
            received,
            400,
            -32602,
            "params._meta lacks the protocol version or the client capabilities",
        )
    named = received.params.get(_NAMED_BY.get(received.method or "", ""))
    pairs: tuple[tuple[str, object], ...] = (
        ("mcp-protocol-version", meta[_PROTOCOL_KEY]),
        ("mcp-method", received.method),
        *((("mcp-name", named),) if isinstance(named, str) else ()),
    )
    for name, wanted in pairs:
        sent = received.header(name)
        if sent != wanted and not (
            name == "mcp-name" and sent is not None and sent.startswith("=?base64?")
        ):
            return _error(received, 400, -32020, f"{name} header does not match the body")
    return None


def _error(received: Received, status: int, code: int, message: str, data: object = None) -> Reply:
    return Reply(status=status, message=error_message(received.rpc_id, code, message, data))
