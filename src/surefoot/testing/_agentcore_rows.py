"""The law of this file: a row says the bytes that AWS answers with, and the answer holds no other.

What a careless service quotes, a row quotes from the request that it answers, so that a test which
sent a secret finds it in the answer; and a fixed canary beside it, for tests that sent none.
"""

from __future__ import annotations

import secrets
import uuid
from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass, field
from typing import TYPE_CHECKING, ClassVar, Final, Literal

from surefoot.testing import _checks as check
from surefoot.testing._agentcore_sigv4 import (
    canonical_request,
    header_values,
    read_authorization,
    string_to_sign,
)
from surefoot.testing._echo import quoted
from surefoot.testing._exchange import Exchange
from surefoot.testing._methods import error_message
from surefoot.testing._request import Kind, Received, Reply
from surefoot.testing._steps import Step
from surefoot.testing._wire import (
    Headers,
    compact_json,
    header_line,
    lines_from,
    sse_event,
)

if TYPE_CHECKING:
    from surefoot.testing._wire import HeaderLine

__all__ = [
    "AGENTCORE_CANARY",
    "AgentCoreRow",
    "IdentityRow",
    "api",
    "canonical_quote",
    "error_type",
    "given",
    "page",
    "request_id",
    "rpc",
]

AGENTCORE_CANARY: Final = "canary-8c1f52d07ae94b3f"
"""Stands in every answer of the stand-in's rows that a client must not let through."""

Body = Callable[[Received], bytes]
"""What an answer says, given the request: the bytes of its body."""


def request_id() -> HeaderLine:
    """The header line that AWS puts on every answer."""
    return (b"x-amzn-requestid", str(uuid.UUID(bytes=secrets.token_bytes(16), version=4)).encode())


def error_type(name: str) -> tuple[tuple[str, str], ...]:
    """The header line that names the type of an error."""
    return (("x-amzn-errortype", name),)


@dataclass(frozen=True, slots=True)
class AgentCoreRow(Step):
    """One answer of AgentCore, as it goes over the wire. The tool did not run, unless `ran=True`.

    The rows that `AgentCoreStandIn` knows by name are in `AGENTCORE_ROWS`.
    """

    name: str
    says: str
    """What the service means by it."""
    _: KW_ONLY
    status: int = 200
    headers: Headers | Callable[[Received], Headers] = ()
    """Header lines beside content type, length and request id; or how they follow the request."""
    body: Body = field(repr=False)
    framing: Literal["json", "sse"] | None = None
    """`None` is what the stand-in speaks (`sse=`); a status other than 200 is never a stream."""
    content_type: str = "application/json"
    ran: bool = False

    fits: ClassVar[frozenset[Kind]] = frozenset(
        {"call", "request", "notification", "get", "delete"}
    )

    def __post_init__(self) -> None:
        check.a_text("AgentCoreRow(name)", self.name)
        check.a_status("AgentCoreRow(status)", self.status)
        check.a_bool("AgentCoreRow(ran)", self.ran)
        if self.framing is not None:
            check.one_of("AgentCoreRow(framing)", self.framing, ("json", "sse"))

    async def play(self, exchange: Exchange) -> None:
        """Answer with it."""
        session: tuple[HeaderLine, ...] = ()
        if self.ran:
            session = (await exchange.run()).lines
        body = self.body(exchange.received)
        named = (header_line("content-type", self.content_type),) if body else ()
        headers = self.headers(exchange.received) if callable(self.headers) else self.headers
        lines = (*session, *lines_from(headers))
        if not any(name.lower() == b"x-amzn-requestid" for name, _ in lines):
            lines = (*lines, request_id())
        plain = self.status == 200 and self.content_type == "application/json"
        if self.framing is None and plain:
            await exchange.send_body(Reply(lines=lines), body)
        elif self.framing == "sse":
            await exchange.start_stream(lines)
            await exchange.end_stream(sse_event(body))
        else:
            await exchange.send(self.status, (*named, *lines), body)


@dataclass(frozen=True, slots=True)
class IdentityRow(AgentCoreRow):
    """One answer of AgentCore Identity."""

    fits: ClassVar[frozenset[Kind]] = frozenset({"token"})


def rpc(code: int, message: str, data: object = None) -> Body:
    """A JSON-RPC error with the request's own id."""
    return lambda received: compact_json(error_message(received.rpc_id, code, message, data))


def api(
    message: str | Callable[[Received], str], extra: Mapping[str, object] | None = None
) -> Body:
    """An error of an AWS API: an object with a message, and other members."""

    def body(received: Received) -> bytes:
        text = message if isinstance(message, str) else message(received)
        return compact_json({**(extra or {}), "message": text})

    return body


def page(title: str) -> Body:
    """An error page of a proxy, which quotes what it was sent."""

    def body(received: Received) -> bytes:
        quote = f"{AGENTCORE_CANARY} {quoted(received, 'plain')}"
        return f"<html><head><title>{title}</title></head><body>{quote}</body></html>".encode()

    return body


def given(received: Received) -> str:
    """The secrets that a request carried, as a service quotes them, with the canary."""
    carried = [
        value.decode("latin-1")
        for name in ("authorization", "x-amz-security-token")
        for value in header_values(received.headers, name)
    ]
    wanted = ("workloadIdentityToken", "userToken", "customState", "sessionUri")
    body = received.message or {}
    carried += [str(body[name]) for name in wanted if isinstance(body.get(name), str)]
    return " ".join([AGENTCORE_CANARY, *carried])


def canonical_quote(received: Received) -> str:
    """What AWS says to a signature that does not match: the canonical request, token and all."""
    text = (received.header("authorization") or "").strip()
    asked = read_authorization(text)
    amz_date = received.header("x-amz-date") or ""
    canonical = to_sign = ""
    if asked is not None:
        canonical = canonical_request(
            received.http_method,
            received.target,
            received.headers,
            received.body,
            signed_headers=asked.signed_headers,
        )
        to_sign = string_to_sign(canonical, amz_date, asked.scope)
    return (
        "The request signature we calculated does not match the signature you provided. Check your"
        " AWS Secret Access Key and signing method. Consult the service documentation for details."
        f"\n\nThe Canonical String for this request should have been\n'{canonical}\n"
        f"{AGENTCORE_CANARY}'\n\nThe String-to-Sign should have been\n'{to_sign}'\n"
    )
