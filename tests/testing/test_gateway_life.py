"""The journal, the waits, and how a gateway opens and closes."""

from __future__ import annotations

import dataclasses
import gc
import socket
import threading
import time
import warnings

import pytest

from support.rawhttp import ask, connect, lay_out, read_all
from surefoot.testing import (
    Answer,
    EndlessComments,
    FaultyGateway,
    HeldStream,
    Reset,
    Slow,
    Throttle,
    mcp_request,
    tool_call,
)

CALL = tool_call("charge", {"amount": 5}, rpc_id=7)


def test_an_entry_holds_the_request_as_it_was_received() -> None:
    """Header lines in order, names as sent, doubles kept, and the body to the byte."""
    with FaultyGateway() as gateway:
        with connect(gateway) as connection:
            raw = lay_out(CALL, path="/mcp?q=1").replace(
                b"host:", b"X-A: 1\r\nx-a:  2 \r\nHoSt:", 1
            )
            connection.sendall(raw)
            read_all(connection)
        (entry,) = gateway.journal
    assert [name for name, _ in entry.headers][:3] == [b"X-A", b"x-a", b"HoSt"]
    assert entry.header_values("x-a") == (b"1", b"2")
    assert entry.header("X-A") == b"1"
    assert entry.header("absent") is None
    assert entry.body == CALL.body
    assert (entry.http_method, entry.path, entry.connection) == ("POST", "/mcp?q=1", 1)
    assert (entry.method, entry.rpc_id, entry.tool, entry.session) == (
        "tools/call",
        7,
        "charge",
        None,
    )
    assert entry.message()["id"] == 7
    assert entry.ended_at is not None
    assert entry.at <= entry.ended_at <= time.monotonic()


def test_an_entry_is_frozen_and_does_not_show_its_secrets() -> None:
    """A failing assertion prints it; the control finds the value where it belongs."""
    with FaultyGateway() as gateway:
        ask(
            gateway,
            tool_call("charge", {"card": "canary-b"}),
            headers={"authorization": "canary-h"},
        )
        (entry,) = gateway.journal
        assert gateway.received("canary-b")
        assert gateway.received(b"canary-h")
        assert not gateway.received("canary-x")
    assert "canary" not in repr(entry)
    assert "canary" not in repr(gateway)
    with pytest.raises(dataclasses.FrozenInstanceError):
        entry.status = 200  # pyright: ignore[reportAttributeAccessIssue]


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"\xff", b'{"id":true,"method":5}'])
def test_a_body_that_is_no_message_is_in_the_journal_too(body: bytes) -> None:
    """What cannot be read is None, and its bytes are kept."""
    with FaultyGateway() as gateway:
        request = dataclasses.replace(mcp_request("ping"), body=body)
        ask(gateway, request)
        (entry,) = gateway.journal
    assert (entry.method, entry.rpc_id, entry.tool, entry.body) == (None, None, None, body)
    if body[:1] != b"{":
        with pytest.raises((ValueError, TypeError)):
            entry.message()


def test_entries_are_found_by_tool_by_method_and_by_word_of_http() -> None:
    """The attempts of one call are one tuple."""
    with FaultyGateway() as gateway:
        ask(gateway, CALL)
        ask(gateway, mcp_request("tools/list"))
        ask(gateway, method="GET")
        assert [entry.sequence for entry in gateway.requests("charge")] == [1]
        assert [entry.sequence for entry in gateway.requests("tools/call")] == [1]
        assert [entry.sequence for entry in gateway.requests("tools/list")] == [2]
        assert [entry.sequence for entry in gateway.requests("GET")] == [3]
        assert [entry.sequence for entry in gateway.requests("POST")] == [1, 2]


def test_a_request_is_in_the_journal_from_its_arrival() -> None:
    """A test can wait for the moment at which a neighbour is in flight."""
    with FaultyGateway() as gateway:
        gateway.script("charge", Slow(0.1, when="after"))
        thread = threading.Thread(target=ask, args=(gateway, CALL))
        thread.start()
        gateway.wait_until(lambda: gateway.executions("charge") == 1)
        (entry,) = gateway.journal
        assert (entry.in_flight, entry.ran, entry.status) == (True, True, None)
        gateway.wait_until(lambda: not gateway.journal[0].in_flight)
        assert gateway.journal[0].status == 200
        thread.join(5)


def test_waiting_is_bounded_and_says_what_was_seen() -> None:
    """Every wait of a double ends, and its error helps."""
    with FaultyGateway() as gateway:
        ask(gateway, CALL)
        with pytest.raises(TimeoutError, match=r"within 0\.01 s.*1 charge -> 200"):
            gateway.wait_until(lambda: False, timeout=0.01)
        with pytest.raises(ValueError, match="timeout"):
            gateway.wait_until(lambda: True, timeout=-1)


def test_a_predicate_may_ask_the_gateway_itself() -> None:
    """The gateway serves on while it is being waited for."""
    with FaultyGateway() as gateway:
        gateway.script("charge", Throttle(), Throttle())
        gateway.wait_until(lambda: ask(gateway, CALL).status == 200)
        assert len(gateway.journal) == 3


