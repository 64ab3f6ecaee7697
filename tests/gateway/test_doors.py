"""R105, R111, R112, B1. One Gateway, a door for each kind of client, and the same stack behind all.

Each door is used as the frameworks use it: what they pass, what they check, and on which loop.
"""

from __future__ import annotations

import threading
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Any, Final

import anyio
import pytest

from support.sessions import (
    FAMILY,
    KINDS,
    SDK_ON_TRIO,
    Kind,
    Session,
    nothing_left,
    opened,
    sdk_streams,
)
from surefoot import Bearer, Gateway, Headers, Retry
from surefoot.testing import FaultyGateway, RecordingSink, Redirect, Status, Throttle, tool_call

pytestmark = [pytest.mark.both_majors, pytest.mark.anyio, *SDK_ON_TRIO]

QUICK: Final = Retry(max_attempts=3, base_delay=0.01)
TOKEN: Final = "token-of-the-vault-0001"


@asynccontextmanager
async def _open(gateway: Gateway, door: str, kind: Kind) -> AsyncGenerator[Session]:
    """A session through one of the doors."""
    if door == "transport":
        async with opened(gateway.transport(), kind) as session:
            yield session
        return
    clients: dict[str, Callable[[], Any]] = {
        "http_client": gateway.http_client,
        "http_client_factory": gateway.http_client_factory,
        "protect": lambda: gateway.protect(FAMILY.AsyncClient(timeout=5)),
    }
    async with (
        clients[door]() as client,
        opened(sdk_streams(gateway.url, client), kind) as session,
    ):
        yield session


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("door", ["transport", "http_client", "http_client_factory", "protect"])
async def test_every_door_waits_vends_and_answers_in_words(door: str, kind: Kind) -> None:
    """R105, B1. A 429 is waited out, the credential is vended, a 503 is told; nothing is left."""
    with FaultyGateway() as faulty:
        gateway = Gateway(faulty.url, credentials=Bearer(TOKEN), retry=QUICK)
        async with nothing_left(faulty), _open(gateway, door, kind) as session:
            faulty.script("charge", Throttle(0))
            charged = await session.call("charge", {"amount": 1})
            faulty.script("charge", Status(503))
            failed = await session.call("charge", {"amount": 1})
        assert (charged.text, failed.kind) == ("charged 1", "server-failure")
        assert len(faulty.requests("charge")) == 3
        assert {entry.header("authorization") for entry in faulty.journal} == {
            f"Bearer {TOKEN}".encode()
        }


@pytest.mark.parametrize("kind", KINDS)
async def test_each_transport_is_a_fresh_pair_of_streams(kind: Kind) -> None:
    """R111. Two sessions of one Gateway at a time, and one after the other."""
    with FaultyGateway() as faulty:
        gateway = Gateway(faulty.url, retry=QUICK)
        async with nothing_left(faulty):
            async with gateway.transport() as one, gateway.transport() as other:
                assert len(one) == len(other) == 2
                assert not {id(end) for end in one} & {id(end) for end in other}
                for end in (*one, *other):
                    await end.aclose()
            async with opened(gateway.transport(), kind) as first:
                async with opened(gateway.transport(), kind) as second:
                    assert (await second.call("search", {"q": 2})).text == "found 2"
                assert (await first.call("search", {"q": 1})).text == "found 1"


async def test_the_settings_of_a_transport_are_the_sdks() -> None:
    """R111. `terminate_on_close=False` leaves the session open: no DELETE is sent."""
    kind: Kind = "mcp1" if "mcp1" in KINDS else "handshake"
    for settings, deleted in (({}, 1), ({"terminate_on_close": False}, 0)):
        with FaultyGateway() as faulty:
            gateway = Gateway(faulty.url, retry=QUICK)
            async with opened(gateway.transport(**settings), kind) as session:
                await session.call("search")
            assert len(faulty.requests("DELETE")) == deleted


