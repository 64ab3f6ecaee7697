"""R23, R28. The evidence keeps the status that the server sent, whatever the client is told.

An answer of 200 that cannot be read goes up as a failure. It is still an answer of 200: whoever
looks for the fault afterwards must not be sent to a gateway that failed.
"""

from __future__ import annotations

import pytest

from support.exchanges import FAMILIES, exchange
from surefoot import Gateway
from surefoot.testing import BadJson, FaultyGateway, RecordingSink, Status

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("family", FAMILIES)
async def test_an_unreadable_answer_is_recorded_with_its_own_status(family: str) -> None:
    """R23. And the call may have run."""
    sink = RecordingSink()
    with FaultyGateway() as faulty:
        gateway = Gateway(faulty.url, evidence=sink)
        faulty.script("charge", BadJson("duplicate-keys"))
        told = await exchange(gateway, faulty, sink, family=family)
    assert told.kind == "unreadable"
    assert (told.record["why"], told.record["status"]) == ("unreadable", 200)
    assert told.column("status") == [200]
    assert told.record["may_have_run"] is True


@pytest.mark.parametrize("family", FAMILIES)
async def test_a_failure_is_recorded_as_the_client_is_told(family: str) -> None:
    """R28. A 500 is an answer, and leaves open whether it ran: the evidence says so, too."""
    sink = RecordingSink()
    with FaultyGateway() as faulty:
        gateway = Gateway(faulty.url, evidence=sink)
        faulty.script("charge", Status(500))
        told = await exchange(gateway, faulty, sink, family=family)
    assert told.kind == "server-failure"
    assert (told.record["ended"], told.record["status"]) == ("answered", 500)
    assert told.record["may_have_run"] is True


@pytest.mark.parametrize("family", FAMILIES)
async def test_a_refusal_is_not_recorded_as_what_may_have_run(family: str) -> None:
    """R28. A throttled call has an unknown effect, and is told as throttled."""
    sink = RecordingSink()
    with FaultyGateway() as faulty:
        gateway = Gateway(faulty.url, evidence=sink, retry=None)
        faulty.script("charge", Status(429))
        told = await exchange(gateway, faulty, sink, family=family)
    assert told.kind == "rate-limited"
    assert told.column("effect") == ["unknown"]
    assert told.record["may_have_run"] is False
