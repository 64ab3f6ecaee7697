"""ScriptedTransport: answers and errors of the request's family."""

from __future__ import annotations

from collections.abc import AsyncIterator
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from surefoot.testing import Fails, Replies, ScriptedTransport

pytestmark = pytest.mark.anyio


@pytest.fixture(params=[name for name in ("httpx2", "httpx") if find_spec(name)])
def family(request: pytest.FixtureRequest) -> Any:
    """Each HTTP family that is installed."""
    return import_module(request.param)


async def test_answers_come_in_order_and_requests_are_kept_as_sent(family: Any) -> None:
    """Header lines (several of one name too) and bodies are there to be searched."""
    wire = ScriptedTransport(Replies(429, headers={"retry-after": "1"}), Replies(json={"ok": True}))
    async with family.AsyncClient(transport=wire) as client:
        first = await client.post(
            "http://x.test/mcp", content=b"one", headers=[("X-A", "1"), ("X-A", "2")]
        )
        second = await client.post("http://x.test/mcp?q=1", content=b"two")
    assert (first.status_code, first.headers["retry-after"]) == (429, "1")
    assert second.json() == {"ok": True}
    assert second.headers["content-type"] == "application/json"
    assert [(sent.method, sent.url, sent.body) for sent in wire.requests] == [
        ("POST", "http://x.test/mcp", b"one"),
        ("POST", "http://x.test/mcp?q=1", b"two"),
    ]
    assert wire.requests[0].header_values("x-a") == (b"1", b"2")
    assert wire.closed
    assert wire.open_responses == 0


async def test_errors_are_of_the_requests_family_and_carry_it(family: Any) -> None:
    """What is caught as a ConnectError is one, whichever family asked."""
    wire = ScriptedTransport(Fails("ConnectError", "refused"), Fails("ReadTimeout"))
    async with family.AsyncClient(transport=wire) as client:
        with pytest.raises(family.ConnectError, match="refused") as caught:
            await client.get("http://x.test/")
        assert caught.value.request.url == "http://x.test/"
        with pytest.raises(family.ReadTimeout):
            await client.get("http://x.test/")


async def test_a_json_rpc_answer_carries_the_requests_own_id(family: Any) -> None:
    """A result or an error is addressed to the request that asked."""
    wire = ScriptedTransport(
        Replies(result={"content": []}), Replies(error={"code": -1, "message": "no"})
    )
    async with family.AsyncClient(transport=wire) as client:
        one = await client.post(
            "http://x.test/", json={"jsonrpc": "2.0", "id": "a-7", "method": "m"}
        )
        two = await client.post("http://x.test/", json={"jsonrpc": "2.0", "id": 8, "method": "m"})
    assert one.json() == {"jsonrpc": "2.0", "id": "a-7", "result": {"content": []}}
    assert two.json() == {"jsonrpc": "2.0", "id": 8, "error": {"code": -1, "message": "no"}}
    assert wire.requests[1].message()["id"] == 8


async def test_a_body_may_come_in_pieces_and_break(family: Any) -> None:
    """A reset in the middle of a body is an attempt without an answer; here is one."""
    wire = ScriptedTransport(Replies(chunks=[b'{"a":', b"1"], breaks=Fails("ReadError", "cut")))
    async with (
        family.AsyncClient(transport=wire) as client,
        client.stream("GET", "http://x.test/") as response,
    ):
        assert wire.open_responses == 1
        body = response.aiter_raw()
        assert [await anext(body), await anext(body)] == [b'{"a":', b"1"]
        with pytest.raises(family.ReadError, match="cut"):
            await anext(body)
    assert wire.open_responses == 0


async def test_a_body_may_take_its_time(family: Any) -> None:
    """An async generator function is a body that can be waited on."""
    release = anyio.Event()

    async def chunks() -> AsyncIterator[bytes]:
        yield b"a"
        await release.wait()
        yield b"b"

    wire = ScriptedTransport(Replies(chunks=chunks))
    async with (
        family.AsyncClient(transport=wire) as client,
        client.stream("GET", "http://x.test/") as response,
    ):
        body = response.aiter_raw()
        assert await anext(body) == b"a"
        release.set()
        assert await anext(body) == b"b"
        with pytest.raises(StopAsyncIteration):
            await anext(body)


async def test_a_callable_sees_the_request_and_says_what_is_played(family: Any) -> None:
    """Each attempt can be judged as it is sent, and answered in either way."""

    async def later(request: Any) -> Replies:
        await anyio.lowlevel.checkpoint()
        return Replies(200 if request.headers["authorization"] == "Bearer b" else 401)

    wire = ScriptedTransport(
        later,
        later,
        lambda request: family.Response(418, request=request),
        lambda _: Fails("ReadError"),
    )
    async with family.AsyncClient(transport=wire) as client:
        statuses = [
            (
                await client.get("http://x.test/", headers={"authorization": f"Bearer {token}"})
            ).status_code
            for token in ("a", "b", "c")
        ]
        assert statuses == [401, 200, 418]
        with pytest.raises(family.ReadError):
            await client.get("http://x.test/")


async def test_an_exception_is_raised_as_it_is(family: Any) -> None:
    """A test may raise its own, with a marker in it."""
    marker = RuntimeError("mine")
    async with family.AsyncClient(transport=ScriptedTransport(marker)) as client:
        with pytest.raises(RuntimeError) as caught:
            await client.get("http://x.test/")
    assert caught.value is marker


async def test_a_request_too_many_fails_the_test(family: Any) -> None:
    """A repeat that nobody expected is not answered by chance."""
    async with family.AsyncClient(transport=ScriptedTransport(Replies())) as client:
        await client.get("http://x.test/")
        with pytest.raises(AssertionError, match="request 2 came"):
            await client.get("http://x.test/")
    async with family.AsyncClient(transport=ScriptedTransport(Replies(503), repeat=True)) as client:
        assert [(await client.get("http://x.test/")).status_code for _ in range(3)] == [503] * 3


async def test_secrets_are_not_in_the_repr_of_what_was_sent(family: Any) -> None:
    """A failing assertion prints reprs; the control shows that the value was there."""
    wire = ScriptedTransport(Replies())
    async with family.AsyncClient(transport=wire) as client:
        await client.post(
            "http://x.test/", content=b"canary-b", headers={"authorization": "canary-h"}
        )
    assert wire.requests[0].header_values("authorization") == (b"canary-h",)
    assert "canary" not in repr(wire.requests)


def test_what_it_proves_is_said_by_the_test() -> None:
    """A refused connection proves something only from a transport that says so."""
    assert ScriptedTransport().proves_not_sent is False
    wire = ScriptedTransport(proves_not_sent=True)
    assert wire.proves_not_sent is True
    wire.proves_not_sent = False
    assert wire.proves_not_sent is False


@pytest.mark.parametrize(
    ("kind", "args", "options", "error", "names"),
    [
        (Replies, (99,), {}, ValueError, "status"),
        (Replies, ("200",), {}, TypeError, "status"),
        (Replies, (), {"body": b"", "json": {}}, ValueError, "one of"),
        (Fails, ("Reset",), {}, ValueError, "name"),
        (ScriptedTransport, (200,), {}, TypeError, "int"),
        (ScriptedTransport, (), {"proves_not_sent": 1}, TypeError, "proves_not_sent"),
    ],
)
def test_what_cannot_be_played_is_refused_when_declared(
    kind: Any, args: Any, options: dict[str, Any], error: type[Exception], names: str
) -> None:
    """The error names the option."""
    with pytest.raises(error, match=names):
        kind(*args, **options)
