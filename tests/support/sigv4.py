"""The law of this file: a request is signed as a careful client signs it, over what no hop touches.

It computes with the functions of the stand-in, which the published suite holds to the
specification; that botocore agrees with them is a test of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlsplit

from support.rawhttp import RawAnswer, connect, lay_out, read_all
from surefoot.testing import AgentCoreStandIn, McpRequest, SigV4Keys
from surefoot.testing._agentcore_sigv4 import (
    Scope,
    canonical_request,
    signature,
    string_to_sign,
)

__all__ = ["Lines", "Sent", "ask_signed", "sign", "sign_request"]

Lines = tuple[tuple[bytes, bytes], ...]

_STABLE = {"host", "content-type", "mcp-session-id", "x-amz-date", "x-amz-security-token"}


@dataclass(frozen=True, kw_only=True)
class Sent:
    """A request as it is on the wire."""

    method: str
    target: str
    lines: Lines
    body: bytes

    def with_line(self, name: str, value: str) -> Sent:
        """The same, with one header line in the place of those of that name."""
        kept = tuple(line for line in self.lines if line[0].lower() != name.lower().encode())
        return replace(self, lines=(*kept, (name.encode(), value.encode())))

    def without(self, name: str) -> Sent:
        """The same, without the lines of a name."""
        kept = tuple(line for line in self.lines if line[0].lower() != name.encode())
        return replace(self, lines=kept)


def sign(sent: Sent, keys: SigV4Keys, *, at: datetime, names: str = "") -> Sent:
    """The request with a signature over the headers that no hop touches, and over `names`."""
    stamp = f"{at:%Y%m%dT%H%M%SZ}"
    sent = sent.with_line("x-amz-date", stamp)
    if keys.session_token is not None:
        sent = sent.with_line("x-amz-security-token", keys.session_token)
    here = {name.decode().lower() for name, _ in sent.lines}
    signed = sorted((here & _STABLE) | set(names.split()))
    scope = Scope(date=stamp[:8], region="us-west-2", service="bedrock-agentcore")
    canonical = canonical_request(
        sent.method, sent.target, sent.lines, sent.body, signed_headers=signed
    )
    made = signature(keys.secret_access_key, string_to_sign(canonical, stamp, scope), scope)
    return sent.with_line(
        "authorization",
        f"AWS4-HMAC-SHA256 Credential={keys.access_key_id}/{scope}, "
        f"SignedHeaders={';'.join(signed)}, Signature={made}",
    )


def sign_request(request: Any, keys: SigV4Keys, *, at: datetime | None = None) -> None:
    """Sign a request of httpx or httpx2 whose body was read, in place."""
    sent = Sent(
        method=request.method,
        target=request.url.raw_path.decode("ascii"),
        lines=tuple(request.headers.raw),
        body=request.content,
    )
    for name, value in sign(sent, keys, at=at or datetime.now(UTC)).lines:
        if name in {b"authorization", b"x-amz-date", b"x-amz-security-token"}:
            request.headers[name.decode()] = value.decode()


def ask_signed(
    stand_in: AgentCoreStandIn,
    request: McpRequest | None,
    url: str | None = None,
    *,
    method: str = "POST",
    keys: SigV4Keys | None = None,
    at: datetime | None = None,
    headers: Mapping[str, str] | None = None,
) -> RawAnswer:
    """Send one signed request on a connection of its own, and read all that comes back."""
    parts = urlsplit(url or stand_in.runtime_url)
    target = f"{parts.path}?{parts.query}" if parts.query else parts.path
    given = {**({} if request is None else request.headers), **(headers or {})}
    sent = Sent(
        method=method,
        target=target,
        lines=(
            (b"host", b"127.0.0.1"),
            *((name.encode(), value.encode()) for name, value in given.items()),
        ),
        body=b"" if request is None else request.body,
    )
    made = sign(sent, keys or stand_in.keys, at=at or datetime.now(UTC))
    lines = {name.decode(): value.decode() for name, value in made.lines}
    with connect(stand_in) as connection:
        connection.sendall(lay_out(request, method=method, path=target, headers=lines))
        return read_all(connection)
