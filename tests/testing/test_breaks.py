"""Connections that die and bodies that lie about their length or size; whether the tool ran."""

from __future__ import annotations

import gzip
import json
import time
import zlib

import pytest

from support.rawhttp import ask, connect, lay_out, read_all
from surefoot.testing import (
    Answer,
    CutJson,
    FaultyGateway,
    GzipBomb,
    Raw,
    Reset,
    Trickle,
    TruncatedGzip,
    WrongLength,
    tool_call,
)

CALL = tool_call("charge", {"amount": 5}, rpc_id=7)


@pytest.mark.parametrize(
    ("reset", "ran", "ending", "opens"),
    [
        (Reset(), 0, "reset", b""),
        (Reset("before-headers", how="close"), 0, "closed", b""),
        (Reset("before-headers", ran=True), 1, "reset", b""),
        (Reset("after-run"), 1, "reset", b""),
        (Reset("after-run", how="close"), 1, "closed", b""),
        (Reset("in-body"), 1, "reset", b'{"jsonrpc":"2.0","id":7'),
        (Reset("in-body", how="close"), 1, "closed", b'{"jsonrpc":"2.0","id":7'),
        (Reset("in-body", ran=False), 0, "reset", b'{"jsonrpc":'),
    ],
)
def test_a_reset_dies_where_it_says(reset: Reset, ran: int, ending: str, opens: bytes) -> None:
    """Whether the tool ran is told by the count alone; the client cannot know."""
    with FaultyGateway() as gateway:
        gateway.script("charge", reset)
        answer = ask(gateway, CALL)
        assert gateway.executions("charge") == ran
        assert gateway.journal[0].ran == bool(ran)
        assert gateway.journal[0].status == (200 if opens else None)
        assert ask(gateway, CALL).status == 200
    assert answer.ending == ending
    assert answer.body.startswith(opens)
    if opens:
        assert len(answer.body) < int(answer.values("content-length")[0])


def test_a_reset_on_accept_reads_no_request() -> None:
    """The connection was made, so it proves nothing to a client, but nothing can have run."""
    with FaultyGateway() as gateway:
        gateway.script("connect", Reset("on-accept"), Answer(), Reset("on-accept", how="close"))
        with connect(gateway) as connection:
            assert read_all(connection).ending == "reset"
        assert ask(gateway, CALL).status == 200
        with connect(gateway) as connection:
            assert read_all(connection).ending == "closed"
        assert len(gateway.journal) == 1
        assert gateway.connections.opened == 3


@pytest.mark.parametrize("framing", ["length", "chunked", "close"])
def test_a_cut_json_answer_ends_half_way(framing: str) -> None:
    """A body that is not whole is not an answer, whatever HTTP says about its length."""
    with FaultyGateway() as gateway:
        gateway.script("charge", CutJson(framing), CutJson(framing, keep=9))  # pyright: ignore[reportArgumentType]
        answer, short = ask(gateway, CALL), ask(gateway, CALL)
        assert gateway.executions("charge") == 2
    body, ended = (answer.body, False) if framing != "chunked" else answer.unchunked()
    assert body.startswith(b'{"jsonrpc":"2.0","id":7,')
    assert not ended
    with pytest.raises(json.JSONDecodeError):
        json.loads(body)
    assert short.body.endswith(b'{"jsonrpc\r\n' if framing == "chunked" else b'{"jsonrpc')
    assert (answer.ending, bool(answer.values("content-length"))) == ("closed", framing == "length")


@pytest.mark.parametrize(("kind", "lie"), [("short", -10), ("long", 10)])
def test_a_wrong_length_lies_by_ten(kind: str, lie: int) -> None:
    """Too short runs into what follows, too long never comes to its end."""
    with FaultyGateway() as gateway:
        gateway.script("charge", WrongLength(kind))  # pyright: ignore[reportArgumentType]
        answer = ask(gateway, CALL)
        assert gateway.executions("charge") == 1
    assert json.loads(answer.body)["id"] == 7
    assert int(answer.values("content-length")[0]) == len(answer.body) + lie


