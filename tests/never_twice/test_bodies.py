"""B3, D1, D10. However a call is written down, one of a tool that makes changes is not made twice.

A body that is not one message cannot be told apart from another, so it is refused where it could be
such a call; a server may read it in its own way. Each row has its control: what passes, passes.
"""

from __future__ import annotations

import json
from typing import Any, Final, Self

import anyio.lowlevel
import pytest

from support.sessions import FAMILY
from surefoot import Gateway, Replay, ToolRule
from surefoot.testing import Fails, RecordingSink, Replies, ScriptedTransport
from surefoot.transports._body import MAX_REQUEST_BODY

pytestmark = pytest.mark.anyio

URL: Final = "http://127.0.0.1:1/mcp"
PAYS: Final = Replay(tools={"pay": ToolRule(makes_changes=True), "look": ToolRule()})
DONE: Final = Replies(result={"content": [], "isError": False})
BARE: Final = Replies(json={"jsonrpc": "2.0", "id": 1, "result": {}})
LOST: Final = Fails("ReadError")


def _message(tool: str = "pay", arguments: str = "{}") -> str:
    params = f'{{"name":{json.dumps(tool)},"arguments":{arguments}}}'
    return f'{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{params}}}'


def _client(wire: ScriptedTransport, replay: Replay = PAYS, **options: Any) -> Any:
    return Gateway(URL, replay=replay, **options).protect(FAMILY.AsyncClient(transport=wire))


async def _post(client: Any, body: Any) -> Any:
    return await client.post(URL, content=body, headers={"content-type": "application/json"})


def _facts(answer: Any) -> Any:
    told = answer.json()
    holder = told["result"]["_meta"] if "result" in told else told["error"]["data"]
    return holder["surefoot/outcome"]


@pytest.mark.parametrize(
    ("first", "other"),
    [("[1]", "{}"), ('"x"', "{}"), ("[1]", "[2]"), ('{"a":1e999}', "{}"), ("1", "null")],
)
async def test_calls_whose_arguments_are_no_object_are_told_apart(first: str, other: str) -> None:
    """B3. A lost one stands against itself alone."""
    wire = ScriptedTransport(LOST, DONE)
    async with _client(wire) as client:
        assert _facts(await _post(client, _message(arguments=first)))["kind"] == "no-answer"
        assert "_meta" not in (await _post(client, _message(arguments=other))).json()["result"]
        assert _facts(await _post(client, _message(arguments=f" {first}")))["kind"] == "fenced"
    assert len(wire.requests) == 2


COULD_PAY: Final = [
    f"[{_message()}]",
    f"[{_message('look')},{_message()}]",
    f"[[{_message()}]]",
    _message().replace('"name":', '"name":"look","name":'),
    _message().replace('"id":1', '"id":1,"id":2'),
    _message("look").replace('"method":', '"method":"ping","method":'),
    _message() + _message("look"),
    _message().replace('"id":1', '"id":NaN'),
    _message().replace('"2.0"', '"1.0"'),
    "\ufeff" + _message(),
    _message().replace('"pay"', '"\\u0070ay"').replace('"id":1', '"id":true'),
]


@pytest.mark.parametrize(
    "body", [*(one.encode() for one in COULD_PAY), _message().encode("utf-16")]
)
async def test_what_could_be_a_payment_and_is_no_single_message_is_refused(body: bytes) -> None:
    """B3, D1. Locally, with nothing sent, and in words for whoever wrote the client."""
    sink = RecordingSink()
    wire = ScriptedTransport(DONE, repeat=True)
    async with _client(wire, evidence=sink) as client:
        answer = await _post(client, body)
    assert answer.status_code == 400
    error = answer.json()["error"]
    assert (error["code"], answer.json()["id"]) == (-32600, None)
    assert "was not sent" in error["message"]
    assert _facts(answer) == {
        "kind": "not-sent", "rule": "not-one-message", "may_have_run": False,
        "effect": "not_sent", "attempts": 0,
    }  # fmt: skip
    assert not wire.requests
    (record,) = sink.of("tool.request_attempts")
    assert (record["ended"], record["attempts"]) == ("not_sent", [])


@pytest.mark.parametrize(
    ("body", "replay"),
    [
        (f"[{_message('look')}]", PAYS),
        (_message("look").replace('"2.0"', '"1.0"'), PAYS),
        (f"[{_message()}]", None),
        (_message().replace('"id":1', '"id":1,"id":2'), Replay(tools={"pay": ToolRule()})),
        (_message("look"), PAYS),
    ],
)
async def test_what_could_be_no_payment_passes_as_it_is(body: str, replay: Replay | None) -> None:
    """D1. The control: the same forms where no such tool is named, or none is declared."""
    wire = ScriptedTransport(BARE)
    async with _client(wire, replay or Replay()) as client:
        await _post(client, body)
    assert [one.body for one in wire.requests] == [body.encode()]


async def test_under_app_authorized_such_a_body_is_fenced_as_it_stands() -> None:
    """B3, D1. As an undeclared call, which is what it counts as."""
    wire = ScriptedTransport(LOST, BARE)
    async with _client(wire, Replay(policy="app-authorized")) as client:
        with pytest.raises(FAMILY.TransportError):
            await _post(client, f"[{_message()}]")
        again = await _post(client, f"[{_message()}]")
        assert (again.status_code, _facts(again)["kind"]) == (400, "fenced")
        assert _facts(again)["earlier_call_id"]
        await _post(client, f"[{_message()} ]")
    assert len(wire.requests) == 2


class _Streamed:
    """A text and blanks, in pieces; an iterator of its own, which nobody has to close."""

    def __init__(self, text: str, blanks: int) -> None:
        piece = 1024 * 1024
        whole, rest = divmod(blanks, piece)
        self._parts = iter([text.encode(), *[b" " * piece] * whole, b" " * rest])

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> bytes:
        await anyio.lowlevel.checkpoint()
        for part in self._parts:
            return part
        raise StopAsyncIteration


@pytest.mark.parametrize("tool", ["pay", "look"])
async def test_a_streamed_body_that_is_never_whole_is_not_sent_past_the_fence(tool: str) -> None:
    """B3, D10. Nobody can say what it asks for; as long as what is kept, it is one call as any."""
    wire = ScriptedTransport(LOST, DONE)
    text = _message(tool)
    kept = MAX_REQUEST_BODY - len(text)
    async with _client(wire) as client:
        refused = await _post(client, _Streamed(text, kept + 1))
        assert refused.status_code == 400
        assert _facts(refused)["rule"] == "body-too-long"
        assert not wire.requests
        assert _facts(await _post(client, _Streamed(text, kept)))["kind"] == "no-answer"
        again = (await _post(client, text)).json()["result"]
    assert ("_meta" in again) is (tool == "pay")


async def test_a_streamed_body_that_is_never_whole_goes_out_once_where_nothing_is_declared() -> (
    None
):
    """D10. The control."""
    wire = ScriptedTransport(DONE)
    async with _client(wire, Replay()) as client:
        await _post(client, _Streamed(_message(), MAX_REQUEST_BODY))
    assert len(wire.requests) == 1


async def test_a_call_that_asks_for_no_answer_is_fenced_too() -> None:
    """B3, D1. It may have run like any other; whoever sent it reads nothing."""
    wire = ScriptedTransport(LOST, DONE)
    asks = _message().replace('"id":1,', "")
    async with _client(wire) as client:
        for _ in range(2):
            answer = await _post(client, asks)
            assert (answer.status_code, answer.content) == (202, b"")
        assert _facts(await _post(client, _message()))["kind"] == "fenced"
    assert len(wire.requests) == 1