async def test_a_client_has_the_sdks_own_timeouts_and_whatever_else_it_is_given() -> None:
    """R111. 30 s, and 300 s to read, in the place of the five of the HTTP library."""
    gateway = Gateway("http://127.0.0.1:1/mcp")
    async with gateway.http_client() as client:
        assert isinstance(client, FAMILY.AsyncClient)
        assert client.timeout == FAMILY.Timeout(30, read=300)
    async with gateway.http_client(timeout=7, headers={"x-tenant": "blue"}) as client:
        assert client.timeout == FAMILY.Timeout(7)
        assert client.headers["x-tenant"] == "blue"
    with pytest.raises(TypeError, match="no_such_setting"):
        gateway.http_client(no_such_setting=1)


def _portable(seconds: float, read: float) -> Any:
    """As Google ADK passes a timeout: one that is a 4-tuple as well, for both families."""
    known = FAMILY.Timeout(seconds, read=read)
    new: Any = getattr(tuple, "__new__")  # noqa: B009 - its type has no form here
    kind = type("PortableTimeout", (FAMILY.Timeout, tuple), {"__new__": new})
    portable: Any = new(kind, (known.connect, known.read, known.write, known.pool))
    for name in ("connect", "read", "write", "pool"):
        object.__setattr__(portable, name, getattr(known, name))
    return portable


class _Auth(FAMILY.Auth):
    """An auth flow of somebody else's."""

    def auth_flow(self, request: Any) -> Any:
        request.headers["authorization"] = "Basic b3RoZXI="
        yield request


SHAPES: Final[list[tuple[str, tuple[Any, ...], dict[str, Any]]]] = [
    ("nothing at all", (), {}),
    ("openai-agents and LangChain", (), {"headers": None, "timeout": None, "auth": None}),
    ("by position", ({"x-by": "framework"}, 5.0, None), {}),
    ("FastMCP", (), {"headers": {"x-by": "framework"}, "auth": None, "follow_redirects": True}),
    ("openai-agents", (), {"headers": {}, "timeout": FAMILY.Timeout(5, read=300), "auth": None}),
    ("ADK", (), {"headers": {"x-by": "framework"}, "timeout": _portable(5, read=300)}),
    ("an auth flow", (), {"auth": _Auth()}),
    ("more settings", (), {"headers": {}, "http2": False, "trust_env": False}),
]


@pytest.mark.parametrize(("shape", "given", "named"), SHAPES, ids=[row[0] for row in SHAPES])
async def test_a_factory_takes_every_shape_that_frameworks_call_it_in(
    shape: str, given: tuple[Any, ...], named: dict[str, Any]
) -> None:
    """R111. `None` stands for "not given"; the result is a client of the SDK's family."""
    del shape
    with FaultyGateway() as faulty:
        gateway = Gateway(faulty.url, retry=QUICK)
        factory = gateway.http_client_factory
        async with nothing_left(faulty), factory(*given, **named) as client:
            assert isinstance(client, FAMILY.AsyncClient)
            faulty.script("search", Throttle(0))
            asked = tool_call("search", {"q": "it"})
            answer = await client.post(faulty.url, headers=asked.headers, content=asked.body)
        assert answer.json()["result"]["content"][0]["text"] == "found it"
        headers: dict[str, str] = named.get("headers") or (given[0] if given else None) or {}
        for name, value in headers.items():
            assert {entry.header(name) for entry in faulty.journal} == {value.encode()}
        if named.get("auth") is not None:
            assert {entry.header("authorization") for entry in faulty.journal} == {
                b"Basic b3RoZXI="
            }
        else:
            assert client.timeout.read == (5.0 if given else 300)
        assert len(faulty.requests("search")) == 2


async def test_what_is_vended_wins_over_the_headers_of_a_client_and_of_a_gateway() -> None:
    """R112. Static first, then the vended ones; names are compared without case."""
    with FaultyGateway() as faulty:
        gateway = Gateway(
            faulty.url,
            credentials=Headers({"X-Tenant-Key": "vended", "Authorization": "vended-scheme x"}),
            headers={"x-tenant-key": "static", "x-region": "north"},
        )
        given = {"Authorization": "Bearer of-the-framework", "X-Tenant-Key": "theirs"}
        async with gateway.protect(FAMILY.AsyncClient(headers=given)) as client:
            asked = tool_call("search")
            await client.post(faulty.url, headers=asked.headers, content=asked.body)
        (entry,) = faulty.journal
        assert entry.header_values("authorization") == (b"vended-scheme x",)
        assert entry.header_values("x-tenant-key") == (b"vended",)
        assert entry.header_values("x-region") == (b"north",)


