"""The law of this file: the request says which HTTP library it belongs to, and nothing else does.

httpx and httpx2 have the same names and unrelated classes, and many environments hold both, so
"what can be imported" decides nothing: the module is taken from the request's own type, answers are
built from that module, and exceptions are told apart by the names in their MRO (DESIGN section 6).

Two private facts are relied on for speed, and pinned by a test: a ``Request`` keeps everything in
its ``__dict__``, and ``Headers`` keeps its lines in ``_list``. Both have a public fallback here.
"""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from collections.abc import Set as AbstractSet
from functools import lru_cache
from operator import itemgetter
from types import ModuleType
from typing import Any, Final, Literal, Protocol

__all__ = [
    "AsyncTransport",
    "Close",
    "Family",
    "HTTPRequest",
    "HTTPResponse",
    "Line",
    "Lines",
    "copy_request",
    "error_names",
    "family_of",
    "finished",
    "is_open",
    "lines_of",
    "never_left",
    "proves_not_sent",
    "values_of",
]

Line = tuple[bytes, bytes]
"""One header line as it goes over the wire."""

Lines = list[Line]

Close = Callable[[], Awaitable[object]]
"""Closes what lies below a stream."""

HTTPRequest = Any
"""An ``httpx.Request`` or an ``httpx2.Request``: unrelated classes with one shape."""

HTTPResponse = Any
"""An ``httpx.Response`` or an ``httpx2.Response``."""

_LOWER: Final = itemgetter(1)
_NOTHING: Final[Mapping[bytes, bytes]] = {}
_ENCODING: Final[Mapping[str, None]] = {"_encoding": None}
_LIBRARIES: Final = ("httpx2", "httpx")
_NEVER_LEFT: Final = frozenset({"ConnectError", "ConnectTimeout", "PoolTimeout"})
"""Raised before the first byte: refused, DNS, TLS handshake, connect or pool timeout (D3)."""


class AsyncTransport(Protocol):
    """**Protocol**: what both families call an async transport; no base class is needed."""

    async def handle_async_request(self, request: HTTPRequest) -> HTTPResponse:
        """Send one request once."""
        ...

    async def aclose(self) -> None:
        """Close what the transport holds."""
        ...


class Family:
    """One HTTP library, reached through the request at hand."""

    __slots__ = (
        "ByteStream",
        "Response",
        "_headers",
        "_plain",
        "major",
        "module",
        "name",
        "stream",
        "stream_base",
    )

    def __init__(self, module: ModuleType) -> None:
        self.module = module
        self.name: Literal["httpx", "httpx2"] = "httpx2" if module.__name__ == "httpx2" else "httpx"
        self.major: Literal[1, 2] = 2 if self.name == "httpx2" else 1
        """The major of the MCP SDK that speaks through this family; it decides the forms of
        answers.
        """
        self.Response = module.Response
        self.ByteStream = module.ByteStream
        self._headers = module.Headers
        self._plain = _plain_answer(module)
        self.stream_base: type = module.AsyncByteStream
        self.stream: Callable[[AsyncIterator[bytes], Close], Any] = _stream_class(self.stream_base)
        """Makes an ``AsyncByteStream`` over parts; its ``close`` is awaited at the end, once."""

    def response(self, status: int, headers: Lines, body: bytes) -> HTTPResponse:
        """A whole answer of this family; the body is at hand, nothing is left to close."""
        return self.streamed(status, headers, self.ByteStream(body))

    def streamed(self, status: int, headers: Lines, stream: Any) -> HTTPResponse:
        """An answer of this family over a stream; names are in lower case."""
        plain = self._plain
        if plain is None:
            return self.Response(status, headers=headers, stream=stream)
        kind, lines_kind = self.Response, self._headers
        lines = lines_kind.__new__(lines_kind)
        lines.__dict__ = {"_list": [(name, name, value) for name, value in headers], **_ENCODING}
        answer = kind.__new__(kind)
        # A dict that is handed over whole is three times faster than eleven attributes set in turn.
        answer.__dict__ = {
            **plain,
            "status_code": status,
            "headers": lines,
            "extensions": {},
            "history": [],
            "stream": stream,
        }
        return answer

    def wire(self) -> AsyncTransport:
        """The family's own transport, for a stack that was given none (R78)."""
        return self.module.AsyncHTTPTransport()

    def is_wire(self, transport: object) -> bool:
        """Whether it is exactly the family's own transport, whose errors prove what left (D3)."""
        return type(transport) is self.module.AsyncHTTPTransport


def _plain_answer(module: ModuleType) -> dict[str, Any] | None:
    """What a whole answer keeps, whatever it is; ``None`` where answers are not what we know."""
    answer = module.Response(200, headers=[], stream=module.ByteStream(b""))
    kept: dict[str, Any] = getattr(answer, "__dict__", {})
    lines: dict[str, Any] = getattr(answer.headers, "__dict__", {})
    known = {"status_code", "headers", "extensions", "history", "stream"} <= kept.keys()
    return kept if known and lines.keys() == {"_list", "_encoding"} else None


