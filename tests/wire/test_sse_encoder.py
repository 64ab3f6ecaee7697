"""D22, D37. An event is written in one way, and reads back as what was written."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from surefoot.wire import KEEP_ALIVE, SseBlock, SseDecoder, encode_event
from surefoot.wire.strict_json import dumps


def read(data: bytes) -> list[SseBlock]:
    decoder = SseDecoder()
    blocks = list(decoder.feed(data))
    assert not decoder.close()
    return blocks


WRITTEN: list[tuple[str, bytes | None, dict[str, Any], bytes]] = [
    ("plain", b"{}", {}, b"data: {}\n\n"),
    ("message has no line of its own", b"{}", {"event": "message"}, b"data: {}\n\n"),
    ("another type has", b"/x", {"event": "endpoint"}, b"event: endpoint\ndata: /x\n\n"),
    ("id", b"{}", {"id": "a-1"}, b"id: a-1\ndata: {}\n\n"),
    ("id that resets", b"{}", {"id": ""}, b"id: \ndata: {}\n\n"),
    ("retry", b"{}", {"retry": 0.5}, b"retry: 500\ndata: {}\n\n"),
    ("retry below", b"{}", {"retry": 0.0}, b"retry: 100\ndata: {}\n\n"),
    ("retry above", b"{}", {"retry": 1e9}, b"retry: 60000\ndata: {}\n\n"),
    ("without data", None, {"id": "a", "retry": 1}, b"id: a\nretry: 1000\ndata:\n\n"),
    ("two lines", b"a\nb", {}, b"data: a\ndata: b\n\n"),
    ("an id with a blank is left out", b"{}", {"id": "a b"}, b"data: {}\n\n"),
    ("an id beyond ASCII is left out", b"{}", {"id": "\u2026"}, b"data: {}\n\n"),
    ("an id with a line end is left out", b"{}", {"id": "a\ndata: x"}, b"data: {}\n\n"),
    ("an id too long is left out", b"{}", {"id": "x" * 1_025}, b"data: {}\n\n"),
]


@pytest.mark.parametrize(
    ("data", "options", "written"), [w[1:] for w in WRITTEN], ids=[w[0] for w in WRITTEN]
)
def test_an_event_is_written_in_one_way(
    data: bytes | None, options: dict[str, Any], written: bytes
) -> None:
    """D22, D37."""
    assert encode_event(data, **options) == written


def test_the_longest_plain_id_passes() -> None:
    """D22."""
    longest = "x" * 1_024
    assert SseBlock(id=longest).plain_id == longest
    assert SseBlock(id=longest + "x").plain_id is None
    assert SseBlock(id=None).plain_id is None


@pytest.mark.parametrize(
    ("data", "event"), [(b"a\rb", "message"), (b"a", "x\ny"), (b"a", "x\ry"), (b"a", "\u2026")]
)
def test_what_would_break_the_framing_is_not_written(data: bytes, event: str) -> None:
    """R97. Canonical JSON never holds a line end; the rest is a mistake of a caller."""
    with pytest.raises(ValueError, match="must"):
        encode_event(data, event=event)


json_texts = st.recursive(
    st.none() | st.integers() | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner) | st.dictionaries(st.text("ab\r\n\u2028"), inner),
    max_leaves=8,
).map(dumps)


@given(
    json_texts,
    st.sampled_from(["message", "endpoint", "x"]),
    st.none() | st.text("abc-._~!", max_size=8),
    st.none() | st.integers(100, 60_000),
)
def test_what_is_written_reads_back(
    data: bytes, event: str, event_id: str | None, milliseconds: int | None
) -> None:
    """D22. One message per event, whatever text it holds."""
    retry = None if milliseconds is None else milliseconds / 1000
    block = SseBlock(event, data, event_id, retry)
    written = encode_event(data, event=event, id=event_id, retry=retry)
    assert read(written + written) == [block, block]
    assert b"\r" not in written


def test_a_keep_alive_says_nothing() -> None:
    """D22."""
    assert read(KEEP_ALIVE) == []
    assert [b.is_keep_alive for b in SseDecoder(keep_alives=True).feed(KEEP_ALIVE)] == [True]