@pytest.mark.anyio
async def test_a_task_may_wait_without_blocking_its_loop() -> None:
    """On asyncio and on trio, in an async context too."""
    async with FaultyGateway() as gateway:
        ask(gateway, CALL)
        await gateway.until(lambda: gateway.executions("charge") == 1)
        with pytest.raises(TimeoutError, match="1 charge -> 200"):
            await gateway.until(lambda: False, timeout=0.01)
    with pytest.raises(OSError, match=r".*"):
        connect(gateway)


def test_connections_are_counted_and_can_be_dropped() -> None:
    """A kept connection that the server has closed is found out by the next request."""
    with FaultyGateway() as gateway:
        for count, (reset, ending) in enumerate(((False, "closed"), (True, "reset")), 1):
            with connect(gateway) as connection:
                connection.sendall(lay_out(CALL, close=False))
                gateway.wait_until(lambda n=count: [e.status for e in gateway.journal] == [200] * n)
                assert gateway.connections.open == 1
                gateway.drop_connections(reset=reset)
                assert read_all(connection).ending == ending
            gateway.wait_until(lambda: gateway.connections.open == 0)
        assert gateway.connections.opened == 2


def test_it_opens_on_a_loopback_port_of_its_own_and_has_no_address_before() -> None:
    """Nothing but this machine can reach it."""
    gateway = FaultyGateway(path="/a/b")
    with pytest.raises(RuntimeError, match="with"):
        _ = gateway.url
    with pytest.raises(RuntimeError, match="not open"):
        gateway.forget_sessions()
    with gateway, FaultyGateway() as other:
        assert gateway.url.startswith("http://127.0.0.1:")
        assert gateway.url.endswith("/a/b")
        assert gateway.origin != other.origin
        assert ask(gateway, CALL, path="/a/b").status == 200
    with pytest.raises(RuntimeError, match="not open"):
        gateway.drop_connections()
    assert gateway.executions("charge") == 1


def test_opening_and_closing_are_quick() -> None:
    """A test can afford a gateway of its own: far below a tenth of a second, here for ten."""
    started = time.monotonic()
    for _ in range(10):
        with FaultyGateway():
            pass
    assert time.monotonic() - started < 2


@pytest.mark.parametrize(
    "step",
    [
        Answer(),
        Slow(60),
        HeldStream(),
        EndlessComments(0.001),
        Throttle(1),
        Reset(),
        Reset("in-body"),
    ],
    ids=repr,
)
@pytest.mark.parametrize("version", ["2026-07-28", "2025-11-25"])
def test_closing_leaves_no_thread_no_socket_and_no_warning(step: Answer, version: str) -> None:
    """In the middle of whatever it is doing."""
    threads = set(threading.enumerate())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with FaultyGateway() as gateway:
            gateway.script("charge", step)
            opening = mcp_request("initialize", version=None)
            session = ask(gateway, opening).values("mcp-session-id")[0].decode()
            call = tool_call("charge", version=version, session=session)
            with connect(gateway) as busy, connect(gateway) as idle:
                busy.sendall(lay_out(call, close=False))
                gateway.wait_until(lambda: gateway.requests("charge") != ())
                started = time.monotonic()
                gateway.__exit__(None, None, None)
                assert time.monotonic() - started < 2
                assert read_all(idle).ending in {"closed", "reset"}
                assert read_all(busy).ending in {"closed", "reset"}
            assert gateway.connections.open == 0
            assert not any(entry.in_flight for entry in gateway.journal)
        gc.collect()
    assert set(threading.enumerate()) <= threads


@pytest.mark.parametrize("leaves", ["before", "after"])
def test_closing_forgets_no_connection_that_was_just_accepted(leaves: str) -> None:
    """A client that connected a moment ago and asked for nothing, several times over."""
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        for _ in range(10):
            with FaultyGateway() as gateway:
                connection = connect(gateway)
                if leaves == "before":
                    connection.close()
            connection.close()
        gc.collect()
    assert [str(one.message) for one in heard] == []


def test_a_blocking_tool_is_reported_and_does_not_hang_the_test(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Closing is bounded even where the test's own tool blocks the gateway's loop."""
    from surefoot.testing import Tool, _serving

    monkeypatch.setattr(_serving, "_PATIENCE", 0.05)
    release = threading.Event()
    gateway = FaultyGateway([Tool("block", answer=lambda _: str(release.wait(5)))])
    gateway.__enter__()
    connection = connect(gateway)
    connection.sendall(lay_out(tool_call("block")))
    gateway.wait_until(lambda: gateway.executions("block") == 1)
    with pytest.raises(RuntimeError, match="block"):
        gateway.__exit__(None, None, None)
    release.set()
    monkeypatch.undo()
    gateway.__exit__(None, None, None)
    connection.close()


def test_a_client_that_sends_half_a_request_and_leaves_is_no_entry() -> None:
    """The journal holds what was received whole."""
    with FaultyGateway() as gateway:
        with connect(gateway) as connection:
            connection.sendall(lay_out(CALL)[:-5])
            connection.shutdown(socket.SHUT_WR)
            read_all(connection)
        gateway.wait_until(lambda: gateway.connections.open == 0)
        assert gateway.journal == ()
