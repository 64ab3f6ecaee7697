"""B1, B12. What a server says to a notification holds up nobody, however long it goes on."""

from __future__ import annotations

from typing import Final

import anyio
import pytest

from support.sessions import KINDS, SDK_ON_TRIO, Kind, opened
from surefoot import Gateway
from surefoot.testing import FaultyGateway, Raw

pytestmark = [pytest.mark.both_majors, pytest.mark.anyio, *SDK_ON_TRIO]

IN_SESSIONS: Final[list[Kind]] = [kind for kind in KINDS if kind != "modern"]
HEAD: Final = b"HTTP/1.1 %b\r\ncontent-type: application/json\r\ncontent-length: 9999\r\n\r\n"


@pytest.mark.parametrize("kind", IN_SESSIONS)
@pytest.mark.parametrize("status", [b"202 Accepted", b"200 OK", b"500 Broken"])
async def test_a_body_that_goes_on_after_a_notification_stops_no_session(
    kind: Kind, status: bytes
) -> None:
    """B1. It stood still for an hour (measured); the control is that the body never ended."""
    with FaultyGateway() as faulty:
        faulty.script("notifications/initialized", Raw(HEAD % status, close=False))
        gateway = Gateway(faulty.url)
        with anyio.fail_after(30):
            async with opened(gateway.transport(), kind) as session:
                assert (await session.call("search", {"q": "it"})).text == "found it"
        assert len(faulty.requests("notifications/initialized")) == 1
        assert faulty.executions("search") == 1