async def test_a_client_that_follows_redirects_is_led_nowhere() -> None:
    """B11. FastMCP asks for `follow_redirects=True`; the bare client would go."""
    with FaultyGateway() as faulty, FaultyGateway() as elsewhere:
        asked = tool_call("search")
        faulty.script("search", Redirect(to=elsewhere.url), Redirect(to=elsewhere.url))
        bare = FAMILY.AsyncClient(follow_redirects=True)
        ours = Gateway(faulty.url, retry=QUICK).http_client_factory(follow_redirects=True)
        async with ours, bare:
            answer = await ours.post(faulty.url, headers=asked.headers, content=asked.body)
            assert elsewhere.journal == ()
            await bare.post(faulty.url, headers=asked.headers, content=asked.body)
        assert len(elsewhere.journal) == 1
        assert answer.status_code == 200
        assert "redirected" in answer.text


async def test_closing_a_gateway_hands_over_the_evidence_and_leaves_clients_alone() -> None:
    """R111, R22. Its clients are their user's to close; closing twice is closing once."""
    sink = RecordingSink()
    with FaultyGateway() as faulty:
        async with Gateway(faulty.url, evidence=sink) as gateway:
            client = gateway.http_client()
            asked = tool_call("search")
            await client.post(faulty.url, headers=asked.headers, content=asked.body)
        await gateway.aclose()
        assert [event["type"] for event in sink.events].count("run.ended") == 1
        assert len(sink.of("tool.request_attempts")) == 1
        assert not sink.closed
        answer = await client.post(faulty.url, headers=asked.headers, content=asked.body)
        assert answer.status_code == 200
        await client.aclose()
        await faulty.until(lambda: faulty.connections.open == 0)


@pytest.mark.parametrize("kind", KINDS)
def test_one_gateway_serves_one_loop_after_the_other(kind: Kind) -> None:
    """B1. Nothing of a Gateway belongs to a loop: asyncio, trio, and asyncio again."""
    with FaultyGateway() as faulty:
        gateway = Gateway(faulty.url, credentials=Bearer(TOKEN), retry=QUICK)

        async def once() -> str:
            async with nothing_left(faulty), opened(gateway.transport(), kind) as session:
                faulty.script("search", Throttle(0))
                return (await session.call("search", {"q": "it"})).text

        texts = [anyio.run(once, backend=loop) for loop in ("asyncio", "trio", "asyncio")]
        assert texts == ["found it"] * 3
        assert len(faulty.requests("search")) == 6


@pytest.mark.parametrize("kind", KINDS)
def test_one_gateway_serves_two_loops_in_two_threads_at_once(kind: Kind) -> None:
    """B1. Strands runs its session in a thread with a loop of its own."""
    told: dict[str, str] = {}
    together = threading.Barrier(2, timeout=5)
    with FaultyGateway() as faulty:
        gateway = Gateway(faulty.url, credentials=Bearer(TOKEN), retry=QUICK)
        make: Callable[[], Any] = gateway.transport

        async def work(name: str) -> None:
            async with opened(make(), kind) as session:
                await anyio.to_thread.run_sync(together.wait)
                texts = {(await session.call("search", {"q": name})).text for _ in range(5)}
                told[name] = " ".join(texts)

        def run(loop: str) -> None:
            anyio.run(work, loop, backend=loop)

        threads = [threading.Thread(target=run, args=(loop,)) for loop in ("asyncio", "trio")]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(10)
        assert told == {"asyncio": "found asyncio", "trio": "found trio"}
        faulty.wait_until(lambda: faulty.connections.open == 0)
