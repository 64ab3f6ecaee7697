"""The law of this file: what passes is written down as it passes, and not changed.

Two taps stand in a check: one below the stack, which sees what the server sent, and one above it,
which sees what a client reads of that. A word is shown only from above, where it was scrubbed; from
below come nothing but fixed words and numbers. What was not kept, and who ended an answer, is
written down as well: no gateway is blamed for what the check itself left or passed over.
"""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final, Literal, Self

from surefoot.gateway import Gateway
from surefoot.transports import never_left
from surefoot.wire import HeaderLine, Outgoing, read_request

from ._check_reach import why_unreached

__all__ = [
    "MOST_BYTES",
    "MOST_EXCHANGES",
    "Exchange",
    "Tape",
    "TappedGateway",
]

MOST_BYTES: Final = 4 * 1024 * 1024
"""Bytes of one body that are kept; what is behind them is not judged."""

MOST_EXCHANGES: Final = 200
"""Exchanges that are kept; a check makes a dozen."""


@dataclass(slots=True, kw_only=True)
class Exchange:
    """One request, and what came back. Its repr shows no word of either."""

    http_method: str
    outgoing: Outgoing | None
    version: str | None
    """The protocol version that the request named in its header."""
    in_session: bool
    """Whether the request named an MCP session."""
    signed: bool
    """Whether the request carried a credential; known below only."""
    status: int | None = None
    lines: tuple[HeaderLine, ...] = ()
    body: bytearray = field(default_factory=bytearray)
    ended: Literal["whole", "broken", "left", "unreached"] = "left"
    """How: it came to its end, it broke off or never came, the check was gone before, or no
    connection came about."""
    unreached: str | None = None
    """Why no connection came about, in fixed words."""
    kept: bool = True
    """Whether all that came of the body is in ``body``."""

    def __repr__(self) -> str:
        """Show the shape alone."""
        return f"Exchange({self.http_method}, status={self.status})"

    @property
    def method(self) -> str:
        """The JSON-RPC method, else the HTTP method."""
        return (self.outgoing and self.outgoing.method) or self.http_method

    def values(self, name: bytes) -> list[bytes]:
        """The values of the header lines of one name, given in lower case."""
        return [value for line, value in self.lines if line.lower() == name]


class Tape:
    """What passed one tap, in order, up to a bound."""

    __slots__ = ("kept", "missed")

    def __init__(self) -> None:
        self.kept: list[Exchange] = []
        self.missed: set[str] = set()
        """The methods of what came after the bound, and is not kept."""

    def add(self, exchange: Exchange) -> None:
        """Keep one, where there is room; that a tool was called is never forgotten."""
        if len(self.kept) < MOST_EXCHANGES or exchange.method == "tools/call":
            self.kept.append(exchange)
        else:
            self.missed.add(exchange.method)


class TappedGateway(Gateway):
    """A Gateway whose stack has a tap below it and another above it."""

    def __init__(self, url: str, *, credential_headers: frozenset[str], **options: Any) -> None:
        super().__init__(url, **options)
        self.sent = Tape()
        """What went over the wire."""
        self.read = Tape()
        """What the client saw."""
        self._credential_headers = credential_headers

    @property
    def origin(self) -> str:
        """Scheme, host and port: what may be shown of a URL (R41)."""
        return self._options.endpoint.origin

    def _wrap(self, transport: Any, plan: Any) -> Any:
        below = _Tap(transport, self.sent, self._credential_headers)
        return _Tap(super()._wrap(below, plan), self.read, frozenset())


class _Tap:
    """Hands every request down and every answer up, and keeps a copy of both."""

    def __init__(self, below: Any, tape: Tape, credential_headers: frozenset[str]) -> None:
        self._below = below
        self._tape = tape
        self._credential_headers = credential_headers
        kind: type[Any] = below.__class__
        family = kind.__module__.partition(".")[0]
        # It sends nothing of its own, so that what the wire proves stays proven (D3).
        is_wire = family in ("httpx", "httpx2") and kind.__name__ == "AsyncHTTPTransport"
        self.proves_not_sent = is_wire or getattr(below, "proves_not_sent", False) is True

    async def handle_async_request(self, request: Any) -> Any:
        """Send one request once."""
        exchange = Exchange(
            http_method=request.method,
            outgoing=read_request(_body_of(request)),
            version=request.headers.get("mcp-protocol-version"),
            in_session="mcp-session-id" in request.headers,
            signed=any(name in request.headers for name in self._credential_headers),
        )
        self._tape.add(exchange)
        try:
            response = await self._below.handle_async_request(request)
        except Exception as error:
            exchange.ended = "broken"
            if never_left(error, proven=self.proves_not_sent):
                exchange.ended, exchange.unreached = "unreached", why_unreached(error)
            raise
        exchange.status = response.status_code
        exchange.lines = tuple(response.headers.raw)
        family = sys.modules[type(request).__module__.partition(".")[0]]
        response.stream = _tapped(family.AsyncByteStream)(response.stream, exchange)
        return response

    async def __aenter__(self) -> Self:
        await self._below.__aenter__()
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self._below.__aexit__(*exc)

    async def aclose(self) -> None:
        """Close what is below."""
        await self._below.aclose()


def _body_of(request: Any) -> bytes:
    try:
        return bytes(request.content)
    except Exception:  # noqa: BLE001 - a stream that was not read; the SDK sends none
        return b""


@lru_cache(maxsize=2)
def _tapped(base: type) -> type:
    """The stream class for one HTTP family."""

    class TappedStream(base):  # type: ignore[valid-type, misc]
        """Passes the parts of a body on, and keeps them up to a bound."""

        def __init__(self, stream: Any, exchange: Exchange) -> None:
            self._stream = stream
            self._exchange = exchange

        async def __aiter__(self) -> AsyncIterator[bytes]:
            exchange = self._exchange
            parts = aiter(self._stream)
            while True:
                # Only what the stream raises broke off; what comes down from above has left.
                try:
                    part = await anext(parts)
                except StopAsyncIteration:
                    exchange.ended = "whole"
                    return
                except Exception:
                    exchange.ended = "broken"
                    raise
                room = MOST_BYTES - len(exchange.body)
                exchange.kept = exchange.kept and len(part) <= room
                exchange.body += part[:room]
                yield part

        async def aclose(self) -> None:
            await self._stream.aclose()

    return TappedStream
