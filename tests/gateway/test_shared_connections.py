"""R107, R111, B3, DESIGN 2. Principals share connections, and nothing that says whose one was.

The gateway counts connections and keeps every request; each secrecy test has its control.
"""

from __future__ import annotations

import threading
from typing import Any, Final

import anyio
import pytest

from support.sessions import FAMILY, KINDS, SDK_ON_TRIO, Gate, nothing_left
from surefoot import Bearer, Gateway
from surefoot.credentials import CredentialRequest
from surefoot.testing import FaultyGateway, Status, Tool, mcp_request

pytestmark = [pytest.mark.both_majors, pytest.mark.anyio, *SDK_ON_TRIO]

USERS: Final = ("ada", "bob", "eve")


async def _vault(request: CredentialRequest) -> Bearer:
    return Bearer(f"token-of-{request.principal}")


def _users(faulty: FaultyGateway) -> dict[str, Gateway]:
    gateway = Gateway(faulty.url, credentials=_vault)
    return {name: gateway.acting_for(user_id=name) for name in USERS}


async def _search(client: Any, url: str, what: str) -> str:
    asked = mcp_request("tools/call", {"name": "search", "arguments": {"q": what}})
    answer = await client.post(url, headers=asked.headers, content=asked.body)
    text: str = answer.json()["result"]["content"][0]["text"]
    return text


async def test_principals_share_one_connection_and_two_gateways_do_not() -> None:
    """DESIGN 2. One after the other; each call carries its own user's credential."""
    with FaultyGateway() as faulty:
        users = _users(faulty)
        async with (
            nothing_left(faulty),
            users["ada"].http_client() as ada,
            users["bob"].http_client() as bob,
        ):
            for client, name in ((ada, "ada"), (bob, "bob"), (ada, "ada")):
                assert await _search(client, faulty.url, name) == f"found {name}"
        assert faulty.connections.opened == 1
        told = [entry.header("authorization") for entry in faulty.requests("search")]
        assert told == [b"Bearer token-of-ada", b"Bearer token-of-bob", b"Bearer token-of-ada"]
    with FaultyGateway() as faulty:
        async with (
            Gateway(faulty.url).http_client() as one,
            Gateway(faulty.url).http_client() as other,
        ):
            await _search(one, faulty.url, "it")
            await _search(other, faulty.url, "it")
        assert faulty.connections.opened == 2


@pytest.mark.parametrize("order", [("ada", "bob"), ("bob", "ada")])
async def test_a_client_that_closes_closes_nothing_of_another(order: tuple[str, str]) -> None:
    """DESIGN 2. Neither who came first nor who is in flight; the last one closes all."""
    gate = Gate()
    asked = mcp_request("tools/call", {"name": "held", "arguments": {}})
    with FaultyGateway([Tool("held", answer=gate)]) as faulty:
        users = _users(faulty)
        clients: dict[str, Any] = {name: users[name].http_client() for name in ("ada", "bob")}
        for name in ("ada", "bob"):
            await clients[name].__aenter__()
            assert await _search(clients[name], faulty.url, name) == f"found {name}"
        first, last = order
        told: list[Any] = []

        async def held() -> None:
            told.append(
                await clients[last].post(faulty.url, headers=asked.headers, content=asked.body)
            )

        async with nothing_left(faulty), anyio.create_task_group() as group:
            group.start_soon(held)
            await faulty.until(lambda: faulty.executions("held") == 1)
            assert await _search(clients[first], faulty.url, "it") == "found it"
            await clients[first].__aexit__(None, None, None)
            gate.open()
            await faulty.until(lambda: bool(told))
            assert await _search(clients[last], faulty.url, "more") == "found more"
            assert faulty.connections.opened == 2
            await clients[last].__aexit__(None, None, None)
        assert told[0].json()["result"]["content"][0]["text"] == "held a while"
        with pytest.raises(RuntimeError, match="closed"):
            await _search(clients[first], faulty.url, "never")


