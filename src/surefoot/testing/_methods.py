"""The law of this file: what a sound MCP server says to each method, in the words of either era.

Pure: a method and its params in, a JSON-RPC message out. Sources: MCP 2025-11-25 and 2026-07-28.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from surefoot.testing._request import as_object

__all__ = [
    "HANDSHAKE_VERSIONS",
    "METHODS",
    "NOTIFICATIONS",
    "PARSE_ERROR",
    "REQUEST_CANCELLED",
    "error_message",
    "initialize_result",
    "result_message",
    "simple_result",
    "status_of",
]

HANDSHAKE_VERSIONS: Final = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
"""Protocol versions that open with `initialize` and live in a session."""

PARSE_ERROR: Final = -32700
REQUEST_CANCELLED: Final = -32800
"""What the Python SDK answers to a request that `notifications/cancelled` ended."""

_STATUS: Final[Mapping[int, int]] = {
    PARSE_ERROR: 400,
    -32600: 400,
    -32602: 400,
    -32020: 400,
    -32021: 400,
    -32022: 400,
    -32601: 404,
}
"""HTTP status of a JSON-RPC error in the 2026-07-28 era; any other code goes out at 200."""

METHODS: Final = frozenset(
    {
        "initialize",
        "server/discover",
        "ping",
        "tools/list",
        "tools/call",
        "prompts/list",
        "prompts/get",
        "resources/list",
        "resources/read",
        "resources/templates/list",
    }
)
"""Methods that carry an id and that the gateway answers."""

NOTIFICATIONS: Final = frozenset(
    {
        "notifications/initialized",
        "notifications/cancelled",
        "notifications/progress",
        "notifications/roots/list_changed",
    }
)

_CAPABILITIES: Final = {"tools": {"listChanged": False}, "prompts": {}, "resources": {}}
_SERVER: Final = {"name": "surefoot.testing.FaultyGateway", "version": "1"}
_CACHED: Final = frozenset(
    {"server/discover", "tools/list", "prompts/list", "resources/list", "resources/read"}
) | {"resources/templates/list"}
"""Methods whose results say how long they may be kept (2026-07-28)."""


def error_message(
    rpc_id: int | str | None, code: int, message: str, data: object = None
) -> dict[str, object]:
    """A JSON-RPC error."""
    error: dict[str, object] = {"code": code, "message": message}
    if data is not None:
        error["data"] = data
    return {"jsonrpc": "2.0", "id": rpc_id, "error": error}


def result_message(
    rpc_id: int | str | None, method: str | None, result: Mapping[str, object], *, modern: bool
) -> dict[str, object]:
    """A JSON-RPC result, with the fields that the modern era requires where it is that era."""
    if modern:
        meta = as_object(result.get("_meta")) or {}
        extra: dict[str, object] = {"resultType": "complete"}
        if method in _CACHED:
            extra |= {"ttlMs": 0, "cacheScope": "private"}
        result = {
            **extra,
            **result,
            "_meta": {"io.modelcontextprotocol/serverInfo": _SERVER, **meta},
        }
    return {"jsonrpc": "2.0", "id": rpc_id, "result": dict(result)}


def status_of(code: int, *, modern: bool) -> int:
    """The HTTP status of a JSON-RPC error from a dispatched method."""
    return _STATUS.get(code, 200) if modern else 200


def initialize_result(asked: object) -> dict[str, object]:
    """The result of `initialize`: the version asked for, or the newest of that era."""
    return {
        "protocolVersion": asked if asked in HANDSHAKE_VERSIONS else HANDSHAKE_VERSIONS[-1],
        "capabilities": _CAPABILITIES,
        "serverInfo": _SERVER,
    }


def simple_result(
    method: str, params: Mapping[str, object], versions: tuple[str, ...]
) -> dict[str, object] | None:
    """The result of a method that needs no tool and no session, or `None` if unknown."""
    match method:
        case "server/discover":
            return {"supportedVersions": list(versions), "capabilities": _CAPABILITIES}
        case "ping":
            return {}
        case "prompts/list":
            return {"prompts": [{"name": "greeting", "description": "Says hello."}]}
        case "prompts/get":
            return {"messages": [{"role": "user", "content": {"type": "text", "text": "Hello."}}]}
        case "resources/list":
            return {"resources": [{"name": "note", "uri": "note://one"}]}
        case "resources/templates/list":
            return {"resourceTemplates": []}
        case "resources/read":
            uri = params.get("uri", "note://one")
            return {"contents": [{"uri": uri, "mimeType": "text/plain", "text": "A note."}]}
        case _:
            return None
