"""The law of this file: what is sent again is byte for byte what was sent first, or it is not sent.

A one-shot body is gathered before the first attempt, up to a cap; what does not fit goes out once
and is never repeated (D10). A refused answer is let go of before its repeat, but only a bounded
part of it is read for that: the server decides how long a body is, and not how long a call takes
(D11).
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import suppress
from functools import partial
from typing import Any, Final

import anyio

from ._family import Family, HTTPRequest, HTTPResponse, finished

__all__ = ["MAX_REQUEST_BODY", "buffer_request", "closed", "let_go", "peek"]

MAX_REQUEST_BODY: Final = 16 * 1024 * 1024
"""Bytes of a request body that are kept for a repeat (D10)."""

_DRAIN_BYTES: Final = 64 * 1024
_DRAIN_SECONDS: Final = 1.0
_CLOSE_SECONDS: Final = 1.0


async def buffer_request(request: HTTPRequest, family: Family, cap: int) -> bytes | None:
    """Return the whole body and make the request resendable, or ``None`` if it is too large.

    A body that is already whole costs nothing. One that passes ``cap`` is put back together as a
    stream, so that it can still be sent once, or closed where it is not.
    """
    if isinstance(request.stream, family.ByteStream):
        content: bytes = request.read()
        return content if len(content) <= cap else None
    parts: list[bytes] = []
    size = 0
    source = request.stream.__aiter__()
    async for part in source:
        parts.append(part)
        size += len(part)
        if size > cap:
            request.stream = family.stream(_rest(parts, source), partial(finished, source))
            return None
    content = b"".join(parts)
    request.stream = family.ByteStream(content)
    request.read()  # who signs it, or shows it, may ask for its content from now on
    return content


async def let_go(response: HTTPResponse) -> None:
    """Read a bounded rest of an answer that nobody will read, to keep its connection; close it."""
    try:
        with anyio.move_on_after(_DRAIN_SECONDS):
            await _drain(response)
    finally:
        await closed(response)


async def closed(response: HTTPResponse) -> None:
    """Close an answer even in a cancelled task, without waiting for ever, whatever that raises."""
    with (
        anyio.CancelScope(shield=True),
        anyio.move_on_after(_CLOSE_SECONDS),
        suppress(Exception),  # the answer is already decided upon
    ):
        await response.aclose()


async def _drain(response: HTTPResponse) -> None:
    seen = 0
    parts = response.stream.__aiter__()
    try:
        async for part in parts:
            seen += len(part)
            if seen > _DRAIN_BYTES:
                break
    except Exception:  # noqa: BLE001, S110 - the answer is already decided upon; closing follows
        pass
    finally:
        await finished(parts)


async def peek(response: HTTPResponse, family: Family, limit: int, *, events: bool) -> bytes:
    """Hand a rule the first ``limit`` bytes, and leave the response as if nobody had looked (D16).

    Of an event stream only the first event is waited for, and no comment that keeps it alive: the
    rest may be minutes away.

    Raises:
        Exception: the body broke; the caller closes the response.
    """
    if isinstance(response.stream, family.ByteStream):
        return b"".join([part async for part in response.stream])[:limit]
    parts: list[bytes] = []
    source = response.stream.__aiter__()
    seen = b""
    async for part in source:
        parts.append(part)
        seen += part
        if len(seen) >= limit or (events and _has_event(seen)):
            break
    response.stream = family.stream(_rest(parts, source), response.stream.aclose)
    return seen[:limit]


def _has_event(seen: bytes) -> bool:
    """Whether a whole block with data is there, whatever its lines end with."""
    text = seen.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    *blocks, _ = text.split(b"\n\n")
    return any(line.startswith(b"data") for block in blocks for line in block.split(b"\n"))


async def _rest(parts: list[bytes], source: Any) -> AsyncIterator[bytes]:
    """The parts that were already taken, then whatever follows."""
    try:
        for part in parts:
            yield part
        parts.clear()
        async for part in source:
            yield part
    finally:
        await finished(source)
