"""The law of this file: steps that answer, soundly or with an error that MCP knows.

Each docstring says what goes over the wire, and whether the tool ran.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import ClassVar, Literal

from surefoot.testing import _checks as check
from surefoot.testing._echo import Echo, escaped, quoted
from surefoot.testing._exchange import JSON_LINE, Exchange
from surefoot.testing._methods import error_message, result_message, status_of
from surefoot.testing._request import Kind, Reply
from surefoot.testing._steps import ANSWERED, EVERYWHERE_OR_CONNECT, Step
from surefoot.testing._tools import ToolAnswer, tool_result
from surefoot.testing._wire import (
    Headers,
    compact_json,
    header_line,
    lines_from,
    sse_event,
)

__all__ = ["Answer", "IsError", "RpcError", "SessionLost", "Slow"]


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
            result = tool_result(quoted(received, self.echo))
            message = result_message(
                received.rpc_id, received.method, result, modern=received.modern
            )
            await exchange.send_body(
                Reply(lines=lines), escaped(compact_json(message), received, self.echo)
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
