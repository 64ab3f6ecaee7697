"""Event streams that are sound, cut, silent or endless."""

from __future__ import annotations

import json

import pytest

from support.rawhttp import RawAnswer, ask, connect, lay_out, read_all
from surefoot.testing import (
    EndlessComments,
    EndlessStream,
    FaultyGateway,
    HeldStream,
    Sse,
    SseCut,
    Step,
    mcp_request,
    tool_call,
)

CALL = tool_call("charge", rpc_id=7)


def _blocks(answer: RawAnswer) -> list[dict[str, str]]:
    """The blocks of an event stream, as fields; a comment's field has no name."""
    content, _ = answer.unchunked()
    parts = content.decode().split("\r\n\r\n")[:-1]
    return [dict(_field(line) for line in part.split("\r\n")) for part in parts]


def _field(line: str) -> tuple[str, str]:
    name, _, value = line.partition(":")
    return name, value.removeprefix(" ")


def test_events_stand_before_the_answer() -> None:
    """Notifications, then the answer, then the end; the tool ran once."""
    with FaultyGateway() as gateway:
        gateway.script("charge", Sse(2), Sse([{"jsonrpc": "2.0", "method": "notifications/x"}]))
        counted, given = ask(gateway, CALL), ask(gateway, CALL)
        assert gateway.executions("charge") == 2
    messages = [json.loads(block["data"]) for block in _blocks(counted)]
    assert [message.get("method") for message in messages] == ["notifications/message"] * 2 + [None]
    assert messages[-1]["id"] == 7
    assert json.loads(_blocks(given)[0]["data"])["method"] == "notifications/x"
    assert counted.unchunked()[1]


def test_blocks_carry_comments_ids_and_retry_as_declared() -> None:
    """A decoder's diet: each of the fields, and a block that has an id alone."""
    with FaultyGateway() as gateway:
        gateway.script("charge", Sse(1, ids=True, primed=True, retry="-5", comments=["a", "b"]))
        answer = ask(gateway, CALL)
    content, _ = answer.unchunked()
    first, second, third = _blocks(answer)
    assert content.startswith(b": a\r\n: b\r\nid: 1-0\r\nretry: -5\r\nevent: message\r\ndata: \r\n")
    assert (first["id"], first["retry"], first["data"]) == ("1-0", "-5", "")
    assert (second["id"], "retry" in second) == ("1-1", False)
    assert (third["id"], json.loads(third["data"])["id"]) == ("1-2", 7)


@pytest.mark.parametrize(
    ("how", "ending", "ended"),
    [("close", "closed", False), ("end", "closed", True), ("reset", "reset", False)],
)
def test_a_stream_is_cut_before_the_answer(how: str, ending: str, ended: bool) -> None:
    """With an event id or without, closed, ended soundly, or reset."""
    with FaultyGateway() as gateway:
        cuts = (SseCut(1, how=how), SseCut(after_event_id="e-9", retry=7, how=how))  # pyright: ignore[reportArgumentType]
        gateway.script("charge", *cuts)
        plain, named = ask(gateway, CALL), ask(gateway, CALL)
        assert gateway.executions("charge") == 2
        assert [entry.status for entry in gateway.journal] == [200, 200]
    assert (plain.ending, plain.unchunked()[1]) == (ending, ended)
    assert [json.loads(block["data"]).get("id") for block in _blocks(plain)] == [None]
    (block,) = _blocks(named)
    assert (block["id"], block["retry"], block["data"]) == ("e-9", "7", "")


def test_a_cut_may_leave_half_an_event_and_may_come_before_the_tool_ran() -> None:
    """An unterminated event is never dispatched."""
    with FaultyGateway() as gateway:
        gateway.script("charge", SseCut(half_event=True), SseCut(ran=False))
        half, idle = ask(gateway, CALL), ask(gateway, CALL)
        assert gateway.executions("charge") == 1
    content, _ = half.unchunked()
    assert content.startswith(b'event: message\r\ndata: {"jsonrpc":"2.0","id":7')
    assert not content.endswith(b"\n")
    assert idle.unchunked() == (b"", False)


def test_a_held_stream_says_nothing_until_the_client_leaves() -> None:
    """The head comes, then silence; the tool ran."""
    with FaultyGateway() as gateway:
        gateway.script("charge", HeldStream(), HeldStream(ran=False))
        held, idle = ask(gateway, CALL, patience=0.05), ask(gateway, CALL, patience=0.05)
        gateway.wait_until(lambda: not any(entry.in_flight for entry in gateway.journal))
        assert gateway.executions("charge") == 1
        assert [entry.cancelled for entry in gateway.journal] == [True, True]
    for answer in (held, idle):
        assert (answer.ending, answer.body) == ("open", b"")
        assert answer.values("content-type") == [b"text/event-stream"]


def test_a_held_stream_may_answer_after_all() -> None:
    """After its seconds, the answer and a sound end."""
    with FaultyGateway() as gateway:
        gateway.script("charge", HeldStream(0.02))
        answer = ask(gateway, CALL)
    assert json.loads(_blocks(answer)[-1]["data"])["id"] == 7
    assert answer.unchunked()[1]


@pytest.mark.parametrize("version", ["2026-07-28", "2025-11-25"])
@pytest.mark.parametrize(
    ("step", "opens", "more"),
    [
        (EndlessComments(0.001), b"", b": ping\r\n\r\n"),
        (EndlessStream("events"), b": endless\r\n\r\n", b'"method":"notifications/message"'),
        (EndlessStream("event"), b"event: message\r\n", b'data: "more"\r\n'),
        (EndlessStream("line"), b"data: ", b"xxxx"),
        (EndlessStream("json"), b'{"jsonrpc":"2.0","id":7,"result":{"content"', b"xxxx"),
    ],
    ids=["comments", "events", "event", "line", "json"],
)
def test_an_endless_body_ends_only_when_the_client_leaves(
    step: Step, opens: bytes, more: bytes, version: str
) -> None:
    """Bytes for ever and no answer; the gateway is done with it once nobody reads."""
    with FaultyGateway() as gateway:
        gateway.script("charge", step)
        session = None
        if version == "2025-11-25":
            session = _session(gateway)
        with connect(gateway) as connection:
            call = tool_call("charge", rpc_id=7, version=version, session=session)
            connection.sendall(lay_out(call))
            data = b""
            while len(data) < 400:
                data += connection.recv(65536)
        assert gateway.executions("charge") == 1
        gateway.wait_until(lambda: not gateway.journal[-1].in_flight)
        assert gateway.journal[-1].cancelled
    answer = RawAnswer(data=data, ending="open")
    assert opens in answer.body
    assert more in answer.body


def test_an_endless_body_stops_at_its_limit() -> None:
    """A test that forgets to leave does not fill the machine."""
    with FaultyGateway() as gateway:
        gateway.script("charge", EndlessStream("line", limit=100_000))
        with connect(gateway) as connection:
            connection.sendall(lay_out(CALL))
            answer = read_all(connection)
    assert answer.ending == "closed"
    assert 100_000 < len(answer.data) < 150_000


def _session(gateway: FaultyGateway) -> str:
    opening = mcp_request("initialize", {"protocolVersion": "2025-11-25"}, version=None)
    return ask(gateway, opening).values("mcp-session-id")[0].decode()
