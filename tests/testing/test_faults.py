"""What each fault puts on the wire, and whether the tool ran. Serves R3, R10, R11, B1, B7, B12."""

from __future__ import annotations

import gzip
import json
import time
import zlib
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from urllib.parse import unquote

import pytest

from support.rawhttp import ask, connect, lay_out, read_all
from surefoot.testing import (
    Answer,
    CutJson,
    Exchange,
    FaultyGateway,
    GzipBomb,
    IsError,
    Raw,
    Redirect,
    Reset,
    RpcError,
    SessionLost,
    Slow,
    Status,
    Step,
    Throttle,
    Trickle,
    TruncatedGzip,
    WrongLength,
    mcp_request,
    tool_call,
)

pytestmark = pytest.mark.both_majors

CALL = tool_call("charge", {"amount": 5}, rpc_id=7)


@pytest.mark.parametrize(
    ("retry_after", "lines"),
    [
        (None, []),
        (2, [b"2"]),
        (0, [b"0"]),
        (1.5, [b"1.5"]),
        ("soon", [b"soon"]),
        ("\u0665", [b"\xd9\xa5"]),
        (b"\xb2", [b"\xb2"]),
        (datetime(2026, 11, 6, 8, 49, 37, tzinfo=UTC), [b"Fri, 06 Nov 2026 08:49:37 GMT"]),
        ((2, 5), [b"2", b"5"]),
        ((2, "x", None), [b"2", b"x"]),
    ],
)
def test_a_throttle_states_its_wait_as_declared(retry_after: object, lines: list[bytes]) -> None:
    """R63, D14. Seconds, dates, garbage, several lines and none."""
    with FaultyGateway() as gateway:
        gateway.script("charge", Throttle(retry_after))  # pyright: ignore[reportArgumentType]
        answer = ask(gateway, CALL)
        assert gateway.executions("charge") == 0
    assert answer.status == 429
    assert answer.values("retry-after") == lines
    assert answer.body == b"Too many requests\n"


def test_a_relative_date_counts_from_the_moment_of_the_answer() -> None:
    """D14. A timedelta becomes a date when the refusal is sent, not when it is declared."""
    with FaultyGateway() as gateway:
        gateway.script("charge", Throttle(timedelta(hours=1)))
        (stated,) = ask(gateway, CALL).values("retry-after")
    wait = parsedate_to_datetime(stated.decode()) - datetime.now(UTC)
    assert timedelta(minutes=59) < wait <= timedelta(hours=1)


def test_a_throttle_may_be_json_rpc_and_may_come_after_the_tool_ran() -> None:
    """R3. A 429 is not proof that nothing ran."""
    with FaultyGateway() as gateway:
        gateway.script("charge", Throttle(1, rpc_code=-32029, body="Slow down", ran=True))
        answer = ask(gateway, CALL)
        assert gateway.executions("charge") == 1
        assert gateway.journal[0].ran
    assert answer.status == 429
    assert answer.json()["id"] == 7
    assert answer.json()["error"] == {"code": -32029, "message": "Slow down"}


@pytest.mark.parametrize("code", [401, 403, 404, 500, 503])
def test_a_status_is_sent_with_its_headers_and_body(code: int) -> None:
    """R11, R25. Whatever a gateway may say in the place of an answer; nothing ran."""
    with FaultyGateway() as gateway:
        status = Status(
            code, "<p>no</p>", headers=[("x-a", "1"), ("x-a", "2")], content_type="text/html"
        )
        gateway.script("charge", status)
        answer = ask(gateway, CALL)
        assert gateway.executions("charge") == 0
        assert gateway.journal[0].step is status
    assert (answer.status, answer.body) == (code, b"<p>no</p>")
    assert answer.values("x-a") == [b"1", b"2"]
    assert answer.values("content-type") == [b"text/html"]
    challenge = [b'Bearer error="invalid_token"'] if code == 401 else []
    assert answer.values("www-authenticate") == challenge


