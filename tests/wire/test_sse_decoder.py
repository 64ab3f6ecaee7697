"""R94, D22, D37, B12. An event stream reads the same however it was cut, and within its bounds."""

from __future__ import annotations

import codecs
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from surefoot.errors import AnswerTooLargeError, UnreadableAnswerError
from surefoot.wire import SseBlock, SseDecoder, encode_event

CASES: list[dict[str, Any]] = json.loads(
    (Path(__file__).parents[1] / "data" / "sse_cases.json").read_text("utf-8")
)["cases"]

REFUSED = {
    "refuse-bom": "byte-order-mark",
    "refuse-utf8": "not-utf8",
    "refuse": "not-utf8",  # what UTF-16 looks like
}


class Outcome(NamedTuple):
    """What a stream gave."""

    events: list[dict[str, str]]
    blocks: list[tuple[Any, ...]]
    last_id: str
    retry: float | None
    rule: str | None
    cut: bool | None


def played(chunks: Iterable[bytes], decoder: SseDecoder | None = None) -> Outcome:
    """Feed a stream, and keep what it gave up to its end or its fault."""
    decoder = decoder or SseDecoder()
    blocks: list[SseBlock] = []
    events: list[dict[str, str]] = []
    last_id = ""
    rule: str | None = None
    cut: bool | None = None
    try:
        for chunk in chunks:
            for block in decoder.feed(chunk):
                blocks.append(block)
                last_id = last_id if block.id is None else block.id
                if block.data is not None:
                    data = block.data.decode()
                    events.append({"event": block.event, "data": data, "id": last_id})
        cut = decoder.close()
    except UnreadableAnswerError as error:
        rule = error.rule
    return Outcome(events, [tuple(b) for b in blocks], last_id, decoder.retry, rule, cut)


def raw(case: dict[str, Any]) -> bytes:
    return codecs.escape_decode(case["input"].encode("ascii"))[0]


def cuts(data: bytes, most: int = 1_500) -> Iterator[list[bytes]]:
    """Whole, byte by byte, and cut in two at every place."""
    yield [data]
    yield [data[i : i + 1] for i in range(len(data))]
    for at in range(1, min(len(data), most)):
        yield [data[:at], data[at:]]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_every_collected_case_reads_as_the_standard_or_as_strict_says(
    case: dict[str, Any],
) -> None:
    """R94, D22, D37. The standard is WHATWG HTML 9.2.6; "strict" says where we are stricter."""
    found = played([raw(case)])
    stated = case["retry"]
    retry = None if stated is None else min(max(min(stated, 10**9) / 1000, 0.1), 60.0)
    if case["strict"] in {"same", "clamp"}:
        assert found.rule is None
        assert found.events == case["events"]
        assert found.last_id == case["last_event_id"]
    else:
        assert found.rule == REFUSED[case["strict"]]
        # What came before the fault is what the standard gives, or nothing at all.
        assert found.events == case["events"][: len(found.events)]
    if case["strict"] == "same":
        assert found.retry == retry
    if case["strict"] == "clamp":
        assert found.retry == 60.0


@pytest.mark.unmeasured
@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_no_cut_of_a_collected_case_changes_what_is_read(case: dict[str, Any]) -> None:
    """R94."""
    expected = played([raw(case)])
    for chunks in cuts(raw(case)):
        assert played(chunks) == expected
    if "chunks" in case:
        parts = [codecs.escape_decode(part.encode("ascii"))[0] for part in case["chunks"]]
        assert played(parts) == expected


lines = st.sampled_from(
    [
        b"",
        b"",
        b"data: x",
        b"data:y",
        b"data",
        b"data: {}",
        b"event: message",
        b"event: other",
        b"id: 1",
        b"id:",
        b"id: a\0b",
        b"retry: 500",
        b"retry: -5",
        b":",
        b": ping",
        b"foo: bar",
        "data: \u2026".encode(),
        b"data: \xff",
        b"\0x\0: 1",
    ]
)
ends = st.sampled_from([b"\n", b"\r", b"\r\n"])
streams = st.lists(st.tuples(lines, ends).map(b"".join), max_size=20).map(b"".join)


def in_parts(data: bytes, sizes: list[int]) -> list[bytes]:
    parts: list[bytes] = []
    for size in sizes:
        parts.append(data[:size])
        data = data[size:]
    return [*parts, data]


