"""The law of this file: a block of an event stream is a value, and is written in one way.

One ``data:`` line, because canonical JSON has no line end; ``id`` and ``retry`` before it, and only
when plain and bounded (D22); no line for the type ``message``, which every reader assumes.
"""

from __future__ import annotations

from typing import Final, NamedTuple

__all__ = [
    "KEEP_ALIVE",
    "MAX_ID_BYTES",
    "RETRY_SECONDS",
    "SseBlock",
    "encode_event",
]

KEEP_ALIVE: Final = b":\n\n"
"""A comment without words: what is passed on where the server sent a comment."""

MAX_ID_BYTES: Final = 1024
"""How long an event id may be: the client sends it back as a header."""

RETRY_SECONDS: Final = (0.1, 60.0)
"""The least and the most that a ``retry`` is taken for (D37); 0 is a storm, a year is a hang."""


class SseBlock(NamedTuple):
    """One block of an event stream: an event, or an ``id`` or ``retry`` without one.

    A tuple, because it is built for every event and is cheap to build; its repr shows no data.
    """

    event: str = "message"
    """The event's type."""

    data: bytes | None = None
    """Its data, UTF-8; ``None`` where the block had no data line, so that nothing is dispatched."""

    id: str | None = None
    """The id that this block sets; ``None`` where it sets none, empty where it resets it."""

    retry: float | None = None
    """The seconds to wait before a reconnect, clamped; ``None`` where the block says nothing."""

    @property
    def is_keep_alive(self) -> bool:
        """Whether the block held nothing but comments."""
        return self.data is None and self.id is None and self.retry is None

    @property
    def plain_id(self) -> str | None:
        """The id, where it may go back as a header: visible ASCII, at most 1 kB (D22)."""
        return None if self.id is None or not _is_plain(self.id) else self.id

    def __repr__(self) -> str:
        """Show the shape, and nothing that a server wrote."""
        size = None if self.data is None else len(self.data)
        return f"SseBlock(data_bytes={size}, has_id={self.id is not None}, retry={self.retry})"


def encode_event(
    data: bytes | None,
    *,
    event: str = "message",
    id: str | None = None,  # noqa: A002  # the field's own name
    retry: float | None = None,
) -> bytes:
    """Write one event, or, without data, what keeps an ``id`` or ``retry`` alive.

    An ``id`` that is not plain and bounded is left out, ``retry`` is clamped (D22). Without data an
    empty data line is written, which every reader takes for "nothing yet" and not for a message.

    Args:
        data: the data; canonical JSON is always one line.
        event: its type; only a type other than ``message`` is written.
        id: the id to set.
        retry: seconds.

    Raises:
        ValueError: the data holds a carriage return, or the type is not printable ASCII.
    """
    if data is None:
        fields = [b"data:\n\n"]
    else:
        if data.find(b"\r") >= 0:
            raise ValueError("data: must not hold a carriage return, which would end its line")
        if data.find(b"\n") >= 0:
            data = data.replace(b"\n", b"\ndata: ")
        text = b"data: %b\n\n" % data
        if event == "message" and retry is None:
            return b"id: %b\n%b" % (id.encode(), text) if id is not None and _is_plain(id) else text
        fields = [text]
    if event != "message" and data is not None:
        if not (event.isascii() and event.isprintable()):
            raise ValueError("event: must be printable ASCII")
        fields.insert(0, b"event: %b\n" % event.encode())
    if retry is not None:
        low, high = RETRY_SECONDS
        fields.insert(0, b"retry: %d\n" % round(min(max(retry, low), high) * 1000))
    if id is not None and _is_plain(id):
        fields.insert(0, b"id: %b\n" % id.encode())
    return b"".join(fields)


def _is_plain(event_id: str) -> bool:
    """Tell whether an id is visible ASCII, and short enough, to go back as a header (D22)."""
    return (
        len(event_id) <= MAX_ID_BYTES
        and event_id.isascii()
        and event_id.isprintable()
        and " " not in event_id
    )
