"""R88, R90, R91, R95 to R98, B1, B12; invariants 12 to 14. What holds for whatever a server sends.

Answers are drawn whole: status, header lines, a body that may be mutated, cut into chunks anywhere
and broken off, as JSON and as an event stream.
"""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import pairwise
from typing import Any, Final, NamedTuple, cast

import httpx2
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from mcp_types import jsonrpc_message_adapter

from support.answers_read import CALL, answer_to, answering, event, gzipped, reading, whole
from surefoot.testing import Fails, Replies, ScriptedTransport, mcp_request
from surefoot.wire import JsonLimits, SseDecoder

pytestmark = pytest.mark.unmeasured

MANY: Final = settings(max_examples=300)
SMALL: Final[dict[str, Any]] = {"limits": JsonLimits(max_bytes=4096), "max_event_bytes": 2048}
CANARY: Final = "CANARY-3f9c"
STATUSES: Final = (200, 200, 200, 201, 202, 204, 302, 307, 400, 401, 403, 404, 405, 409, 429, 500)

lines = st.lists(
    st.sampled_from(
        [
            ("content-type", "application/json"),
            ("content-type", "text/event-stream"),
            ("content-type", "text/html"),
            ("content-type", f"{CANARY}/{CANARY}"),
            ("content-encoding", "gzip"),
            ("content-encoding", "br"),
            ("content-length", "7"),
            ("content-length", "\xff"),
            ("transfer-encoding", "chunked"),
            ("location", f"/{CANARY}"),
            ("location", "http://["),
            ("retry-after", "3"),
            ("retry-after", CANARY),
            ("set-cookie", CANARY),
            ("www-authenticate", f'Bearer error="{CANARY}'),
            ("mcp-session-id", "\x00"),
            ("x-amzn-errortype", "ThrottlingException"),
            ("\xe9", "\xe9"),
        ]
    ),
    max_size=4,
)
numbers = st.integers(-(2**70), 2**70) | st.sampled_from([0.1, -0.0, 5e-324, 1.0, 1e15])
values = st.recursive(
    st.none() | st.booleans() | numbers | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3)
    ),
    max_leaves=8,
)
results = st.dictionaries(st.sampled_from(["content", "_meta", "é", "surefoot/x"]), values)
asked: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries(
    {"id": st.just(1), "result": results}
)
refused: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries(
    {
        "id": st.sampled_from([1, 2, None, "1"]),
        "error": st.fixed_dictionaries(
            {"code": st.integers(-32700, 7), "message": st.text(max_size=8)},
            optional={"data": values},
        ),
    }
)


def written(message: dict[str, Any], indent: int | None, plain: bool) -> bytes:
    """A message as one server or another writes it."""
    made = {"jsonrpc": "2.0", **message}
    return json.dumps(made, indent=indent, ensure_ascii=plain).encode()


replies = st.builds(written, asked | refused, st.sampled_from([None, 1]), st.booleans())


@st.composite
def mutated(draw: st.DrawFn, sound: st.SearchStrategy[bytes]) -> bytes:
    """A sound text with a few bytes of it changed, doubled or gone."""
    text = bytearray(draw(sound))
    for _ in range(draw(st.integers(0, 3))):
        at = draw(st.integers(0, max(0, len(text) - 1)))
        match draw(st.sampled_from(["change", "double", "cut", "insert"])):
            case "change":
                text[at : at + 1] = bytes([draw(st.integers(0, 255))])
            case "double":
                text[at:at] = text[at : at + 9]
            case "cut":
                del text[at : at + 3]
            case _:
                text[at:at] = draw(st.sampled_from([b'"', b"\\", b"\0", b"\xef\xbb\xbf", b"1e999"]))
    return bytes(text)


events = st.lists(replies.map(event) | st.sampled_from([b":\n\n", b"id: 7\n\n"]), max_size=3).map(
    b"".join
)
bodies = mutated(replies) | mutated(events) | st.binary(max_size=40) | st.just(b"[" * 300)


