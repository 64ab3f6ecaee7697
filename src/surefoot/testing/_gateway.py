"""The law of this file: one object, opened with `with`, is the whole difficult gateway.

It serves from a thread and a loop of its own, so that the code under test may run on asyncio or on
trio, or block; every member is safe to use from any thread.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from surefoot.testing._checks import a_bool, a_number_of_seconds, a_text
from surefoot.testing._eras import ERAS, Service
from surefoot.testing._journal import Entry, Journal
from surefoot.testing._limits import Buckets, ExpiringTokens, TokenBucket, TokenMint
from surefoot.testing._scripts import Scripts
from surefoot.testing._serving import Guards, Serving
from surefoot.testing._tools import DEFAULT_TOOLS, Tool

if TYPE_CHECKING:
    from types import TracebackType

    from surefoot.testing._steps import Step

__all__ = ["Connections", "FaultyGateway"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Connections:
    """The TCP connections of a gateway at one moment."""

    opened: int
    """How many were ever accepted."""
    open: int
    """How many are open now."""


class FaultyGateway:
    """An MCP endpoint on loopback that does what it is told, well or badly.

    It speaks the MCP wire of both eras itself (2026-07-28, and 2025-11-25 with its sessions),
    counts how often each tool really ran, and keeps a journal of every request that reached it.

    ```python
    with FaultyGateway() as gateway:
        gateway.script("charge", Reset(when="after-run"))
        ...  # call `charge` through the client under test
        assert gateway.executions("charge") == 1
    ```

    A script gives one step to each attempt; after its last one the answers are sound again. A step
    for a tool goes before one for `"tools/call"`. Before any script, a bad token is answered 401
    and an empty bucket 429; neither uses up a step.

    Also an async context manager. Opening takes a few milliseconds; closing ends every connection,
    task and thread, and raises what went wrong inside the double itself.

    Args:
        tools: tools beside `search`, `refund`, `charge` and `slow`, or in their place.
        eras: the protocol eras that are spoken: `"2026-07-28"`, `"2025-11-25"`, or both.
        sse: answer requests with an event stream, in the place of a JSON body.
        limit: a rate limit per principal.
        tokens: let in only bearer tokens that the gateway minted lately.
        path: the endpoint's path; everything below it is the same endpoint.
        clock: seconds, for `limit` and `tokens`; `FakeClock().monotonic` moves by hand.

    Raises:
        TypeError: an option has the wrong type.
        ValueError: an option cannot mean anything.
    """

    def __init__(
        self,
        tools: Iterable[Tool] = (),
        *,
        eras: tuple[str, ...] = ERAS,
        sse: bool = False,
        limit: TokenBucket | None = None,
        tokens: ExpiringTokens | None = None,
        path: str = "/mcp",
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        offered = {tool.name: tool for tool in (*DEFAULT_TOOLS, *_checked(tools))}
        if not eras or not set(eras) <= set(ERAS):
            raise ValueError(f"FaultyGateway(eras) takes one or both of {', '.join(ERAS)}")
        if not a_text("FaultyGateway(path)", path).startswith("/") or path.endswith("/"):
            raise ValueError(
                "FaultyGateway(path) takes a path that starts, and does not end, with a slash"
            )
        self._mint = None if tokens is None else TokenMint(tokens, clock)
        self._journal = Journal()
        self._scripts = Scripts(
            offered, token_endpoint=tokens is not None and tokens.endpoint is not None
        )
        self._service = Service(offered, tuple(eras), self._mint)
        self._serving = Serving(
            path=path,
            streamed=a_bool("FaultyGateway(sse)", sse),
            service=lambda: self._service,
            journal=self._journal,
            scripts=self._scripts,
            guards=Guards(
                limit, None if limit is None else Buckets(limit, clock), tokens, self._mint
            ),
        )
        self._offered = offered
        self._path = path
        self._port: int | None = None

    def __repr__(self) -> str:
        return f"<FaultyGateway {'closed' if self._port is None else self.url}>"

    def __enter__(self) -> Self:
        listener = socket.create_server(("127.0.0.1", 0), backlog=1024)
        self._port = int(listener.getsockname()[1])
        self._serving.start(listener)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._serving.stop()
        if error is None and self._serving.crashes:
            raise RuntimeError("a step failed inside the gateway") from self._serving.crashes[0]

    async def __aenter__(self) -> Self:
        return self.__enter__()

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.__exit__(kind, error, traceback)

    @property
    def origin(self) -> str:
        """Scheme, host and port, as in `http://127.0.0.1:49152`.

        Raises:
            RuntimeError: the gateway was never opened.
        """
        if self._port is None:
            raise RuntimeError("the gateway has no address before it is opened with `with`")
        return f"http://127.0.0.1:{self._port}"

    @property
    def url(self) -> str:
        """The endpoint's URL."""
        return self.origin + self._path

    @property
    def tokens(self) -> TokenMint:
        """The tokens that the gateway accepts.

        Raises:
            RuntimeError: it was built without `tokens`.
        """
        if self._mint is None:
            raise RuntimeError(
                "the gateway asks for no token; build it with tokens=ExpiringTokens(lifetime)"
            )
        return self._mint

    @property
    def journal(self) -> tuple[Entry, ...]:
        """Every request that reached the gateway so far, in order."""
        return self._journal.snapshot()

    @property
    def connections(self) -> Connections:
        """The TCP connections at this moment."""
        return Connections(opened=self._serving.opened, open=len(self._serving.links))

    def script(self, key: str, *steps: Step, repeat: bool = False) -> None:
        """Say how the next attempts are answered, in the place of what was said before.

        Args:
            key: a tool, a JSON-RPC method, `"tools/call"` for any tool, `"GET"`, `"DELETE"`,
                `"token"` for the token endpoint, or `"connect"` for a connection that was accepted.
            steps: one for each attempt.
            repeat: let the last step answer every attempt that follows, too.

        Raises:
            TypeError: something in it is not a step.
            ValueError: there is no such key, no step, or a step that cannot answer such a request.
        """
        self._scripts.declare(key, steps, repeat=repeat)

    def remaining(self, key: str) -> int:
        """How many steps of a key's script were not used yet.

        Raises:
            ValueError: there is no such key.
        """
        return self._scripts.remaining(key)

    def clear_scripts(self) -> None:
        """Answer everything soundly from now on."""
        self._scripts.clear()

    def executions(self, tool: str) -> int:
        """How often a tool's body was started, whether or not an answer ever got out.

        Raises:
            ValueError: there is no such tool.
        """
        if tool not in self._offered:
            raise ValueError(
                f"no tool is called {tool!r}; there are: {', '.join(sorted(self._offered))}"
            )
        return self._service.executions[tool]

    def requests(self, key: str) -> tuple[Entry, ...]:
        """The journal's entries for a tool, a JSON-RPC method, or an HTTP method."""
        return tuple(
            entry for entry in self.journal if key in {entry.tool, entry.method, entry.http_method}
        )

    def received(self, needle: str | bytes) -> bool:
        """Whether any request so far carried these bytes in its target, its headers or its body."""
        wanted = needle.encode() if isinstance(needle, str) else needle
        return any(
            wanted in part
            for entry in self.journal
            for part in (
                entry.path.encode("latin-1"),
                entry.body,
                *(value for line in entry.headers for value in line),
            )
        )

    def wait_until(self, predicate: Callable[[], bool], timeout: float = 5.0) -> None:
        """Block until the predicate holds; it is asked again whenever the journal changes.

        For threads. In a task, which must not block its loop, use `until`.

        Raises:
            TimeoutError: it did not hold within `timeout` seconds.
        """
        self._journal.wait_until(predicate, a_number_of_seconds("wait_until(timeout)", timeout))

    async def until(
        self,
        predicate: Callable[[], bool],
        timeout: float = 5.0,  # noqa: ASYNC109  (as in `wait_until`)
    ) -> None:
        """Wait in a task, on asyncio or trio, until the predicate holds.

        Raises:
            TimeoutError: it did not hold within `timeout` seconds.
        """
        await self._journal.until(predicate, a_number_of_seconds("until(timeout)", timeout))

    def forget_sessions(self) -> None:
        """End every session, as a restart would: its streams end, and its id is answered 404.

        Raises:
            RuntimeError: the gateway is not open.
        """
        self._serving.do(lambda service: service.forget_sessions())

    def drop_connections(self, *, reset: bool = False) -> None:
        """Close every open connection at once, idle or busy, with a TCP reset if asked to.

        Raises:
            RuntimeError: the gateway is not open.
        """
        links = self._serving.links
        self._serving.do(
            lambda _: [link.reset() if reset else link.abort() for link in list(links)].clear()
        )


def _checked(tools: Iterable[object]) -> Iterable[Tool]:
    for tool in tools:
        if not isinstance(tool, Tool):
            raise TypeError(f"FaultyGateway(tools) takes Tool objects, not {type(tool).__name__}")
        yield tool
