"""The law of this file: what a client meets after a call that no refusal names as one.

Answers at status 200 that may not be believed, or not be given up on too soon, and connections that
die. Most are the steps that every gateway has, under a name. The tool ran in all of them but
``reset-before``. Sound in the end are ``sse-bare-returns``, ``sse-split-letter``, ``sse-comments``
and ``sse-primed``; of the rest nothing may be taken for the answer.
"""

from __future__ import annotations

import codecs
from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass
from typing import ClassVar, Final

from surefoot.testing._agentcore_rows import AGENTCORE_CANARY, AgentCoreRow, given
from surefoot.testing._answers import Answer
from surefoot.testing._bodies import BadJson
from surefoot.testing._breaks import Reset
from surefoot.testing._exchange import Exchange
from surefoot.testing._methods import error_message, result_message
from surefoot.testing._request import Kind, Received
from surefoot.testing._steps import ANSWERED, Step
from surefoot.testing._streams import Sse, SseCut
from surefoot.testing._wire import compact_json

__all__ = ["ODDITIES", "StreamBytes"]

_LARGE: Final = 17 << 20


@dataclass(frozen=True, slots=True)
class StreamBytes(Step):
    """An event stream whose bytes are made from the sound answer. The tool ran."""

    name: str
    makes: Callable[[bytes], tuple[bytes, ...]]
    """The pieces of the stream, one chunk each."""
    _: KW_ONLY
    pause: float = 0.01
    """Seconds between two pieces."""

    fits: ClassVar[frozenset[Kind]] = ANSWERED

    async def play(self, exchange: Exchange) -> None:
        """Stream the pieces."""
        reply = await exchange.run()
        *first, last = self.makes(compact_json(reply.message))
        await exchange.start_stream(reply.lines)
        for piece in first:
            await exchange.stream(piece)
            await exchange.pause(self.pause)
        await exchange.end_stream(last)


def _result(received: Received, text: str) -> dict[str, object]:
    result = {"content": [{"type": "text", "text": text}], "isError": False}
    return result_message(received.rpc_id, received.method, result, modern=received.modern)


def _two_in_one(body: bytes) -> tuple[bytes, ...]:
    return (b"event: message\r\ndata: " + body + b"\r\ndata: " + body + b"\r\n\r\n",)


def _bare_returns(body: bytes) -> tuple[bytes, ...]:
    return (b"event: message\rdata: " + body + b"\r\r",)


def _split_in_a_letter(body: bytes) -> tuple[bytes, ...]:
    """A comment with a letter of three bytes, cut within; then the answer, cut anywhere."""
    comment = ": \u20ac\r\n".encode()
    half = len(body) // 2
    return (
        comment[:3],
        comment[3:] + b"event: message\r\ndata: " + body[:half],
        body[half:] + b"\r\n\r\n",
    )


def _row(name: str, says: str, body: Callable[[Received], bytes], **more: str) -> AgentCoreRow:
    kind = more.get("content_type", "application/json")
    return AgentCoreRow(name, says, body=body, content_type=kind, ran=True)


ODDITIES: Final[Mapping[str, Step]] = {
    "duplicate-keys": BadJson("duplicate-keys"),
    "bom": BadJson("bom"),
    "trailing-data": BadJson("trailing-data"),
    "batch": BadJson("batch"),
    "nan": BadJson("nan"),
    "lone-surrogate": BadJson("lone-surrogate"),
    "not-utf8": BadJson("not-utf8"),
    "too-deep": BadJson("too-deep"),
    "wrong-id": BadJson("wrong-id"),
    "json-seq": Answer(content_type="application/json-seq"),
    "utf-16": _row(
        "utf-16",
        "an answer in another encoding, which says so",
        lambda received: (
            codecs.BOM_UTF16_LE + compact_json(_result(received, "ok")).decode().encode("utf-16-le")
        ),
        content_type="application/json; charset=utf-16",
    ),
    "error-data": _row(
        "error-data",
        "an error whose data quotes the request",
        lambda received: compact_json(
            error_message(received.rpc_id, -32603, "Internal error", {"seen": given(received)})
        ),
    ),
    "unknown-message": _row(
        "unknown-message",
        "an error whose message quotes the request",
        lambda received: compact_json(
            error_message(received.rpc_id, -32099, f"Refused: {given(received)}")
        ),
    ),
    "too-large": _row(
        "too-large",
        f"an answer of {_LARGE >> 20} MiB",
        lambda received: compact_json(_result(received, "x" * _LARGE)),
    ),
    "sse-two-messages": StreamBytes("sse-two-messages", _two_in_one),
    "sse-bare-returns": StreamBytes("sse-bare-returns", _bare_returns),
    "sse-split-letter": StreamBytes("sse-split-letter", _split_in_a_letter),
    "sse-comments": Sse(1, comments=("keep-alive", AGENTCORE_CANARY)),
    "sse-primed": Sse(primed=True, retry=500),
    "sse-dropped": SseCut(half_event=True),
    "reset-before": Reset("before-headers"),
    "reset-after": Reset("after-run"),
}
"""By name."""