def test_a_challenge_of_the_tests_own_takes_the_place_of_the_standing_one() -> None:
    """D23. What a 401 challenges with is up to the test."""
    with FaultyGateway() as gateway:
        gateway.script("charge", Status(401, headers={"WWW-Authenticate": "DPoP"}))
        assert ask(gateway, CALL).values("www-authenticate") == [b"DPoP"]


@pytest.mark.parametrize("how", ["plain", "json-escaped", "percent", "base64"])
@pytest.mark.parametrize("content_type", ["text/plain", "application/json"])
def test_an_echo_quotes_what_was_received(how: str, content_type: str) -> None:
    """R89, B7. The canary comes back, in each disguise; without echo it does not."""
    canary = "Bearer canary/+\u00e9"
    with FaultyGateway() as gateway:
        echo = Status(403, content_type=content_type, echo=how)  # pyright: ignore[reportArgumentType]
        gateway.script("charge", echo, Status(403, "no"))
        body = ask(gateway, CALL, headers={"authorization": canary}).body
        control = ask(gateway, CALL, headers={"authorization": canary}).body
    assert b"canary" not in control
    assert (canary.encode("latin-1") in body or canary.encode() in body) == (how == "plain")
    text = json.loads(body)["message"] if content_type == "application/json" else body.decode()
    match how:
        case "plain":
            assert canary in text
        case "percent":
            assert canary in unquote(text)
        case "base64":
            assert "QmVhcmVyIGNhbmFyeS8r6Q==" in text
        case _:
            assert b"\\u0063\\u0061\\u006e\\u0061\\u0072\\u0079" in body
            assert content_type == "text/plain" or canary in text


def test_an_echo_may_hide_in_a_good_answer_and_in_a_json_rpc_error() -> None:
    """B7. At any status."""
    with FaultyGateway() as gateway:
        gateway.script(
            "charge",
            Answer(echo="plain"),
            Answer(echo="json-escaped"),
            Status(400, echo=True, rpc_code=-32602),
        )
        answers = [
            ask(gateway, CALL, headers={"authorization": "Bearer canary-1"}) for _ in range(3)
        ]
    assert [answer.status for answer in answers] == [200, 200, 400]
    assert [b"canary-1" in answer.body for answer in answers] == [True, False, True]
    assert ["canary-1" in json.dumps(answer.json()) for answer in answers] == [True, True, True]


def test_a_redirect_points_and_the_next_request_takes_the_next_step() -> None:
    """B11. Within the origin it can be followed; the tool runs once."""
    with FaultyGateway() as gateway:
        gateway.script("charge", Redirect(), Redirect(302, to="http://elsewhere.test/mcp"))
        first, second = ask(gateway, CALL), ask(gateway, CALL)
        assert gateway.executions("charge") == 0
        assert (first.status, first.values("location")) == (307, [b"/mcp/moved"])
        assert (second.status, second.values("location")) == (302, [b"http://elsewhere.test/mcp"])
        assert ask(gateway, CALL, path="/mcp/moved").status == 200
        assert gateway.executions("charge") == 1


def test_slow_lets_time_pass_before_or_after_the_tool_ran() -> None:
    """R46. The journal's own clock shows it."""
    with FaultyGateway() as gateway:
        gateway.script("charge", Slow(0.05), Slow(0.05, when="after", then=Throttle(1)))
        assert ask(gateway, CALL).status == 200
        assert ask(gateway, CALL).status == 429
        before, after = gateway.journal
        assert gateway.executions("charge") == 2
    for entry in (before, after):
        assert entry.ended_at is not None
        assert entry.ended_at - entry.at >= 0.05


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
    """R10. Whether the tool ran is told by the count alone; the client cannot know."""
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
    """D3. The connection was made, so it proves nothing to a client, but nothing can have run."""
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
    """B12. A body that is not whole is not an answer, whatever HTTP says about its length."""
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
    """B12. Too short runs into what follows, too long never comes to its end."""
    with FaultyGateway() as gateway:
        gateway.script("charge", WrongLength(kind))  # pyright: ignore[reportArgumentType]
        answer = ask(gateway, CALL)
        assert gateway.executions("charge") == 1
    assert json.loads(answer.body)["id"] == 7
    assert int(answer.values("content-length")[0]) == len(answer.body) + lie


