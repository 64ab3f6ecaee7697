"""The law of this file: for a bug report a call is made as an app makes it, over a real connection.

Several calls go over one client here, which `exchange` does not do. What is read is what the client
was handed, be it a JSON body or an event stream.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from support.exchanges import outcome_in
from surefoot.testing import McpRequest, RecordingSink, tool_call

__all__ = ["Said", "attempts_of", "record_of", "say"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """What came back for one request."""

    status: int
    text: str
    """Every text of the result, or the message of the error."""
    outcome: Mapping[str, Any]
    """`surefoot/outcome`; empty where the answer is the server's own."""
    message: Mapping[str, Any] = field(repr=False)
    response: Any = field(repr=False)

    @property
    def kind(self) -> str | None:
        """The outcome that surefoot names."""
        return self.outcome.get("kind")


async def say(
    client: Any, url: str, request: McpRequest | None = None, *, content: Any = None
) -> Said:
    """Post one request, a call of `charge` unless another is given, and read its answer."""
    asked = request or tool_call("charge", {"amount": 1})
    body = asked.body if content is None else content
    answer = await client.post(url, headers=dict(asked.headers), content=body)
    message = _message(answer)
    return Said(
        status=answer.status_code,
        text=" ".join(_texts(message)),
        outcome=outcome_in(message),
        message=message,
        response=answer,
    )


def _message(answer: Any) -> dict[str, Any]:
    text: str = answer.text
    if answer.headers.get("content-type", "").startswith("text/event-stream"):
        datas = [line for line in text.splitlines() if line.startswith("data: ")]
        text = datas[-1].removeprefix("data: ") if datas else "{}"
    return json.loads(text or "{}")


def _texts(message: Mapping[str, Any]) -> Iterator[str]:
    if "error" in message:
        yield message["error"]["message"]
    for block in message.get("result", {}).get("content", ()):
        yield block["text"]


def record_of(sink: RecordingSink, tool: str = "charge") -> dict[str, Any]:
    """The one record of the calls of a tool."""
    events = [event for event in sink.of("tool.request_attempts") if event["tool"] == tool]
    (record,) = events
    return cast("dict[str, Any]", record)


def attempts_of(sink: RecordingSink, tool: str = "charge") -> list[dict[str, Any]]:
    """The attempts of the one call of a tool."""
    return cast("list[dict[str, Any]]", record_of(sink, tool)["attempts"])
