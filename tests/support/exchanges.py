"""The law of this file: one call is posted through a protected client and seen from three sides.

What the client reads, what the gateway counted, and what the evidence says: a test compares them.
Both HTTP families are used as far as they are installed.
"""

from __future__ import annotations

import importlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import Any, Final, cast

from surefoot import Gateway
from surefoot.testing import Entry, FaultyGateway, RecordingSink, tool_call

__all__ = ["FAMILIES", "Exchanged", "Grant", "client_of", "exchange", "outcome_in"]

FAMILIES: Final = [name for name in ("httpx2", "httpx") if find_spec(name) is not None]
"""The HTTP libraries of this environment."""

Grant = tuple[str, str | None] | None
"""Who permitted the repeat after an attempt, and on which assumption; `None` where nobody did."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchanged:
    """One call, from the client's side, the server's and the evidence's."""

    status: int
    text: str
    """The text of the result, or the message of the error."""
    outcome: Mapping[str, Any]
    """`surefoot/outcome`; empty where the answer is the server's own."""
    sends: tuple[Entry, ...]
    """The calls that reached the gateway."""
    ran: int
    record: Mapping[str, Any] = field(repr=False)
    """The one `tool.request_attempts` event."""

    @property
    def kind(self) -> str | None:
        """The outcome that surefoot names."""
        return self.outcome.get("kind")

    @property
    def attempts(self) -> list[dict[str, Any]]:
        """The attempts as recorded."""
        return cast("list[dict[str, Any]]", self.record["attempts"])

    @property
    def grants(self) -> list[Grant]:
        """Who permitted what followed each attempt."""
        return [
            None if one["permission"] is None else tuple(one["permission"].values())
            for one in self.attempts
        ]

    def column(self, name: str) -> list[Any]:
        """One field of every attempt."""
        return [attempt[name] for attempt in self.attempts]


def client_of(family: str, **settings: Any) -> Any:
    """An `AsyncClient` of the named library."""
    module: Any = importlib.import_module(family)
    return module.AsyncClient(**{"timeout": 5, **settings})


async def exchange(
    gateway: Gateway,
    faulty: FaultyGateway,
    sink: RecordingSink,
    *,
    family: str,
    tool: str = "charge",
    arguments: Mapping[str, object] | None = None,
) -> Exchanged:
    """Post one tool call through `protect()`, and gather what came of it."""
    asked = tool_call(tool, arguments or {"amount": 1})
    async with gateway.protect(client_of(family)) as client:
        answer = await client.post(gateway.url, headers=asked.headers, content=asked.body)
    await faulty.until(lambda: not any(entry.in_flight for entry in faulty.journal))
    (record,) = sink.of("tool.request_attempts")
    message = _message(answer)
    return Exchanged(
        status=answer.status_code,
        text=" ".join(_texts(message)),
        outcome=outcome_in(message),
        sends=faulty.requests(tool),
        ran=faulty.executions(tool),
        record=record,
    )


def _message(answer: Any) -> dict[str, Any]:
    """The JSON-RPC answer, from a JSON body or from the last event of a stream."""
    if answer.headers["content-type"].startswith("text/event-stream"):
        last: str = [line for line in answer.text.splitlines() if line.startswith("data: ")][-1]
        return json.loads(last.removeprefix("data: "))
    return answer.json()


def outcome_in(message: Mapping[str, Any]) -> dict[str, Any]:
    """`surefoot/outcome` of a JSON-RPC answer, whichever form it has."""
    error: dict[str, Any] = message.get("error") or {}
    result: dict[str, Any] = message.get("result") or {}
    holder: dict[str, Any] = error.get("data") or result.get("_meta") or {}
    return holder.get("surefoot/outcome") or {}


def _texts(message: Mapping[str, Any]) -> Iterator[str]:
    if "error" in message:
        yield message["error"]["message"]
    for block in message.get("result", {}).get("content", ()):
        yield block["text"]