class Raw(NamedTuple):
    """One answer as it comes over the wire."""

    status: int
    headers: Sequence[tuple[str, str]]
    body: bytes
    cuts: Sequence[int] = ()
    breaks: bool = False

    def play(self) -> Replies:
        """What a transport without a network answers with."""
        edges = sorted({0, len(self.body), *(cut % (len(self.body) + 1) for cut in self.cuts)})
        pieces = [self.body[a:b] for a, b in pairwise(edges)]
        ending = Fails("ReadError") if self.breaks else None
        return Replies(self.status, headers=self.headers, chunks=pieces, breaks=ending)


typed = st.sampled_from(["application/json", "text/event-stream"]).map(
    lambda kind: [("content-type", kind)]
)


def together(kind: list[tuple[str, str]], more: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """Header lines, most often with one content type that is known."""
    return [*kind, *more]


answers = st.builds(
    Raw,
    st.sampled_from(STATUSES),
    st.builds(together, typed | st.just([]), lines),
    bodies | bodies.map(gzipped),
    st.lists(st.integers(0, 200), max_size=4),
    st.booleans(),
)


LOOP: list[asyncio.Runner] = []


@pytest.fixture(scope="module", autouse=True)
def one_loop() -> Iterator[None]:
    """One event loop for all examples: to open one takes longer than an answer."""
    with asyncio.Runner() as runner:
        LOOP[:] = [runner]
        yield


def came(make: Callable[[Any], Any], raw: Raw, **options: Any) -> Any:
    """What comes up of one answer; nothing of it stays open."""
    wire = ScriptedTransport(raw.play(), repeat=True)
    answer = LOOP[0].run(whole(httpx2, make(wire), **options))
    assert wire.open_responses == 0
    return answer


def parsed(answer: Any) -> list[Any]:
    """Every message of an answer that has gone up."""
    if answer.headers.get("content-type") == "text/event-stream":
        blocks = SseDecoder(max_event_bytes=1 << 20).feed(answer.content)
        return [json.loads(block.data) for block in blocks if block.data]
    return [json.loads(answer.content)] if answer.content else []


def twice(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Refuse what another reader would read otherwise."""
    members = dict(pairs)
    assert len(members) == len(pairs)
    return members


@MANY
@given(answers)
@example(Raw(200, [("content-type", "text/event-stream")], b"data: {}\n\n", (), breaks=True))
@example(Raw(200, [("content-type", "application/json")], answer_to(), (3,), breaks=True))
def test_no_bytes_whatever_raise_and_a_call_is_always_answered(raw: Raw) -> None:
    """B1, R98. With the id of the call and a form that its client reads; it quotes no header."""
    answer = came(lambda wire: answering(wire, **SMALL), raw)
    messages = parsed(answer)
    assert CANARY not in str(answer.headers)
    if answer.status_code == 404:
        return  # a session that is lost: the SDK words it
    assert answer.status_code in {200, 201, 400, 401, 403, 404, 405, 409, 429, 500}
    replied = [one for one in messages if "result" in one or "error" in one]
    assert replied
    assert {one["id"] for one in replied} == {1}
    for one in replied:
        assert ("result" in one) is not ("error" in one)


@MANY
@given(answers, st.sampled_from(["GET", "DELETE"]))
def test_so_it_is_for_streams_and_for_the_end_of_a_session(raw: Raw, method: str) -> None:
    """B1. Nothing but what breaks off is raised, and nothing of a server's is quoted."""
    if raw.breaks:
        raw = raw._replace(breaks=False)
    answer = came(lambda wire: answering(wire, **SMALL), raw, method=method)
    assert CANARY not in str(answer.headers)
    parsed(answer)


@MANY
@given(answers, st.sampled_from(["checked", "strict"]))
def test_what_was_read_once_reads_the_same_again(raw: Raw, policy: str) -> None:
    """R88, invariant 12. Byte for byte, and with the status that it has."""
    raw = raw._replace(breaks=False)
    make = partial(reading, policy=policy, **SMALL)
    once = came(make, raw)
    lines = [line for line in once.headers.multi_items() if line[0] != "location"]
    again = came(make, Raw(once.status_code, lines, once.content))
    assert (again.status_code, again.content) == (once.status_code, once.content)
    assert again.headers.multi_items() == lines


@MANY
@given(answers)
def test_what_goes_up_reads_the_same_under_every_reader(raw: Raw) -> None:
    """R95, R96, invariant 13. The standard library's parser, held strictly, and the SDK's own."""
    answer = came(lambda wire: reading(wire, **SMALL), raw._replace(breaks=False))
    texts = [answer.content] if answer.content else []
    if answer.headers.get("content-type") == "text/event-stream":
        blocks = SseDecoder(max_event_bytes=1 << 20).feed(answer.content)
        texts = [block.data for block in blocks if block.data]
    for text in texts:
        ours = json.loads(text.decode(), object_pairs_hook=twice)
        message = jsonrpc_message_adapter.validate_json(text, by_name=False)
        theirs = message.model_dump(by_alias=True, mode="json", exclude_unset=True)
        assert theirs == ours
        assert not any(math.isinf(one) for one in floats_in(ours))


def floats_in(value: object) -> list[float]:
    """Every float within."""
    if isinstance(value, dict):
        return [one for inner in cast("dict[str, Any]", value).values() for one in floats_in(inner)]
    if isinstance(value, list):
        return [one for inner in cast("list[Any]", value) for one in floats_in(inner)]
    return [value] if isinstance(value, float) else []


unsafe = st.sampled_from(
    [
        f"<html>{CANARY}</html>".encode(),
        f'{{"message":"{CANARY}"}}'.encode(),
        f'{{"jsonrpc":"2.0","id":2,"error":{{"code":-1,"message":"{CANARY}"}}}}'.encode(),
        f'{{"error":"{CANARY}","retryAfter":"{CANARY}"}}'.encode(),
        CANARY.encode() * 30,
        b"",
        b"\xff\xfe",
    ]
)
beside = st.lists(
    st.sampled_from(
        [("set-cookie", CANARY), ("server", CANARY), ("x-reason", CANARY), ("location", CANARY)]
    ),
    max_size=3,
)
failing = st.sampled_from([400, 401, 403, 404, 405, 409, 418, 429, 500, 502, 503, 599])
kinds = st.sampled_from(["application/json", "text/html", "text/event-stream", CANARY])
named = st.sampled_from([[], [("x-amzn-errortype", "AccessDeniedException")]])
asked_to_wait = st.sampled_from([[], [("retry-after", "7")]])


@MANY
@given(failing, named, asked_to_wait, *[st.tuples(unsafe, beside, kinds)] * 2)
@pytest.mark.parametrize("policy", ["checked", "strict"])
@pytest.mark.parametrize("make", [reading, answering], ids=["as read", "in words"])
def test_a_rewritten_failure_depends_on_the_listed_parts_alone(  # noqa: PLR0917 - drawn
    make: Any, policy: str, status: int, kind: Any, wait: Any, one: Any, other: Any
) -> None:
    """R90, R91, invariant 14. Two failures that agree in those are told in the same words."""
    told: list[Any] = []
    for body, more, media in (one, other):
        lines = [*more, ("content-type", media), *kind, *wait]
        answer = came(lambda wire: make(wire, policy=policy), Raw(status, lines, body))
        said: Any = json.loads(answer.content) if answer.content else {}
        assert CANARY not in answer.text + str(answer.headers)
        told.append((answer.status_code, answer.headers.multi_items(), without_id(said)))
    assert told[0] == told[1]


def without_id(message: Any) -> str:
    """A message without our own id of the call, which is new for each."""
    for holder in (message.get("result", {}).get("_meta"), message.get("error", {}).get("data")):
        if holder:
            holder.get("surefoot/outcome", {}).pop("call_id", None)
    return json.dumps(message)


def test_the_properties_see_answers_that_pass_and_answers_that_do_not() -> None:
    """The control: what is drawn is not refused as a whole."""
    sound = Raw(200, [("content-type", "application/json")], answer_to())
    assert came(reading, sound).status_code == 200
    assert came(reading, sound._replace(body=answer_to(2))).status_code == 502
    assert came(answering, sound._replace(breaks=True)).status_code == 200
    listed = mcp_request("tools/list")
    assert b"error" in came(answering, sound._replace(status=500), request=listed).content
    assert CALL.body != listed.body
