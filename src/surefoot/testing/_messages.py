"""The law of this file: a sound request of either era, for tests that have no MCP client."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass, field

from surefoot.testing._request import MODERN_VERSIONS
from surefoot.testing._wire import compact_json

__all__ = ["McpRequest", "mcp_request", "tool_call"]

_META = "io.modelcontextprotocol/"
_NAMED_BY = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}


@dataclass(frozen=True, slots=True, kw_only=True)
class McpRequest:
    """The headers and the body of one POST, as in `client.post(url, headers=..., content=...)`."""

    headers: Mapping[str, str]
    body: bytes = field(repr=False)


def mcp_request(
    method: str,
    params: Mapping[str, object] | None = None,
    *,
    rpc_id: int | str | None = 1,
    version: str | None = MODERN_VERSIONS[-1],
    session: str | None = None,
) -> McpRequest:
    """Lay out a JSON-RPC message as an MCP client would send it.

    Args:
        method: the JSON-RPC method.
        params: its params; what the modern era requires beside them is added.
        rpc_id: the id; `None` makes it a notification.
        version: the protocol version that the headers name; `None` names none.
        session: the Mcp-Session-Id (handshake era).

    """
    modern = version in MODERN_VERSIONS
    given = dict(params or {})
    headers = {"accept": "application/json, text/event-stream", "content-type": "application/json"}
    if version is not None:
        headers["mcp-protocol-version"] = version
    if session is not None:
        headers["mcp-session-id"] = session
    if modern and rpc_id is not None:
        headers["mcp-method"] = method
        name = given.get(_NAMED_BY.get(method, ""))
        if isinstance(name, str):
            headers["mcp-name"] = _as_header(name)
        given["_meta"] = {
            f"{_META}protocolVersion": version,
            f"{_META}clientInfo": {"name": "surefoot.testing", "version": "1"},
            f"{_META}clientCapabilities": {},
        }
    message: dict[str, object] = {"jsonrpc": "2.0", "method": method}
    if rpc_id is not None:
        message["id"] = rpc_id
    if given:
        message["params"] = given
    return McpRequest(headers=headers, body=compact_json(message))


def tool_call(
    tool: str,
    arguments: Mapping[str, object] | None = None,
    *,
    rpc_id: int | str = 1,
    version: str | None = MODERN_VERSIONS[-1],
    session: str | None = None,
) -> McpRequest:
    """Lay out a tools/call; the options are those of `mcp_request`."""
    params = {"name": tool, "arguments": dict(arguments or {})}
    return mcp_request("tools/call", params, rpc_id=rpc_id, version=version, session=session)


def _as_header(name: str) -> str:
    """A name as MCP puts it into a header: as it stands, or in base64."""
    if name.isascii() and name.isprintable() and name == name.strip():
        return name
    return f"=?base64?{base64.b64encode(name.encode()).decode()}?="
