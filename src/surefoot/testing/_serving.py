"""The law of this file: each request is answered by one thing: a limit, a step, or the service.

The loop of the gateway, in a thread of its own. What it opens it closes, before `stop` returns.
"""

from __future__ import annotations

import asyncio
import threading
from contextlib import suppress
from typing import TYPE_CHECKING

from surefoot.testing._answers import Answer
from surefoot.testing._breaks import Reset
from surefoot.testing._exchange import JSON_LINE, Exchange, GoneError
from surefoot.testing._link import Link, UnreadableRequestError
from surefoot.testing._methods import error_message
from surefoot.testing._request import Received, read_request
from surefoot.testing._wire import compact_json, head, header_line

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable

    from surefoot.testing._eras import Service
    from surefoot.testing._journal import Journal
    from surefoot.testing._limits import Buckets, ExpiringTokens, TokenBucket, TokenMint
    from surefoot.testing._scripts import Scripts

__all__ = ["Guards", "Serving"]

_PATIENCE = 5.0
"""Seconds that the thread is given to end, before that is reported as a fault."""

_ACCEPTED = 0.02
"""Seconds until a connection that dies on accept does, so that connecting to it has succeeded."""

_FIRST_TURNS = 5
"""Turns of the loop within which every connection that was accepted has begun; three suffice."""

_LAST_TURNS = 100
"""Turns of the loop within which every connection is told that it was closed; two suffice."""


class Guards:
    """What looks at a request before any script does."""

    def __init__(
        self,
        bucket: TokenBucket | None,
        buckets: Buckets | None,
        tokens: ExpiringTokens | None,
        mint: TokenMint | None,
    ) -> None:
        self.bucket = bucket
        self.buckets = buckets
        self.tokens = tokens
        self.mint = mint

    def admits(self, received: Received) -> bool:
        """Whether the request carries a token that is good."""
        if self.mint is None:
            return True
        scheme, _, token = (received.header("authorization") or "").partition(" ")
        return scheme.lower() == "bearer" and self.mint.accepts(token.strip())

    def wait_for(self, received: Received) -> int | None:
        """Whole seconds until the principal's bucket has one for this request; `None` if it has."""
        if self.bucket is None or self.buckets is None:
            return None
        if self.bucket.methods is not None and received.method not in self.bucket.methods:
            return None
        return self.buckets.take(received.header("authorization") or "")


