"""B2, B6, D27. A caller that stopped listening causes no later send.

On mcp 2.x the SDK says so: by hanging up under 2026-07-28, by a notification under 2025-11-25. On
1.x it says nothing, and only `caller_timeout` keeps a wait from outlasting its caller.
"""

from __future__ import annotations

from typing import Final, Literal

import anyio
import pytest

from support.sessions import KINDS, SDK_ON_TRIO, Kind, nothing_left, opened
from surefoot import Gateway, Retry
from surefoot.testing import FaultyGateway, RecordingSink, Throttle

pytestmark = [pytest.mark.both_majors, pytest.mark.anyio, *SDK_ON_TRIO]

PATIENCE: Final = 0.3


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("how", ["timed out", "cancelled"])
async def test_a_call_that_was_given_up_in_its_wait_is_not_sent_later(
    how: Literal["timed out", "cancelled"], kind: Kind
) -> None:
    """B2, B6, C39 of the bug reports. The session is open long after the wait would have ended."""
    sink = RecordingSink()
    patience = PATIENCE if kind == "mcp1" else None
    with FaultyGateway() as faulty:
        gateway = Gateway(faulty.url, retry=Retry(spread=0), caller_timeout=patience, evidence=sink)
        async with nothing_left(faulty), opened(gateway.transport(), kind) as session:
            faulty.script("charge", Throttle(1))
            if how == "timed out":
                told = await session.call("charge", {"amount": 1}, patience=PATIENCE)
                assert told.kind == ("rate-limited" if kind == "mcp1" else None)
            else:
                with anyio.move_on_after(PATIENCE):
                    await session.call("charge", {"amount": 1})
            await anyio.sleep(1.2)
            assert (await session.call("search", {"q": "it"})).text == "found it"
        assert (len(faulty.requests("charge")), faulty.executions("charge")) == (1, 0)
    (record,) = [event for event in sink.of("tool.request_attempts") if event["tool"] == "charge"]
    assert record["may_have_run"] is False


@pytest.mark.parametrize("kind", KINDS)
async def test_a_caller_that_listens_on_is_waited_for(kind: Kind) -> None:
    """B2. The control: the same wait, and a caller with the patience for it."""
    with FaultyGateway() as faulty:
        gateway = Gateway(faulty.url, retry=Retry(spread=0), caller_timeout=5)
        async with nothing_left(faulty), opened(gateway.transport(), kind) as session:
            faulty.script("charge", Throttle(1))
            assert (await session.call("charge", {"amount": 1})).text == "charged 1"
        assert (len(faulty.requests("charge")), faulty.executions("charge")) == (2, 1)
