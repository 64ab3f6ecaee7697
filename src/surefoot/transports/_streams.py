"""The law of this file: what comes after the headers is held to the same rules as what came before.

A record is filed when its answer is over, and not when its headers came: a whole answer is over at
once, a stream when it is closed, by its reader, by its end, or by a cancellation; once, and never
from a destructor. And a body that breaks says no more of the signed request than an error before
it: the frames below hold that request for as long as they read (R108).
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, Final

from ._errors import bared, cleaned
from ._family import finished, is_open
from ._seal import Seal

if TYPE_CHECKING:
    from ._clock import Clock
    from ._family import Family, HTTPResponse
    from ._recorder import Record

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
        if is_open(parts):
            await finished(parts)


async def _close_and_file(source: Any, record: Record, clock: Clock) -> None:
    try:
        await source.aclose()
    finally:
        record.file(clock.monotonic())


def saying_nothing(response: HTTPResponse, family: Family, seal: Seal) -> HTTPResponse:
    """Hand the response on; what its body raises is cleaned as what its headers raise is."""
    if not isinstance(response.stream, family.ByteStream):
        quiet = _quiet_class(family.stream_base)
        response.stream = quiet(response.stream, family, seal)
    return response


@lru_cache(maxsize=8)
def _quiet_class(base: Any) -> Any:
    """The class for one family; both bases ask for the same two methods."""
    return type("QuietStream", (_Quiet, base), {})


_NOTHING: Final = Seal(lambda: (None, ()))


class _Quiet:
    """Another stream, whose errors say nothing of the request that it answers."""

    _source: Any
    """What lies below; ``None`` once it is closed."""

    def __init__(self, source: Any, family: Family, seal: Seal) -> None:
        self._source = source
        self._family = family
        self._seal = seal
        self._parts: AsyncGenerator[bytes, None] | None = None

    def __aiter__(self) -> AsyncGenerator[bytes, None]:
        self._parts = self._read()
        return self._parts

    async def _read(self) -> AsyncGenerator[bytes, None]:
        parts = self._source.__aiter__()
        try:
            async for part in parts:
                yield part
        except Exception as raised:  # noqa: BLE001 - raised anew below, where its frames are gone
            error = cleaned(raised, self._family, self._seal)
        except BaseException as cut:
            bared(cut)
            raise
        else:
            return
        finally:
            if is_open(parts):
                await finished(parts)
            del parts
        raise error

    async def aclose(self) -> None:
        """Close both, once, and keep nothing of what was secret (R107)."""
        source, seal = self._source, self._seal
        if source is None:
            return
        self._source, self._seal = None, _NOTHING
        try:
            if self._parts is not None and is_open(self._parts):
                await finished(self._parts)
            await source.aclose()
        except Exception as raised:  # noqa: BLE001 - as above
            error = cleaned(raised, self._family, seal)
        except BaseException as cut:
            bared(cut)
            raise
        else:
            return
        finally:
            del source, seal
        raise error
