"""R96, R97, D22, B12. An event stream goes up at its headers, and is checked as it passes.

Each event goes up as soon as it is whole, in its canonical form; the first that breaks a rule ends
the stream. The answer to a request is bounded in bytes, silence and time, a standing stream in the
size of its events alone.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import AsyncIterator
from typing import Any, Final

import anyio
import pytest

from support.answers_read import (
    CALL,
    answer_to,
    event,
    gzipped,
    opened,
    outcome_of,
    raw_deflated,
    reading,
    streamed,
    told,
    whole,
)
from surefoot.testing import Fails, FakeClock, Replies, ScriptedTransport
from surefoot.wire import JsonLimits, encode_event

pytestmark = pytest.mark.anyio

ANSWER: Final = answer_to()
CANONICAL: Final = json.dumps(json.loads(ANSWER), separators=(",", ":")).encode()
NOTE: Final = b'{"jsonrpc":"2.0","method":"notifications/message","params":{"data":"on it"}}'
PLAIN: Final = encode_event(CANONICAL)


async def passed(family: Any, play: Replies, *, method: str = "POST", **settings: Any) -> bytes:
    """What goes up of a stream; nothing of it stays open."""
    wire = ScriptedTransport(play)
    answer = await whole(family, reading(wire, **settings), method=method)
    assert wire.open_responses == 0
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "text/event-stream"
    return bytes(answer.content)


PASSES: Final[dict[str, tuple[list[bytes], bytes]]] = {
    "one event": ([event(ANSWER)], PLAIN),
    "an event of its type by name": ([event(ANSWER, event="message")], PLAIN),
    "line ends of the network": ([event(ANSWER).replace(b"\n", b"\r\n")], PLAIN),
    "line ends of old": ([event(ANSWER).replace(b"\n", b"\r")], PLAIN),
    "byte by byte": ([bytes([byte]) for byte in event(ANSWER)], PLAIN),
    "data over two lines": (
        [event(ANSWER.replace(b'"result"', b'\ndata: "result"'))],
        PLAIN,
    ),
    "a notification first": ([event(NOTE) + event(ANSWER)], encode_event(NOTE) + PLAIN),
    "an id and a retry": (
        [event(ANSWER, id="e-7", retry="500")],
        encode_event(CANONICAL, id="e-7", retry=0.5),
    ),
    "a priming event": ([b"id: e-1\nretry: 500\ndata:\n\n", event(ANSWER)],
        encode_event(None, id="e-1", retry=0.5) + PLAIN),
    "an id alone": ([b"id: e-1\n\n", event(ANSWER)], encode_event(None, id="e-1") + PLAIN),
    "comments": ([b": secret words\n\n", event(ANSWER)], b":\n\n" + PLAIN),
    "a retry of nothing": (
        [event(ANSWER, retry="0")],
        encode_event(CANONICAL, retry=0.1),
    ),
    "a retry of years": ([event(ANSWER, retry="9" * 40)], encode_event(CANONICAL, retry=60)),
    "a retry that is no number": ([event(ANSWER, retry="-5")], PLAIN),
    "an id that is no header": ([event(ANSWER, id="é")], PLAIN),
    "an id that is too long": ([event(ANSWER, id="x" * 1025)], PLAIN),
    "an event nobody reads": ([b"event: weather\ndata: rain\n\n", event(ANSWER)], PLAIN),
    "half an event at the end": ([event(ANSWER), event(NOTE)[:-1]], PLAIN),
    "nothing at all": ([], b""),
}  # fmt: skip


@pytest.mark.parametrize(("chunks", "wanted"), PASSES.values(), ids=PASSES)
async def test_events_go_up_in_one_form(family: Any, chunks: list[bytes], wanted: bytes) -> None:
    """R96, D22, D37. Whatever way they were written in."""
    assert await passed(family, streamed(*chunks)) == wanted


BREAKS: Final = {
    "no JSON": ("not-json", [event(b"hello")]),
    "a name twice": ("duplicate-key", [event(ANSWER[:-1] + b',"id":1}')]),
    "an answer to another request": ("wrong-id", [event(answer_to(2))]),
    "an id of another type": ("wrong-id", [event(answer_to("1"))]),
    "a batch": ("batch", [event(b"[" + ANSWER + b"]")]),
    "no UTF-8": ("not-utf8", [event(ANSWER).replace(b"found", b"f\xffnd")]),
    "no UTF-8 in a comment": ("not-utf8", [b": \xff\n\n"]),
    "a byte order mark": ("byte-order-mark", [b"\xef\xbb\xbf" + event(ANSWER)]),
    "UTF-16": ("not-utf8", [event(ANSWER).decode().encode("utf-16-le")]),
    "an event too long": ("event-bytes", [event(answer_to(result={"t": "x" * 3000}))]),
    "a line without an end": ("event-bytes", [b"data: " + b"x" * 900] + [b"x" * 900] * 9),
    "lines without an end": ("event-bytes", [b"data: x\n" * 100] * 99),
    "a comment without an end": ("comment-bytes", [b":" + b"x" * 1000] + [b"x" * 1000] * 2000),
}


AFTER: Final = {
    f"{name}, {when}": (rule, chunks, before)
    for when, before in (("at once", b""), ("after an event", event(NOTE)))
    for name, (rule, chunks) in BREAKS.items()
    if not (before and rule == "byte-order-mark")  # which is one only at the start
}


@pytest.mark.parametrize(("rule", "chunks", "before"), AFTER.values(), ids=AFTER)
async def test_what_breaks_a_rule_ends_the_stream(
    family: Any, rule: str, chunks: list[bytes], before: bytes
) -> None:
    """R97, R98, D22. What was whole before it has gone up; nothing after it does."""
    play = streamed(*([before] if before else []), *chunks, event(NOTE))
    sent = before and encode_event(NOTE)
    assert await passed(family, play, max_event_bytes=2048) == sent
    facts = outcome_of(await told(family, play, max_event_bytes=2048))
    assert facts["rule"] == rule
    assert facts["kind"] == ("too-large" if rule.endswith("-bytes") else "unreadable")


async def test_the_headers_go_up_before_any_event_came(family: Any) -> None:
    """D22. Nothing is peeked at, and an event does not wait for the one after it."""
    open_up, go_on = anyio.Event(), anyio.Event()

    async def events() -> AsyncIterator[bytes]:
        await open_up.wait()
        yield event(NOTE)
        await go_on.wait()
        yield event(ANSWER)

    wire = ScriptedTransport(streamed(by=events))
    with anyio.fail_after(5):
        async with opened(family, reading(wire)) as answer:
            assert answer.status_code == 200
            parts = aiter(answer.stream)
            open_up.set()
            assert await anext(parts) == encode_event(NOTE)
            go_on.set()
            assert await anext(parts) == PLAIN
            assert await anext(parts, None) is None


MEDIA: Final = {
    "text/event-stream; charset=utf-8": None,
    'TEXT/Event-Stream;charset="UTF-8"': None,
    "text/event-stream; charset=utf-7": None,
    "text/event-stream-not": "content-type",
}


@pytest.mark.parametrize(("kind", "rule"), MEDIA.items(), ids=MEDIA)
@pytest.mark.parametrize("policy", ["checked", "strict"])
async def test_a_stream_is_handed_on_as_utf8_and_nothing_else(
    family: Any, kind: str, rule: str | None, policy: Any
) -> None:
    """R93, D25. No reader above can be talked into another codec."""
    play = Replies(headers=[("content-type", kind)], chunks=[event(ANSWER)])
    if policy == "strict" and "utf-7" in kind:
        rule = "content-type-parameter"
    if rule is None:
        assert await passed(family, play, policy=policy) == PLAIN
    else:
        assert outcome_of(await told(family, play, policy=policy))["rule"] == rule


async def test_two_content_types_are_no_stream(family: Any) -> None:
    """R93, D25."""
    play = streamed(event(ANSWER), headers=[("content-type", "text/event-stream")])
    assert outcome_of(await told(family, play))["rule"] == "two-content-types"


CODINGS: Final = {
    "gzip": (gzipped, "gzip"),
    "deflate": (zlib.compress, "deflate"),
    "bare deflate": (raw_deflated, "deflate"),
}


@pytest.mark.parametrize(("pack", "coding"), CODINGS.values(), ids=CODINGS)
async def test_a_compressed_stream_is_read_to_its_last_byte(
    family: Any, pack: Any, coding: str
) -> None:
    """B12. Cut short, it is cut, even where each event in it was whole."""
    packed = pack(event(NOTE) + event(ANSWER))
    lines = [("content-encoding", coding)]
    wanted = encode_event(NOTE) + PLAIN
    pieces = [packed[at : at + 3] for at in range(0, len(packed), 3)]
    assert await passed(family, streamed(*pieces, headers=lines)) == wanted
    noted = pack(event(NOTE))[:-1]
    cut = streamed(noted, headers=lines)
    assert outcome_of(await told(family, cut))["rule"] == "truncated-content"
    unknown = streamed(packed, headers=[("content-encoding", "br")])
    assert outcome_of(await told(family, unknown))["rule"] == "content-coding"


async def test_an_answer_in_events_has_a_bound_of_bytes_and_one_of_time(family: Any) -> None:
    """B12. Until the reply has gone by; a stream that pings for ever is no answer."""
    clock = FakeClock()

    async def chatter() -> AsyncIterator[bytes]:
        while True:
            await clock.advance(10)
            yield event(NOTE)

    play = streamed(by=chatter)
    large = await told(family, play, limits=JsonLimits(max_bytes=10_000), clock=clock)
    assert outcome_of(large)["kind"] == "too-large"
    assert outcome_of(large)["rule"] == "too-many-bytes"
    before = clock.monotonic()
    late = await told(family, play, total=600.0, clock=clock)
    assert outcome_of(late)["kind"] == "deadline"
    assert outcome_of(late)["rule"] == "stream-total-seconds"
    assert 600 <= clock.monotonic() - before <= 620


async def test_pings_alone_are_counted_and_not_passed_on_for_ever(family: Any) -> None:
    """B12. Comments reset the silence, and nothing else."""
    clock = FakeClock()

    async def pings() -> AsyncIterator[bytes]:
        while True:
            await clock.advance(1)
            yield b": ping\n\n"

    answer = await told(family, streamed(by=pings), total=60.0, clock=clock)
    assert outcome_of(answer)["rule"] == "stream-total-seconds"
    assert answer.content.count(b":\n\n") == 59


async def test_a_silent_stream_ends(family: Any) -> None:
    """B12. Where the client has no read timeout of its own, this layer has one."""

    async def silence() -> AsyncIterator[bytes]:
        yield event(NOTE)
        await anyio.sleep_forever()

    with anyio.fail_after(5):
        answer = await told(family, streamed(by=silence), idle=0.02)
    assert outcome_of(answer)["kind"] == "deadline"
    assert outcome_of(answer)["rule"] == "stream-idle-seconds"


async def test_a_standing_stream_may_live_as_long_as_its_server_wants(family: Any) -> None:
    """B12. What it says is checked all the same, and any request of the server may come."""
    clock = FakeClock()
    asked = b'{"jsonrpc":"2.0","id":"s-1","method":"ping"}'

    async def days() -> AsyncIterator[bytes]:
        for _ in range(20):
            await clock.advance(86_400)
            yield event(NOTE)
        yield event(asked)
        yield event(b"nonsense")

    limits = JsonLimits(max_bytes=100)
    sent = await passed(family, streamed(by=days), method="GET", clock=clock, limits=limits)
    assert sent == encode_event(NOTE) * 20 + encode_event(asked)


async def test_after_the_reply_only_events_are_bounded(family: Any) -> None:
    """B12. What a server still says is cut by no budget of the answer."""
    limits = JsonLimits(max_bytes=len(ANSWER) + 20)
    play = streamed(event(ANSWER), *[event(NOTE)] * 50)
    assert await passed(family, play, limits=limits) == PLAIN + encode_event(NOTE) * 50


async def test_a_break_goes_up_as_what_was_raised(family: Any) -> None:
    """R28. The layer above says it in words; this one invents no end."""
    wire = ScriptedTransport(streamed(event(NOTE), breaks=Fails("ReadError")))
    async with opened(family, reading(wire)) as answer:
        parts = aiter(answer.stream)
        assert await anext(parts) == encode_event(NOTE)
        with pytest.raises(family.ReadError):
            await anext(parts)
    assert wire.open_responses == 0


@pytest.mark.parametrize("taken", [0, 1, 2])
async def test_a_reader_that_leaves_closes_everything_below(family: Any, taken: int) -> None:
    """B12. On both loops at once, and not when a garbage collector comes by."""
    ended: list[str] = []

    async def endless() -> AsyncIterator[bytes]:
        try:
            while True:
                yield event(NOTE)
        finally:
            ended.append("closed")

    wire = ScriptedTransport(streamed(by=endless))
    async with opened(family, reading(wire)) as answer:
        parts = aiter(answer.stream)
        for _ in range(taken):
            assert await anext(parts) == encode_event(NOTE)
    assert wire.open_responses == 0
    assert ended == (["closed"] if taken else [])


async def test_a_cancelled_reader_closes_everything_below(family: Any) -> None:
    """B2, B12. Cancellation passes, and leaves nothing open."""
    reached = anyio.Event()

    async def one_and_silence() -> AsyncIterator[bytes]:
        yield event(NOTE)
        reached.set()
        await anyio.sleep_forever()

    wire = ScriptedTransport(streamed(by=one_and_silence))
    with anyio.fail_after(5):
        async with anyio.create_task_group() as group:

            async def reader() -> None:
                async with opened(family, reading(wire), CALL) as answer:
                    async for _ in answer.stream:
                        pass

            group.start_soon(reader)
            await reached.wait()
            group.cancel_scope.cancel()
    assert wire.open_responses == 0