@given(streams, st.lists(st.integers(0, 9), max_size=40), st.booleans())
def test_any_cut_of_any_stream_gives_the_same(
    data: bytes, sizes: list[int], keep_alives: bool
) -> None:
    """R94. Blocks, errors and what was cut off are the same; empty chunks change nothing."""
    whole = played([data], SseDecoder(keep_alives=keep_alives))
    assert played(in_parts(data, sizes), SseDecoder(keep_alives=keep_alives)) == whole


@given(
    streams,
    st.lists(st.integers(0, 9), max_size=40),
    st.integers(1, 40),
    st.integers(1, 12),
)
def test_any_cut_of_a_stream_meets_the_same_bound(
    data: bytes, sizes: list[int], most: int, most_comments: int
) -> None:
    """B12."""

    def small() -> SseDecoder:
        return SseDecoder(max_event_bytes=most, max_comment_bytes=most_comments)

    assert played(in_parts(data, sizes), small()) == played([data], small())


def by_the_letter(data: bytes) -> list[tuple[str, bytes]]:
    """The events of a stream as the standard words it, line by line; the slow reference."""
    text = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    events: list[tuple[str, bytes]] = []
    kind, buffer = b"", b""
    for line in text.split(b"\n")[:-1]:
        if not line:
            if buffer:
                events.append((kind.decode() or "message", buffer[:-1]))
            kind, buffer = b"", b""
            continue
        name, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if name == b"event":
            kind = value
        elif name == b"data":
            buffer += value + b"\n"
    return events


@given(streams)
def test_events_are_those_of_the_standard(data: bytes) -> None:
    """R94, D22. Wherever nothing is refused."""
    found = played([data])
    events = [(block[0], block[1]) for block in found.blocks if block[1] is not None]
    expected = by_the_letter(data)
    if found.rule is None:
        assert events == expected
    else:
        assert events == expected[: len(events)]


@pytest.mark.unmeasured
@pytest.mark.parametrize("form", [b"data: %b\n\n", b"event: message\r\ndata: %b\r\n\r\n"])
@pytest.mark.parametrize("size", [1, 7, 4_096, 65_536, 1 << 20])
def test_an_event_at_the_cap_is_read_and_one_byte_more_is_refused(form: bytes, size: int) -> None:
    """B12. Counted as the client counts: line ends are left out."""
    cap = 100_000
    for over in (-1, 0, 1):
        room = cap - sum(len(line) for line in (form % b"").splitlines())
        data = b"data: ok\n\n" + form % (b"x" * (room + over)) + b"data: after\n\n"
        chunks = [data[i : i + size] for i in range(0, len(data), size)]
        if size == 1 and over != 1:
            chunks = [data[:-60], *(data[i : i + 1] for i in range(len(data) - 60, len(data)))]
        found = played(chunks, SseDecoder(max_event_bytes=cap))
        assert found.rule == ("event-bytes" if over == 1 else None)
        assert len(found.events) == (1 if over == 1 else 3)


def test_a_bound_that_is_passed_is_a_typed_error_that_names_it() -> None:
    """B12."""
    decoder = SseDecoder(max_event_bytes=10)
    with pytest.raises(AnswerTooLargeError) as caught:
        list(decoder.feed(b"data: 12345678901"))
    assert (caught.value.rule, caught.value.limit) == ("event-bytes", 10)


@pytest.mark.parametrize(
    ("chunk", "rule"),
    [
        (b"data: " + b"x" * 1_000, "event-bytes"),
        (b"data: x\n" * 100, "event-bytes"),
        (b"unknown" * 100, "event-bytes"),
        (b"unknown: x\n" * 100, "event-bytes"),
        (b"id: " + b"x" * 1_000, "event-bytes"),
        (b": " + b"x" * 1_000, "comment-bytes"),
        (b": x\n" * 100, "comment-bytes"),
    ],
)
def test_nothing_endless_is_kept_beyond_its_bound(chunk: bytes, rule: str) -> None:
    """B12. Endless lines, endless many lines, of every kind."""

    def endless() -> Iterator[bytes]:
        for _ in range(10_000):
            yield chunk

    decoder = SseDecoder(max_event_bytes=5_000, max_comment_bytes=5_000)
    assert played(endless(), decoder).rule == rule


@pytest.mark.parametrize("chunks", [[b": ping\n\n"], [b": ", b"ping\n", b"\n"]])
def test_a_whole_block_of_comments_meets_the_bound_of_comments(chunks: list[bytes]) -> None:
    """B12. However it comes, and though it is within what an event may hold."""
    assert played(chunks, SseDecoder(max_comment_bytes=5)).rule == "comment-bytes"
    assert played(chunks, SseDecoder(max_comment_bytes=6)).rule is None


