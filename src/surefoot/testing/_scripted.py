"""The law of this file: answers and errors are made of the request's own family, httpx or httpx2.

A response of the one family inside a client of the other is refused by it, and an error of the one
is not caught as an error of the other. So what is declared here belongs to neither until it is
played.
"""

from __future__ import annotations

import inspect
import json
import sys
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterable, Mapping
from dataclasses import KW_ONLY, dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any, Self, cast

from surefoot.testing._checks import a_bool, a_status, one_of
from surefoot.testing._wire import HeaderLine, Headers, compact_json, lines_from

if TYPE_CHECKING:
    from types import ModuleType, TracebackType

__all__ = ["Fails", "Replies", "ScriptedTransport", "SentRequest"]

_ERRORS = (
    "CloseError",
    "ConnectError",
    "ConnectTimeout",
    "DecodingError",
    "LocalProtocolError",
    "NetworkError",
    "PoolTimeout",
    "ProtocolError",
    "ProxyError",
    "ReadError",
    "ReadTimeout",
    "RemoteProtocolError",
    "TimeoutException",
    "TooManyRedirects",
    "TransportError",
    "UnsupportedProtocol",
    "WriteError",
    "WriteTimeout",
)
"""Errors that both families have under the same name."""


@dataclass(frozen=True, slots=True)
class Fails:
    """An error of the request's family, by the name that both families give it.

    Raises:
        ValueError: there is no such error.

    """

    name: str
    message: str = "played by a ScriptedTransport"

    def __post_init__(self) -> None:
        one_of("Fails(name)", self.name, _ERRORS)


@dataclass(frozen=True, slots=True)
class Replies:
    """A response of the request's family.

    Give at most one of `body`, `json`, `result`, `error` and `chunks`.

    Raises:
        TypeError: an option has the wrong type.
        ValueError: the status cannot be one, or several bodies were given.

    """

    status: int = 200
    _: KW_ONLY
    headers: Headers = ()
    """Header lines, in this order; a content type of JSON is added where the body is JSON."""
    body: bytes | None = None
    json: object = None
    """Any value, sent as JSON."""
    result: Mapping[str, object] | None = None
    """The result of a JSON-RPC answer that carries the request's own id."""
    error: Mapping[str, object] | None = None
    """The error of a JSON-RPC answer that carries the request's own id."""
    chunks: Iterable[bytes] | Callable[[], AsyncIterator[bytes]] | None = None
    """The body in pieces; an async generator function may take its time between them."""
    breaks: Fails | None = None
    """Raised by the body after its last piece, in the place of its end."""

    def __post_init__(self) -> None:
        a_status("Replies(status)", self.status)
        bodies = (self.body, self.json, self.result, self.error, self.chunks)
        if sum(given is not None for given in bodies) > 1:
            raise ValueError("Replies takes one of body, json, result, error and chunks")


@dataclass(frozen=True, slots=True, kw_only=True)
class SentRequest:
    """One request as it reached the transport. Header values and the body are not in its repr."""

    method: str
    url: str
    headers: tuple[HeaderLine, ...] = field(repr=False)
    """The header lines: bytes, in order, several of one name included."""
    body: bytes = field(repr=False)
    extensions: Mapping[str, object] = field(repr=False)

    def header_values(self, name: str) -> tuple[bytes, ...]:
        """Every value under a header name, in order; the name is compared without case."""
        wanted = name.lower().encode()
        return tuple(value for line, value in self.headers if line.lower() == wanted)

    def message(self) -> dict[str, object]:
        """The body read as a JSON object.

        Raises:
            ValueError: it is not JSON.

        """
        return cast("dict[str, object]", json.loads(self.body))


Play = Replies | Fails | BaseException | Callable[[Any], object]
"""What one request is answered with.

An exception is raised as it is. A callable, sync or async, is given the family's request, and gives
a response of that family, a `Replies`, or a `Fails`.
"""


