"""D33, R22. Closing the Gateway of one user ends nothing of the others' evidence."""

from __future__ import annotations

import pytest

from surefoot import Gateway
from surefoot.testing import FaultyGateway, RecordingSink, tool_call

pytestmark = [pytest.mark.both_majors, pytest.mark.anyio]


async def test_evidence_goes_on_after_a_users_gateway_is_closed() -> None:
    """B13. Only the Gateway that opened the ledger closes it."""
    sink = RecordingSink()
    asked = tool_call("search", {"q": "W-7712"})
    with FaultyGateway() as faulty:
        async with Gateway(faulty.url, evidence=sink) as gateway:
            for who in (gateway.acting_for(user_id="ana"), gateway):
                async with who.http_client() as client:
                    await client.post(faulty.url, headers=asked.headers, content=asked.body)
                if who is not gateway:
                    await who.aclose()
            assert len(sink.of("tool.request_attempts")) == 2
