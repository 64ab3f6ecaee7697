"""The law of this file: steps that speak sound HTTP: an answer, a refusal, a failure, a wait.

Each docstring says what goes over the wire, and whether the tool ran.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping
from dataclasses import KW_ONLY, dataclass
from datetime import UTC, datetime, timedelta
from typing import ClassVar, Literal
from urllib.parse import quote

from surefoot.testing import _checks as check
from surefoot.testing._exchange import JSON_LINE, Exchange
from surefoot.testing._methods import error_message, result_message, status_of
from surefoot.testing._request import Kind, Received, Reply
from surefoot.testing._steps import ANSWERED, EVERYWHERE_OR_CONNECT, Step
from surefoot.testing._tools import ToolAnswer, tool_result
from surefoot.testing._wire import (
    HeaderLine,
    compact_json,
    header_line,
    http_date,
    lines_from,
    sse_event,
)

__all__ = [
    "Answer",
    "Echo",
    "IsError",
    "Redirect",
    "RpcError",
    "SessionLost",
    "Slow",
    "Status",
    "Throttle",
]

Headers = Mapping[str, str | bytes] | Iterable[tuple[str, str | bytes]]
Echo = Literal["plain", "json-escaped", "percent", "base64"]
"""How a body quotes the header values that were received."""

StatedWait = int | float | str | bytes | timedelta | datetime
"""One Retry-After: a number of seconds as it stands, a text as it stands, or an HTTP date (a
`timedelta` counts from the moment of the answer)."""


@dataclass(frozen=True, slots=True)
class Answer(Step):
    """The sound answer. The tool ran, unless `ran=False`.

    On the wire: what the method calls for in its era, as JSON, or as an event stream where the
    gateway has `sse=True`. For `"GET"` the standing stream, for `"connect"` the accepted
    connection.
    """

    value: ToolAnswer | None = None
    """In the place of what the tool gives back: a text, or a mapping as for `Tool(answer)`."""
    _: KW_ONLY
    headers: Headers = ()
    """Header lines that are added to the answer."""
    content_type: str | None = None
    """In the place of `application/json`; the answer is then one body, never an event stream."""
    echo: Echo | None = None
    """Quote the received header values in a text block of the result."""
    ran: bool = True
    """`False` leaves the tool alone; `value` is then what the answer says."""

    fits: ClassVar[frozenset[Kind]] = EVERYWHERE_OR_CONNECT

    def __post_init__(self) -> None:
        check.a_bool("Answer(ran)", self.ran)
        if not self.ran and self.value is None:
            raise ValueError("Answer(ran=False) needs a value, as no tool gives one")
        if self.echo is not None:
            check.one_of("Answer(echo)", self.echo, ("plain", "json-escaped", "percent", "base64"))

    async def play(self, exchange: Exchange) -> None:
        """Answer soundly."""
        received = exchange.received
        reply = await exchange.run() if self.ran else Reply()
        lines = (*reply.lines, *lines_from(self.headers))
        message = reply.message
        if self.value is not None:
            result = tool_result(self.value)
            message = result_message(
                received.rpc_id, received.method, result, modern=received.modern
            )
        if self.echo is not None and message is not None:
            quoted = tool_result(_quoted(received, self.echo))
            message = result_message(
                received.rpc_id, received.method, quoted, modern=received.modern
            )
            await exchange.send_body(
                Reply(lines=lines), _escaped(compact_json(message), received, self.echo)
            )
            return
        if self.content_type is not None and message is not None:
            named = header_line("content-type", self.content_type)
            await exchange.send(reply.status, (named, *lines), compact_json(message))
            return
        await deliver(
            exchange, Reply(status=reply.status, message=message, lines=lines, stands=reply.stands)
        )


async def deliver(exchange: Exchange, reply: Reply) -> None:
    """Send a sound reply in the framing that the gateway speaks; hold a standing stream open."""
    if reply.stands:
        await exchange.start_stream(reply.lines)
        await exchange.stream_stands()
        await exchange.end_stream()
    elif reply.message is not None and reply.status == 200 and exchange.wants_stream:
        await exchange.start_stream(reply.lines)
        await exchange.end_stream(sse_event(compact_json(reply.message)))
    else:
        await exchange.send_reply(reply)


@dataclass(frozen=True, slots=True)
class Throttle(Step):
    """A refusal: status 429, with the Retry-After that is given.

    The tool did not run, unless `ran=True`.
    """

    retry_after: StatedWait | tuple[StatedWait, ...] | None = None
    """`None` sends no header, a tuple one header line for each of its members."""
    _: KW_ONLY
    rpc_code: int | None = None
    """With a code, the body is a JSON-RPC error that carries it; else it is plain text."""
    body: str | bytes = "Too many requests\n"
    headers: Headers = ()
    ran: bool = False

    def __post_init__(self) -> None:
        check.a_bool("Throttle(ran)", self.ran)
        for wait in (
            self.retry_after if isinstance(self.retry_after, tuple) else (self.retry_after,)
        ):
            if wait is not None:
                _stated(wait, datetime.now(UTC))

    async def play(self, exchange: Exchange) -> None:
        """Refuse."""
        if self.ran:
            await exchange.run()
        waits = self.retry_after if isinstance(self.retry_after, tuple) else (self.retry_after,)
        stated = tuple(
            (b"retry-after", _stated(wait, datetime.now(UTC))) for wait in waits if wait is not None
        )
        lines = (*stated, *lines_from(self.headers))
        await _fail(
            exchange, 429, lines, self.body, content_type="text/plain", rpc_code=self.rpc_code
        )


@dataclass(frozen=True, slots=True)
class Status(Step):
    """An answer with any status. The tool did not run, unless `ran=True`.

    On the wire: the status, a `WWW-Authenticate: Bearer error="invalid_token"` line at 401 where
    the headers name none, the given headers and body.
    """

    code: int
    body: str | bytes = ""
    _: KW_ONLY
    headers: Headers = ()
    content_type: str = "text/plain"
    echo: bool | Echo = False
    """Put the received header lines into the body, as careless gateways do; `True` is `"plain"`."""
    rpc_code: int | None = None
    """With a code, the body is a JSON-RPC error with it, whose message is `body` or the echo."""
    ran: bool = False

    def __post_init__(self) -> None:
        check.a_status("Status(code)", self.code)
        check.a_bool("Status(ran)", self.ran)
        if not isinstance(self.echo, bool):
            check.one_of("Status(echo)", self.echo, ("plain", "json-escaped", "percent", "base64"))

    async def play(self, exchange: Exchange) -> None:
        """Answer with the status."""
        if self.ran:
            await exchange.run()
        lines = lines_from(self.headers)
        if self.code == 401 and not any(name.lower() == b"www-authenticate" for name, _ in lines):
            lines = (*lines, (b"www-authenticate", b'Bearer error="invalid_token"'))
        if self.echo is False:
            await _fail(
                exchange,
                self.code,
                lines,
                self.body,
                content_type=self.content_type,
                rpc_code=self.rpc_code,
            )
            return
        how = "plain" if self.echo is True else self.echo
        quoted = _quoted(exchange.received, how)
        await _fail(
            exchange,
            self.code,
            lines,
            quoted,
            content_type=self.content_type,
            rpc_code=self.rpc_code,
            echo=how,
        )


@dataclass(frozen=True, slots=True)
class Redirect(Step):
    """A redirect: status `code` with a Location line and no body. The tool did not run.

    The gateway serves everything below its path as the same endpoint, so that `to="/mcp/moved"`
    leads to an answer; the request that follows takes the next step of the script.
    """

    code: int = 307
    _: KW_ONLY
    to: str = "/mcp/moved"
    """The Location, sent as it stands: a path, or a URL for another origin."""

    def __post_init__(self) -> None:
        check.a_status("Redirect(code)", self.code, allowed=range(300, 400))
        check.a_text("Redirect(to)", self.to)

    async def play(self, exchange: Exchange) -> None:
        """Point elsewhere."""
        await exchange.send(self.code, (header_line("location", self.to),), b"")


@dataclass(frozen=True, slots=True)
class Slow(Step):
    """Time passes on the server's side, then another step answers and decides if the tool ran.

    On the wire: nothing while time passes. `when="before"`: the tool has not run yet.
    `when="after"`: it has. A client that leaves meanwhile stops it in the modern era, so that with
    `"before"` it never runs.
    """

    seconds: float
    _: KW_ONLY
    when: Literal["before", "after"] = "before"
    then: Step = Answer()

    def __post_init__(self) -> None:
        check.a_number_of_seconds("Slow(seconds)", self.seconds)
        check.one_of("Slow(when)", self.when, ("before", "after"))
        if not isinstance(self.then, Step):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError(f"Slow(then) takes a step, not {type(self.then).__name__}")

    async def play(self, exchange: Exchange) -> None:
        """Wait, then let the other step answer."""
        if self.when == "after":
            await exchange.run()
        await exchange.pause(self.seconds)
        await self.then.play(exchange)


@dataclass(frozen=True, slots=True)
class IsError(Step):
    """A tool's own failure: status 200, a result with `isError: true` and a text. The tool ran."""

    text: str = "The tool failed."
    fits: ClassVar[frozenset[Kind]] = frozenset({"call"})

    async def play(self, exchange: Exchange) -> None:
        """Answer that the tool failed."""
        received, reply = exchange.received, await exchange.run()
        failed = {"content": [{"type": "text", "text": self.text}], "isError": True}
        message = result_message(received.rpc_id, received.method, failed, modern=received.modern)
        await deliver(exchange, Reply(message=message, lines=reply.lines))


