"""The law of this file: for a bug report a call is made as an app makes it, over a real connection.

Several calls go over one client here, which `exchange` does not do. What is read is what the client
was handed, be it a JSON body or an event stream.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, cast

from support.exchanges import outcome_in
from surefoot.testing import McpRequest, Raw, RecordingSink, Step, tool_call

__all__ = [
    "FRAMINGS",
    "RESULT",
    "SOUND",
    "Said",
    "as_body",
    "as_stream",
    "attempts_of",
    "record_of",
    "say",
]


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


RESULT: Final = (
    '{"content":[{"type":"text","text":"as written"}],"isError":false,"resultType":"complete"}'
)
"""A sound result."""
SOUND: Final = f'{{"jsonrpc":"2.0","id":ID,"result":{RESULT}}}'

Written = Callable[[bytes], bytes]


def as_body(text: str | bytes) -> Step:
    """A JSON body, `ID` in it the request's own; the tool ran."""
    data = text.encode() if isinstance(text, str) else text

    def answer(rpc_id: bytes) -> bytes:
        body = data.replace(b"ID", rpc_id)
        head = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n"
        return head % len(body) + body

    return Raw(answer, ran=True, close=False)


def _chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


FRAMINGS: Final[dict[str, tuple[str, Written]]] = {
    "ended by the close": ("connection: close", lambda data: data),
    "in a chunk, ended": (
        "transfer-encoding: chunked",
        lambda data: _chunk(data) + b"0\r\n\r\n",
    ),
    "in a chunk, not ended": ("transfer-encoding: chunked", _chunk),
}


def as_stream(data: str | bytes, framing: str = "ended by the close", *lines: str) -> Step:
    """An event stream of these bytes; unless it ends by itself, the connection ends with it."""
    line, written = FRAMINGS[framing]
    text = data.encode() if isinstance(data, str) else data
    head = "\r\n".join(("HTTP/1.1 200 OK", "content-type: text/event-stream", line, *lines))

    def answer(rpc_id: bytes) -> bytes:
        return head.encode() + b"\r\n\r\n" + written(text.replace(b"ID", rpc_id))

    # A client may send its next request on a connection that said it would go on.
    return Raw(answer, ran=True, close=framing != "in a chunk, ended")