def test_two_lengths_or_a_length_beside_chunks_are_sent_too() -> None:
    """RFC 9112, 6.1 and 6.3: a reader must refuse both."""
    with FaultyGateway() as gateway:
        gateway.script("charge", WrongLength("twice"), WrongLength("and-chunked"))
        twice, chunked = ask(gateway, CALL), ask(gateway, CALL)
    lengths = [int(value) for value in twice.values("content-length")]
    assert lengths == [len(twice.body), len(twice.body) + 1]
    assert chunked.values("transfer-encoding") == [b"chunked"]
    assert len(chunked.values("content-length")) == 1
    assert chunked.unchunked()[1]


def test_raw_bytes_go_out_as_they_stand() -> None:
    """A garbage status line, and whatever else no other step says."""
    with FaultyGateway() as gateway:
        answer = Raw(
            lambda rpc_id: b'HTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\n"id":' + rpc_id, ran=True
        )
        gateway.script("charge", Raw(b"HTTP/9.9 two hundred\x00\r\n\r\n"), answer, Raw(b""))
        first, second, third = (ask(gateway, CALL) for _ in range(3))
        assert gateway.executions("charge") == 1
        assert [entry.status for entry in gateway.journal] == [None, 200, None]
    assert first.data == b"HTTP/9.9 two hundred\x00\r\n\r\n"
    assert second.body == b'"id":7'
    assert (third.data, third.ending) == (b"", "closed")


def test_raw_bytes_may_leave_the_connection_open() -> None:
    """A client that re-uses it gets a sound answer next."""
    with FaultyGateway() as gateway:
        gateway.script("charge", Raw(b"HTTP/1.1 204 No Content\r\n\r\n", close=False))
        with connect(gateway) as connection:
            connection.sendall(lay_out(CALL, close=False))
            connection.sendall(lay_out(CALL))
            data = read_all(connection).data
    assert data.startswith(b"HTTP/1.1 204 No Content\r\n\r\nHTTP/1.1 200 OK\r\n")


def test_a_trickle_is_a_sound_answer_in_drops() -> None:
    """Every drop resets an idle limit; only a total one ends it."""
    with FaultyGateway() as gateway:
        gateway.script("charge", Trickle(0.001, size=20))
        started = time.monotonic()
        answer = ask(gateway, CALL)
        assert time.monotonic() - started >= 0.001 * len(answer.body) / 20
        assert gateway.executions("charge") == 1
    assert answer.json()["id"] == 7


def test_a_bomb_is_small_on_the_wire_and_large_when_read() -> None:
    """Decoded piece by piece here: the double is honest about its size."""
    size = 40 << 20
    with FaultyGateway() as gateway:
        gateway.script("charge", GzipBomb(size))
        answer = ask(gateway, CALL)
        assert gateway.executions("charge") == 1
    assert answer.values("content-encoding") == [b"gzip"]
    assert len(answer.body) < size // 500
    reader = zlib.decompressobj(wbits=31)
    total, first, rest = 0, b"", answer.body
    while rest:
        piece = reader.decompress(rest, 1 << 20)
        first, total, rest = first or piece[:40], total + len(piece), reader.unconsumed_tail
    assert reader.eof
    assert first.startswith(b'{"jsonrpc":"2.0","id":7,"result"')
    assert size < total < size + 300


def test_a_small_bomb_is_sound_gzip_and_sound_json() -> None:
    """Checksum, length and JSON hold, at sizes that are no multiple of anything."""
    for size in (1, 999, (1 << 20) + 7):
        with FaultyGateway() as gateway:
            gateway.script("charge", GzipBomb(size))
            message = json.loads(gzip.decompress(ask(gateway, CALL).body))
        assert message["result"]["content"][0]["text"] == "0" * size


def test_truncated_gzip_reads_well_to_those_who_do_not_look() -> None:
    """All of the JSON is there; the end of the gzip stream is not."""
    with FaultyGateway() as gateway:
        gateway.script("charge", TruncatedGzip())
        answer = ask(gateway, CALL)
    assert int(answer.values("content-length")[0]) == len(answer.body)
    reader = zlib.decompressobj(wbits=31)
    assert json.loads(reader.decompress(answer.body))["id"] == 7
    assert not reader.eof
    with pytest.raises(EOFError):
        gzip.decompress(answer.body)
