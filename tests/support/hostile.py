"""The law of this file: a transport here does its worst with what it is handed, and keeps nothing.

It quotes the headers of the request in errors, causes, notes and bodies, and holds the request in
its frames while it waits. None of it is remembered: what is found later was kept by somebody else.
The frames are of another file than the test's, so that an audit does not trust them.
"""
# ruff: noqa: TRY301 - what is raised here is raised where it does harm

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import AsyncIterator, Callable
from typing import Any
from urllib.parse import quote

import anyio

__all__ = ["BODIES", "ERRORS", "WAITS", "HostileWire", "Naive"]


def _quoted(request: Any) -> str:
    return " ".join(f"{name!r}: {value!r}" for name, value in request.headers.raw)


def _as_it_is(httpx: Any, request: Any) -> None:
    values = " ".join(value.decode() for _, value in request.headers.raw)
    raise httpx.ReadError(f"lost: {values[-150:]}")


def _as_a_repr(httpx: Any, request: Any) -> None:
    raise httpx.WriteError(_quoted(request)[-150:])


def _in_base64(httpx: Any, request: Any) -> None:
    value = request.headers["authorization"].encode()
    raise httpx.ReadError(f"lost: {b64encode(value).decode()[:150]}")


def _in_escapes(httpx: Any, request: Any) -> None:
    value: str = request.headers["authorization"]
    raise httpx.WriteError(json.dumps(quote(value, safe=""))[:150])


def _as_h11_does(httpx: Any, request: Any) -> None:
    raise httpx.LocalProtocolError(f"Illegal header value {_quoted(request)}")


def _with_a_cause(httpx: Any, request: Any) -> None:
    try:
        raise ValueError(_quoted(request))
    except ValueError as error:
        raise httpx.ConnectError("no") from error


def _with_a_context(httpx: Any, request: Any) -> None:
    try:
        raise ValueError(_quoted(request))
    except ValueError:
        raise httpx.ReadTimeout("late")  # noqa: B904 - this is the fault


def _with_a_note(httpx: Any, request: Any) -> None:
    error = httpx.ReadError("lost")
    error.add_note(_quoted(request))
    raise error


def _with_attributes(httpx: Any, request: Any) -> None:
    error = httpx.ReadError("lost")
    error.request = request
    error.quoted = _quoted(request)
    raise error


def _as_text_that_does_not_encode(httpx: Any, request: Any) -> None:
    del httpx
    raise UnicodeEncodeError("ascii", _quoted(request), 0, 1, "ordinal not in range")


def _as_an_error_of_nobody(httpx: Any, request: Any) -> None:
    del httpx
    raise RuntimeError(_quoted(request))


def _as_a_group(httpx: Any, request: Any) -> None:
    raise ExceptionGroup(_quoted(request), [httpx.ReadError(_quoted(request))])


def _as_an_error_with_more_than_a_text(httpx: Any, request: Any) -> None:
    raise httpx.HTTPStatusError(
        _quoted(request), request=request, response=httpx.Response(500, request=request)
    )


ERRORS: dict[str, Callable[[Any, Any], None]] = {
    function.__name__.strip("_").replace("_", " "): function
    for function in (
        _as_it_is,
        _as_a_repr,
        _in_base64,
        _in_escapes,
        _as_h11_does,
        _with_a_cause,
        _with_a_context,
        _with_a_note,
        _with_attributes,
        _as_text_that_does_not_encode,
        _as_an_error_of_nobody,
        _as_a_group,
        _as_an_error_with_more_than_a_text,
    )
}
"""How an error of a transport quotes a request."""


async def _plainly(request: Any, inside: anyio.Event) -> None:
    held = _quoted(request)
    inside.set()
    await anyio.sleep(30)
    del held


async def _while_it_handles_an_error(request: Any, inside: anyio.Event) -> None:
    try:
        raise ValueError(_quoted(request))
    except ValueError:
        inside.set()
        await anyio.sleep(30)


async def _in_a_task_group(request: Any, inside: anyio.Event) -> None:
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_plainly, request, inside)


WAITS: dict[str, Callable[[Any, anyio.Event], Any]] = {
    "plainly": _plainly,
    "while it handles an error": _while_it_handles_an_error,
    "in a task group": _in_a_task_group,
}
"""How a transport waits with a request in its frames."""

BODIES = ("breaks", "waits", "will not close")
"""What a body does that was asked for with a signed request."""


class HostileWire:
    """Raises, waits or answers as told, once.

    Args:
        httpx: The family.
        raises: One of ``ERRORS``.
        waits: One of ``WAITS``.
        body: One of ``BODIES``.
        inside: Set when it waits.
    """

    proves_not_sent = False

    def __init__(
        self,
        httpx: Any,
        *,
        raises: Callable[[Any, Any], None] | None = None,
        waits: Callable[[Any, anyio.Event], Any] | None = None,
        body: str | None = None,
        inside: anyio.Event | None = None,
    ) -> None:
        self._httpx = httpx
        self._raises = raises
        self._waits = waits
        self._body = body
        self._inside = inside or anyio.Event()
        self.received = 0
        """How many requests came with an authorization."""

    async def handle_async_request(self, request: Any) -> Any:
        """Do it."""
        self.received += "authorization" in request.headers
        if self._raises is not None:
            self._raises(self._httpx, request)
        if self._waits is not None:
            await self._waits(request, self._inside)
        return self._httpx.Response(200, stream=self._stream(request))

    async def aclose(self) -> None:
        """Nothing is open."""

    def _stream(self, request: Any) -> Any:
        httpx, how, inside = self._httpx, self._body, self._inside

        class Stream(httpx.AsyncByteStream):
            async def __aiter__(self) -> AsyncIterator[bytes]:
                held = _quoted(request)
                yield b"{"
                if how == "breaks":
                    raise httpx.RemoteProtocolError(f"illegal {held}")
                if how == "waits":
                    inside.set()
                    await anyio.sleep(30)
                yield b"}"

            async def aclose(self) -> None:
                if how == "will not close":
                    raise httpx.CloseError(_quoted(request)[-150:])

        return Stream()


class Naive:
    """What everybody writes first: puts the credential on the request, and hands it on."""

    def __init__(self, wrapped: Any, value: str) -> None:
        self._wrapped = wrapped
        self._value = value

    async def handle_async_request(self, request: Any) -> Any:
        """Send."""
        request.headers["authorization"] = self._value
        return await self._wrapped.handle_async_request(request)

    async def aclose(self) -> None:
        """Nothing is open."""
