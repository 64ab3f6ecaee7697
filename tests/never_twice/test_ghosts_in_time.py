"""B2, B6, B3. A caller leaves after 0.7 s of a wait of 2 s; five seconds later nothing has run.

In real time, as it would be lived through, every way at once. On mcp 1.x the SDK says nothing when
its caller leaves: our own session and `caller_timeout` do, and with neither one late execution is
possible, which the evidence then shows.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

import anyio
import pytest

from support.sessions import KINDS, SDK_ON_TRIO, Kind, Told, opened
from surefoot import Gateway, Replay, Retry, ToolRule
from surefoot.errors import MayHaveRunError, RateLimitedError
from surefoot.testing import FaultyGateway, RecordingSink, Slow, Throttle

pytestmark = [pytest.mark.both_majors, pytest.mark.anyio, *SDK_ON_TRIO]

PAYS: Final = Replay(tools={"charge": ToolRule(makes_changes=True)})
PATIENCE: Final = 0.7
BOUND: Final = 40.0
EXACT: Final = Retry(spread=0)
ERAS: Final[Mapping[Kind, tuple[str, ...]]] = {
    "modern": ("2026-07-28",),
    "handshake": ("2025-11-25",),
    "mcp1": ("2025-11-25",),
}


class Start:
    """Lets all go at once, when each has its session: opening them takes a machine a while."""

    def __init__(self, runners: int) -> None:
        self._missing = runners
        self._all_are_ready = anyio.Event()

    async def ready(self) -> None:
        """Wait for the others."""
        self._missing -= 1
        if not self._missing:
            self._all_are_ready.set()
        await self._all_are_ready.wait()


async def _by_the_sdk(gateway: Gateway, kind: Kind, start: Start) -> None:
    async with opened(gateway.transport(), kind, bound=BOUND) as session:
        await start.ready()
        await session.call("charge", {"amount": 1}, patience=PATIENCE)
        await anyio.sleep(5)


async def _cancelled(gateway: Gateway, kind: Kind, start: Start) -> None:
    async with opened(gateway.transport(), kind, bound=BOUND) as session:
        await start.ready()
        told: Told | None = None
        with anyio.move_on_after(PATIENCE) as scope:
            told = await session.call("charge", {"amount": 1})
        # Where the patience was declared, no wait was begun, and the caller knows.
        assert scope.cancelled_caught or (told is not None and told.kind == "rate-limited")
        await anyio.sleep(5)


async def _by_our_session(gateway: Gateway, kind: Kind, start: Start) -> None:
    del kind
    async with gateway.session() as session:
        await session.tools()
        await start.ready()
        with pytest.raises(RateLimitedError) as raised:
            await session.call("charge", {"amount": 1}, timeout=PATIENCE)
        assert raised.value.retry_after == 2.0
        await anyio.sleep(5)


_Way = Callable[[Gateway, Kind, Start], Awaitable[None]]


def _ways(kind: Kind) -> list[tuple[str, _Way, dict[str, Any], int]]:
    """Each way to leave, with the options of the Gateway and how often the tool may have run."""
    unsaid = 1 if kind == "mcp1" else 0
    return [
        ("the SDK's timeout", _by_the_sdk, {}, unsaid),
        ("a cancellation", _cancelled, {}, unsaid),
        ("the SDK's timeout, declared", _by_the_sdk, {"caller_timeout": PATIENCE}, 0),
        ("a cancellation, declared", _cancelled, {"caller_timeout": PATIENCE}, 0),
        ("our session", _by_our_session, {}, 0),
    ]


async def test_a_caller_who_left_a_wait_of_two_seconds_causes_nothing_in_the_next_five() -> None:
    """B2, B6. The control is the way in which nobody says anything: there it does run, once."""
    ran: dict[tuple[Kind, str], int] = {}
    told: dict[tuple[Kind, str], list[dict[str, Any]]] = {}
    start = Start(sum(len(_ways(kind)) for kind in KINDS))

    async def live(kind: Kind, name: str, way: _Way, options: dict[str, Any]) -> None:
        sink = RecordingSink()
        with FaultyGateway(eras=ERAS[kind]) as faulty:
            faulty.script("charge", Throttle(2))
            await way(Gateway(faulty.url, retry=EXACT, evidence=sink, **options), kind, start)
            ran[kind, name] = faulty.executions("charge")
        records: list[Any] = sink.of("tool.request_attempts")
        told[kind, name] = [one for one in records if one["tool"] == "charge"]

    async with anyio.create_task_group() as group:
        for kind in KINDS:
            for name, way, options, _ in _ways(kind):
                group.start_soon(live, kind, name, way, options)
    assert ran == {(kind, name): most for kind in KINDS for name, _, _, most in _ways(kind)}
    for who, records in told.items():
        (record,) = records
        assert len(record["attempts"]) == 1 + ran[who]
        assert record["may_have_run"] is False
        assert (record["ended"] == "answered") is (ran[who] == 1)


async def _three_by_the_sdk(kind: Kind) -> None:
    with FaultyGateway(eras=ERAS[kind]) as faulty:
        faulty.script("charge", Slow(3, when="after"))
        gateway = Gateway(faulty.url, replay=PAYS)
        async with opened(gateway.transport(), kind, bound=BOUND) as session:
            tries = [await session.call("charge", {"amount": 1}, patience=0.5) for _ in range(3)]
            await anyio.sleep(3)
        assert faulty.executions("charge") == len(faulty.requests("charge")) == 1
    assert tries[0].code is not None
    assert tries[0].kind is None
    assert {one.kind for one in tries[1:]} <= {"in-flight", "fenced"}


async def _three_by_our_session(kind: Kind) -> None:
    causes: list[str] = []
    with FaultyGateway(eras=ERAS[kind]) as faulty:
        faulty.script("charge", Slow(3, when="after"))
        async with Gateway(faulty.url, replay=PAYS).session() as session:
            await session.tools()
            for _ in range(3):
                with pytest.raises(MayHaveRunError) as raised:
                    await session.call("charge", {"amount": 1}, timeout=0.5)
                causes.append(raised.value.cause)
            await anyio.sleep(3)
        assert faulty.executions("charge") == len(faulty.requests("charge")) == 1
    assert causes[0] == "deadline"
    assert set(causes[1:]) <= {"in-flight", "fenced"}


async def test_three_tries_of_half_a_second_make_a_payment_of_three_seconds_once() -> None:
    """B2, B3. Through the SDK's own client and through our session; each try is told something."""
    async with anyio.create_task_group() as group:
        for kind in KINDS:
            group.start_soon(_three_by_the_sdk, kind)
            group.start_soon(_three_by_our_session, kind)
