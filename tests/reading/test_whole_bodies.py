"""R88, R92, R98, B12. A whole body is read once, to an end that its headers agree with, or refused.

Whatever is wrong with a body at 200 is named by a fixed word, in a 502 that quotes nothing of it; a
body that breaks off is no answer at all. Either way the answer is closed.
"""

from __future__ import annotations

import json
import tracemalloc
import zlib
from collections.abc import AsyncIterator
from typing import Any, Final

import anyio
import pytest

from support.answers_read import (
    CALL,
    answer_to,
    gzipped,
    opened,
    outcome_of,
    raw_deflated,
    read,
    reading,
    told,
    whole,
)
from surefoot.testing import Fails, FakeClock, Replies, ScriptedTransport
from surefoot.transports._content import Framing, whole_body
from surefoot.wire import JsonLimits, sentence

pytestmark = pytest.mark.anyio

ANSWER: Final = answer_to()
JSON: Final = ("content-type", "application/json")


def replied(body: bytes, *lines: tuple[str, str], **options: Any) -> Replies:
    return Replies(headers=[JSON, *lines], body=body, **options)


def coded(body: bytes, coding: str, *lines: tuple[str, str]) -> Replies:
    return replied(body, ("content-encoding", coding), *lines)


READ: Final = {
    "no length": replied(ANSWER),
    "its length": replied(ANSWER, ("content-length", str(len(ANSWER)))),
    "its length with zeros": replied(ANSWER, ("content-length", f"{len(ANSWER):030}")),
    "a chunked body": replied(ANSWER, ("transfer-encoding", "chunked")),
    "in pieces": Replies(headers=[JSON], chunks=[ANSWER[:1], b"", ANSWER[1:40], ANSWER[40:]]),
    "gzip": coded(gzipped(ANSWER), "gzip"),
    "gzip in capitals": coded(gzipped(ANSWER), "GZIP"),
    "x-gzip": coded(gzipped(ANSWER), "x-gzip"),
    "gzip with its length": coded(
        gzipped(ANSWER), "gzip", ("content-length", str(len(gzipped(ANSWER))))
    ),
    "gzip byte by byte": Replies(
        headers=[JSON, ("content-encoding", "gzip")],
        chunks=[bytes([byte]) for byte in gzipped(ANSWER)],
    ),
    "deflate": coded(zlib.compress(ANSWER), "deflate"),
    "bare deflate": coded(raw_deflated(ANSWER), "deflate"),
    "bare deflate byte by byte": Replies(
        headers=[JSON, ("content-encoding", "deflate")],
        chunks=[bytes([byte]) for byte in raw_deflated(ANSWER)],
    ),
    "identity": coded(ANSWER, "identity"),
    "gzip beside identity": coded(gzipped(ANSWER), "identity, gzip"),
    "gzip in a line of its own": coded(gzipped(ANSWER), "identity", ("content-encoding", "gzip")),
}


@pytest.mark.parametrize("play", READ.values(), ids=READ)
async def test_a_body_that_its_headers_agree_with_is_read(family: Any, play: Replies) -> None:
    """R92, R96. What goes up is the canonical form, with a length of its own and no coding."""
    answer = await read(family, play)
    assert answer.status_code == 200
    assert answer.json() == json.loads(ANSWER)
    assert answer.content == json.dumps(json.loads(ANSWER), separators=(",", ":")).encode()
    assert dict(answer.headers) == {
        "content-type": "application/json",
        "content-length": str(len(answer.content)),
    }