@lru_cache(maxsize=8)
def _stream_class(base: type) -> type:
    """The stream class for one family; both bases ask for the same two methods."""

    class PartsStream(base):  # type: ignore[valid-type, misc]
        """Hands parts on as they come; closing it closes the parts and then their source, once."""

        def __init__(self, parts: AsyncIterator[bytes], close: Close) -> None:
            self._parts = parts
            self._close: Close | None = close

        def __aiter__(self) -> AsyncIterator[bytes]:
            return self._parts

        async def aclose(self) -> None:
            close, self._close = self._close, None
            if close is None:
                return
            try:
                if is_open(self._parts):
                    await finished(self._parts)
            finally:
                await close()

    return PartsStream


def is_open(parts: AsyncIterator[bytes]) -> bool:
    """Whether an iteration may still have to be ended: not a generator that came to its end."""
    return getattr(parts, "ag_frame", parts) is not None


async def finished(parts: AsyncIterator[bytes]) -> None:
    """End an iteration that nobody will go on with.

    An async generator that is dropped half-way is closed by whichever loop notices, some time
    later and in a task of its own; trio warns of it.
    """
    close = getattr(parts, "aclose", None)
    if close is None:
        return
    try:
        await close()
    except RuntimeError:
        # Somebody is inside it: it runs in another task, or its own clean-up closes the stream.
        if not getattr(parts, "ag_running", False):
            raise


@lru_cache(maxsize=32)
def _family_of_type(kind: type) -> Family:
    for base in kind.__mro__:
        root = base.__module__.partition(".")[0]
        if root in _LIBRARIES and root in sys.modules:
            return Family(sys.modules[root])
    msg = "request: must be an httpx.Request or an httpx2.Request"
    raise TypeError(msg)


def family_of(request: HTTPRequest) -> Family:
    """The family of a request.

    Raises:
        TypeError: it belongs to neither library.
    """
    kind: Any = request.__class__
    return _family_of_type(kind)


def copy_request(
    request: HTTPRequest, *, put: Mapping[bytes, bytes] = _NOTHING, url: Any = None
) -> HTTPRequest:
    """The same request as another object; the header lines ``put`` stand for all of their names.

    What is secret goes onto a copy, because the client hangs the original on every answer and
    error. Names are in lower case. The body is shared: it is bytes, or it is sent once.
    """
    kind: Any = request.__class__
    try:
        # A dict that is handed over whole is three times faster than six attributes set in turn.
        facts = {**request.__dict__, "headers": _headers_with(request.headers, put)}
        facts["extensions"] = request.extensions.copy()
        copy = kind.__new__(kind)
        copy.__dict__ = facts
    except AttributeError:
        copy = _copy_in_public(request, put)
    if url is not None:
        copy.url = url
    return copy


def _headers_with(headers: Any, put: Mapping[bytes, bytes]) -> Any:
    """A new ``Headers`` from the lines of another, without encoding and lower-casing them again."""
    lines = [line for line in headers._list if line[1] not in put]  # noqa: SLF001 - pinned, see the opening
    for name, value in put.items():
        lines.append((name, name, value))
    kind: Any = headers.__class__
    new = kind.__new__(kind)
    new.__dict__ = {"_list": lines, "_encoding": headers._encoding}  # noqa: SLF001
    return new


def _copy_in_public(request: HTTPRequest, put: Mapping[bytes, bytes]) -> HTTPRequest:
    """The same copy by what a request's constructor promises."""
    kept = [line for line in request.headers.raw if line[0].lower() not in put]
    return type(request)(
        request.method,
        request.url,
        headers=[*kept, *put.items()],
        stream=request.stream,
        extensions=dict(request.extensions),
    )


def lines_of(request_or_response: Any) -> list[Line]:
    """Header lines with lower-case names, in order."""
    headers = request_or_response.headers
    try:
        return [(lower, value) for _, lower, value in headers._list]  # noqa: SLF001 - pinned, see the opening
    except (AttributeError, ValueError):
        return [(name.lower(), value) for name, value in headers.raw]


def values_of(request: HTTPRequest, names: AbstractSet[bytes]) -> list[bytes]:
    """The values of the header lines that have one of these names, given in lower case."""
    try:
        lines = request.headers._list  # noqa: SLF001 - pinned, see the opening
        if names.isdisjoint(map(_LOWER, lines)):
            return []
        return [value for _, lower, value in lines if lower in names]
    except (AttributeError, ValueError):
        return [value for name, value in request.headers.raw if name.lower() in names]


def error_names(error: BaseException) -> frozenset[str]:
    """The class names in an exception's MRO: the same in both families."""
    return _names_of_type(type(error))


@lru_cache(maxsize=64)
def _names_of_type(kind: type) -> frozenset[str]:
    return frozenset(base.__name__ for base in kind.__mro__)


def proves_not_sent(transport: AsyncTransport, family: Family) -> bool:
    """Whether the errors of ``transport`` prove what never left (D3).

    The family's own transport is exact about it, also below layers of ours; any other, a subclass
    of it included, has to declare ``proves_not_sent``.
    """
    below: AsyncTransport | None = transport
    while below is not None and not family.is_wire(below):
        declared = getattr(below, "proves_not_sent", None)
        if declared is not None:
            return declared is True
        if not hasattr(below, "rewrapped"):
            return False
        # A layer of ours sends nothing of its own.
        below = getattr(below, "wrapped", None)
    return True


def never_left(error: BaseException, *, proven: bool) -> bool:
    """Whether ``error`` proves that nothing was sent, where its transport's word is ``proven``.

    If in doubt it does not (D3).
    """
    return proven and not _NEVER_LEFT.isdisjoint(error_names(error))
