"""B12, B1. Kind g of the bug reports, continued: an answer has bounds, and they are told by name.

An event is as large as the client can read and no larger, an answer as large as its bound; one
beyond it is let go of at once, and nobody comes back for it. What was packed counts unpacked.
"""

from __future__ import annotations

import gzip
from collections.abc import Callable
from typing import Final

import anyio
import anyio.lowlevel
import pytest

from support.exchanges import FAMILIES, client_of
from support.reports import SOUND, Said, as_stream, attempts_of, say
from support.sessions import KINDS, SDK_ON_TRIO, Kind, opened
from surefoot import Gateway
from surefoot.testing import Answer, EndlessStream, FaultyGateway, GzipBomb, RecordingSink, Step

pytestmark = [pytest.mark.both_majors, pytest.mark.anyio, *SDK_ON_TRIO]

MIB: Final = 1 << 20


def _event_of(size: int) -> bytes:
    """An event of so many bytes, line ends left out."""
    text = "data: " + SOUND.replace("as written", "TEXT").replace("ID", "1")
    return text.replace("TEXT", "x" * (size - len(text) + 4)).encode() + b"\n\n"


SIZES: Final[dict[str, tuple[int, bool]]] = {
    "a byte below": (MIB - 1, True),
    "at the bound": (MIB, True),
    "a byte above": (MIB + 1, False),
}


@pytest.mark.parametrize("size", SIZES)
async def test_an_event_is_read_up_to_its_bound_and_refused_by_name_beyond(size: str) -> None:
    """B12, C35 of the bug reports. By the bound of the client itself, and with its own word."""
    length, read = SIZES[size]
    sink = RecordingSink()
    with FaultyGateway() as faulty:
        faulty.script("charge", as_stream(_event_of(length)))
        gateway = Gateway(faulty.url, evidence=sink)
        async with gateway.protect(client_of(FAMILIES[0])) as client:
            said = await say(client, faulty.url)
    assert (said.kind is None) == read
    if not read:
        assert (said.kind, said.outcome["rule"]) == ("too-large", "event-bytes")
        assert "larger than what is allowed" in said.text
    assert len(attempts_of(sink)) == 1


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("as_events", [False, True], ids=["json", "sse"])
async def test_a_large_answer_that_is_good_reaches_its_caller(as_events: bool, kind: Kind) -> None:
    """B12, C35 of the bug reports. 1.2 MB as a body; as an event as much as the client can read."""
    text = "x" * (1_000_000 if as_events else 1_200_000)
    with FaultyGateway(sse=as_events) as faulty:
        async with opened(Gateway(faulty.url).transport(), kind) as session:
            faulty.script("charge", Answer(text))
            assert (await session.call("charge", {"amount": 1})).text == text
        assert (len(faulty.requests("charge")), faulty.executions("charge")) == (1, 1)


@pytest.mark.parametrize("kind", KINDS)
async def test_nobody_comes_back_for_an_event_that_is_too_large(kind: Kind) -> None:
    """B12, B1, C35 of the bug reports. It has an id, and would be sent again at each resumption."""
    first = b"id: e-1\nretry: 1\ndata:\n\nid: e-2\n"
    with FaultyGateway() as faulty:
        async with opened(Gateway(faulty.url).transport(), kind) as session:
            faulty.script("charge", as_stream(first + _event_of(MIB + 1)), repeat=True)
            told = await session.call("charge", {"amount": 1})
            assert (told.kind, told.facts["rule"]) == ("too-large", "event-bytes")
            await anyio.sleep(0.1)
            assert not [entry for entry in faulty.journal if entry.header("last-event-id")]
            assert (await session.call("search", {"q": "it"})).text == "found it"
        assert (len(faulty.requests("charge")), faulty.executions("charge")) == (1, 1)


def _gzipped(data: bytes) -> Step:
    packed = gzip.compress(data, compresslevel=1, mtime=0)
    return as_stream(packed, "in a chunk, ended", "content-encoding: gzip")


ENDLESS: Final[dict[str, Callable[[], Step]]] = {
    "an event of many lines": lambda: EndlessStream("event"),
    "one line": lambda: EndlessStream("line"),
    "a JSON text": lambda: EndlessStream("json"),
    "an event of many lines, packed": lambda: _gzipped(b"data: more and more\n" * 300_000),
    "one line, packed": lambda: _gzipped(b"data: " + b"0" * (4 * MIB)),
    "a JSON text, packed": lambda: GzipBomb(24 * MIB),
}


@pytest.mark.parametrize("what", ENDLESS)
async def test_an_answer_without_an_end_is_let_go_of_at_its_bound(what: str) -> None:
    """B12, C35 of the bug reports. Named, not asked for again; the server sees the client leave."""
    with FaultyGateway() as faulty:
        faulty.script("charge", ENDLESS[what]())
        async with Gateway(faulty.url).protect(client_of(FAMILIES[0])) as client:
            with anyio.fail_after(10):
                said = await say(client, faulty.url)
            assert (said.kind, said.outcome["may_have_run"]) == ("too-large", True)
            await faulty.until(lambda: not any(entry.in_flight for entry in faulty.journal))
            assert (await say(client, faulty.url)).text == "charged 1"
        assert len(faulty.requests("charge")) == 2
        assert len(said.response.content) < 65536


@pytest.mark.unmeasured
async def test_comments_that_were_packed_by_the_million_take_the_loop_from_nobody() -> None:
    """B1, B12, C35 of the bug reports. 6 kB are 4 MiB; others have their turn meanwhile.

    Of the comments themselves one goes up for each piece, and not half a million.
    """
    turns, heard = 0, list[Said]()

    async def others() -> None:
        nonlocal turns
        while True:
            await anyio.lowlevel.checkpoint()
            turns += 1

    with FaultyGateway() as faulty:
        faulty.script("charge", _gzipped(b": ping\n\n" * (MIB // 2)))
        async with (
            Gateway(faulty.url).protect(client_of(FAMILIES[0])) as client,
            anyio.create_task_group() as group,
        ):
            group.start_soon(others)
            await anyio.lowlevel.checkpoint()
            turns = 0
            heard.append(await say(client, faulty.url))
            group.cancel_scope.cancel()
    (said,) = heard
    assert said.kind == "cut-stream"
    assert turns >= 3
    assert said.response.text.count(":\n\n") <= 6
