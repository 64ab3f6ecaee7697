"""The law of this file: a body is decoded here, whole or refused, and never larger than its bound.

An HTTP library hands a truncated gzip body on as if it were complete, and a bomb of 400 kB as
400 MiB (measured). So content coding is undone here: gzip and deflate, at most one of them, checked
to its last byte, and counted as it grows, in bytes and in time (B12).
"""

from __future__ import annotations

import zlib
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

import anyio
import anyio.lowlevel

from surefoot.errors import AnswerTooLargeError, UnreadableAnswerError

if TYPE_CHECKING:
    from ._family import Line

__all__ = [
    "ACCEPTED_ENCODINGS",
    "IDLE",
    "TOTAL",
    "Framing",
    "decoded",
    "framing_of",
    "patient",
    "whole_body",
]

ACCEPTED_ENCODINGS: Final = "gzip, deflate"
"""What we ask a server for: the codings that are undone here."""

IDLE: Final = "stream-idle-seconds"
TOTAL: Final = "stream-total-seconds"
"""The rules of an answer that takes too long: in silence, or in all."""

_PIECE: Final = 1 << 20
"""Bytes that are decoded at a time: a bomb is noticed after one such piece too many."""

_MOST_DIGITS: Final = 18
_TOO_LONG: Final = 10**_MOST_DIGITS
"""A length of more digits than any answer needs."""

_EVENT_STREAM: Final = b"text/event-stream"

_AUTOMATIC: Final = 32 + zlib.MAX_WBITS
"""zlib's own word for "gzip or zlib, as the header says"."""


class Decoder:
    """Undoes one content coding, chunk by chunk."""

    __slots__ = ("_head", "_inflate", "_raw_tried")

    def __init__(self) -> None:
        self._inflate = zlib.decompressobj(_AUTOMATIC)
        self._raw_tried = False
        self._head: bytes | None = b""

    def feed(self, chunk: bytes) -> Iterator[bytes]:
        """Decoded pieces of at most 1 MiB, each decoded only when it is asked for.

        Raises:
            UnreadableAnswerError: the chunk is not of this coding, or goes on after its end.
        """
        if self._head is not None:
            # Two bytes tell a header from bare deflate; fewer of them could be taken for either.
            self._head += chunk
            if len(self._head) < 2:
                return
            chunk, self._head = self._head, None
        rest = chunk
        while rest:
            if self._inflate.eof:
                raise UnreadableAnswerError(rule="content-coding")
            try:
                piece = self._inflate.decompress(rest, _PIECE)
            except zlib.error:
                piece = None
            if piece is None:
                if self._raw_tried:
                    raise UnreadableAnswerError(rule="content-coding")
                # Servers send bare deflate under that name, too; it can only show at the start.
                self._raw_tried = True
                self._inflate = zlib.decompressobj(-zlib.MAX_WBITS)
                continue
            self._raw_tried = True
            if piece:
                yield piece
            rest = self._inflate.unconsumed_tail or self._inflate.unused_data
            if self._inflate.eof and rest:
                raise UnreadableAnswerError(rule="content-coding")

    def close(self) -> None:
        """End the body.

        Raises:
            UnreadableAnswerError: it ended before its coding did.
        """
        if not self._inflate.eof:
            raise UnreadableAnswerError(rule="truncated-content")


# Twice as fast as calling the class, and this runs for every answer.
_new = cast("Any", tuple).__new__


class Framing(NamedTuple):
    """What the headers of an answer say of its body. A tuple: it is built for every answer."""

    events: bool = False
    """Some content type names an event stream; if it is well said, is checked later."""

    coding: bytes | None = None
    """The content codings, as they stand."""

    length: bytes | None = None
    """The stated length; ``None`` where none or several are stated."""

    chunked: bool = False
    """A transfer coding delimits the body."""

    lengths: int = 0
    """How many lengths are stated."""


def framing_of(lines: Sequence[Line]) -> Framing:
    """Look through the header lines once."""
    told = dict(lines)
    if len(told) == len(lines):
        # Nothing is said twice, and one look for each thing is enough.
        kind = told.get(b"content-type", b"")
        length = told.get(b"content-length")
        return _new(
            Framing,
            (
                kind[:17] == _EVENT_STREAM or kind.lower().lstrip().startswith(_EVENT_STREAM),
                told.get(b"content-encoding"),
                length,
                b"transfer-encoding" in told,
                0 if length is None else 1,
            ),
        )
    events = chunked = False
    coding = length = None
    lengths = 0
    for name, value in lines:
        if name == b"content-type":
            events = events or value.lower().lstrip().startswith(_EVENT_STREAM)
        elif name == b"content-length":
            length = value
            lengths += 1
        elif name == b"content-encoding":
            coding = value if coding is None else coding + b"," + value
        elif name == b"transfer-encoding":
            chunked = True
    return Framing(events, coding, length if lengths == 1 else None, chunked, lengths)


