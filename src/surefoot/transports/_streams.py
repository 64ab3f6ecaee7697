"""The law of this file: a record is filed when its answer is over, and not when its headers came.

A whole answer is over at once. A stream is over when it is closed, by its reader, by its end, or by
a cancellation; the record is filed exactly once and never from a destructor.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ._clock import Clock
    from ._family import Family, HTTPResponse
    from ._recorder import Record

__all__ = ["filed_when_closed"]


def filed_when_closed(
    response: HTTPResponse, family: Family, record: Record, clock: Clock
) -> HTTPResponse:
    """Hand the response on, and file its record once its body is closed."""
    if isinstance(response.stream, family.ByteStream):
        record.file(clock.monotonic())
        return response
    source = response.stream

    async def parts() -> AsyncIterator[bytes]:
        try:
            async for part in source:
                yield part
        except Exception as error:
            last = record.sent[-1]
            last.outcome = "cut"
            last.error = type(error).__name__
            record.unanswered = True
            record.ended = None
            record.end("cut", "stream-cut", last.status)
            raise

    async def close() -> None:
        try:
            await source.aclose()
        finally:
            record.file(clock.monotonic())

    response.stream = family.stream(parts(), close)
    return response
