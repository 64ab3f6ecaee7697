"""The law of this file: an answer is read in a test by the layers that read it, and by no others.

A series that recognises and repeats nothing opens the record that Reading asks what was sent; what
stands above it in a Gateway (the words) is left out, or put on where a test is about words.
"""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from typing import Any

from surefoot.policy import Retry
from surefoot.testing import FakeClock, McpRequest, Replies, ScriptedTransport, tool_call
from surefoot.transports import AnsweringTransport, ReadingTransport, RetryingTransport

__all__ = [
    "CALL",
    "SOUND",
    "URL",
    "answer_to",
    "answering",
    "event",
    "gzipped",
    "opened",
    "outcome_of",
    "raw_deflated",
    "read",
    "reading",
    "streamed",
    "told",
    "whole",
]

URL = "http://gateway.test/mcp"
CALL = tool_call("search", {"q": "W-7712"})
SOUND = {"content": [{"type": "text", "text": "found it"}], "isError": False}


def answer_to(rpc_id: object = 1, result: object = None) -> bytes:
    """A sound answer, as a server that likes blanks writes it."""
    return json.dumps({"jsonrpc": "2.0", "id": rpc_id, "result": result or SOUND}).encode()


def event(data: bytes | str, **fields: str) -> bytes:
    """One event of a stream."""
    text = data.encode() if isinstance(data, str) else data
    lines = b"".join(f"{name}: {value}\n".encode() for name, value in fields.items())
    return lines + b"data: " + text + b"\n\n"


def streamed(
    *chunks: bytes, by: Callable[[], AsyncIterator[bytes]] | None = None, **options: Any
) -> Replies:
    """An event stream, in these chunks."""
    headers = [("content-type", "text/event-stream"), *options.pop("headers", ())]
    return Replies(headers=headers, chunks=by or chunks, **options)


def gzipped(data: bytes) -> bytes:
    """As a server sends it under ``content-encoding: gzip``."""
    return gzip.compress(data, mtime=0)


def raw_deflated(data: bytes) -> bytes:
    """Deflate without its header, which some servers send under that name."""
    packer = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return packer.compress(data) + packer.flush()


def reading(wire: Any, *, attempts: int = 3, **settings: Any) -> RetryingTransport:
    """Reading over a wire, below a series that recognises nothing and waits for nobody."""
    below = ReadingTransport(wire, **settings)
    budget = Retry(max_attempts=attempts)
    return RetryingTransport(below, retry=budget, rules=(), redirects=True, clock=FakeClock())


def answering(
    wire: Any,
    *,
    attempts: int = 3,
    above: Mapping[str, Any] | None = None,
    **settings: Any,
) -> AnsweringTransport:
    """Words above, reading below, over a wire."""
    below = reading(wire, attempts=attempts, **settings)
    return AnsweringTransport(below, beside=wire, **(above or {}))


@asynccontextmanager
async def opened(
    family: Any,
    transport: Any,
    request: McpRequest = CALL,
    *,
    method: str = "POST",
    headers: Iterable[tuple[str, str]] = (),
) -> AsyncGenerator[Any]:
    """Hand one request without timeouts to a transport, and hand on its answer, not yet read."""
    lines = {**request.headers, **dict(headers)}
    body = request.body if method == "POST" else None
    sent = family.Request(method, URL, content=body, headers=lines)
    answer = await transport.handle_async_request(sent)
    try:
        yield answer
    finally:
        await answer.aclose()


async def whole(family: Any, transport: Any, request: McpRequest = CALL, **options: Any) -> Any:
    """Send one request, and read its answer to the end."""
    async with opened(family, transport, request, **options) as answer:
        await answer.aread()
    return answer


async def read(family: Any, play: Any, request: McpRequest = CALL, **settings: Any) -> Any:
    """What Reading makes of one answer; nothing of it stays open."""
    wire = ScriptedTransport(play)
    answer = await whole(family, reading(wire, **settings), request)
    assert wire.open_responses == 0
    return answer


async def told(family: Any, play: Any, request: McpRequest = CALL, **settings: Any) -> Any:
    """What the client reads of one answer; nothing of it stays open."""
    wire = ScriptedTransport(play)
    answer = await whole(family, answering(wire, **settings), request)
    assert wire.open_responses == 0
    return answer


def outcome_of(answer: Any) -> dict[str, Any]:
    """The facts that an answer in words carries, from whichever place they stand in."""
    text = answer.text
    if "text/event-stream" in answer.headers["content-type"]:
        text = text.rsplit("data: ", 1)[1]
    message = json.loads(text)
    holder = message["result"]["_meta"] if "result" in message else message["error"]["data"]
    return dict(holder["surefoot/outcome"])