@dataclass(frozen=True, slots=True)
class RpcError(Step):
    """A JSON-RPC error, at the status that the era gives its code, or at `status`.

    The tool did not run, unless `ran=True`.
    """

    code: int
    message: str = "Internal error"
    _: KW_ONLY
    data: object = None
    status: int | None = None
    ran: bool = False
    fits: ClassVar[frozenset[Kind]] = ANSWERED

    def __post_init__(self) -> None:
        check.a_count("RpcError(code)", self.code, least=-(2**31))
        check.a_bool("RpcError(ran)", self.ran)
        if self.status is not None:
            check.a_status("RpcError(status)", self.status)

    async def play(self, exchange: Exchange) -> None:
        """Answer with the error."""
        if self.ran:
            await exchange.run()
        received = exchange.received
        status = (
            status_of(self.code, modern=received.modern) if self.status is None else self.status
        )
        message = error_message(received.rpc_id, self.code, self.message, self.data)
        await deliver(exchange, Reply(status=status, message=message))


@dataclass(frozen=True, slots=True)
class SessionLost(Step):
    """The server has forgotten the session: status 404 with a JSON-RPC error. The tool did not run.

    Later requests in that session get the same without a script. In the modern era there is no
    session to lose, and the answer is the same 404.
    """

    fits: ClassVar[frozenset[Kind]] = frozenset(
        {"call", "request", "notification", "get", "delete"}
    )

    async def play(self, exchange: Exchange) -> None:
        """Forget the session, then say so."""
        exchange.forget_session()
        message = error_message(exchange.received.rpc_id, -32600, "Session not found")
        await exchange.send(404, (JSON_LINE,), compact_json(message))


