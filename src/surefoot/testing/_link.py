"""The law of this file: a connection is read with h11 and written with bytes, and always let go of.

h11 reads the requests, as it is strict about them. Answers bypass it, because it would refuse to
write what a faulty gateway must write. A new parser for each request keeps the two apart.
"""

from __future__ import annotations

import asyncio
import socket
import struct
import sys
from typing import TYPE_CHECKING, cast

import h11

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from surefoot.testing._wire import HeaderLine

__all__ = ["Link", "RawRequest", "UnreadableRequestError"]

_LARGEST_HEAD = 1 << 20
"""Bytes of request line and headers that are read; a test may send a huge header line."""

_LINGER_ZERO = struct.pack("hh" if sys.platform == "win32" else "ii", 1, 0)

RawRequest = tuple[str, str, tuple["HeaderLine", ...], bytes]
"""Method, target, header lines and body."""


class UnreadableRequestError(Exception):
    """What the client sent is not one HTTP request."""


class Link(asyncio.Protocol):
    """One accepted connection."""

    def __init__(
        self,
        number: int,
        serve: Callable[[Link], Coroutine[object, object, None]],
        lost: Callable[[Link], None],
    ) -> None:
        self.number = number
        self.gone = asyncio.Event()
        self.when_gone: Callable[[], None] | None = None
        self.task: asyncio.Task[None] | None = None
        self._serve = serve
        self._lost = lost
        self._transport: asyncio.Transport | None = None
        self._pending = bytearray()
        self._fed = asyncio.Event()
        self._writable = asyncio.Event()
        self._writable.set()
        self._closing = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin to serve."""
        self._transport = cast("asyncio.Transport", transport)
        self.task = asyncio.get_running_loop().create_task(self._serve(self))

    def data_received(self, data: bytes) -> None:
        """Keep what the client sent until it is asked for."""
        self._pending += data
        self._fed.set()

    def eof_received(self) -> None:
        """Take a closed sending side for a client that left; MCP clients mean nothing else."""
        self._leave()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002  (asyncio's)
        """Wake everybody who waits for this connection."""
        self._leave()
        self._lost(self)

    def pause_writing(self) -> None:
        """Hold writers back while the client does not read."""
        self._writable.clear()

    def resume_writing(self) -> None:
        """Let writers go on."""
        self._writable.set()

    @property
    def open(self) -> bool:
        """Whether another request can be read."""
        return not self._closing and not self.gone.is_set()

    async def read(self) -> RawRequest | None:
        """Read one request, or `None` once the client has left between two.

        Raises:
            UnreadableRequestError: it is not HTTP.
        """
        parser = h11.Connection(h11.SERVER, max_incomplete_event_size=_LARGEST_HEAD)
        request: h11.Request | None = None
        body = bytearray()
        try:
            while True:
                event = parser.next_event()
                if event is h11.NEED_DATA:
                    if not await self._feed(parser):
                        return None
                elif isinstance(event, h11.Request):
                    request = event
                elif isinstance(event, h11.Data):
                    body += event.data
                elif isinstance(event, h11.EndOfMessage):
                    break
                else:
                    return None
        except h11.RemoteProtocolError as error:
            raise UnreadableRequestError from error
        assert request is not None  # noqa: S101  (h11 ends no message that it has not begun)
        self._pending[:0] = parser.trailing_data[0]
        lines = tuple((bytes(name), bytes(value)) for name, value in request.headers.raw_items())
        return request.method.decode("ascii"), request.target.decode("latin-1"), lines, bytes(body)

    async def _feed(self, parser: h11.Connection) -> bool:
        while not self._pending:
            if not self.open:
                return False
            self._fed.clear()
            await self._fed.wait()
        data = bytes(self._pending)
        self._pending.clear()
        parser.receive_data(data)
        return True

    async def write(self, data: bytes) -> bool:
        """Write bytes and wait until the client reads on; `False` once it has left."""
        if self._transport is None or not self.open:
            return False
        self._transport.write(data)
        await self._writable.wait()
        return not self.gone.is_set()

    def reset(self) -> None:
        """Close with a TCP reset: to linger for zero seconds is to send RST, not FIN."""
        self._closing = True
        if self._transport is None:
            return
        raw = cast("socket.socket | None", self._transport.get_extra_info("socket"))
        if raw is not None:
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _LINGER_ZERO)
        self._transport.abort()

    def hang_up(self) -> None:
        """Close after what was written has gone out."""
        self._closing = True
        self._fed.set()
        if self._transport is not None:
            self._transport.close()

    def abort(self) -> None:
        """Close at once, whatever was not sent."""
        self._closing = True
        if self._transport is not None:
            self._transport.abort()

    def _leave(self) -> None:
        if self.gone.is_set():
            return
        self.gone.set()
        self._fed.set()
        self._writable.set()
        if self.when_gone is not None:
            self.when_gone()
