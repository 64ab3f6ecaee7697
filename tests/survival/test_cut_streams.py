"""B1, D22, D27, D33, D37. A stream that is cut ends in words, or in the answer that it still owed.

Where the era has sessions the client comes back for the answer; only when that fails, too, is the
call given up on. A read timeout of the HTTP client is such a cut. Each call has one record.
"""

from __future__ import annotations

from typing import Any, Final, cast

import anyio
import pytest

from support.exchanges import FAMILIES, client_of
from support.sessions import (
    FAMILY,
    KINDS,
    SDK_ON_TRIO,
    Kind,
    Session,
    Told,
    nothing_left,
    opened,
    sdk_streams,
)
from surefoot import Gateway, Retry
from surefoot.testing import (
    FaultyGateway,
    HeldStream,
    RecordingSink,
    Reset,
    Slow,
    Sse,
    SseCut,
    Status,
    Step,
    Throttle,
    tool_call,
)

pytestmark = [pytest.mark.both_majors, pytest.mark.anyio, *SDK_ON_TRIO]

QUICK: Final = Retry(max_attempts=2, base_delay=0.01)
IN_SESSIONS: Final[list[Kind]] = [kind for kind in KINDS if kind != "modern"]


def _records(sink: RecordingSink, tool: str) -> list[dict[str, Any]]:
    events = sink.of("tool.request_attempts")
    return [cast("dict[str, Any]", event) for event in events if event["tool"] == tool]


RESUMING: Final[dict[str, Step]] = {
    "404": Status(404),
    "405": Status(405),
    "500": Status(500),
    "429 beyond the budget": Throttle(0),
    "reset": Reset(),
    "cut at once": SseCut(ran=False),
}


@pytest.mark.parametrize("kind", IN_SESSIONS)
@pytest.mark.parametrize("how", RESUMING)
async def test_a_resumption_that_fails_gets_the_closing_event(how: str, kind: Kind) -> None:
    """B1, D22. The caller reads that it may have run; it ran once; the session lives."""
    sink = RecordingSink()
    with FaultyGateway() as faulty:
        gateway = Gateway(faulty.url, retry=QUICK, evidence=sink)
        async with nothing_left(faulty), opened(gateway.transport(), kind) as session:
            await faulty.until(lambda: len(faulty.requests("GET")) == 1)  # the standing stream
            faulty.script("charge", SseCut(after_event_id="e-1", retry=1))
            faulty.script("GET", RESUMING[how], repeat=True)
            told = await session.call("charge", {"amount": 1})
            faulty.clear_scripts()
            assert (await session.call("search", {"q": "it"})).text == "found it"
        assert (told.kind, told.is_error) == ("cut-stream", True)
        assert told.facts["may_have_run"] is True
        assert (faulty.executions("charge"), len(faulty.requests("charge"))) == (1, 1)
        resumed = [entry for entry in faulty.requests("GET") if entry.header("last-event-id")]
        # The SDK itself comes back twice at most.
        assert 1 <= len(resumed) <= 2
    (record,) = _records(sink, "charge")
    assert (record["ended"], record["why"], record["may_have_run"]) == ("cut", "stream-cut", True)


@pytest.mark.parametrize("kind", IN_SESSIONS)
async def test_a_resumption_may_be_cut_and_resumed_again(kind: Kind) -> None:
    """B1, D22. The answer comes in the end, the call is one call, and it ran once."""
    sink = RecordingSink()
    with FaultyGateway() as faulty:
        gateway = Gateway(faulty.url, retry=QUICK, evidence=sink)
        async with nothing_left(faulty), opened(gateway.transport(), kind) as session:
            await faulty.until(lambda: len(faulty.requests("GET")) == 1)
            faulty.script("charge", SseCut(1, after_event_id="e-1", retry=1))
            faulty.script("GET", SseCut(1, after_event_id="e-1", retry=1, ran=False))
            assert (await session.call("charge", {"amount": 1})).text == "charged 1"
        assert faulty.executions("charge") == 1
    (record,) = _records(sink, "charge")
    assert record["may_have_run"] is False


SILENT: Final[dict[str, tuple[Step, str]]] = {
    "nothing comes": (Slow(1.0, when="after"), "no-answer"),
    "a stream without its answer": (HeldStream(), "cut-stream"),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("how", SILENT)
async def test_the_http_clients_own_read_timeout_is_one_calls_affair(how: str, kind: Kind) -> None:
    """B1. Two calls in flight meet it, and each is told; a third then works."""
    step, words = SILENT[how]
    with FaultyGateway() as faulty:
        gateway = Gateway(faulty.url, retry=QUICK)
        client = gateway.http_client(timeout=FAMILY.Timeout(5, read=0.2))
        streams = sdk_streams(faulty.url, client)
        async with nothing_left(faulty), client, opened(streams, kind) as session:
            faulty.script("charge", step, repeat=True)
            told: list[Told] = []
            async with anyio.create_task_group() as group:
                for amount in (1, 2):
                    group.start_soon(_into, told, session, amount)
                    # mcp 1.30 on trio itself mixes two requests up that are made in one moment.
                    await anyio.sleep(0.1)
            assert (await session.call("search", {"q": "it"})).text == "found it"
        assert [one.kind for one in told] == [words] * 2, told
        assert faulty.executions("charge") == 2


async def _into(told: list[Told], session: Session, amount: int) -> None:
    told.append(await session.call("charge", {"amount": amount}))


@pytest.mark.parametrize("kind", KINDS)
async def test_a_stream_in_pieces_is_an_answer(kind: Kind) -> None:
    """D22. Comments, ids, notifications and a clamped retry before the reply: nothing is lost."""
    with FaultyGateway() as faulty:
        gateway = Gateway(faulty.url, retry=QUICK)
        async with nothing_left(faulty), opened(gateway.transport(), kind) as session:
            faulty.script(
                "charge", Sse(3, comments=["x"], ids=True, primed=True, retry="5", interval=0.01)
            )
            assert (await session.call("charge", {"amount": 1})).text == "charged 1"


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("replied", [False, True])
async def test_a_reader_that_leaves_a_stream_leaves_one_record(replied: bool, family: str) -> None:
    """D27, D33. Before the reply it may have run; after it, it did. Nothing is left open."""
    sink = RecordingSink()
    asked = tool_call("charge", {"amount": 1})
    with FaultyGateway() as faulty:
        gateway = Gateway(faulty.url, retry=QUICK, evidence=sink)
        faulty.script("charge", Sse(0) if replied else HeldStream())
        async with nothing_left(faulty), gateway.protect(client_of(family)) as client:
            request = client.build_request(
                "POST", faulty.url, headers=asked.headers, content=asked.body
            )
            response = await client.send(request, stream=True)
            if replied:
                parts = response.aiter_bytes()
                assert b"charged 1" in await anext(parts)
            assert sink.of("tool.request_attempts") == []
            await response.aclose()
            await response.aclose()
        assert faulty.executions("charge") == 1
    (record,) = _records(sink, "charge")
    assert record["may_have_run"] is not replied
    assert record["ended"] == ("answered" if replied else "cut")
