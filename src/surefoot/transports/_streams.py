"""The law of this file: what comes after the headers is held to the same rules as what came before.

A record is filed when its answer is over, and not when its headers came: a whole answer is over at
once, a stream when it is closed, by its reader, by its end, or by a cancellation; once, and never
from a destructor. And a body that breaks says no more of the signed request than an error before
it: the frames below hold that request for as long as they read (R108).
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from functools import partial
from typing import TYPE_CHECKING, Any

from ._errors import bared, cleaned
from ._family import finished

if TYPE_CHECKING:
    from ._clock import Clock
    from ._family import Family, HTTPResponse
    from ._recorder import Record
    from ._seal import Seal

__all__ = ["filed_when_closed", "saying_nothing"]


def filed_when_closed(
    response: HTTPResponse, family: Family, record: Record, clock: Clock
) -> HTTPResponse:
    """Hand the response on, and file its record once its body is closed."""
    if isinstance(response.stream, family.ByteStream):
        record.file(clock.monotonic())
        return response
    source = response.stream
    response.stream = family.stream(
        _noted(source, record), partial(_close_and_file, source, record, clock)
    )
    return response


async def _noted(source: Any, record: Record) -> AsyncGenerator[bytes, None]:
    """The parts; a break among them is written down."""
    parts = source.__aiter__()
    try:
        async for part in parts:
            yield part
    except Exception as error:
        last = record.sent[-1]
        last.outcome = "cut"
        last.error = type(error).__name__
        record.unanswered = True
        record.ended = None
        record.end("cut", "stream-cut", last.status)
        raise
    finally:
        await finished(parts)


async def _close_and_file(source: Any, record: Record, clock: Clock) -> None:
    try:
        await source.aclose()
    finally:
        record.file(clock.monotonic())


def saying_nothing(response: HTTPResponse, family: Family, seal: Seal) -> HTTPResponse:
    """Hand the response on; what its body raises is cleaned as what its headers raise is."""
    if not isinstance(response.stream, family.ByteStream):
        source = response.stream
        response.stream = family.stream(
            _unquoted(source, family, seal), partial(_close_unquoted, source, family, seal)
        )
    return response


async def _unquoted(source: Any, family: Family, seal: Seal) -> AsyncGenerator[bytes, None]:
    parts = source.__aiter__()
    try:
        async for part in parts:
            yield part
    except Exception as raised:  # noqa: BLE001 - raised anew below, where its frames are gone
        error = cleaned(raised, family, seal)
    except BaseException as cut:
        bared(cut)
        raise
    else:
        return
    finally:
        await finished(parts)
    raise error


async def _close_unquoted(source: Any, family: Family, seal: Seal) -> None:
    try:
        await source.aclose()
    except Exception as raised:  # noqa: BLE001 - as above
        error = cleaned(raised, family, seal)
    except BaseException as cut:
        bared(cut)
        raise
    else:
        return
    raise error
