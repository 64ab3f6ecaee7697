"""The law of this file: steps whose HTTP is sound and whose body must not be believed.

Each docstring says what goes over the wire, and whether the tool ran: it did, in all of them.
"""

from __future__ import annotations

import asyncio
import gzip
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal, get_args

from surefoot.testing import _checks as check
from surefoot.testing._exchange import JSON_LINE, Exchange
from surefoot.testing._request import Kind, Reply
from surefoot.testing._steps import ANSWERED, Step
from surefoot.testing._wire import compact_json, gzip_of_repeated

__all__ = ["BadJson", "BadJsonKind", "GzipBomb", "TruncatedGzip"]

_GZIP_LINE = (b"content-encoding", b"gzip")

BadJsonKind = Literal[
    "duplicate-keys",
    "escaped-duplicate-keys",
    "trailing-data",
    "bom",
    "nan",
    "infinity",
    "overflow",
    "not-utf8",
    "utf-16",
    "lone-surrogate",
    "too-deep",
    "wrong-id",
    "string-id",
    "null-id",
    "no-id",
    "batch",
    "result-and-error",
    "neither",
    "empty",
    "html",
]
"""What is wrong with the body.

`overflow` is a number beyond the range of a double, `string-id` the right id with the wrong type,
`neither` a message without result and error, `html` a page under `application/json`.
"""


@dataclass(frozen=True, slots=True)
class BadJson(Step):
    """An answer at status 200 whose JSON, or whose JSON-RPC, must not be believed. The tool ran.

    On the wire: `application/json`, or an event that holds it where the gateway has `sse=True`
    (except `bom`, `not-utf8` and `utf-16`, which keep their bytes inside the event too).
    """

    kind: BadJsonKind
    fits: ClassVar[frozenset[Kind]] = ANSWERED

    def __post_init__(self) -> None:
        check.one_of("BadJson(kind)", self.kind, get_args(BadJsonKind))

    async def play(self, exchange: Exchange) -> None:
        """Send the spoilt answer."""
        reply = await exchange.run()
        await exchange.send_body(Reply(lines=reply.lines), spoilt(reply.message or {}, self.kind))


def spoilt(message: Mapping[str, object], kind: BadJsonKind) -> bytes:
    """A sound JSON-RPC answer, spoilt in one way."""
    other = _other_message(message, kind)
    if other is not None:
        return compact_json(other)
    body = compact_json(message)
    match kind:
        case "duplicate-keys":
            return body[:-1] + b',"result":{"content":[{"type":"text","text":"another answer"}]}}'
        case "escaped-duplicate-keys":
            return (
                body[:-1]
                + b',"\\u0072esult":{"content":[{"type":"text","text":"another answer"}]}}'
            )
        case "trailing-data":
            return body + body
        case "bom":
            return b"\xef\xbb\xbf" + body
        case "nan" | "infinity" | "overflow":
            word = {"nan": b"NaN", "infinity": b"Infinity", "overflow": b"1e999"}[kind]
            return body[:-1] + b',"extra":' + word + b"}"
        case "not-utf8":
            return body[:-1] + b',"extra":"\xff\xfe"}'
        case "utf-16":
            return body.decode().encode("utf-16")
        case "lone-surrogate":
            return body[:-1] + b',"extra":"\\ud800"}'
        case "too-deep":
            return body[:-1] + b',"extra":' + b"[" * 100_000 + b"]" * 100_000 + b"}"
        case "html":
            return b"<html><body><h1>502 Bad Gateway</h1></body></html>"
        case _:
            return b""


def _other_message(message: Mapping[str, object], kind: BadJsonKind) -> object:
    """A message that is sound JSON but no sound answer; `None` where the JSON itself is spoilt."""
    match kind:
        case "wrong-id":
            rpc_id = message.get("id")
            other = rpc_id + 7000 if isinstance(rpc_id, int) else f"{rpc_id}-other"
            return {**message, "id": other}
        case "string-id":
            return {**message, "id": json.dumps(message.get("id"))}
        case "null-id":
            return {**message, "id": None}
        case "no-id":
            return {key: value for key, value in message.items() if key != "id"}
        case "batch":
            return [message]
        case "result-and-error":
            return {**message, "error": {"code": -32603, "message": "Internal error"}}
        case "neither":
            return {key: message.get(key) for key in ("jsonrpc", "id")}
        case _:
            return None


@dataclass(frozen=True, slots=True)
class GzipBomb(Step):
    """A small gzip body that unpacks to a JSON-RPC result of `size` bytes of text. The tool ran.

    On the wire: status 200, `Content-Encoding: gzip`, whether or not the client accepts it. To
    build it takes about a second for each GiB, beside the gateway's loop, and little memory.
    """

    size: int = 64 << 20
    fits: ClassVar[frozenset[Kind]] = ANSWERED

    def __post_init__(self) -> None:
        check.a_count("GzipBomb(size)", self.size, least=1)

    async def play(self, exchange: Exchange) -> None:
        """Send the bomb."""
        reply = await exchange.run()
        before = (
            b'{"jsonrpc":"2.0","id":%b,"result":{"content":[{"type":"text","text":"'
            % exchange.received.id_json
        )
        body = await asyncio.to_thread(
            gzip_of_repeated,
            before,
            b"0",
            self.size,
            b'"}],"isError":false,"resultType":"complete"}}',
        )
        await exchange.send(200, (JSON_LINE, _GZIP_LINE, *reply.lines), body)


@dataclass(frozen=True, slots=True)
class TruncatedGzip(Step):
    """A sound answer as gzip, less its last bytes, under a length that fits. The tool ran.

    HTTP sees nothing wrong; only the checksum and the length at the end of the gzip stream are
    gone, which many readers never look at.
    """

    cut: int = 8
    """Bytes that are missing at the end; 8 is the whole trailer (RFC 1952)."""
    fits: ClassVar[frozenset[Kind]] = ANSWERED

    def __post_init__(self) -> None:
        check.a_count("TruncatedGzip(cut)", self.cut, least=1)

    async def play(self, exchange: Exchange) -> None:
        """Send the answer without its end."""
        reply = await exchange.run()
        body = gzip.compress(compact_json(reply.message), mtime=0)
        await exchange.send(reply.status, (JSON_LINE, _GZIP_LINE, *reply.lines), body[: -self.cut])
