"""The law of this file: a body is decoded here, whole or refused, and never larger than its bound.

An HTTP library hands a truncated gzip body on as if it were complete, and a bomb of 400 kB as
400 MiB (measured). So content coding is undone here: gzip and deflate, at most one of them, checked
to its last byte, and counted as it grows (B12).
"""

from __future__ import annotations

import zlib
from collections.abc import AsyncGenerator, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

from surefoot.errors import AnswerTooLargeError, UnreadableAnswerError

if TYPE_CHECKING:
    from ._family import Line

__all__ = ["ACCEPTED_ENCODINGS", "decoded", "whole_body"]

ACCEPTED_ENCODINGS: Final = "gzip, deflate"
"""What we ask a server for: the codings that are undone here."""

_PIECE: Final = 1 << 20
"""Bytes that are decoded at a time: a bomb is noticed after one such piece too many."""

_MOST_DIGITS: Final = 18
"""More digits of a length than any answer needs."""

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


def decoder_for(lines: Sequence[Line]) -> Decoder | None:
    """The decoder that a response's headers ask for; ``None`` where the body is as it is.

    Raises:
        UnreadableAnswerError: a coding that was not asked for, or more than one.
    """
    codings = [
        coding.strip().lower()
        for name, value in lines
        if name == b"content-encoding"
        for coding in value.split(b",")
    ]
    codings = [coding for coding in codings if coding not in (b"", b"identity")]
    if not codings:
        return None
    if codings not in ([b"gzip"], [b"x-gzip"], [b"deflate"]):
        raise UnreadableAnswerError(rule="content-coding")
    return Decoder()


async def whole_body(stream: Any, lines: Sequence[Line], limit: int) -> bytes:
    """Read a body to its end.

    Args:
        stream: The response's raw byte stream.
        lines: Its header lines.
        limit: The most decoded bytes.

    Raises:
        AnswerTooLargeError: it passes ``limit``; no more than one piece beyond it was held.
        UnreadableAnswerError: its length or its coding is not what its headers say.
        Exception: what the stream raised: then there is no answer.
    """
    decoder = decoder_for(lines)
    lengths = [value for name, value in lines if name == b"content-length"]
    if lengths and any(name == b"transfer-encoding" for name, _ in lines):
        raise UnreadableAnswerError(rule="length-and-chunked")
    if decoder is None and len(lengths) == 1 and lengths[0].isdigit():
        stated = lengths[0].lstrip(b"0")
        if len(stated) > _MOST_DIGITS or int(stated or b"0") > limit:
            raise AnswerTooLargeError(rule="too-many-bytes", limit=limit)
    parts: list[bytes] = []
    size = seen = 0
    async for chunk in stream:
        seen += len(chunk)
        for piece in (chunk,) if decoder is None else decoder.feed(chunk):
            size += len(piece)
            if size > limit:
                raise AnswerTooLargeError(rule="too-many-bytes", limit=limit)
            parts.append(piece)
    if decoder is not None and seen:
        decoder.close()
    if len(lengths) == 1 and lengths[0].isdigit() and seen != int(lengths[0]):
        raise UnreadableAnswerError(rule="length-mismatch")
    return parts[0] if len(parts) == 1 else b"".join(parts)


async def decoded(stream: Any, lines: Sequence[Line]) -> AsyncGenerator[bytes, None]:
    """The decoded chunks of a stream that is not bounded as a whole, such as an event stream."""
    decoder = decoder_for(lines)
    if decoder is None:
        async for chunk in stream:
            yield chunk
        return
    async for chunk in stream:
        for piece in decoder.feed(chunk):
            yield piece
    decoder.close()