def decoder_for(coding: bytes | None) -> Decoder | None:
    """The decoder that a response's headers ask for; ``None`` where the body is as it is.

    Raises:
        UnreadableAnswerError: a coding that was not asked for, or more than one.
    """
    if coding is None:
        return None
    codings = [one.strip().lower() for one in coding.split(b",")]
    codings = [one for one in codings if one not in (b"", b"identity")]
    if not codings:
        return None
    if codings not in ([b"gzip"], [b"x-gzip"], [b"deflate"]):
        raise UnreadableAnswerError(rule="content-coding")
    return Decoder()


async def whole_body(
    chunks: Any, framing: Framing, limit: int, timer: Callable[[], Callable[[], None]]
) -> bytes:
    """Read a body to its end.

    Args:
        chunks: The response's raw bytes, as they come.
        framing: What its headers say of it.
        limit: The most decoded bytes.
        timer: Starts the time of what comes after the first chunk, where anything does; what it
            returns raises once the answer has taken too long.

    Raises:
        AnswerTooLargeError: it passes ``limit``; no more than one piece beyond it was held.
        UnreadableAnswerError: its length or its coding is not what its headers say.
        Exception: what the stream raised: then there is no answer.
    """
    _, coding, stated, chunked, lengths = framing
    if lengths and chunked:
        raise UnreadableAnswerError(rule="length-and-chunked")
    length = -1 if stated is None else _length(stated)
    decoder = None if coding is None else decoder_for(coding)
    if length > limit and decoder is None:
        raise AnswerTooLargeError(rule="too-many-bytes", limit=limit)
    # One chunk is the body as it is; of more, one buffer: an object each would cost 25 times a
    # body that comes in chunks of two bytes.
    body: bytes | bytearray = b""
    size = seen = 0
    go_on: Callable[[], None] | None = None
    async for chunk in chunks:
        seen += len(chunk)
        if decoder is None:
            body = _with(body, chunk) if body else chunk
            if seen == length:
                continue  # that was all, and it is within its bounds
            if seen > limit:
                raise AnswerTooLargeError(rule="too-many-bytes", limit=limit)
        else:
            for piece in decoder.feed(chunk):
                size += len(piece)
                if size > limit:
                    raise AnswerTooLargeError(rule="too-many-bytes", limit=limit)
                body = _with(body, piece) if body else piece
        if go_on is None:
            go_on = timer()
        go_on()
    if decoder is not None and seen:
        decoder.close()
    if length >= 0 and seen != length:
        raise UnreadableAnswerError(rule="length-mismatch")
    return body if isinstance(body, bytes) else bytes(body)


def _with(body: bytes | bytearray, more: bytes) -> bytearray:
    """What came so far and what came now, in one buffer that grows in place."""
    if isinstance(body, bytes):
        body = bytearray(body)
    body += more
    return body


def _length(stated: bytes) -> int:
    """A stated length; -1 where it is none. More digits than any answer needs are not read."""
    if not stated.isdigit():
        return -1
    if len(stated) > _MOST_DIGITS:
        stated = stated.lstrip(b"0") or b"0"
    return int(stated) if len(stated) <= _MOST_DIGITS else _TOO_LONG


async def patient(chunks: Any, seconds: float) -> AsyncGenerator[bytes, None]:
    """The chunks, each of which is waited for no longer than so many seconds.

    Raises:
        AnswerTooLargeError: nothing came for so long.
    """
    waiting = chunks.__aiter__()
    while True:
        chunk: bytes | None = None
        with anyio.move_on_after(seconds) as silence:
            chunk = await anext(waiting, None)
        if silence.cancelled_caught:
            raise AnswerTooLargeError(rule=IDLE, limit=seconds)
        if chunk is None:
            return
        yield chunk


async def decoded(stream: Any, coding: bytes | None) -> AsyncGenerator[bytes, None]:
    """The decoded chunks of a stream that is not bounded as a whole, such as an event stream.

    Between two pieces of one chunk everybody else on the loop has a turn: 24 kB of packed comments
    are 16 MiB, and took the loop for seconds (measured).
    """
    decoder = decoder_for(coding)
    if decoder is None:
        async for chunk in stream:
            yield chunk
        return
    async for chunk in stream:
        for place, piece in enumerate(decoder.feed(chunk)):
            if place:
                await anyio.lowlevel.checkpoint()
            yield piece
    decoder.close()
