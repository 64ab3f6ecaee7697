"""B4. Only a server that really lacks discovery moves a connection to the handshake era.

The rows of what must not move it are in `test_connecting.py`, for every kind of session.
"""

from __future__ import annotations

from typing import Final

import pytest

from support.sessions import FAMILY, SDK_ON_TRIO, nothing_left, opened, sdk_streams
from surefoot import Gateway, Retry
from surefoot.testing import FaultyGateway, RpcError, Status, Step, Throttle

pytestmark = [pytest.mark.anyio, *SDK_ON_TRIO]

QUICK: Final = Retry(max_attempts=2, base_delay=0.01)

# What the server itself means by an answer to `server/discover`: that it does not know it.
OLDER: Final[list[tuple[str, Step]]] = [
    ("404", Status(404)),
    ("400", Status(400, "Bad Request: Missing session ID")),
    ("method not found", RpcError(-32601, "Method not found")),
    ("no shared version", RpcError(-32022, "no", data={"supported": ["2025-11-25"]})),
]


@pytest.mark.parametrize(("name", "step"), OLDER, ids=[row[0] for row in OLDER])
async def test_a_server_that_does_not_know_discovery_is_fallen_back_to(
    name: str, step: Step
) -> None:
    """B4. The other side of the rule: the server's own words keep their meaning."""
    del name
    with FaultyGateway() as faulty:
        faulty.script("server/discover", step)
        gateway = Gateway(faulty.url, retry=QUICK)
        async with nothing_left(faulty), opened(gateway.transport(), "modern") as session:
            assert session.protocol == "2025-11-25"
            assert (await session.call("search", {"q": "it"})).text == "found it"
        assert len(faulty.requests("server/discover")) == 1


async def test_a_server_of_the_older_era_is_fallen_back_to() -> None:
    """B4. It answers `server/discover` as it answers everything outside a session."""
    with FaultyGateway(eras=("2025-11-25",)) as faulty:
        gateway = Gateway(faulty.url, retry=QUICK)
        async with nothing_left(faulty), opened(gateway.transport(), "modern") as session:
            assert session.protocol == "2025-11-25"
            assert (await session.call("search", {"q": "it"})).text == "found it"


@pytest.mark.parametrize("step", [Throttle(0), Status(503), Status(500)], ids=repr)
async def test_the_bare_client_is_moved_by_one_such_answer(step: Step) -> None:
    """B4. The control of the tests above."""
    with FaultyGateway() as faulty:
        faulty.script("server/discover", step)
        client = FAMILY.AsyncClient(timeout=5)
        async with client, opened(sdk_streams(faulty.url, client), "modern") as session:
            assert session.protocol == "2025-11-25"
