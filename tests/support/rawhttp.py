"""The law of this file: an answer is read as bytes, by a client that believes nothing.

For tests of what really goes over the wire, which an HTTP library would mend, or refuse to show.
"""

from __future__ import annotations

import json
import socket
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, cast

from surefoot.testing import FaultyGateway, McpRequest

PATIENCE = 5.0
"""Seconds without a byte after which a connection counts as held open by a fault of the test."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RawAnswer:
    """Everything that came back on one connection, and how it ended."""

    data: bytes = field(repr=False)
    ending: Literal["closed", "reset", "open"]

    @property
    def head(self) -> bytes:
        """The status line and the header lines."""
        return self.data.partition(b"\r\n\r\n")[0]

    @property
    def body(self) -> bytes:
        """What follows the head, chunked or not."""
        return self.data.partition(b"\r\n\r\n")[2]

    @property
    def status(self) -> int:
        """The status."""
        return int(self.head.split(b" ")[1])

    def values(self, name: str) -> list[bytes]:
        """Every value of a header."""
        lines = [line.partition(b": ") for line in self.head.split(b"\r\n")[1:]]
        return [value for line, _, value in lines if line.lower() == name.encode()]

    def json(self) -> dict[str, object]:
        """The body as a JSON object."""
        return cast("dict[str, object]", json.loads(self.body))

    def unchunked(self) -> tuple[bytes, bool]:
        """The content of a chunked body, and whether its last chunk came."""
        rest, content = self.body, b""
        while rest:
            size, _, rest = rest.partition(b"\r\n")
            length = int(size, 16)
            if length == 0:
                return content, True
            content, rest = content + rest[:length], rest[length + 2 :]
        return content, False


def lay_out(
    request: McpRequest | None,
    *,
    method: str = "POST",
    path: str = "/mcp",
    headers: Mapping[str, str] | None = None,
    close: bool = True,
) -> bytes:
    """An HTTP request as bytes; it asks for the connection to be closed, unless told otherwise."""
    body = b"" if request is None else request.body
    lines = {"host": "127.0.0.1", **({} if request is None else request.headers), **(headers or {})}
    if method == "POST":
        lines["content-length"] = str(len(body))
    if close:
        lines["connection"] = "close"
    named = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
    return f"{method} {path} HTTP/1.1\r\n{named}\r\n".encode("latin-1") + body


def connect(gateway: FaultyGateway) -> socket.socket:
    """A connection to a gateway, with a bound on every wait."""
    host, _, port = gateway.origin.removeprefix("http://").partition(":")
    return socket.create_connection((host, int(port)), timeout=PATIENCE)


def read_all(connection: socket.socket, *, patience: float = PATIENCE) -> RawAnswer:
    """Read until the connection ends, or no byte has come for a while."""
    connection.settimeout(patience)
    data = b""
    try:
        while piece := connection.recv(65536):
            data += piece
    except ConnectionResetError:
        return RawAnswer(data=data, ending="reset")
    except TimeoutError:
        return RawAnswer(data=data, ending="open")
    return RawAnswer(data=data, ending="closed")


def ask(
    gateway: FaultyGateway,
    request: McpRequest | None = None,
    *,
    method: str = "POST",
    path: str = "/mcp",
    headers: Mapping[str, str] | None = None,
    patience: float = PATIENCE,
) -> RawAnswer:
    """Send one request on a connection of its own, and read all that comes back."""
    with connect(gateway) as connection:
        connection.sendall(lay_out(request, method=method, path=path, headers=headers))
        return read_all(connection, patience=patience)