async def _fail(
    exchange: Exchange,
    status: int,
    lines: tuple[HeaderLine, ...],
    body: str | bytes,
    *,
    content_type: str,
    rpc_code: int | None,
    echo: Echo | None = None,
) -> None:
    data = body.encode() if isinstance(body, str) else body
    if rpc_code is not None:
        text = data.decode("utf-8", "replace").strip()
        error = error_message(exchange.received.rpc_id, rpc_code, text)
        content_type, data = "application/json", compact_json(error)
    elif echo is not None and content_type == "application/json":
        data = compact_json({"message": data.decode("utf-8", "replace")})
    if echo is not None:
        data = _escaped(data, exchange.received, echo)
    named = (header_line("content-type", content_type),) if data else ()
    await exchange.send(status, (*named, *lines), data)


def _stated(wait: object, now: datetime) -> bytes:
    match wait:
        case bytes():
            return wait
        case str():
            return wait.encode()
        case timedelta():
            return http_date(now + wait).encode()
        case datetime():
            return http_date(wait).encode()
        case int() | float() if not isinstance(wait, bool):
            return str(wait).encode()
        case _:
            raise TypeError(
                "Throttle(retry_after) takes seconds, a text, a datetime, a timedelta, None, "
                "or a tuple of them, "
                f"not {type(wait).__name__}"
            )


def _quoted(received: Received, how: Echo) -> str:
    """The received header values in a sentence, in one of the disguises in which they come back."""
    lines = [
        f"{name.decode('latin-1')}: {_dressed(value, how)}" for name, value in received.headers
    ]
    return "The request was refused. It carried: " + " | ".join(lines)


def _dressed(value: bytes, how: Echo) -> str:
    text = value.decode("latin-1")
    match how:
        case "percent":
            return quote(text, safe="")
        case "base64":
            return base64.b64encode(value).decode()
        case _:
            return text


def _escaped(body: bytes, received: Received, how: Echo) -> bytes:
    """A body in which every received header value is spelt in JSON escapes, where asked for."""
    if how != "json-escaped":
        return body
    for _, value in received.headers:
        spelt = "".join(f"\\u{letter:04x}" for letter in value)
        body = body.replace(compact_json(value.decode("latin-1"))[1:-1], spelt.encode())
    return body