class Serving:
    """The gateway's thread and everything that lives in it."""

    def __init__(
        self,
        *,
        path: str,
        streamed: bool,
        service: Callable[[], Service],
        journal: Journal,
        scripts: Scripts,
        guards: Guards,
    ) -> None:
        self.journal = journal
        self.opened = 0
        self.links: set[Link] = set()
        self.crashes: list[BaseException] = []
        self._path = path
        self._streamed = streamed
        self._make_service = service
        self._scripts = scripts
        self._guards = guards
        self._ready = threading.Event()
        self._service: Service | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop: asyncio.Event | None = None
        self._thread: threading.Thread | None = None
        self._origin = ""

    def start(self, listener: socket.socket) -> None:
        """Begin to serve connections to a listening socket, which this now owns."""
        host, port = listener.getsockname()[:2]
        self._origin = f"http://{host}:{port}"
        self._thread = threading.Thread(
            target=lambda: asyncio.run(self._main(listener)),
            name=f"FaultyGateway:{port}",
            daemon=True,
        )
        self._thread.start()
        self._ready.wait(_PATIENCE)

    def stop(self) -> None:
        """Close every connection, end every task, and wait for the thread.

        Raises:
            RuntimeError: the thread did not end.
        """
        loop, stop, thread = self._loop, self._stop, self._thread
        if loop is None or stop is None or thread is None:
            return
        loop.call_soon_threadsafe(stop.set)
        thread.join(_PATIENCE)
        if thread.is_alive():
            raise RuntimeError("the gateway's thread did not end; does a tool's answer block?")
        self._thread = self._loop = self._stop = None

    def do(self, action: Callable[[Service], None]) -> None:
        """Run something in the loop and wait until it is done.

        Raises:
            RuntimeError: the gateway is not open.
        """
        loop, service = self._loop, self._service
        if loop is None or service is None:
            raise RuntimeError("the gateway is not open")
        done = threading.Event()

        def act() -> None:
            try:
                action(service)
            finally:
                done.set()

        loop.call_soon_threadsafe(act)
        done.wait(_PATIENCE)

    async def _main(self, listener: socket.socket) -> None:
        self._loop = asyncio.get_running_loop()
        self._stop = asyncio.Event()
        self._service = self._make_service()
        server = await self._loop.create_server(self._accept, sock=listener, backlog=1024)
        self._ready.set()
        try:
            await self._stop.wait()
        finally:
            # A server that closes while a connection begins leaves its socket to the collector.
            with suppress(NotImplementedError):  # a loop of completions has no readers
                self._loop.remove_reader(listener)
            for _ in range(_FIRST_TURNS):
                await asyncio.sleep(0)
            server.close()
            tasks = [link.task for link in self.links if link.task is not None]
            for task in tasks:
                task.cancel()
            if tasks:
                await asyncio.wait(tasks)
            for link in list(self.links):
                link.abort()
            await server.wait_closed()
            for _ in range(_LAST_TURNS):  # asyncio tells each protocol on a later turn
                if self.links:
                    await asyncio.sleep(0)

    def _accept(self) -> Link:
        self.opened += 1
        link = Link(self.opened, self._serve, self._forget)
        self.links.add(link)
        self.journal.touch()
        return link

    def _forget(self, link: Link) -> None:
        self.links.discard(link)
        self.journal.touch()

    async def _serve(self, link: Link) -> None:
        step = self._scripts.take_for_connection()
        if isinstance(step, Reset):
            await asyncio.sleep(_ACCEPTED)
            step.end(link)
            return
        try:
            while link.open:
                raw = await link.read()
                if raw is None:
                    return
                tokens = self._guards.tokens
                await self._answer(
                    link, read_request(*raw, token_path=None if tokens is None else tokens.endpoint)
                )
        except UnreadableRequestError:
            await link.write(head(400, ((b"content-length", b"0"), (b"connection", b"close"))))
        finally:
            link.hang_up()

    async def _answer(self, link: Link, received: Received) -> None:
        service = self._service
        assert service is not None  # noqa: S101  (set before the first connection is accepted)
        entry = self.journal.open(
            connection=link.number,
            http_method=received.http_method,
            path=received.target,
            headers=received.headers,
            body=received.body,
            method=received.method,
            rpc_id=received.rpc_id,
            tool=received.tool,
            session=received.header("mcp-session-id"),
        )
        exchange = Exchange(
            received, link, service, self.journal, number=entry.sequence, streamed=self._streamed
        )
        exchange.task = asyncio.get_running_loop().create_task(self._play(exchange))
        link.when_gone = exchange.client_left
        service.enter(exchange)
        try:
            await asyncio.wait({exchange.task})
            if exchange.withdrawn and _crash_of(exchange.task) is None:
                await exchange.confirm_withdrawal()
        except GoneError:
            link.hang_up()
        finally:
            link.when_gone = None
            service.leave(exchange)
            if not exchange.task.done():
                exchange.task.cancel()
                await asyncio.wait({exchange.task})
            # Looked at however this ends: asyncio prints a crash that nobody looked at.
            if (crash := _crash_of(exchange.task)) is not None:
                self._report(link, crash)
            self.journal.close(entry.sequence)
        if (received.header("connection") or "").lower() == "close":
            link.hang_up()

    def _report(self, link: Link, crash: BaseException) -> None:
        if not isinstance(crash, GoneError):
            self.crashes.append(crash)
        link.hang_up()

    async def _play(self, exchange: Exchange) -> None:
        received, number = exchange.received, exchange.number
        if (
            self._guards.tokens is not None
            and self._guards.tokens.endpoint
            and self._known(received)
        ):
            await exchange.send(
                200, (JSON_LINE,), compact_json(self._metadata(self._guards.tokens.endpoint))
            )
        elif received.kind != "token" and not self._ours(received.path):
            await exchange.send(404, (), b"")
        elif received.kind != "token" and not self._guards.admits(received):
            self.journal.update(number, step=self._guards.tokens)
            challenge = 'Bearer error="invalid_token"'
            if self._guards.tokens is not None and self._guards.tokens.endpoint:
                known = f"{self._origin}/.well-known/oauth-protected-resource{self._path}"
                challenge += f', resource_metadata="{known}"'
            await exchange.send(401, (header_line("www-authenticate", challenge),), b"")
        elif received.kind != "token" and (wait := self._guards.wait_for(received)) is not None:
            self.journal.update(number, step=self._guards.bucket)
            await self._throttle(exchange, wait)
        else:
            step = self._scripts.take(received)
            self.journal.update(number, step=step)
            await (step or Answer()).play(exchange)

    async def _throttle(self, exchange: Exchange, wait: int) -> None:
        code = None if self._guards.bucket is None else self._guards.bucket.rpc_code
        stated = header_line("retry-after", str(wait))
        if code is None:
            await exchange.send(
                429, ((b"content-type", b"text/plain"), stated), b"Too many requests\n"
            )
        else:
            body = compact_json(error_message(exchange.received.rpc_id, code, "Too many requests"))
            await exchange.send(429, (JSON_LINE, stated), body)

    def _ours(self, path: str) -> bool:
        return path == self._path or path.startswith(self._path + "/")

    def _known(self, received: Received) -> bool:
        return received.kind == "get" and received.path.startswith("/.well-known/oauth-")

    def _metadata(self, endpoint: str) -> dict[str, object]:
        """Both metadata documents (RFC 9728, RFC 8414) in one: neither minds more members."""
        return {
            "resource": self._origin + self._path,
            "authorization_servers": [self._origin + "/"],
            "issuer": self._origin + "/",
            "authorization_endpoint": self._origin + "/authorize",
            "token_endpoint": self._origin + endpoint,
            "response_types_supported": ["code"],
            "grant_types_supported": ["client_credentials", "authorization_code"],
            "token_endpoint_auth_methods_supported": ["client_secret_basic", "client_secret_post"],
        }


def _crash_of(task: asyncio.Task[None]) -> BaseException | None:
    """What a task that is done raised, if it was not cancelled."""
    return None if task.cancelled() else task.exception()