def test_two_lengths_or_a_length_beside_chunks_are_sent_too() -> None:
    """B12. RFC 9112, 6.1 and 6.3: a reader must refuse both."""
    with FaultyGateway() as gateway:
        gateway.script("charge", WrongLength("twice"), WrongLength("and-chunked"))
        twice, chunked = ask(gateway, CALL), ask(gateway, CALL)
    lengths = [int(value) for value in twice.values("content-length")]
    assert lengths == [len(twice.body), len(twice.body) + 1]
    assert chunked.values("transfer-encoding") == [b"chunked"]
    assert len(chunked.values("content-length")) == 1
    assert chunked.unchunked()[1]


def test_raw_bytes_go_out_as_they_stand() -> None:
    """B12. A garbage status line, and whatever else no other step says."""
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
    """R21. A client that re-uses it gets a sound answer next."""
    with FaultyGateway() as gateway:
        gateway.script("charge", Raw(b"HTTP/1.1 204 No Content\r\n\r\n", close=False))
        with connect(gateway) as connection:
            connection.sendall(lay_out(CALL, close=False))
            connection.sendall(lay_out(CALL))
            data = read_all(connection).data
    assert data.startswith(b"HTTP/1.1 204 No Content\r\n\r\nHTTP/1.1 200 OK\r\n")


def test_a_trickle_is_a_sound_answer_in_drops() -> None:
    """B12. Every drop resets an idle limit; only a total one ends it."""
    with FaultyGateway() as gateway:
        gateway.script("charge", Trickle(0.001, size=20))
        started = time.monotonic()
        answer = ask(gateway, CALL)
        assert time.monotonic() - started >= 0.001 * len(answer.body) / 20
        assert gateway.executions("charge") == 1
    assert answer.json()["id"] == 7


def test_a_tools_own_error_is_a_result() -> None:
    """R23. isError is content: the tool ran and said so."""
    with FaultyGateway() as gateway:
        gateway.script("charge", IsError("The card was declined."))
        result = ask(gateway, CALL).json()["result"]
        assert gateway.executions("charge") == 1
    assert isinstance(result, dict)
    assert result["isError"] is True
    assert result["content"] == [{"type": "text", "text": "The card was declined."}]
    assert result["resultType"] == "complete"


@pytest.mark.parametrize(
    ("error", "version", "status"),
    [
        (RpcError(-32602, "bad"), "2026-07-28", 400),
        (RpcError(-32601, "bad"), "2026-07-28", 404),
        (RpcError(-32603, "bad"), "2026-07-28", 200),
        (RpcError(-32603, "bad", status=502), "2026-07-28", 502),
        (RpcError(-32602, "bad"), "2025-11-25", 200),
    ],
)
def test_a_json_rpc_error_has_the_status_of_its_era(
    error: RpcError, version: str, status: int
) -> None:
    """R90, D19. In the modern era the code decides the status, before it the status was 200."""
    with FaultyGateway() as gateway:
        gateway.script("charge", error)
        answer = ask(gateway, tool_call("charge", version=version))
        assert gateway.executions("charge") == 0
    assert answer.status == status
    assert answer.json()["error"] == {"code": error.code, "message": "bad"}


