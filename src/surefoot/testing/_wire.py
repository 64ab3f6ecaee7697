"""The law of this file: what goes over the wire is laid out here byte by byte, by pure functions.

No HTTP server library writes the answers, because a library refuses to write the broken ones. The
broken answers of `surefoot.testing` are therefore the sound ones of this file, bent in one place.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable, Iterator, Mapping
from email.utils import format_datetime
from functools import lru_cache
from http import HTTPStatus
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from datetime import datetime

__all__ = [
    "LAST_CHUNK",
    "HeaderLine",
    "Headers",
    "chunk",
    "compact_json",
    "gzip_of_repeated",
    "head",
    "header_line",
    "http_date",
    "length_of",
    "sse_event",
]

HeaderLine = tuple[bytes, bytes]

Headers = Mapping[str, str | bytes] | Iterable[tuple[str, str | bytes]]
"""Header lines as a test declares them; pairs may name one header several times."""

LAST_CHUNK = b"0\r\n\r\n"
"""Ends a chunked body (RFC 9112, 7.1); a stream that lacks it was cut."""

_BLOCK = 1 << 20
"""Bytes in one repeated block of a bomb: small enough to build fast."""


def compact_json(value: object) -> bytes:
    """Serialise a value as JSON in UTF-8, without spaces.

    Raises:
        ValueError: the value holds NaN or an infinity, which JSON does not have.
        TypeError: the value holds something that JSON cannot say.
    """
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode()


def header_line(name: str | bytes, value: str | bytes) -> HeaderLine:
    """One header line as bytes; a text is encoded as UTF-8, so that odd values can be sent too."""
    return (
        name.encode() if isinstance(name, str) else name,
        value.encode() if isinstance(value, str) else value,
    )


def head(status: int, lines: Iterable[HeaderLine]) -> bytes:
    """The status line and the header lines of an answer, with the blank line that ends them."""
    try:
        reason = HTTPStatus(status).phrase
    except ValueError:
        reason = "Unknown"
    parts = [f"HTTP/1.1 {status} {reason}\r\n".encode()]
    parts.extend(name + b": " + value + b"\r\n" for name, value in lines)
    parts.append(b"\r\n")
    return b"".join(parts)


def length_of(body: bytes) -> HeaderLine:
    """The Content-Length line that fits a body."""
    return (b"content-length", str(len(body)).encode())


def chunk(data: bytes) -> bytes:
    """One chunk of a chunked body (RFC 9112, 7.1); nothing for no data, which would end it."""
    if not data:
        return b""
    return b"%x\r\n%b\r\n" % (len(data), data)


def http_date(moment: datetime) -> str:
    """A moment as an IMF-fixdate (RFC 9110, 5.6.7), whole seconds, always GMT.

    Raises:
        ValueError: the moment has no time zone, or one other than UTC.
    """
    return format_datetime(moment, usegmt=True)


def sse_event(
    data: bytes | None = None,
    *,
    event: str | None = "message",
    event_id: str | None = None,
    retry: int | str | None = None,
    comments: Iterable[str] = (),
) -> bytes:
    """One block of an event stream, ended by its blank line.

    Args:
        data: the payload; each line of it gets a `data:` line of its own. `None` leaves it out.
        event: the event's name; `None` leaves the line out.
        event_id: what a client sends back as Last-Event-ID; `None` leaves the line out.
        retry: milliseconds until a client reconnects; a text is sent as it is, to try bad ones.
        comments: comment lines that stand before the block's own lines.
    """
    lines = [f": {comment}".encode() for comment in comments]
    if event_id is not None:
        lines.append(f"id: {event_id}".encode())
    if retry is not None:
        lines.append(f"retry: {retry}".encode())
    if data is not None:
        if event is not None:
            lines.append(f"event: {event}".encode())
        lines.extend(b"data: " + line for line in data.split(b"\n"))
    return b"\r\n".join([*lines, b"", b""])


@lru_cache(maxsize=4)
def gzip_of_repeated(before: bytes, filler: bytes, size: int, after: bytes) -> bytes:
    """A gzip body that unpacks to `before`, `size` bytes of one repeated filler byte, and `after`.

    A block is squeezed once and then repeated, so that a bomb of hundreds of MiB takes its
    checksum's time to build and a fraction of its size to hold.
    """
    block = filler * _BLOCK
    whole, rest = divmod(size, _BLOCK)
    squeezed = _flushed(block)
    parts = [_flushed(before), *([squeezed] * whole), _flushed(filler * rest)]
    checksum = zlib.crc32(before)
    for _ in range(whole):
        checksum = zlib.crc32(block, checksum)
    checksum = zlib.crc32(after, zlib.crc32(filler * rest, checksum))
    last = zlib.compressobj(level=9, wbits=-zlib.MAX_WBITS)
    parts.append(last.compress(after) + last.flush(zlib.Z_FINISH))
    total = (len(before) + size + len(after)) & 0xFFFFFFFF
    trailer = checksum.to_bytes(4, "little") + total.to_bytes(4, "little")
    return b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x02\xff" + b"".join(parts) + trailer


def _flushed(data: bytes) -> bytes:
    """Raw deflate of a piece, ended on a byte so that another piece may follow."""
    if not data:
        return b""
    squeezer = zlib.compressobj(level=9, wbits=-zlib.MAX_WBITS)
    return squeezer.compress(data) + squeezer.flush(zlib.Z_FULL_FLUSH)


def pieces(data: bytes, size: int) -> Iterator[bytes]:
    """A body cut into pieces of `size` bytes, the last one possibly shorter."""
    for start in range(0, len(data), size):
        yield data[start : start + size]


def lines_from(
    headers: Headers,
) -> tuple[HeaderLine, ...]:
    """Header lines from a mapping or from pairs; pairs may name one header several times."""
    if isinstance(headers, Mapping):
        named = cast("Mapping[str, str | bytes]", headers)
        return tuple(header_line(name, value) for name, value in named.items())
    return tuple(header_line(name, value) for name, value in headers)
