"""The law of this file: a request is read once, tolerantly, into facts; others judge them.

A test may send anything, so nothing here raises: what cannot be read is `None`.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, cast

if TYPE_CHECKING:
    from collections.abc import Mapping

    from surefoot.testing._wire import HeaderLine

__all__ = ["MODERN_VERSIONS", "Kind", "Received", "Reply", "as_object", "read_request"]

MODERN_VERSIONS = ("2026-07-28",)
"""Protocol versions without sessions, where each request stands for itself."""

Kind = Literal[
    "call", "request", "notification", "reply", "get", "delete", "token", "connect", "other"
]
"""What a request is: `call` is a tools/call, `reply` a JSON-RPC answer of the client's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Received:
    """One HTTP request, and what its body says as JSON-RPC."""

    http_method: str
    target: str
    headers: tuple[HeaderLine, ...] = field(repr=False)
    body: bytes = field(repr=False)
    kind: Kind
    message: Mapping[str, object] | None = field(default=None, repr=False)
    method: str | None = None
    rpc_id: int | str | None = None
    params: Mapping[str, object] = field(default_factory=dict[str, object], repr=False)

    @property
    def path(self) -> str:
        """The target without its query."""
        return self.target.partition("?")[0]

    @property
    def tool(self) -> str | None:
        """The tool that a tools/call names."""
        name = self.params.get("name")
        return name if self.kind == "call" and isinstance(name, str) else None

    @property
    def modern(self) -> bool:
        """Whether the request was sent under a protocol version without sessions."""
        return self.header("mcp-protocol-version") in MODERN_VERSIONS

    @property
    def id_json(self) -> bytes:
        """The JSON-RPC id as it is written in JSON; `null` where there is none."""
        return json.dumps(self.rpc_id).encode()

    def header(self, name: str) -> str | None:
        """The first value sent under a header name, read as Latin-1, or `None`."""
        wanted = name.encode()
        found = next((value for line, value in self.headers if line.lower() == wanted), None)
        return None if found is None else found.decode("latin-1")


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """What a sound gateway would answer to a request."""

    status: int = 200
    message: Mapping[str, object] | None = None
    """The JSON-RPC answer; `None` is an empty body."""
    lines: tuple[HeaderLine, ...] = ()
    """Header lines beside the content type and length."""
    stands: bool = False
    """Whether this is a stream without an end, which the gateway holds open."""


def read_request(
    http_method: str,
    target: str,
    headers: tuple[HeaderLine, ...],
    body: bytes,
    *,
    token_path: str | None = None,
) -> Received:
    """Read the parts of one HTTP request into facts. Never raises."""
    known = Received(
        http_method=http_method, target=target, headers=headers, body=body, kind="other"
    )
    if http_method == "POST" and token_path is not None and known.path == token_path:
        return Received(
            http_method=http_method, target=target, headers=headers, body=body, kind="token"
        )
    if http_method in {"GET", "DELETE"}:
        kind: Kind = "get" if http_method == "GET" else "delete"
        return Received(
            http_method=http_method, target=target, headers=headers, body=body, kind=kind
        )
    message = _object(body) if http_method == "POST" else None
    if message is None:
        return known
    method = message.get("method")
    rpc_id = message.get("id")
    return Received(
        http_method=http_method,
        target=target,
        headers=headers,
        body=body,
        kind=_kind(message),
        message=message,
        method=method if isinstance(method, str) else None,
        rpc_id=rpc_id if isinstance(rpc_id, int | str) and not isinstance(rpc_id, bool) else None,
        params=as_object(message.get("params")) or {},
    )


def as_object(value: object) -> Mapping[str, object] | None:
    """A JSON object as a mapping; anything else is `None`."""
    return cast("Mapping[str, object]", value) if isinstance(value, dict) else None


def _object(body: bytes) -> Mapping[str, object] | None:
    try:
        value: object = json.loads(body)
    except (ValueError, RecursionError):
        return None
    return as_object(value)


def _kind(message: Mapping[str, object]) -> Kind:
    method = message.get("method")
    if not isinstance(method, str):
        return "reply" if "result" in message or "error" in message else "other"
    if "id" not in message:
        return "notification"
    return "call" if method == "tools/call" else "request"
