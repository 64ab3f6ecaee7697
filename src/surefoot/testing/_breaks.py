"""The law of this file: steps that break HTTP itself: dying connections, lying lengths.

Each docstring says what goes over the wire, and whether the tool ran.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from typing import ClassVar, Literal

from surefoot.testing import _checks as check
from surefoot.testing._exchange import JSON_LINE, Exchange
from surefoot.testing._link import Link
from surefoot.testing._request import Kind, Reply
from surefoot.testing._steps import ANSWERED, EVERYWHERE, EVERYWHERE_OR_CONNECT, Step
from surefoot.testing._wire import chunk, compact_json, head, length_of, pieces

__all__ = ["CutJson", "Raw", "Reset", "Trickle", "WrongLength"]

_SETTLE = 0.02
"""Seconds in which the first part of a body can be read, before a reset that discards it."""


@dataclass(frozen=True, slots=True)
class Reset(Step):
    """The connection dies, with a TCP reset, or with an ordinary close where `how="close"`.

    - `when="before-headers"`: the request was read; nothing is answered. The tool did not run.
    - `when="after-run"`: nothing is answered. The tool ran.
    - `when="in-body"`: the head and half of the JSON body go out first. The tool ran.
    - `when="on-accept"`: the connection dies before a request is read; for `"connect"` alone. No
      tool can have run.

    `ran` says otherwise where a test needs it: a tool may have run before a reset before the
    headers.

    Raises:
        ValueError: `ran` contradicts `when`.
    """

    when: Literal["before-headers", "in-body", "after-run", "on-accept"] = "before-headers"
    _: KW_ONLY
    ran: bool | None = None
    how: Literal["reset", "close"] = "reset"
    fits: ClassVar[frozenset[Kind]] = EVERYWHERE_OR_CONNECT

    def __post_init__(self) -> None:
        check.one_of(
            "Reset(when)", self.when, ("before-headers", "in-body", "after-run", "on-accept")
        )
        check.one_of("Reset(how)", self.how, ("reset", "close"))
        if self.ran is not None:
            check.a_bool("Reset(ran)", self.ran)
        if (self.when, self.ran) in {("after-run", False), ("on-accept", True)}:
            raise ValueError(f'Reset(when="{self.when}") contradicts ran={self.ran}')

    async def play(self, exchange: Exchange) -> None:
        """Let the connection die."""
        ran = self.when in {"in-body", "after-run"} if self.ran is None else self.ran
        reply = (
            await exchange.run()
            if ran
            else Reply(message={"jsonrpc": "2.0", "id": exchange.received.rpc_id})
        )
        if self.when == "in-body":
            body = _body(reply)
            await exchange.write(
                head(reply.status, (JSON_LINE, *reply.lines, length_of(body)))
                + body[: len(body) // 2]
            )
            await exchange.pause(_SETTLE)
        self.end(exchange)

    def end(self, connection: Exchange | Link) -> None:
        """End a connection in the way that was asked for."""
        if self.how == "reset":
            connection.reset()
        else:
            connection.hang_up()


@dataclass(frozen=True, slots=True)
class CutJson(Step):
    """Half of a JSON answer, then an ordinary close. The tool ran.

    - `framing="length"`: a Content-Length for the whole body.
    - `framing="chunked"`: chunked, without the chunk that ends it.
    - `framing="close"`: no length at all, so that HTTP sees nothing wrong and only the JSON is cut.
    """

    framing: Literal["length", "chunked", "close"] = "length"
    _: KW_ONLY
    keep: int | None = None
    """Bytes of the body that go out; `None` is half of them."""
    fits: ClassVar[frozenset[Kind]] = ANSWERED

    def __post_init__(self) -> None:
        check.one_of("CutJson(framing)", self.framing, ("length", "chunked", "close"))
        if self.keep is not None:
            check.a_count("CutJson(keep)", self.keep)

    async def play(self, exchange: Exchange) -> None:
        """Send half, then close."""
        reply = await exchange.run()
        body = _body(reply)
        part = body[: len(body) // 2 if self.keep is None else self.keep]
        match self.framing:
            case "length":
                framed, lines = part, (length_of(body),)
            case "chunked":
                framed, lines = chunk(part), ((b"transfer-encoding", b"chunked"),)
            case "close":
                framed, lines = part, ((b"connection", b"close"),)
        await exchange.write(head(reply.status, (JSON_LINE, *reply.lines, *lines)) + framed)
        exchange.hang_up()


@dataclass(frozen=True, slots=True)
class WrongLength(Step):
    """A whole JSON answer with a Content-Length that lies, then an ordinary close. The tool ran.

    - `"short"`: the length is 10 less than the body, so that the rest runs into what follows.
    - `"long"`: the length is 10 more than the body, so that the close comes too early.
    - `"twice"`: two Content-Length lines that disagree.
    - `"and-chunked"`: a Content-Length beside a chunked body (RFC 9112, 6.1).
    """

    kind: Literal["short", "long", "twice", "and-chunked"]
    fits: ClassVar[frozenset[Kind]] = ANSWERED

    def __post_init__(self) -> None:
        check.one_of("WrongLength(kind)", self.kind, ("short", "long", "twice", "and-chunked"))

    async def play(self, exchange: Exchange) -> None:
        """Send the answer under the wrong length."""
        reply = await exchange.run()
        body = _body(reply)
        length = len(body)
        framed = body
        match self.kind:
            case "short":
                lines = ((b"content-length", b"%d" % max(0, length - 10)),)
            case "long":
                lines = ((b"content-length", b"%d" % (length + 10)),)
            case "twice":
                lines = (
                    (b"content-length", b"%d" % length),
                    (b"content-length", b"%d" % (length + 1)),
                )
            case "and-chunked":
                lines = ((b"content-length", b"%d" % length), (b"transfer-encoding", b"chunked"))
                framed = chunk(body) + b"0\r\n\r\n"
        await exchange.write(head(reply.status, (JSON_LINE, *reply.lines, *lines)) + framed)
        exchange.hang_up()


@dataclass(frozen=True, slots=True)
class Raw(Step):
    """Bytes as they stand in the place of an HTTP answer, then an ordinary close.

    The tool did not run, unless `ran=True`.

    For garbage in the status line, odd header lines, huge heads, and anything that no other step
    says. A callable is given the request's JSON-RPC id as JSON, and gives the bytes.
    """

    data: bytes | Callable[[bytes], bytes]
    _: KW_ONLY
    ran: bool = False
    close: bool = True
    """`False` keeps the connection for another request, as after a sound answer."""
    fits: ClassVar[frozenset[Kind]] = EVERYWHERE

    def __post_init__(self) -> None:
        check.a_bool("Raw(ran)", self.ran)
        check.a_bool("Raw(close)", self.close)
        data: object = self.data
        if not isinstance(data, bytes) and not callable(data):
            raise TypeError(f"Raw(data) takes bytes or a callable, not {type(data).__name__}")

    async def play(self, exchange: Exchange) -> None:
        """Send the bytes."""
        if self.ran:
            await exchange.run()
        data = self.data if isinstance(self.data, bytes) else self.data(exchange.received.id_json)
        if not self.close:
            exchange.complete = True
        if data:
            await exchange.write(data)
        if self.close:
            exchange.hang_up()


@dataclass(frozen=True, slots=True)
class Trickle(Step):
    """A sound JSON answer, `size` bytes every `interval` seconds. The tool ran.

    A client that sets only an idle limit never loses patience.
    """

    interval: float = 0.05
    _: KW_ONLY
    size: int = 1
    fits: ClassVar[frozenset[Kind]] = ANSWERED

    def __post_init__(self) -> None:
        check.a_number_of_seconds("Trickle(interval)", self.interval)
        check.a_count("Trickle(size)", self.size, least=1)

    async def play(self, exchange: Exchange) -> None:
        """Send the answer drop by drop."""
        reply = await exchange.run()
        body = _body(reply)
        await exchange.write(head(reply.status, (JSON_LINE, *reply.lines, length_of(body))))
        for piece in pieces(body, self.size):
            await exchange.pause(self.interval)
            await exchange.write(piece)
        exchange.complete = True


def _body(reply: Reply) -> bytes:
    return compact_json(reply.message) if reply.message is not None else b""
