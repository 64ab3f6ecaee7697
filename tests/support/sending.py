"""The law of this file: a test sends one message through real layers, over a transport that plays.

Nothing here waits for real time or opens a socket. What a client reads, what the wire got and what
was filed stand side by side in one ``Outcome``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, cast

from surefoot.evidence import Ledger
from surefoot.testing import (
    FakeClock,
    McpRequest,
    RecordingSink,
    Replies,
    ScriptedTransport,
    mcp_request,
    tool_call,
)
from surefoot.transports import RetryingTransport

__all__ = [
    "DONE",
    "ORIGIN",
    "REFUSED",
    "URL",
    "Outcome",
    "filed",
    "ledger_into",
    "lowest",
    "message",
    "post",
    "refused",
    "sent_through",
]

URL = "http://gateway.test/mcp?key=in-the-query"
ORIGIN = "http://gateway.test"
DONE = Replies(result={"content": [], "isError": False})
"""A sound answer."""
REFUSED = Replies(429)
"""A refusal that states no wait."""


def refused(seconds: float | str) -> Replies:
    """A refusal that states a wait."""
    return Replies(429, headers={"retry-after": str(seconds)})


def lowest() -> float:
    """Chance that adds nothing: the lower end of every band."""
    return 0.0


def ledger_into(sink: RecordingSink) -> Ledger:
    """A ledger as an app would have it."""
    return Ledger(sink, run="run", now=lambda: datetime(2026, 1, 1, tzinfo=UTC))


def message(method: str = "tools/call", tool: str = "search", **arguments: object) -> McpRequest:
    """One message: a tool call, or a request with no parameters."""
    return tool_call(tool, arguments) if method == "tools/call" else mcp_request(method)


async def post(
    family: Any, transport: Any, request: McpRequest | None = None, *, url: str = URL
) -> Any:
    """Post one message with a client of the family, and read the whole answer."""
    request = request or message()
    client = family.AsyncClient(transport=transport)
    return await client.post(url, content=request.body, headers=dict(request.headers))


def filed(sink: RecordingSink) -> dict[str, Any]:
    """The one record that was filed."""
    (event,) = sink.of("tool.request_attempts")
    return cast("dict[str, Any]", event)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What came of one message."""

    status: int | None
    """What the client read; ``None`` where something was raised."""
    error: Exception | None
    record: Mapping[str, Any]
    """What was filed."""
    sends: int
    slept: tuple[float, ...]
    """What the clock was asked for."""

    @property
    def attempts(self) -> list[dict[str, Any]]:
        """The attempts, as filed."""
        return cast("list[dict[str, Any]]", self.record["attempts"])

    @property
    def permissions(self) -> list[tuple[str, str | None] | None]:
        """Who permitted what followed each attempt, and what that assumes."""
        return [
            one["permission"] and (one["permission"]["by"], one["permission"]["assumes"])
            for one in self.attempts
        ]


async def sent_through(
    family: Any,
    wire: ScriptedTransport,
    *,
    request: McpRequest | None = None,
    between: Callable[[Any], Any] | None = None,
    clock: FakeClock | None = None,
    **settings: Any,
) -> Outcome:
    """Send one message through a series over ``wire``, and ``between`` them whatever is wanted."""
    sink, clock = RecordingSink(), clock or FakeClock()
    settings = {"draw": lowest, **settings}
    transport = RetryingTransport(
        wire if between is None else between(wire),
        ledger=ledger_into(sink),
        clock=clock,
        **settings,
    )
    status: int | None = None
    error: Exception | None = None
    try:
        response = await post(family, transport, request)
        status = response.status_code
    except Exception as raised:  # noqa: BLE001 - whatever it is, the test looks at it
        error = raised
    return Outcome(
        status=status,
        error=error,
        record=filed(sink),
        sends=len(wire.requests),
        slept=clock.sleeps,
    )