class ScriptedTransport:
    """An async HTTP transport without a network, for a client of either family.

    It plays one answer for each request, and keeps the requests as they were sent to it.

    ```python
    wire = ScriptedTransport(Replies(429, headers={"retry-after": "1"}), Replies(result={}))
    client = httpx2.AsyncClient(transport=wire)
    ```

    Args:
        plays: what the requests are answered with, in order.
        repeat: let the last one answer every request that follows, too.
        proves_not_sent: what this transport says of itself: whether its connect errors prove that
            nothing was sent. May be set later.

    Raises:
        TypeError: a play is none.

    """

    def __init__(self, *plays: Play, repeat: bool = False, proves_not_sent: bool = False) -> None:
        for play in plays:
            if not isinstance(play, Replies | Fails | BaseException) and not callable(play):
                kind = type(play).__name__
                raise TypeError(
                    f"ScriptedTransport plays Replies, Fails, errors or callables, not {kind}"
                )
        self.proves_not_sent = a_bool("ScriptedTransport(proves_not_sent)", proves_not_sent)
        self.requests: list[SentRequest] = []
        self.open_responses = 0
        """Responses that were handed out and not closed."""
        self.closed = False
        self._plays = list(plays)
        self._repeat = a_bool("ScriptedTransport(repeat)", repeat)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Note that the client closed this transport."""
        self.closed = True

    async def handle_async_request(self, request: Any) -> Any:
        """Keep the request, and play the next answer.

        Raises:
            AssertionError: there are more requests than answers.

        """
        body = cast("bytes", await request.aread())
        sent = SentRequest(
            method=request.method,
            url=str(request.url),
            headers=tuple((bytes(name), bytes(value)) for name, value in request.headers.raw),
            body=body,
            extensions=dict(request.extensions),
        )
        self.requests.append(sent)
        return await self._play(self._next(), request, sent)

    def _next(self) -> Play:
        if not self._plays:
            raise AssertionError(
                f"request {len(self.requests)} came, and there is no answer left for it"
            )
        return self._plays[0] if self._repeat and len(self._plays) == 1 else self._plays.pop(0)

    async def _play(self, play: object, request: object, sent: SentRequest) -> object:
        match play:
            case Replies():
                return self._response(play, request, sent)
            case Fails():
                raise _error(play, request)
            case BaseException():
                raise play
            case _ if callable(play):
                given: object = play(request)
                if inspect.isawaitable(given):
                    given = await cast("Awaitable[object]", given)
                made = isinstance(given, Replies | Fails | BaseException)
                return await self._play(given, request, sent) if made else given
            case _:
                raise TypeError(f"a played callable gave {type(play).__name__}")

    def _response(self, reply: Replies, request: object, sent: SentRequest) -> object:
        module = _family(request)
        lines = list(lines_from(reply.headers))
        chunks, is_json = _pieces(reply, sent)
        if is_json and not any(name.lower() == b"content-type" for name, _ in lines):
            lines.insert(0, (b"content-type", b"application/json"))
        self.open_responses += 1
        stream = _stream_class(module)(self, chunks, reply.breaks, request)
        return module.Response(reply.status, headers=lines, stream=stream)


def _pieces(reply: Replies, sent: SentRequest) -> tuple[object, bool]:
    if reply.chunks is not None:
        return reply.chunks, False
    if reply.body is not None:
        return (reply.body,), False
    value = reply.json
    if reply.result is not None or reply.error is not None:
        rpc_id = sent.message().get("id")
        answer = {"error": reply.error} if reply.result is None else {"result": reply.result}
        value = {"jsonrpc": "2.0", "id": rpc_id, **answer}
    return ((), False) if value is None else ((compact_json(value),), True)


def _family(request: object) -> ModuleType:
    """The module that a request was made by: found by its class, never by what can be imported."""
    for base in type(request).__mro__:
        root = base.__module__.partition(".")[0]
        if root in {"httpx", "httpx2"}:
            return sys.modules[root]
    raise TypeError(f"{type(request).__name__} is a request of neither httpx nor httpx2")


def _error(fails: Fails, request: object) -> BaseException:
    made = getattr(_family(request), fails.name)(fails.message, request=request)
    return cast("BaseException", made)


@cache
def _stream_class(module: ModuleType) -> Any:
    """The body of a played response, of the family's own class, which its clients ask for."""

    class _Stream(module.AsyncByteStream):
        def __init__(
            self, owner: ScriptedTransport, chunks: object, breaks: Fails | None, request: object
        ) -> None:
            self._owner = owner
            self._chunks = chunks
            self._breaks = breaks
            self._request = request
            self._closed = False

        async def __aiter__(self) -> AsyncIterator[bytes]:
            if callable(self._chunks):
                pieces = cast("AsyncIterator[bytes]", self._chunks())
                try:
                    async for piece in pieces:
                        yield piece
                finally:
                    # Whoever leaves the body half-way leaves nothing behind.
                    if isinstance(pieces, AsyncGenerator):
                        await cast("AsyncGenerator[bytes, None]", pieces).aclose()
            else:
                for piece in cast("Iterable[bytes]", self._chunks):
                    yield piece
            if self._breaks is not None:
                raise _error(self._breaks, self._request)

        async def aclose(self) -> None:
            if not self._closed:
                self._closed = True
                self._owner.open_responses -= 1

    return _Stream