REFUSED: Final = {
    "a coding nobody asked for": ("content-coding", coded(ANSWER, "br")),
    "two codings": ("content-coding", coded(gzipped(gzipped(ANSWER)), "gzip, gzip")),
    "a coding that it is not in": ("content-coding", coded(ANSWER, "gzip")),
    "gzip cut in its end": ("truncated-content", coded(gzipped(ANSWER)[:-9], "gzip")),
    "gzip cut in its checksum": ("truncated-content", coded(gzipped(ANSWER)[:-1], "gzip")),
    "gzip of which one byte came": ("truncated-content", coded(gzipped(ANSWER)[:1], "gzip")),
    "gzip with a wrong checksum": (
        "content-coding",
        coded(gzipped(ANSWER)[:-8] + b"\0" * 8, "gzip"),
    ),
    "gzip and something after it": ("content-coding", coded(gzipped(ANSWER) + b"{}", "gzip")),
    "two gzip members": ("content-coding", coded(gzipped(ANSWER) * 2, "gzip")),
    "a length too long": ("length-mismatch", replied(ANSWER, ("content-length", "9999"))),
    "a length too short": ("length-mismatch", replied(ANSWER, ("content-length", "7"))),
    "a length and chunks": (
        "length-and-chunked",
        replied(ANSWER, ("content-length", str(len(ANSWER))), ("transfer-encoding", "chunked")),
    ),
    "a length beyond the bound": (
        "too-many-bytes",
        replied(ANSWER, ("content-length", str(1 << 40))),
    ),
    "a length beyond any number": (
        "too-many-bytes",
        replied(ANSWER, ("content-length", "9" * 5000)),
    ),
    "no body": ("empty", replied(b"")),
    "a page": ("content-type", Replies(headers=[("content-type", "text/html")], body=b"<h1>")),
    "no content type": ("content-type", Replies(body=ANSWER)),
    "two content types": ("two-content-types", replied(ANSWER, JSON)),
    "a type that begins like JSON": (
        "content-type",
        Replies(headers=[("content-type", "application/json-seq")], body=ANSWER),
    ),
}


@pytest.mark.parametrize(("rule", "play"), REFUSED.values(), ids=REFUSED)
async def test_any_other_body_is_refused_by_name(family: Any, rule: str, play: Replies) -> None:
    """R93, R98, D25. The words are fixed, and the rule stands beside them."""
    answer = await read(family, play)
    large = rule == "too-many-bytes"
    assert answer.status_code == 502
    assert answer.json()["id"] == 1
    assert answer.json()["error"]["message"] == sentence("too-large" if large else "unreadable")
    facts = outcome_of(await told(family, play))
    assert facts["rule"] == rule
    assert facts["kind"] == ("too-large" if large else "unreadable")
    assert facts["may_have_run"] is True


@pytest.mark.parametrize("coding", [None, "gzip"])
async def test_a_body_is_read_up_to_its_bound_and_not_a_byte_beyond(
    family: Any, coding: str | None
) -> None:
    """B12. The bound is on what is decoded, and nothing more is asked of the wire after it."""
    body = answer_to(result={"text": "x" * 4000})
    taken: list[int] = []

    async def pieces() -> AsyncIterator[bytes]:
        data = body if coding is None else gzipped(body)
        for start in range(0, len(data), 100):
            taken.append(start)
            yield data[start : start + 100]
        for _ in range(1000):
            taken.append(-1)
            yield b" " * 100

    for room, fits in ((len(body), True), (len(body) - 1, False)):
        taken.clear()
        lines = [JSON] if coding is None else [JSON, ("content-encoding", coding)]
        chunks: Any = [body if coding is None else gzipped(body)] if fits else pieces
        answer = await read(
            family, Replies(headers=lines, chunks=chunks), limits=JsonLimits(max_bytes=room)
        )
        assert (answer.status_code == 200) is fits
        assert -1 not in taken


@pytest.mark.parametrize("name", ["ReadError", "ReadTimeout", "RemoteProtocolError"])
async def test_a_body_that_breaks_off_is_no_answer(family: Any, name: str) -> None:
    """R28, R98. It goes up as what was raised, and its answer is closed all the same."""
    wire = ScriptedTransport(Replies(headers=[JSON], chunks=[ANSWER[:9]], breaks=Fails(name)))
    with pytest.raises(getattr(family, name)):
        await whole(family, reading(wire))
    assert wire.open_responses == 0


