"""D10, D11, D16, R62: what is sent again is the same to the byte; what is seen stays whole."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import anyio
import pytest

from support.sending import DONE, REFUSED, URL, lowest, message
from surefoot.policy import AnswerView, Replay, Rule, ToolRule, Verdict
from surefoot.testing import Fails, FakeClock, Replies, ScriptedTransport
from surefoot.transports import RetryingTransport

pytestmark = pytest.mark.anyio

BODY = message(q="W-7712").body


def _series(wire: Any, **settings: Any) -> RetryingTransport:
    return RetryingTransport(wire, clock=FakeClock(), draw=lowest, **settings)


async def _pieces() -> AsyncIterator[bytes]:
    for start in range(0, len(BODY), 7):
        await anyio.lowlevel.checkpoint()
        yield BODY[start : start + 7]


async def test_a_one_shot_body_is_gathered_first_and_sent_again_byte_for_byte(family: Any) -> None:
    """D10. The control is the same body, over a transport without a series: it is read once."""
    wire = ScriptedTransport(REFUSED, Fails("ConnectError"), DONE, proves_not_sent=True)
    async with family.AsyncClient(transport=_series(wire)) as client:
        response = await client.post(URL, content=_pieces())
    assert response.status_code == 200
    assert [sent.body for sent in wire.requests] == [BODY] * 3
    request = family.AsyncClient().build_request("POST", URL, content=_pieces())
    assert b"".join([part async for part in request.stream]) == BODY
    with pytest.raises((RuntimeError, family.StreamError)):
        [part async for part in request.stream]


@pytest.mark.parametrize("streamed", [True, False])
async def test_a_body_over_the_cap_is_sent_once_and_whole(family: Any, streamed: bool) -> None:
    """D10, C21 of the bug reports. Though permitted; just within the cap it is repeated."""
    for cap, sends in ((len(BODY) - 1, 1), (len(BODY), 2)):
        wire = ScriptedTransport(REFUSED, DONE)
        async with family.AsyncClient(transport=_series(wire, max_body=cap)) as client:
            content = _pieces() if streamed else BODY
            response = await client.post(URL, content=content)
        assert len(wire.requests) == sends
        assert response.status_code == (429 if sends == 1 else 200)
        assert {sent.body for sent in wire.requests} == {BODY}


async def test_the_declaration_is_found_in_a_streamed_body_too(family: Any) -> None:
    """D1, R13. A body decides, and not a header."""
    replay = Replay(tools={"search": ToolRule(makes_changes=True)})
    wire = ScriptedTransport(REFUSED)
    async with family.AsyncClient(transport=_series(wire, replay=replay)) as client:
        await client.post(URL, content=_pieces(), headers={"mcp-name": "other"})
    assert len(wire.requests) == 1


@pytest.mark.parametrize(
    "plays",
    [
        [DONE],
        [REFUSED, DONE],
        [Fails("ReadError")],
        [Replies(307, headers={"location": "/b"}), DONE],
    ],
)
async def test_the_clients_own_request_is_untouched_by_a_run(family: Any, plays: list[Any]) -> None:
    """R29, R107. Headers, URL and extensions are as they were; the mark is gone."""
    wire = ScriptedTransport(*plays)
    client = family.AsyncClient(transport=_series(wire, redirects=True))
    request = client.build_request("POST", URL, content=BODY, headers={"x-own": "1"})
    before = (request.headers.raw, str(request.url), dict(request.extensions), request.content)
    stream = request.stream
    try:
        await client.send(request)
    except family.ReadError:
        assert len(plays) == 1
    assert (
        request.headers.raw, str(request.url), dict(request.extensions), request.content
    ) == before  # fmt: skip
    assert request.stream is stream


class Reads:
    """A rule that looks at so many bytes of a body, and remembers what it saw."""

    def __init__(self, reads: int, word: bytes = b"busy") -> None:
        self.reads = reads
        self.word = word
        self.saw: list[bytes] = []

    def recognise(self, answer: AnswerView) -> Verdict | None:
        """Look for a word."""
        self.saw.append(answer.body)
        return Verdict(kind="session-busy") if self.word in answer.body else None


def _rules(*recognisers: Any) -> list[Rule]:
    return [Rule(recognise=one, assumes="refused-before-execution") for one in recognisers]


async def _chunks() -> AsyncIterator[bytes]:
    for piece in (b'{"a":', b'"busy"', b',"b":"' + b"x" * 200, b'"}'):
        yield piece


WHOLE = b'{"a":"busy","b":"' + b"x" * 200 + b'"}'


@pytest.mark.parametrize("reads", [1, 8, 11, 64, 4096])
async def test_a_rule_sees_no_more_than_it_asks_for_and_the_answer_stays_whole(
    family: Any, reads: int
) -> None:
    """R62, D16. The body is asked for once, however many rules look."""
    one, other = Reads(reads, b"nothing"), Reads(0, b"nothing")
    wire = ScriptedTransport(
        Replies(headers={"content-type": "application/json; charset=utf-8"}, chunks=_chunks)
    )
    async with family.AsyncClient(transport=_series(wire, rules=_rules(other, one, one))) as client:
        response = await client.post(URL, content=BODY)
    assert response.content == WHOLE
    assert one.saw == [WHOLE[:reads]] * 2
    assert other.saw == [b""]
    assert wire.open_responses == 0


async def test_a_rule_that_recognises_by_the_body_causes_a_repeat(family: Any) -> None:
    """R24, R58, R69. The first verdict counts."""
    wire = ScriptedTransport(
        Replies(headers={"content-type": "application/json"}, chunks=_chunks), DONE
    )
    async with family.AsyncClient(
        transport=_series(wire, rules=_rules(Reads(64, b"nothing"), Reads(64)))
    ) as client:
        response = await client.post(URL, content=BODY)
    assert (response.status_code, len(wire.requests)) == (200, 2)
    assert wire.open_responses == 0


async def test_of_an_event_stream_only_the_first_event_is_waited_for(family: Any) -> None:
    """D16. The rest may be minutes away, and is handed on as it comes."""
    release = anyio.Event()

    async def events() -> AsyncIterator[bytes]:
        yield b"data: 1\n"
        yield b"\ndata: 2"
        await release.wait()
        yield b"\n\n"

    rule = Reads(4096, b"nothing")
    wire = ScriptedTransport(Replies(headers={"content-type": "text/event-stream"}, chunks=events))
    with anyio.fail_after(5):
        async with (
            family.AsyncClient(transport=_series(wire, rules=_rules(rule))) as client,
            client.stream("POST", URL, content=BODY) as response,
        ):
            release.set()
            parts = [part async for part in response.aiter_raw()]
    assert rule.saw == [b"data: 1\n\ndata: 2"]
    assert b"".join(parts) == b"data: 1\n\ndata: 2\n\n"
    assert wire.open_responses == 0


class Parts:
    """A source of parts that is no generator, and says when it was closed."""

    def __init__(self, *parts: bytes, endless: bool = False) -> None:
        self.parts = list(parts)
        self.endless = endless
        self.closed = 0

    def __aiter__(self) -> Parts:
        return self

    async def __anext__(self) -> bytes:
        await anyio.lowlevel.checkpoint()
        if self.endless:
            return self.parts[0]
        if not self.parts:
            raise StopAsyncIteration
        return self.parts.pop(0)

    async def aclose(self) -> None:
        """Count."""
        self.closed += 1


def _wire_of(family: Any, source: Parts, status: int = 200) -> Any:
    """Answers once with a body from ``source``, whose iterator and stream are one."""

    class Stream(family.AsyncByteStream):
        def __aiter__(self) -> Parts:
            return source

        async def aclose(self) -> None:
            await source.aclose()

    lines = {"content-type": "text/event-stream"}

    def answer(_: object) -> Any:
        return family.Response(status, headers=lines, stream=Stream())

    return answer


async def test_a_peeked_stream_that_its_reader_leaves_is_closed_at_once(family: Any) -> None:
    """R62. Its iterator as well as the stream: nothing is left to a destructor."""
    source = Parts(b"data: 1\n\n", b"data: 2\n\n")
    wire = ScriptedTransport(_wire_of(family, source))
    transport = _series(wire, rules=_rules(Reads(64, b"no")))
    request = family.AsyncClient().build_request("POST", URL, content=BODY)
    response = await transport.handle_async_request(request)
    parts = response.stream.__aiter__()
    assert await anext(parts) == b"data: 1\n\n"
    assert source.closed == 0
    await response.aclose()
    assert source.closed == 2
    await response.aclose()
    assert source.closed == 2


async def test_a_body_that_breaks_while_a_rule_looks_is_an_attempt_without_an_answer(
    family: Any,
) -> None:
    """R10, R24. It is repeated where the app allows that, and its answer is let go of."""
    for tools, sends in (({}, 1), ({"search": ToolRule(repeat_on={"network"})}, 2)):
        wire = ScriptedTransport(
            Replies(
                headers={"content-type": "application/json"},
                chunks=[b'{"a":'],
                breaks=Fails("ReadError"),
            ),
            DONE,
        )
        transport = _series(wire, rules=_rules(Reads(64)), replay=Replay(tools=tools))
        async with family.AsyncClient(transport=transport) as client:
            if sends == 1:
                with pytest.raises(family.ReadError):
                    await client.post(URL, content=BODY)
            else:
                assert (await client.post(URL, content=BODY)).status_code == 200
        assert len(wire.requests) == sends
        assert wire.open_responses == 0


@pytest.mark.parametrize(
    "kinds", [["text/plain"], [], ["application/json", "application/json"], ["application/jsonx"]]
)
async def test_only_json_and_event_streams_are_looked_into(family: Any, kinds: list[str]) -> None:
    """D16. The control is above: one content type that says JSON."""
    rule = Reads(64)
    lines = [("content-type", kind) for kind in kinds]
    wire = ScriptedTransport(Replies(headers=lines, chunks=_chunks))
    async with family.AsyncClient(transport=_series(wire, rules=_rules(rule))) as client:
        response = await client.post(URL, content=BODY)
    assert rule.saw == [b""]
    assert response.content == WHOLE


async def test_a_rule_cannot_take_more_than_64_kib(family: Any) -> None:
    """D16. Whatever it asks for; what it did not see is still handed on."""
    big = b'{"a":"' + b"x" * 200_000 + b'"}'
    rule = Reads(10**9)
    wire = ScriptedTransport(Replies(headers={"content-type": "application/json"}, body=big))
    async with family.AsyncClient(transport=_series(wire, rules=_rules(rule))) as client:
        response = await client.post(URL, content=BODY)
    assert [len(one) for one in rule.saw] == [64 * 1024]
    assert response.content == big


async def test_a_refused_answer_is_let_go_of_within_bounds(family: Any) -> None:
    """D11. An endless body of a refusal does not hold its repeat up, and is closed."""
    source = Parts(b"x" * 8192, endless=True)
    wire = ScriptedTransport(_wire_of(family, source, 429), DONE)
    with anyio.fail_after(5):
        async with family.AsyncClient(transport=_series(wire)) as client:
            assert (await client.post(URL, content=BODY)).status_code == 200
    assert source.closed == 2


async def test_a_silent_body_of_a_refusal_does_not_hold_its_repeat_up_either(family: Any) -> None:
    """D11. Within a second it is closed unread."""

    async def silent() -> AsyncIterator[bytes]:
        yield b"x"
        await anyio.sleep(30)

    wire = ScriptedTransport(Replies(429, chunks=silent), DONE)
    with anyio.fail_after(5):
        async with family.AsyncClient(transport=_series(wire)) as client:
            assert (await client.post(URL, content=BODY)).status_code == 200
    assert wire.open_responses == 0


async def test_a_refusal_whose_body_breaks_or_will_not_close_is_repeated_all_the_same(
    family: Any,
) -> None:
    """D11, R26. The refusal was decided upon by its headers."""

    class WillNotClose(family.AsyncByteStream):
        async def __aiter__(self) -> AsyncIterator[bytes]:
            yield b"x"

        async def aclose(self) -> None:
            raise family.CloseError("no")

    wire = ScriptedTransport(
        Replies(429, chunks=[b"x"], breaks=Fails("ReadError")),
        lambda _: family.Response(429, stream=WillNotClose()),
        DONE,
    )
    async with family.AsyncClient(transport=_series(wire)) as client:
        assert (await client.post(URL, content=BODY)).status_code == 200
    assert len(wire.requests) == 3