async def test_nothing_that_says_whose_it_was_crosses() -> None:
    """R107. Credentials, cookies set here or by the server, and headers, for ada alone."""
    with FaultyGateway() as faulty:
        users = _users(faulty)
        marked: dict[str, Any] = {
            "cookies": {"canary-cookie": "of-ada"},
            "headers": {"x-canary": "of-ada"},
        }
        async with (
            users["ada"].http_client(**marked) as ada,
            users["bob"].http_client() as bob,
        ):
            faulty.script("search", Status(503, headers={"set-cookie": "canary-set=of-ada"}))
            for client, name in ((ada, "ada"), (bob, "bob"), (ada, "ada"), (bob, "bob")):
                asked = mcp_request("tools/call", {"name": "search", "arguments": {"q": name}})
                await client.post(faulty.url, headers=asked.headers, content=asked.body)
        assert faulty.connections.opened == 1
        for entry in faulty.requests("search"):
            whose = b"ada" if b'"ada"' in entry.body.replace(b" ", b"") else b"bob"
            told = b"\n".join(b": ".join(line) for line in entry.headers)
            assert entry.header("authorization") == b"Bearer token-of-" + whose
            assert (told.count(b"of-ada") == 3) is (whose == b"ada")
            assert (b"canary" in told) is (whose == b"ada")
            assert b"canary-set" not in told


async def test_an_entered_gateway_keeps_its_connections_between_clients() -> None:
    """DESIGN 2. So a user of a moment costs no connection; outside of it the last one closes."""
    for entered, opened in ((True, 1), (False, 3)):
        with FaultyGateway() as faulty:
            gateway = Gateway(faulty.url, credentials=_vault)
            async with nothing_left(faulty):
                if entered:
                    await gateway.__aenter__()
                for name in USERS:
                    async with gateway.acting_for(user_id=name).http_client() as client:
                        assert await _search(client, faulty.url, name) == f"found {name}"
                    await gateway.acting_for(user_id=name).aclose()
                await faulty.until(lambda: faulty.connections.open == int(entered))  # noqa: B023
                await gateway.aclose()
            assert faulty.connections.opened == opened


async def test_sessions_of_many_users_share_connections() -> None:
    """DESIGN 2. At once; what each is told is its own."""
    with FaultyGateway() as faulty:
        users = _users(faulty)

        async def work(name: str) -> None:
            async with users[name].session() as session:
                for number in range(4):
                    what = f"{name}-{number}"
                    assert (await session.call("search", {"q": what})).text == f"found {what}"

        async with nothing_left(faulty), Gateway(faulty.url) as idle:
            async with anyio.create_task_group() as group:
                for name in USERS:
                    group.start_soon(work, name)
            assert idle.name is None
        for entry in faulty.requests("search"):
            name = next(one for one in USERS if f'"{one}-'.encode() in entry.body)
            assert entry.header("authorization") == f"Bearer token-of-{name}".encode()
        standing = 0 if KINDS[0] == "modern" else len(USERS)
        assert faulty.connections.opened <= len(USERS) + standing


@pytest.mark.parametrize(
    "settings", [{"limits": FAMILY.Limits()}, {"verify": False}, {"trust_env": False}], ids=str
)
async def test_a_client_that_is_told_how_to_connect_connects_by_itself(
    settings: dict[str, Any],
) -> None:
    """DESIGN 2. What it was told holds for it alone."""
    with FaultyGateway() as faulty:
        gateway = Gateway(faulty.url)
        async with gateway.http_client(**settings) as one, gateway.http_client() as other:
            await _search(one, faulty.url, "it")
            await _search(other, faulty.url, "it")
        assert faulty.connections.opened == 2


def test_each_event_loop_has_connections_of_its_own(anyio_backend: str) -> None:
    """DESIGN 6. One Gateway, two threads at once, and a third loop after them."""
    with FaultyGateway() as faulty:
        gateway = Gateway(faulty.url)
        met, failed = threading.Barrier(2, timeout=10), list[BaseException]()

        async def work(together: bool) -> None:
            async with gateway.http_client() as client:
                await _search(client, faulty.url, "it")
                if together:
                    await anyio.to_thread.run_sync(met.wait)
                await _search(client, faulty.url, "it")

        def loop(together: bool) -> None:
            try:
                anyio.run(work, together, backend=anyio_backend)
            except BaseException as error:  # noqa: BLE001 - it is shown in the main thread
                failed.append(error)

        threads = [threading.Thread(target=loop, args=(True,)) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(20)
        loop(together=False)
        assert not failed
        assert faulty.connections.opened == 3
