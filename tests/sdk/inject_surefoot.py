"""The law of this file: the SDK's own tests run over our layers, and only MCP requests are ours.

A pytest plugin (``-p inject_surefoot``) for the tests that come with the ``mcp`` distribution. It
puts Answering, a series that follows redirects and nothing else, and Reading in its ``checked``
policy around the transport of every ``httpx2.AsyncClient``. In a Gateway the endpoint decides whose
request it is (D31); these tests have hundreds of endpoints, so here the shape decides: what an MCP
client sends to a Streamable HTTP endpoint. What else goes out (metadata, tokens, pages, probes of
a server with half of the headers) passes untouched, as it does beside a Gateway.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, Self

import httpx2

from surefoot.transports import AnsweringTransport, ReadingTransport, RetryingTransport
from surefoot.wire import read_request

_LARGEST_EVENT = 16 * 1024 * 1024
"""The tests set the SDK's own bound of an event; a Gateway takes that bound over."""

_build = httpx2.AsyncClient.__init__
_seen = {"ours": 0, "others": 0}


class Injected(httpx2.AsyncBaseTransport):
    """Our layers around one transport, for the requests of an MCP client."""

    def __init__(self, beside: Any) -> None:
        self.beside = beside
        reading = ReadingTransport(beside, max_event_bytes=_LARGEST_EVENT)
        series = RetryingTransport(reading, retry=None, rules=(), redirects=True)
        self.stack = AnsweringTransport(series, beside=beside)

    async def __aenter__(self) -> Self:
        await self.stack.__aenter__()
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.stack.__aexit__(*exc)

    async def aclose(self) -> None:
        await self.stack.aclose()

    async def handle_async_request(self, request: Any) -> Any:
        ours = _from_an_mcp_client(request)
        _seen["ours" if ours else "others"] += 1
        return await (self.stack if ours else self.beside).handle_async_request(request)


def _from_an_mcp_client(request: Any) -> bool:
    """Whether a request is what the specification has an MCP client send to its endpoint."""
    accepted = request.headers.get("accept", "")
    if request.method == "POST":
        return (
            request.headers.get("content-type") == "application/json"
            and "application/json" in accepted
            and "text/event-stream" in accepted
            and _is_message(request)
        )
    if request.method == "GET":
        return "text/event-stream" in accepted
    return request.method == "DELETE" and "mcp-session-id" in request.headers


def _is_message(request: Any) -> bool:
    """Whether the body is one message; a client that sends half a message is no MCP client."""
    outgoing = read_request(request.read())
    return outgoing is not None and outgoing.kind != "unreadable"


def _build_injected(client: httpx2.AsyncClient, *args: Any, **settings: Any) -> None:
    _build(client, *args, **settings)
    inner: Any = client
    inner._transport = Injected(inner._transport)
    for pattern, mounted in inner._mounts.items():
        if mounted is not None:
            inner._mounts[pattern] = Injected(mounted)


def pytest_sessionfinish() -> None:
    """Tell whoever started this process how many requests were ours."""
    place = os.environ.get("SUREFOOT_SDK_COUNTS")
    if place is not None:
        (Path(place) / str(os.getpid())).write_text(json.dumps(_seen), "utf-8")


setattr(httpx2.AsyncClient, "__init__", _build_injected)  # noqa: B010 - a type checker is right to forbid it
