"""B1, B12, D21. A body that no client reads takes nobody's time: its status is the answer.

Both SDKs write from one task. Where the answer to a notification is read to an end that its server
puts off, that session stands still; without surefoot nobody reads it.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any, Final

import anyio
import pytest

from support.answers_read import CALL, SOUND, answer_to, reading, whole
from surefoot.testing import McpRequest, Replies, ScriptedTransport, mcp_request
from surefoot.transports import _reading

pytestmark = pytest.mark.anyio

JSON: Final = ("content-type", "application/json")
TEXT: Final = ("content-type", "text/plain")
EVENTS: Final = ("content-type", "text/event-stream")
REPLY: Final = McpRequest(
    body=b'{"jsonrpc":"2.0","id":"of the server","result":{}}', headers=CALL.headers
)
ASKS_NOTHING: Final[dict[str, tuple[str, McpRequest]]] = {
    "a notification": ("POST", mcp_request("notifications/initialized", rpc_id=None)),
    "a response": ("POST", REPLY),
    "the end of a session": ("DELETE", CALL),
}
ANSWERS: Final = [
    (202, JSON), (202, EVENTS), (204, JSON), (200, JSON), (200, TEXT), (307, TEXT), (400, TEXT),
    (401, JSON), (404, TEXT), (405, TEXT), (500, JSON),
]  # fmt: skip


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is soon for people is an age for tests."""
    monkeypatch.setattr(_reading, "_SOON", 0.05)


async def dribbled(closed: list[bool]) -> AsyncIterator[bytes]:
    """A blank, again and again, for as long as anybody listens."""
    try:
        while True:
            yield b" "
            await anyio.sleep(0.001)
    finally:
        closed.append(True)


@pytest.mark.parametrize("status", ANSWERS, ids=lambda answer: f"{answer[0]}-{answer[1][1]}")
@pytest.mark.parametrize(("method", "asked"), ASKS_NOTHING.values(), ids=ASKS_NOTHING)
async def test_the_answer_to_what_asks_nothing_is_its_status(
    family: Any, method: str, asked: McpRequest, status: tuple[int, tuple[str, str]]
) -> None:
    """B1, B12. Whatever its body does; and nothing of it stays open."""
    number, kind = status
    closed: list[bool] = []
    wire = ScriptedTransport(
        Replies(number, headers=[kind], chunks=lambda: dribbled(closed)), Replies(number)
    )
    with anyio.fail_after(5):
        answer = await whole(family, reading(wire, attempts=1), asked, method=method)
    assert answer.status_code == number
    assert b" " * 2 not in answer.content
    assert wire.open_responses == 0
    assert closed == [True]


@pytest.mark.parametrize("status", [202, 204, 205])
async def test_a_status_without_a_body_is_read_at_once_whoever_asked(
    family: Any, status: int
) -> None:
    """B12. A call that is answered so has no answer, and is told so at once."""
    closed: list[bool] = []
    wire = ScriptedTransport(Replies(status, headers=[JSON], chunks=lambda: dribbled(closed)))
    with anyio.fail_after(5):
        answer = await whole(family, reading(wire, attempts=1))
    assert "result" not in answer.text
    assert (wire.open_responses, closed) == (0, [True])


async def late() -> AsyncIterator[bytes]:
    """An answer that takes longer than any body that is passed over."""
    for part in (b" ", b" ", answer_to()):
        await anyio.sleep(0.05)
        yield part


async def test_what_a_call_waits_for_is_read_to_its_end(family: Any) -> None:
    """The control: the same bound holds back no answer that somebody asked for."""
    wire = ScriptedTransport(Replies(headers=[JSON], chunks=late))
    answer = await whole(family, reading(wire, attempts=1))
    assert json.loads(answer.content)["result"] == SOUND


async def test_a_body_that_comes_at_once_is_read_and_its_connection_kept(family: Any) -> None:
    """D21, R92. And whoever leaves meanwhile leaves nothing open."""
    ended: list[str] = []

    async def short() -> AsyncIterator[bytes]:
        yield b"{}"
        ended.append("at its end")

    notification = ASKS_NOTHING["a notification"][1]
    for status in (200, 202, 404):
        wire = ScriptedTransport(Replies(status, headers=[JSON], chunks=short))
        await whole(family, reading(wire, attempts=1), notification)
        assert ended.pop() == "at its end"
    closed: list[bool] = []
    wire = ScriptedTransport(Replies(headers=[JSON], chunks=lambda: dribbled(closed)))
    with anyio.move_on_after(0.02) as left:
        await whole(family, reading(wire, attempts=1), notification)
    assert left.cancelled_caught
    assert (wire.open_responses, closed) == (0, [True])