def test_an_answer_may_be_dressed_up() -> None:
    """D23, D25. Header lines, a content type, and other words, in a sound answer."""
    with FaultyGateway() as gateway:
        gateway.script(
            "charge",
            Answer("other words", headers={"set-cookie": "a=b"}),
            Answer(content_type="application/json; charset=utf-7"),
            Answer({"content": []}, ran=False),
        )
        dressed, typed, idle = (ask(gateway, CALL) for _ in range(3))
        assert gateway.executions("charge") == 2
    assert dressed.values("set-cookie") == [b"a=b"]
    assert b"other words" in dressed.body
    assert typed.values("content-type") == [b"application/json; charset=utf-7"]
    assert b'"content":[]' in idle.body


def test_a_bomb_is_small_on_the_wire_and_large_when_read() -> None:
    """B12. Decoded piece by piece here: the double is honest about its size."""
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
    """B12. Checksum, length and JSON hold, at sizes that are no multiple of anything."""
    for size in (1, 999, (1 << 20) + 7):
        with FaultyGateway() as gateway:
            gateway.script("charge", GzipBomb(size))
            message = json.loads(gzip.decompress(ask(gateway, CALL).body))
        assert message["result"]["content"][0]["text"] == "0" * size


def test_truncated_gzip_reads_well_to_those_who_do_not_look() -> None:
    """B12. All of the JSON is there; the end of the gzip stream is not."""
    with FaultyGateway() as gateway:
        gateway.script("charge", TruncatedGzip())
        answer = ask(gateway, CALL)
    assert int(answer.values("content-length")[0]) == len(answer.body)
    reader = zlib.decompressobj(wbits=31)
    assert json.loads(reader.decompress(answer.body))["id"] == 7
    assert not reader.eof
    with pytest.raises(EOFError):
        gzip.decompress(answer.body)


def test_a_lost_session_is_a_404_in_either_era() -> None:
    """R100. Its words are those of MCP's own servers."""
    with FaultyGateway() as gateway:
        gateway.script("charge", SessionLost())
        answer = ask(gateway, CALL)
        assert gateway.executions("charge") == 0
    assert answer.status == 404
    assert answer.json()["error"] == {"code": -32600, "message": "Session not found"}


def test_methods_that_are_no_tool_may_fail_too() -> None:
    """B4. The probe, the lists and the notifications have scripts of their own."""
    with FaultyGateway() as gateway:
        gateway.script("server/discover", Throttle(1))
        gateway.script("tools/list", Status(503))
        gateway.script("notifications/initialized", Reset())
        assert ask(gateway, mcp_request("server/discover")).status == 429
        assert ask(gateway, mcp_request("server/discover")).status == 200
        assert ask(gateway, mcp_request("tools/list")).status == 503
        notification = mcp_request("notifications/initialized", rpc_id=None)
        assert ask(gateway, notification).ending == "reset"
        assert ask(gateway, notification).status == 202


def test_a_fault_of_ones_own_is_a_step_with_a_play() -> None:
    """B1. Whoever meets a gateway that no step resembles writes one."""

    class Teapot(Step):
        async def play(self, exchange: Exchange) -> None:
            await exchange.run()
            await exchange.send(418, ((b"x-pot", b"1"),), b"short and stout")

    with FaultyGateway() as gateway:
        gateway.script("charge", Teapot())
        answer = ask(gateway, CALL)
        assert gateway.executions("charge") == 1
    assert (answer.status, answer.values("x-pot")) == (418, [b"1"])


def test_a_step_that_fails_inside_fails_the_test() -> None:
    """B1. The double is not quiet about its own faults; after a test's own error it is."""

    class Broken(Step):
        async def play(self, exchange: Exchange) -> None:
            raise LookupError(exchange.received.tool)

    def break_one(error: type[Exception] | None) -> None:
        with FaultyGateway() as gateway:
            gateway.script("charge", Broken())
            ask(gateway, CALL)
            if error is not None:
                raise error

    with pytest.raises(RuntimeError, match="a step failed") as caught:
        break_one(None)
    assert isinstance(caught.value.__cause__, LookupError)
    with pytest.raises(KeyError):
        break_one(KeyError)