async def test_a_connection_that_breaks_after_the_whole_body_changes_nothing(family: Any) -> None:
    """R88. What was read to its end is an answer, whatever its closing raises."""

    class Torn(family.AsyncByteStream):
        async def __aiter__(self) -> Any:
            yield ANSWER

        async def aclose(self) -> None:
            raise family.CloseError("torn")

    wire = ScriptedTransport(lambda _: family.Response(200, headers=[JSON], stream=Torn()))
    assert (await whole(family, reading(wire))).json() == json.loads(ANSWER)


async def test_an_answer_in_drops_ends_when_its_time_is_over(family: Any) -> None:
    """B12. However lively a body is, it has an end; and it is told as late, not as large."""
    clock = FakeClock()

    async def drops() -> AsyncIterator[bytes]:
        while True:
            await clock.advance(100)
            yield b" "

    answer = await told(family, Replies(headers=[JSON], chunks=drops), clock=clock, total=3600.0)
    assert outcome_of(answer)["kind"] == "deadline"
    assert outcome_of(answer)["rule"] == "stream-total-seconds"
    assert 3600 <= clock.monotonic() - 1000 <= 3800


async def test_a_body_that_falls_silent_ends(family: Any) -> None:
    """B12. Where the client has no read timeout of its own, this layer has one."""

    async def silence() -> AsyncIterator[bytes]:
        yield b"{"
        await anyio.sleep_forever()

    wire = ScriptedTransport(Replies(headers=[JSON], chunks=silence))
    async with opened(family, reading(wire, idle=0.01)) as answer:
        assert answer.status_code == 502
    assert wire.open_responses == 0


@pytest.mark.parametrize("status", [400, 404, 429, 500, 503])
@pytest.mark.parametrize("why", ["a coding nobody asked for", "a length too short", "a page"])
async def test_a_failures_own_status_says_more_than_its_body(
    family: Any, status: int, why: str
) -> None:
    """R90. A failure whose body cannot be read is that failure."""
    play = REFUSED[why][1]
    answer = await read(
        family, Replies(status, headers=play.headers, body=play.body, chunks=play.chunks)
    )
    assert answer.status_code == status
    assert answer.json()["error"]["message"] != sentence("unreadable")


@pytest.mark.parametrize("status", [200, 202, 204])
async def test_what_nothing_was_asked_of_is_delivered_empty(family: Any, status: int) -> None:
    """D21. Whatever stands in an answer to a notification, or to a DELETE."""
    notification = CALL.body.replace(b'"id":1,', b"")
    assert notification != CALL.body
    for play in (Replies(status), Replies(status, json={"nothing": "to say"})):
        wire = ScriptedTransport(play, play)
        transport = reading(wire)
        client = family.AsyncClient(transport=transport)
        posted = await client.post("http://gateway.test/mcp", content=notification)
        ended = await client.delete("http://gateway.test/mcp")
        for answer in (posted, ended):
            assert (answer.status_code, answer.content) == (status, b"")
            assert "content-type" not in answer.headers
        assert wire.open_responses == 0


async def _pieces(size: int, count: int) -> AsyncIterator[bytes]:
    for number in range(count):
        yield number.to_bytes(size, "big")


def _no_timer() -> Any:
    return lambda: None


@pytest.mark.unmeasured
@pytest.mark.parametrize(("size", "count"), [(4, 100_000), (4_000, 100), (400_000, 1)])
async def test_what_a_body_costs_is_its_size_and_not_its_chunks(size: int, count: int) -> None:
    """B12. A server that sends two bytes at a time takes no more memory than any other."""
    tracemalloc.start()
    try:
        body = await whole_body(_pieces(size, count), Framing(), 1 << 20, _no_timer)
        _, peak = tracemalloc.get_traced_memory()
        # The control: the same chunks, each kept as what it is, are what this would notice.
        tracemalloc.reset_peak()
        kept = [chunk async for chunk in _pieces(4, 100_000)]
        _, of_chunks = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(body) == 400_000
    assert body == b"".join([chunk async for chunk in _pieces(size, count)])
    assert peak < 3 * len(body)
    assert of_chunks - peak > 3 * len(body), len(kept)
