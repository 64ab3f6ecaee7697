"""B2, B3. An answer that comes after its caller has left settles nothing: nobody was told.

mcp 1.x leaves the request of a caller who stopped waiting on its way, so that its answer still
arrives; a caller who was told "may have run" must not be able to run it again for that.
"""

from __future__ import annotations

import pytest

from support.sessions import KINDS, SDK_ON_TRIO, Kind
from surefoot import Gateway, Replay, ToolRule
from surefoot.errors import MayHaveRunError
from surefoot.testing import FaultyGateway, Slow, tool_call

pytestmark = [pytest.mark.both_majors, pytest.mark.anyio, *SDK_ON_TRIO]

PAYS = Replay(tools={"charge": ToolRule(makes_changes=True)})


@pytest.mark.parametrize("kind", KINDS)
async def test_a_payment_whose_answer_comes_too_late_is_not_made_again(kind: Kind) -> None:
    """B3. Each try is made after the first one's answer has come, and is told of that one."""
    eras = ("2026-07-28",) if kind == "modern" else ("2025-11-25",)
    told: list[MayHaveRunError] = []
    with FaultyGateway(eras=eras) as faulty:
        faulty.script("charge", Slow(1.2, when="after"), repeat=True)
        gateway = Gateway(faulty.url, replay=PAYS)
        async with gateway.session() as session:
            for _ in range(3):
                with pytest.raises(MayHaveRunError) as raised:
                    await session.call("charge", {"amount": 1}, timeout=0.6)
                told.append(raised.value)
                await faulty.until(lambda: not any(e.in_flight for e in faulty.requests("charge")))
            assert [one.cause for one in told] == ["deadline", "fenced", "fenced"]
            assert len({one.call_id for one in told}) == 1
            assert faulty.executions("charge") == len(faulty.requests("charge")) == 1
            faulty.clear_scripts()
            assert gateway.settle(told[0].call_id or "", ran=False)
            assert (await session.call("charge", {"amount": 1})).text == "charged 1"


@pytest.mark.parametrize("patience", [0.2, 30.0])
async def test_an_answer_after_the_callers_own_timeout_settles_nothing(patience: float) -> None:
    """B3, B6. With mcp 1.x nobody says that a caller has left; its declared patience does."""
    asked = tool_call("charge", {"amount": 1})
    with FaultyGateway() as faulty:
        faulty.script("charge", Slow(0.5, when="after"), repeat=True)
        gateway = Gateway(faulty.url, replay=PAYS, caller_timeout=patience)
        async with gateway.http_client() as client:
            answers = [
                await client.post(faulty.url, headers=asked.headers, content=asked.body)
                for _ in range(2)
            ]
        assert "charged 1" in answers[0].text
        assert faulty.executions("charge") == (1 if patience < 1 else 2)
    assert ("may have run" in answers[1].text) is (patience < 1)
