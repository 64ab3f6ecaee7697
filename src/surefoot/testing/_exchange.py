"""The law of this file: one request is answered once, its tool runs at most once, both are noted.

An exchange is what a step is given to play on: it runs the tool, frames the sound answer, and lets
a step write any other bytes in its place.
"""

from __future__ import annotations

import asyncio
import re
from typing import TYPE_CHECKING

from surefoot.testing._methods import REQUEST_CANCELLED, error_message
from surefoot.testing._request import Reply
from surefoot.testing._wire import (
    LAST_CHUNK,
    HeaderLine,
    chunk,
    compact_json,
    head,
    length_of,
    sse_event,
)

if TYPE_CHECKING:
    from surefoot.testing._eras import Service
    from surefoot.testing._journal import Journal
    from surefoot.testing._link import Link
    from surefoot.testing._request import Received

__all__ = ["Exchange", "GoneError"]

JSON_LINE: HeaderLine = (b"content-type", b"application/json")
SSE_LINES: tuple[HeaderLine, ...] = (
    (b"content-type", b"text/event-stream"),
    (b"cache-control", b"no-cache, no-transform"),
    (b"transfer-encoding", b"chunked"),
)

_STATUS_LINE = re.compile(rb"HTTP/1\.\d (\d{3})")


class GoneError(ConnectionError):
    """The client hung up, so that there is nobody left to write to."""


class Exchange:
    """One request while it is being answered."""

    def __init__(
        self,
        received: Received,
        link: Link,
        service: Service,
        journal: Journal,
        *,
        number: int,
        streamed: bool,
    ) -> None:
        self.received = received
        """The request, read."""
        self.number = number
        """The position of its entry in the journal."""
        self.streamed = streamed
        """Whether sound answers to a POST go out as an event stream."""
        self.complete = False
        """Whether the last byte of the answer was handed over."""
        self.cancelled = False
        """Whether the client withdrew before that."""
        self.withdrawn = False
        """Whether it did so by notification, and so still expects an answer."""
        self.task: asyncio.Task[None] | None = None
        self.status: int | None = None
        """The status that went out; 0 for bytes that have none, `None` before the first byte."""
        self.streaming = False
        self._link = link
        self._service = service
        self._journal = journal
        self._reply: Reply | None = None

    @property
    def wants_stream(self) -> bool:
        """Whether a sound answer to this request goes out as an event stream."""
        return self.received.kind == "get" or (self.streamed and self.received.kind != "token")

    async def run(self) -> Reply:
        """Do what the request asks, once, however often this is called; the answer is not sent."""
        if self._reply is None:
            self._reply = await self._service.run(self)
        return self._reply

    def note_run(self) -> None:
        """Note that the tool's body starts."""
        self._journal.update(self.number, ran=True)

    def client_left(self) -> None:
        """Note that the client hung up before the answer ended; a modern tool stops then."""
        if self.complete or self.received.kind not in {"call", "request"}:
            return
        self.cancelled = True
        self._journal.update(self.number, cancelled=True)
        if self.received.modern and self.task is not None:
            self.task.cancel()

    def withdraw(self) -> None:
        """Stop the work, because a notification of the client's said so (handshake era)."""
        if self.complete or self.task is None:
            return
        self.cancelled = self.withdrawn = True
        self._journal.update(self.number, cancelled=True)
        self.task.cancel()

    async def write(self, data: bytes) -> None:
        """Write bytes as they are. The first status line among them is what the journal shows.

        Raises:
            GoneError: the client hung up.
        """
        if self.status is None:
            found = _STATUS_LINE.match(data)
            self.status = int(found[1]) if found else 0
            self._journal.update(self.number, status=self.status or None)
        if not await self._link.write(data):
            raise GoneError

    async def send(self, status: int, lines: tuple[HeaderLine, ...], body: bytes) -> None:
        """Write a whole answer with a Content-Length that is right."""
        self.complete = True
        await self.write(head(status, (*lines, length_of(body))) + body)

    async def send_reply(self, reply: Reply) -> None:
        """Write a sound answer as one JSON body, or as an empty one where there is no message."""
        if reply.message is None:
            await self.send(reply.status, reply.lines, b"")
        else:
            await self.send(reply.status, (JSON_LINE, *reply.lines), compact_json(reply.message))

    async def send_body(self, reply: Reply, body: bytes) -> None:
        """Write other bytes in the place of a JSON answer, framed as the gateway frames."""
        if self.wants_stream and reply.status == 200:
            await self.start_stream(reply.lines)
            await self.end_stream(sse_event(body))
        else:
            await self.send(reply.status, (JSON_LINE, *reply.lines), body)

    async def start_stream(self, lines: tuple[HeaderLine, ...] = ()) -> None:
        """Begin an event stream: status 200, chunked."""
        self.streaming = True
        await self.write(head(200, (*SSE_LINES, *lines)))

    async def stream(self, data: bytes) -> None:
        """Write a part of an event stream as one chunk."""
        await self.write(chunk(data))

    async def end_stream(self, data: bytes = b"") -> None:
        """Write the last part of an event stream and its end, with no gap for a hang-up."""
        self.complete = True
        await self.write(chunk(data) + LAST_CHUNK)

    async def stream_stands(self) -> None:
        """Wait until the client has left, or its session has ended."""
        session = self._service.session_of(self.received)
        waits = [asyncio.ensure_future(self._link.gone.wait())]
        if session is not None:
            waits.append(asyncio.ensure_future(session.ended.wait()))
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()
            await asyncio.wait(waits)

    def keep_for_resumption(self, event_id: str, reply: Reply) -> None:
        """Keep an answer for a GET with this Last-Event-ID (handshake era)."""
        self._service.replays[event_id] = reply

    def forget_session(self) -> None:
        """End the session that the request names."""
        self._service.forget(self.received.header("mcp-session-id"))

    async def confirm_withdrawal(self) -> None:
        """Say that the request was cancelled, as servers of the handshake era do."""
        message = error_message(self.received.rpc_id, REQUEST_CANCELLED, "Request cancelled")
        if self.streaming:
            await self.end_stream(sse_event(compact_json(message)))
        elif self.status is None:
            await self.send_body(Reply(), compact_json(message))
        else:
            self.hang_up()

    def reset(self) -> None:
        """Cut the connection with a TCP reset; what was not read yet is lost to the client."""
        self.complete = True
        self._link.reset()

    def hang_up(self) -> None:
        """Close the connection after what was written, with an ordinary FIN."""
        self.complete = True
        self._link.hang_up()

    async def hung_up(self) -> None:
        """Wait until the client has left, or the gateway closes."""
        await self._link.gone.wait()

    async def pause(self, seconds: float) -> None:
        """Let time pass on the server's side."""
        await asyncio.sleep(seconds)
