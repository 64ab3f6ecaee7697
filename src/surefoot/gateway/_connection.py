"""The law of this file: a connection ends in the task that began it, and not before its calls do.

The SDK's client is a task group: it has to be left by the task that entered it, and a caller who
finds a session lost is not that task. Closing is shielded from the app's own cancellation, and
bounded, so that the server's session is ended whenever it can be; calls that are in flight on a
lost connection keep it until they are answered. What is still in flight when it ends is ended with
it: nobody would answer it any more, and a client of mcp 1.x would let it wait for ever.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import (
    AbstractAsyncContextManager,
    AsyncExitStack,
    asynccontextmanager,
    contextmanager,
)
from typing import Any, Final

import anyio

from ._sdk import connect

__all__ = ["Connection"]

_CLOSE_SECONDS: Final = 5.0


class Connection:
    """One connection of the SDK's client, held open by a task of its own.

    Args:
        open_streams: Opens the streams of the stack.
    """

    def __init__(
        self, open_streams: Callable[[], AbstractAsyncContextManager[tuple[Any, Any]]]
    ) -> None:
        self._open_streams = open_streams
        self._closing = anyio.Event()
        self._closed = anyio.Event()
        self._scope = anyio.CancelScope()
        self._calls: list[anyio.CancelScope] = []
        self._retired = False
        self._writer: Any = None
        self._lost = False
        self._broke = False
        self.client: Any = None
        """The SDK's own client, once it is connected."""

    @property
    def lost(self) -> bool:
        """The server no longer knows this session, or the SDK's client has come to its end."""
        return self._lost or self.broken

    def lose(self) -> None:
        """Note that it is lost."""
        self._lost = True

    @property
    def broken(self) -> bool:
        """It came to its end by itself.

        A client of mcp 1.x that ends raises nothing: what it writes to is closed, and no more.
        """
        ended = self._writer is not None and self._writer.ended and not self._closing.is_set()
        return self._broke or ended

    @property
    def closing(self) -> bool:
        """It is no longer wanted: what is in flight on it will not be answered."""
        return self._closing.is_set()

    @property
    def closed(self) -> bool:
        """It has ended."""
        return self._closed.is_set()

    async def hold(self, *, task_status: Any) -> None:
        """Connect, say so, and hold the connection open until it is no longer wanted.

        Raises:
            Exception: it could not be connected.
        """
        try:
            with self._scope:
                async with AsyncExitStack() as stack:
                    self.client = await connect(stack, self._streams())
                    self._scope.shield = True
                    task_status.started()
                    await self._closing.wait()
        except Exception:
            if self.client is None:
                raise
            # It broke later: calls under way were told, and the next one connects anew.
        finally:
            self._broke = not self._closing.is_set()
            self._lost = True
            self._closed.set()
            for call in self._calls:
                call.cancel()

    @asynccontextmanager
    async def _streams(self) -> AsyncGenerator[tuple[Any, Any]]:
        """The streams of the stack, of which the one that is written to is kept in sight."""
        async with self._open_streams() as (reader, writer):
            self._writer = writer
            yield reader, writer

    @contextmanager
    def in_use(self, call: anyio.CancelScope) -> Generator[None]:
        """Keep the connection while a call is in flight on it; where it ends, that is cancelled."""
        self._calls.append(call)
        try:
            yield
        finally:
            self._calls.remove(call)
            if self._retired and not self._calls:
                self._closing.set()

    def retire(self) -> None:
        """Let it end once its last call is answered; another has taken its place."""
        self._retired = True
        if not self._calls:
            self._closing.set()

    async def close(self) -> None:
        """End it now, and wait until it has ended; not for ever."""
        self._closing.set()
        with anyio.move_on_after(_CLOSE_SECONDS, shield=True):
            await self._closed.wait()
        self._scope.cancel()
