"""The law of this file: an event stream reads the same however it was cut, and within its bounds.

WHATWG HTML section 9.2 decides, on bytes, with these stricter readings, each refused by a word: a
byte order mark, bytes that are not UTF-8 (comments included), and more than one NUL in the name of
a field, which is what UTF-16 looks like here. A block that carries only an ``id`` or ``retry`` is
kept, because MCP's resumption rests on it; ``retry`` is digits alone, clamped (D37); a block that
is not ended is dropped.

(In the short way ``find`` stands where ``in`` would read better: on bytes it costs half.)

Whole blocks take the short way. A long one that comes in many chunks is kept line by line: ended
comments are counted and not kept, fragments of a line are joined once, and each part has a bound,
so that neither one endless line nor many short ones hold more than that.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final, cast

from surefoot.errors import AnswerTooLargeError, UnreadableAnswerError
from surefoot.wire._sse_block import RETRY_SECONDS, SseBlock

__all__ = ["SseDecoder"]

_BOM: Final = b"\xef\xbb\xbf"
_SHORT: Final = 4096  # an unfinished block up to here is put before the next chunk as it is
_MESSAGE: Final = b"event: message\n"
_LF: Final = 0x0A
_CR: Final = 0x0D
_COLON: Final = 0x3A
_DIGITS: Final = b"0123456789"
_PING: Final = SseBlock()


# Twice as fast as calling the class, and this runs for every event.
_new = cast("Any", tuple).__new__


class SseDecoder:
    """Decodes one event stream, fed with bytes as they come; keeps its state between chunks.

    Args:
        max_event_bytes: what the fields of one block may take, line ends left out, comments too.
        max_comment_bytes: what the comments of one block may take.
        keep_alives: also yield a block for each one that held nothing but comments.
    """

    __slots__ = (
        "_after_cr",
        "_comment_bytes",
        "_error",
        "_idle",
        "_in_comment",
        "_keep_alives",
        "_lines",
        "_max_comment",
        "_max_event",
        "_part",
        "_part_bytes",
        "_short",
        "_size",
        "_start",
        "_tail",
        "retry",
    )

    retry: float | None
    """The reconnection time that the stream set last, clamped, in seconds; final once closed."""

    def __init__(
        self,
        *,
        max_event_bytes: int = 1024 * 1024,
        max_comment_bytes: int = 1024 * 1024,
        keep_alives: bool = False,
    ) -> None:
        self._max_event = max_event_bytes
        self._max_comment = max_comment_bytes
        self._short = min(_SHORT, max_event_bytes, max_comment_bytes)
        self._keep_alives = keep_alives
        self._start: bytes | None = b""  # the first bytes, until they cannot be a byte order mark
        self._idle = False  # nothing is under way, and nothing was refused
        self._after_cr = False
        self._error: UnreadableAnswerError | None = None
        self._tail = b""  # an unfinished block, as long as it is short
        self._lines: list[bytes] = []  # finished field lines of the block under way
        self._size = 0
        self._comment_bytes = 0
        self._part: list[bytes] = []  # the line under way; what belongs to a comment is not kept
        self._part_bytes = 0
        self._in_comment = False
        self.retry = None

    def feed(self, chunk: bytes) -> Iterable[SseBlock]:
        """Decode the next bytes of the stream; the blocks that they finish come in order.

        The chunk is decoded when this is called, whether or not the blocks are taken.

        Raises:
            UnreadableAnswerError: the stream breaks a rule; the blocks before it come first.
            AnswerTooLargeError: a block passes a bound; the blocks before it come first.
        """
        if (
            # One event with one line of data, alone in its chunk: how live streams come.
            self._idle
            and chunk[:6] == b"data: "
            and chunk.find(b"\n") == len(chunk) - 2
            and chunk[-1] == _LF
            and chunk.isascii()
            and chunk.find(b"\r") < 0
            and len(chunk) - 2 <= self._max_event
        ):
            return (_new(SseBlock, ("message", chunk[6:-2], None, None)),)
        blocks: list[SseBlock] = []
        if self._error is None:
            self._idle = False
            try:
                self._feed(chunk, blocks)
            except UnreadableAnswerError as error:
                self._error = error.with_traceback(None)  # its frames hold the chunk
            else:
                self._idle = not (
                    self._tail or self._part_bytes or self._lines or self._comment_bytes
                ) and not (self._after_cr or self._start is not None)
                return blocks
        return _then_raise(blocks, self._error)

    def close(self) -> bool:
        """End the stream; an unterminated block is dropped. Tell whether there was one.

        Raises:
            UnreadableAnswerError: what was dropped is not even UTF-8, or the stream was refused.
        """
        if self._error is not None:
            raise self._error
        rest, self._start, self._tail = self._tail + (self._start or b""), None, b""
        self._absorb(rest)
        rest = b"".join(self._part)
        cut = bool(self._lines or rest)
        # A retry counts as soon as its line ends, in a block that never does as well.
        self._dispatch(self._lines, [])
        self._lines, self._part, self._part_bytes = [], [], 0
        if not _is_utf8(rest):
            self._error = UnreadableAnswerError(rule="not-utf8")
            raise self._error
        return cut

    def _feed(self, chunk: bytes, blocks: list[SseBlock]) -> None:
        """Bring the chunk to one kind of line end, finish the block under way, take whole ones."""
        if self._start is not None:
            chunk = self._start + chunk
            if chunk.startswith(_BOM):
                raise UnreadableAnswerError(rule="byte-order-mark")
            if len(chunk) < len(_BOM) and _BOM.startswith(chunk):
                self._start = chunk
                return
            self._start = None
        if self._after_cr and chunk:
            self._after_cr = False
            if chunk[0] == _LF:
                chunk = chunk[1:]
        if chunk.find(b"\r") >= 0:
            # A CR ends its line at once; the LF that may follow in the next chunk is then no line.
            self._after_cr = chunk[-1] == _CR
            chunk = chunk.replace(b"\r\n", b"\n")
            if chunk.find(b"\r") >= 0:
                chunk = chunk.replace(b"\r", b"\n")
        if self._part_bytes or self._lines or self._comment_bytes:
            # A blank line at once ends the block, unless it ends the line under way first.
            at = -1 if chunk[:1] == b"\n" and not self._part_bytes else chunk.find(b"\n\n")
            if at < 0 and not (chunk[:1] == b"\n" and not self._part_bytes):
                self._absorb(chunk)
                return
            if at >= 0:
                self._absorb(chunk[: at + 1])
            self._finish(blocks)
            chunk = chunk[at + 2 :]
        elif self._tail:
            chunk, self._tail = self._tail + chunk, b""
        self._take(chunk, blocks)

    def _take(self, text: bytes, blocks: list[SseBlock]) -> None:
        """Take the whole blocks of a text that begins at a block's start, and keep its tail."""
        pieces = text.split(b"\n\n")
        tail = pieces.pop()
        checked = text.isascii() and text.find(b"\0") < 0
        longest = min(self._max_event, self._max_comment)  # within both, whatever the block holds
        for piece in pieces:
            # Shortest way: a message with one line of data, which is what most servers send, after
            # its type and its id in either order.
            event_id: str | None = None
            line = piece[15:] if piece[:15] == _MESSAGE else piece
            if line[:4] == b"id: " and checked:
                name, _, line = line.partition(b"\n")
                event_id = name[4:].decode()
                line = line[15:] if line[:15] == _MESSAGE else line
            if (
                line[:6] == b"data: "
                and line.find(b"\n") < 0
                and len(piece) <= longest
                and (checked or _is_utf8(line))
            ):
                blocks.append(_new(SseBlock, ("message", line[6:], event_id, None)))
                continue
            if piece[:1] == b":" and checked and piece.find(b"\n") < 0 and len(piece) <= longest:
                # A comment alone: a packed stream may hold millions of them.
                if self._keep_alives:
                    blocks.append(_PING)
                continue
            block = piece.lstrip(b"\n")
            if len(block) > longest or not (checked or (b"\0" not in block and _is_utf8(block))):
                # Something may be wrong with it: line by line, the first wrong thing is named.
                self._absorb(block + b"\n")
                self._finish(blocks)
            elif block:
                self._dispatch(block.split(b"\n"), blocks)
        if tail:
            tail = tail.lstrip(b"\n")
            if len(tail) <= self._short:
                self._tail = tail
            else:
                self._absorb(tail)

    def _absorb(self, text: bytes) -> None:
        """Take the lines of an unfinished block, and the beginning of its next, within bounds."""
        lines = text.split(b"\n")
        last = lines.pop()
        for line in lines:
            self._extend(line)
            self._end_line()
        if last:
            self._extend(last)

    def _extend(self, part: bytes) -> None:
        """Add to the line under way; a comment is counted and not kept, beyond its UTF-8 check."""
        if not part:
            return
        if not self._part_bytes:
            self._in_comment = part[0] == _COLON
        self._part_bytes += len(part)
        self._part.append(part)
        if self._in_comment:
            if self._comment_bytes + self._part_bytes > self._max_comment:
                raise AnswerTooLargeError(rule="comment-bytes", limit=self._max_comment)
        elif self._size + self._part_bytes > self._max_event:
            raise AnswerTooLargeError(rule="event-bytes", limit=self._max_event)

    def _end_line(self) -> None:
        """End the line under way: check it, count it, and keep it if it is a field."""
        line = b"".join(self._part)
        self._part.clear()
        self._part_bytes = 0
        if not _is_utf8(line):
            raise UnreadableAnswerError(rule="not-utf8")
        if self._in_comment:
            self._comment_bytes += len(line)
            self._in_comment = False
            return
        if b"\0" in line and line.partition(b":")[0].count(0) > 1:
            raise UnreadableAnswerError(rule="not-utf8")
        self._size += len(line)
        self._lines.append(line)

    def _finish(self, blocks: list[SseBlock]) -> None:
        """End the block under way."""
        lines = self._lines
        if self._comment_bytes:
            lines.append(b":")
        self._lines = []
        self._size = self._comment_bytes = 0
        self._dispatch(lines, blocks)

    def _dispatch(self, lines: list[bytes], blocks: list[SseBlock]) -> None:
        """Make a block of its lines, if they say anything."""
        event = "message"
        data: list[bytes] = []
        event_id: str | None = None
        retry: float | None = None
        comment = False
        for line in lines:
            if line[:6] == b"data: ":
                data.append(line[6:])
                continue
            name, _, value = line.partition(b":")
            if value[:1] == b" ":
                value = value[1:]
            if name == b"data":
                data.append(value)
            elif name == b"event":
                event = value.decode() or "message"
            elif name == b"id" and b"\0" not in value:
                event_id = value.decode()
            elif name == b"retry":
                retry = _retry_seconds(value, retry)
            comment = comment or not name
        if retry is not None:
            self.retry = retry
        if data:
            text = data[0] if len(data) == 1 else b"\n".join(data)
            blocks.append(_new(SseBlock, (event, text, event_id, retry)))
        elif event_id is not None or retry is not None:
            blocks.append(SseBlock(event, None, event_id, retry))
        elif comment and self._keep_alives:
            blocks.append(SseBlock())


def _then_raise(blocks: list[SseBlock], error: UnreadableAnswerError) -> Iterator[SseBlock]:
    """Give what came before the fault, then the fault."""
    yield from blocks
    raise error


def _is_utf8(text: bytes) -> bool:
    """Tell whether bytes are UTF-8; the error, which holds them, ends here."""
    if text.isascii():
        return True
    try:
        text.decode()
    except UnicodeDecodeError:
        return False
    return True


def _retry_seconds(value: bytes, before: float | None) -> float | None:
    """Read a ``retry``: ASCII digits alone, any number of them; all else changes nothing."""
    if not value or value.translate(None, _DIGITS):
        return before
    low, high = RETRY_SECONDS
    digits = value.lstrip(b"0")
    # Six digits of milliseconds are more than the most already: no number is made of the rest.
    return high if len(digits) > 6 else min(max(int(digits or b"0") / 1000, low), high)