def test_comments_between_events_can_go_on_for_ever() -> None:
    """B12, D22. What ends is counted anew: keep-alives of days are no attack."""
    decoder = SseDecoder(max_comment_bytes=100)
    found = played([b": ping - some time\n\n"] * 1_000 + [b"data: x\n\n"], decoder)
    assert found.rule is None
    assert found.events == [{"event": "message", "data": "x", "id": ""}]


def test_keep_alives_are_told_only_to_those_who_ask() -> None:
    """D22."""
    data = [b": ping\n\n", b":\r\n\r\ndata: x\n\n", b": y\ndata: z\n\n"]
    assert len(played(data).blocks) == 2
    told = played(data, SseDecoder(keep_alives=True)).blocks
    assert [SseBlock(*block).is_keep_alive for block in told] == [True, True, False, False]


def test_a_block_that_carries_only_an_id_or_a_retry_is_kept() -> None:
    """D22. MCP's resumption rests on it; the standard dispatches nothing."""
    found = played([b"id: 7\n\nretry: 500\n\nevent: x\n\nid: 8\nretry: 10\n\n"])
    assert found.blocks == [
        ("message", None, "7", None),
        ("message", None, None, 0.5),
        ("message", None, "8", 0.1),
    ]


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        (b"0", 0.1),
        (b"1", 0.1),
        (b"100", 0.1),
        (b"499", 0.499),
        (b"60000", 60.0),
        (b"60001", 60.0),
        (b"999999", 60.0),
        (b"1000000", 60.0),
        (b"000000000500", 0.5),
        (b"9" * 5_000, 60.0),
        (b"-5", None),
        (b"+5", None),
        (b"5.0", None),
        (b"1e3", None),
        (b"1_0", None),
        (b"0x10", None),
        (b"5 ", None),
        (b" 5", None),
        (b"5\t", None),
        (b"", None),
        ("\u0665".encode(), None),
        ("\uff15".encode(), None),
        (b"soon", None),
    ],
)
def test_a_retry_is_ascii_digits_and_is_clamped(value: bytes, seconds: float | None) -> None:
    """D37. -5 crashes a client of the SDK, 0 is a storm, a year is a hang."""
    found = played([b"retry: " + value + b"\n\n"])
    assert found.rule is None
    assert found.retry == seconds


def test_an_unterminated_block_is_dropped_and_said_to_be() -> None:
    """R94, D22."""
    assert played([b"data: x"]).events == []
    assert played([b"data: x"]).cut is True
    assert played([b"data: x\n"]).events == []
    assert played([b"data: x\n"]).cut is True
    assert played([b"data: x\n\n"]).cut is False
    assert played([b"data: x\n\r"]).cut is False
    assert played([b"data: x\n\nid: 9"]) == played([b"data: x\n\n", b"i", b"d: 9"])
    assert played([b"data: x\n\nid: 9"]).last_id == ""
    assert played([]).cut is False


def test_a_retry_counts_in_a_block_that_never_ends_as_well() -> None:
    """D37. It takes effect with its line."""
    assert played([b"retry: 2000\n"]).retry == 2.0
    assert played([b"retry: 2000"]).retry is None


def test_after_a_fault_nothing_more_is_read() -> None:
    """R98. What came before it came; every later question has the same answer."""
    decoder = SseDecoder()
    given_before = iter(decoder.feed(b"data: a\n\ndata: \xff\n\ndata: b\n\n"))
    assert next(given_before).data == b"a"
    with pytest.raises(UnreadableAnswerError, match="not-utf8"):
        next(given_before)
    with pytest.raises(UnreadableAnswerError, match="not-utf8"):
        list(decoder.feed(b"data: c\n\n"))
    with pytest.raises(UnreadableAnswerError, match="not-utf8"):
        decoder.close()


def test_two_streams_share_nothing() -> None:
    """R94. One reader on the package index swallows bytes of one stream in another."""
    one, other = SseDecoder(), SseDecoder()
    assert list(one.feed(b"data: \xe2\x80")) == []
    assert [block.data for block in other.feed(b"data: x\n\n")] == [b"x"]
    assert [block.data for block in one.feed(b"\xa6\n\n")] == ["\u2026".encode()]


def test_a_block_shows_no_word_that_a_server_wrote() -> None:
    """R89."""
    block = SseBlock("CANARY-1", b"CANARY-2", "CANARY-3", 1.0)
    assert "CANARY" not in repr(block)
    assert b"CANARY-2" in encode_event(block.data)  # it is in there
