"""R11, R20, R24, R30, R31, D2, D22, D37. Kind j of the bug reports: repeats do not multiply.

However many layers could repeat a call, one series does, and what it gives up on says how often it
was sent and how long it waited, so that whoever is above can stop. A stream that its client opens
again and again is opened at a pace, and what a server says of that pace is read within bounds.
"""

from __future__ import annotations

from typing import Any, Final

import anyio
import pytest

from support.exchanges import FAMILIES, client_of
from support.reports import attempts_of, say
from support.sessions import FAMILY, KINDS, SDK_ON_TRIO, Kind, opened, sdk_streams
from surefoot import Gateway, RateLimitedError, Replay, Retry, ToolRule
from surefoot.testing import (
    FakeClock,
    FaultyGateway,
    Raw,
    RecordingSink,
    Slow,
    Status,
    Step,
    Throttle,
    Tool,
)
from surefoot.transports import retrying

pytestmark = [pytest.mark.both_majors, pytest.mark.anyio, *SDK_ON_TRIO]

IN_SESSIONS: Final[list[Kind]] = [kind for kind in KINDS if kind != "modern"]


class Foreign:
    """Somebody else's transport around a stack of ours, which nobody can look into."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner

    async def handle_async_request(self, request: Any) -> Any:
        """Hand on."""
        return await self._inner.handle_async_request(request)

    async def aclose(self) -> None:
        """Close."""
        await self._inner.aclose()


def _one(client: Any, gateway: Gateway, clock: FakeClock) -> None:
    del client, gateway, clock


def _the_same_again(client: Any, gateway: Gateway, clock: FakeClock) -> None:
    del clock
    gateway.protect(client)


def _another_for_the_endpoint(client: Any, gateway: Gateway, clock: FakeClock) -> None:
    Gateway(gateway.url, clock=clock).protect(client)


def _a_series_around_it(client: Any, gateway: Gateway, clock: FakeClock) -> None:
    del gateway, clock
    client._transport = retrying(client._transport)


def _another_around_somebody_elses(client: Any, gateway: Gateway, clock: FakeClock) -> None:
    client._transport = Foreign(client._transport)
    Gateway(gateway.url, clock=clock).protect(client)


STACKS: Final = (
    _one,
    _the_same_again,
    _another_for_the_endpoint,
    _a_series_around_it,
    _another_around_somebody_elses,
)


@pytest.mark.parametrize("below", [0, 3], ids=["plain", "retries below"])
@pytest.mark.parametrize("stack", STACKS, ids=lambda stack: stack.__name__.strip("_"))
@pytest.mark.parametrize("family", FAMILIES)
async def test_layers_that_could_each_repeat_are_one_series(
    family: str, stack: Any, below: int
) -> None:
    """R20, R30, R31, C43 of the bug reports. Three sends in all, by any three of them."""
    clock = FakeClock()
    with FaultyGateway() as faulty:
        faulty.script("charge", Throttle(1), repeat=True)
        gateway = Gateway(faulty.url, clock=clock)
        module = client_of(family)
        if below:
            wire: Any = pytest.importorskip(family).AsyncHTTPTransport(retries=below)
            module = client_of(family, transport=wire)
        async with gateway.protect(module) as client:
            stack(client, gateway, clock)
            said = await say(client, faulty.url)
        assert len(faulty.requests("charge")) == 3
        assert faulty.executions("charge") == 0
    assert (said.kind, said.outcome["attempts"]) == ("rate-limited", 3)
    assert said.outcome["waited_seconds"] >= 2
    assert "3 times" in said.text


@pytest.mark.parametrize("kind", KINDS)
async def test_what_is_given_up_on_is_a_result_that_the_sdk_does_not_repeat(kind: Kind) -> None:
    """R31, B5, C43 of the bug reports. A loop of an agent reads that it was tried, and how often.

    One that heeds the facts stops at once; the sends are those of one call.
    """
    clock = FakeClock()
    with FaultyGateway() as faulty:
        faulty.script("charge", Throttle(1), repeat=True)
        async with opened(Gateway(faulty.url, clock=clock).transport(), kind) as session:
            tried = 0
            while tried < 3:
                told = await session.call("charge", {"amount": 1})
                assert (told.kind, told.is_error) == ("rate-limited", True)
                tried += told.facts["attempts"]
        assert len(faulty.requests("charge")) == tried == 3


async def test_our_own_client_raises_it_marked_as_already_tried() -> None:
    """R31, C43 of the bug reports. With how often and how long, for a loop above to stop by."""
    with FaultyGateway() as faulty:
        faulty.script("charge", Throttle(1), repeat=True)
        async with Gateway(faulty.url, clock=FakeClock(), retry=Retry(spread=0)).session() as one:
            with pytest.raises(RateLimitedError) as caught:
                await one.call("charge", {"amount": 1})
        assert len(faulty.requests("charge")) == 3
    assert (caught.value.attempts, caught.value.waited, caught.value.retry_after) == (3, 2, 1)
    assert "sent 3 times" in str(caught.value)


FAILURES: Final[dict[str, Step]] = {
    **{str(status): Status(status, ran=True) for status in (500, 502, 503, 504, 409, 408, 425)},
    "503 that names a wait": Status(503, headers={"retry-after": "1"}, ran=True),
    "a timeout": Slow(0.5, when="after"),
}
DECLARED: Final[dict[str, ToolRule | None]] = {
    "not declared": None,
    "makes changes": ToolRule(makes_changes=True),
    "repeatable on throttle": ToolRule(repeat_on={"throttle"}),
}


@pytest.mark.parametrize("rule", DECLARED)
@pytest.mark.parametrize("failure", FAILURES)
async def test_a_failure_or_a_timeout_is_no_refusal_and_is_not_repeated(
    failure: str, rule: str
) -> None:
    """R11, R24, C43 of the bug reports. The tool ran; it would run a second time."""
    declared = DECLARED[rule]
    replay = Replay(tools={} if declared is None else {"charge": declared})
    for family in FAMILIES:
        sink = RecordingSink()
        with FaultyGateway() as faulty:
            faulty.script("charge", FAILURES[failure], repeat=True)
            gateway = Gateway(faulty.url, clock=FakeClock(), replay=replay, evidence=sink)
            async with gateway.protect(client_of(family, timeout=0.1)) as client:
                said = await say(client, faulty.url)
            assert said.kind is not None
            assert (len(faulty.requests("charge")), faulty.executions("charge")) == (1, 1)
        assert len(attempts_of(sink)) == 1


def _events(data: bytes) -> Raw:
    head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: %d\r\n\r\n"
    return Raw(head % len(data) + data, close=False)


def _json(data: bytes) -> Raw:
    head = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n"
    return Raw(head % len(data) + data, close=False)


STANDING: Final[dict[str, Step]] = {
    "405": Status(405),
    "404": Status(404),
    "429": Throttle(0),
    "200 and JSON": _json(b"{}"),
    "200 and a page": Status(200, "<html>", content_type="text/html"),
    "a stream that ends": _events(b""),
    "a ping": _events(b": ping\n\n"),
    "retry: 0": _events(b"id: e-1\nretry: 0\n\n"),
    "retry: 1": _events(b"id: e-1\nretry: 1\n\n"),
    "retry: -1": _events(b"id: e-1\nretry: -1\n\n"),
    "retry: huge": _events(b"id: e-1\nretry: 99999999999999\n\n"),
    "retry: a superscript": _events("id: e-1\nretry: \u00b2\n\n".encode()),
}
WATCHED: Final = 0.8


@pytest.mark.parametrize("kind", IN_SESSIONS)
async def test_a_standing_stream_is_opened_again_at_a_pace(kind: Kind) -> None:
    """B1, D37, C45 of the bug reports. Four a second at most, whatever is answered; calls work.

    405 is final. All rows are watched side by side, for as long as each takes.
    """
    asked: dict[str, int] = {}

    async def watch(name: str) -> None:
        with FaultyGateway() as faulty:
            faulty.script("GET", STANDING[name], repeat=True)
            async with opened(Gateway(faulty.url).transport(), kind) as session:
                await faulty.until(lambda: len(faulty.requests("GET")) > 0)
                await anyio.sleep(WATCHED)
                asked[name] = len(faulty.requests("GET"))
                assert (await session.call("search", {"q": "it"})).text == "found it"
            assert not [entry for entry in faulty.requests("POST") if entry.status == 429]

    began = anyio.current_time()
    async with anyio.create_task_group() as group:
        for name in STANDING:
            group.start_soon(watch, name)
    most = 1 + 4 * (anyio.current_time() - began)
    assert asked["405"] == 1
    # A refusal is repeated within the budget of its own request, as any is (D2).
    allowed = {name: 3 * most if name == "429" else most for name in asked}
    assert {name: count for name, count in asked.items() if count > allowed[name]} == {}


@pytest.mark.parametrize("kind", IN_SESSIONS)
async def test_without_it_the_same_client_makes_a_storm(kind: Kind) -> None:
    """C45 of the bug reports. The control: the bare SDK, told to come back in no time."""
    with FaultyGateway([Tool("other", answer="done")]) as faulty:
        faulty.script("GET", STANDING["retry: 0"], repeat=True)
        client = FAMILY.AsyncClient(timeout=5)
        async with client, opened(sdk_streams(faulty.url, client), kind):
            await faulty.until(lambda: len(faulty.requests("GET")) >= 20, timeout=5)
        first, last = faulty.requests("GET")[0], faulty.requests("GET")[19]
        assert last.at - first.at < 19 / 4


RETRIES: Final[dict[bytes, bytes | None]] = {
    b"0": b"100",
    b"1": b"100",
    b"500": b"500",
    b"0500": b"500",
    b"99999999999999": b"60000",
    b"9" * 5000: b"60000",
    b"-1": None,
    b"+5": None,
    b"1.5": None,
    b"1e3": None,
    b" 5": None,
    b"\xc2\xb2": None,
    b"\xd9\xa5": None,
    b"soon": None,
    b"": None,
}


@pytest.mark.parametrize("said", RETRIES, ids=lambda said: ascii(said)[:12])
async def test_a_pause_that_a_server_names_is_passed_on_plain_and_within_bounds(
    said: bytes,
) -> None:
    """D22, D37, C45 of the bug reports. ASCII digits alone, between a tenth and sixty seconds."""
    for family in FAMILIES:
        with FaultyGateway() as faulty:
            faulty.script("GET", _events(b"id: e-1\nretry: " + said + b"\n\n"))
            async with Gateway(faulty.url).protect(client_of(family)) as client:
                accept = {"accept": "text/event-stream"}
                answer = await client.get(faulty.url, headers=accept)
        lines = answer.content.split(b"\n")
        assert b"id: e-1" in lines
        passed = [line[7:] for line in lines if line.startswith(b"retry: ")]
        assert passed == ([] if RETRIES[said] is None else [RETRIES[said]])


@pytest.mark.parametrize("step", ["200 and JSON", "200 and a page"])
async def test_an_answer_that_is_no_stream_is_not_taken_for_one_that_ended(step: str) -> None:
    """R93, D21, D37, C45 of the bug reports. Nothing of it goes up, and not as a stream."""
    for family in FAMILIES:
        with FaultyGateway() as faulty:
            faulty.script("GET", STANDING[step])
            async with Gateway(faulty.url).protect(client_of(family)) as client:
                answer = await client.get(faulty.url, headers={"accept": "text/event-stream"})
        assert "content-type" not in answer.headers
        assert answer.content == b""
