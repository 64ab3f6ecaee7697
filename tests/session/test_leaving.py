"""D35, B1, R27. Who leaves a session leaves no call of it behind without a word.

Calls of other tasks may be in flight when the session is left. The SDK answers them with an error
of its own, which says nothing of what ran, and on mcp 1.x it lets them wait for ever.
"""

from __future__ import annotations

from typing import Any, Final

import anyio
import pytest

from support.sessions import KINDS, SDK_ON_TRIO, Gate, Kind, nothing_left
from surefoot import Gateway, Retry
from surefoot.errors import MayHaveRunError, RateLimitedError, SessionLostError
from surefoot.gateway import GatewaySession
from surefoot.testing import FaultyGateway, RpcError, Slow, Throttle, Tool

pytestmark = [pytest.mark.both_majors, pytest.mark.anyio, *SDK_ON_TRIO]

ERAS: Final[dict[Kind, tuple[str, ...]]] = {
    "modern": ("2026-07-28",),
    "handshake": ("2025-11-25",),
    "mcp1": ("2025-11-25",),
}


async def _call(
    told: list[object], session: GatewaySession, tool: str, patience: float | None = None
) -> None:
    try:
        told.append(await session.call(tool, {"amount": len(told)}, timeout=patience))
    except Exception as error:  # noqa: BLE001 - whatever it is, its caller gets it
        told.append(error)


@pytest.mark.parametrize("patience", [None, 30.0])
@pytest.mark.parametrize("callers", [1, 3])
@pytest.mark.parametrize("kind", KINDS)
async def test_calls_in_flight_are_told_that_they_may_have_run(
    kind: Kind, callers: int, patience: float | None
) -> None:
    """D35, R27. Each of them, at once, and one that was answered before has its answer."""
    told: list[object] = []
    before: list[object] = []
    gate = Gate()
    with (
        anyio.fail_after(10),
        FaultyGateway([Tool("held", answer=gate)], eras=ERAS[kind]) as faulty,
    ):
        async with nothing_left(faulty), anyio.create_task_group() as group:
            async with Gateway(faulty.url).session() as session:
                await _call(before, session, "charge")
                for _ in range(callers):
                    group.start_soon(_call, told, session, "held", patience)
                await faulty.until(lambda: faulty.executions("held") == callers)
            while len(told) < callers:
                await anyio.lowlevel.checkpoint()
            gate.open()
    (answer,) = before
    assert getattr(answer, "text", None) == "charged 0"
    assert [type(one) for one in told] == [MayHaveRunError] * callers
    for one in told:
        error: Any = one
        assert (error.cause, error.attempts, error.tool) == ("no-answer", 1, "held")


@pytest.mark.parametrize("kind", KINDS)
async def test_a_call_that_waits_is_told_that_it_was_refused(kind: Kind) -> None:
    """R3, B2. Its wait ends with the session, and nothing is sent after it."""
    told: list[object] = []
    patient = Retry(spread=0, max_wait=60)
    with anyio.fail_after(10), FaultyGateway(eras=ERAS[kind]) as faulty:
        faulty.script("charge", Throttle(30))
        async with (
            nothing_left(faulty),
            anyio.create_task_group() as group,
            Gateway(faulty.url, retry=patient).session() as session,
        ):
            await session.tools()
            group.start_soon(_call, told, session, "charge")
            await faulty.until(lambda: len(faulty.requests("charge")) == 1)
            await anyio.sleep(0.1)
        assert (len(faulty.requests("charge")), faulty.executions("charge")) == (1, 0)
    assert [type(one) for one in told] == [RateLimitedError]


@pytest.mark.parametrize("kind", KINDS)
async def test_a_call_that_has_not_left_is_told_that_the_session_is_no_more(kind: Kind) -> None:
    """D35. It asks for the tools first, and the list is still under way."""
    told: list[object] = []
    with anyio.fail_after(10), FaultyGateway(eras=ERAS[kind]) as faulty:
        async with (
            nothing_left(faulty),
            anyio.create_task_group() as group,
            Gateway(faulty.url).session() as session,
        ):
            faulty.script("tools/list", Slow(3))
            group.start_soon(_call, told, session, "charge")
            await faulty.until(lambda: len(faulty.requests("tools/list")) == 1)
        assert not faulty.requests("charge")
    assert [type(one) for one in told] == [SessionLostError]


@pytest.mark.parametrize("kind", KINDS)
async def test_the_servers_own_error_is_still_the_servers(kind: Kind) -> None:
    """D20, D35. The control: what was answered before the session was left is told as it is."""
    told: list[object] = []
    with anyio.fail_after(10), FaultyGateway(eras=ERAS[kind]) as faulty:
        faulty.script("charge", RpcError(-32602, "no such column", status=200))
        async with nothing_left(faulty), Gateway(faulty.url).session() as session:
            await _call(told, session, "charge")
    (error,) = told
    assert "no such column" in str(error)
    assert not type(error).__module__.startswith("surefoot")
