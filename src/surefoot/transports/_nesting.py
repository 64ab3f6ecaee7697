"""The law of this file: one call is one call, also where a wrapper in its midst builds it anew.

A stack marks the request that it works on, and another stack of the same Gateway further in, behind
somebody's wrapper, stands aside for the mark. A wrapper that hands on a new request loses it; then
the inner stack would meet the call in the fence as its own twin, and never send it. So the mark is
kept beside the request, too, in the context of the task: what has the same method, URL and body
there, while that call is under way, is that call.
"""

from __future__ import annotations

from contextvars import ContextVar, Token
from typing import TYPE_CHECKING, Any

from ._family import family_of
from ._recorder import MARK, Record, mark_of

if TYPE_CHECKING:
    from ._family import AsyncTransport, HTTPRequest, HTTPResponse

__all__ = ["Marked", "adopted", "marked", "passed", "unmarked"]


_UnderWay = list[Any]
"""Owner, request and record of a call that is under way. A list, which costs a call the least, and
which is emptied: contexts are copied, and kept for long by whatever was begun in them."""

Marked = tuple[_UnderWay, Token[_UnderWay | None]]

_current: ContextVar[_UnderWay | None] = ContextVar("surefoot.under-way", default=None)


def marked(request: HTTPRequest, record: Record, owner: object) -> Marked:
    """Mark the request as a part of this record; returns what takes the mark off again."""
    request.extensions[MARK] = record
    under_way = [owner, request, record]
    return under_way, _current.set(under_way)


def unmarked(request: HTTPRequest, mark: Marked) -> None:
    """Take the mark off."""
    request.extensions.pop(MARK, None)
    mark[0].clear()
    _current.reset(mark[1])


def adopted(request: HTTPRequest, owner: object) -> Record | None:
    """The record of the call that this request is, where a stack of the same owner works on it."""
    under_way = _current.get()
    if not under_way or owner is None or under_way[0] is not owner:
        return None
    _, other, record = under_way
    return record if record.body and _is_same(request, other, record) else None


def _is_same(request: HTTPRequest, other: Any, record: Record) -> bool:
    if request.method != other.method or request.url != other.url:
        return False
    # A body that was never whole could not be told from another.
    whole = isinstance(request.stream, family_of(request).ByteStream)
    return whole and request.read() == record.body


async def passed(transport: AsyncTransport, request: HTTPRequest, record: Record) -> HTTPResponse:
    """Hand on a request that is a part of a call under way, under its mark."""
    if mark_of(request) is record:
        return await transport.handle_async_request(request)
    request.extensions[MARK] = record
    try:
        return await transport.handle_async_request(request)
    finally:
        request.extensions.pop(MARK, None)
