"""DESIGN 6, R76, R83, D31. `protect` wraps a client in place, so that all it was set up with stays.

Proxies of the environment, mounts, hooks and defaults are the client's own. Only requests to the
Gateway's endpoint are ours; the rest pass as if nothing had been done.
"""

from __future__ import annotations

from typing import Any, Final

import pytest

from support.loopback_proxy import LoopbackProxy
from support.sessions import FAMILY, KINDS, SDK_ON_TRIO, Kind, nothing_left, opened, sdk_streams
from surefoot import Bearer, Gateway, Replay, Retry, ToolRule
from surefoot.testing import FaultyGateway, RecordingSink, Status, Throttle, tool_call

pytestmark = [pytest.mark.both_majors, pytest.mark.anyio, *SDK_ON_TRIO]

QUICK: Final = Retry(max_attempts=3, base_delay=0.01)


async def _search(client: Any, url: str, q: str = "it") -> Any:
    asked = tool_call("search", {"q": q})
    return await client.post(url, headers=asked.headers, content=asked.body)


def _text(answer: Any) -> str:
    return answer.json()["result"]["content"][0]["text"]


async def test_it_gives_back_the_same_client_and_is_idempotent() -> None:
    """R76. A second time changes nothing: one series, one answer, the same transport."""
    with FaultyGateway() as faulty:
        gateway = Gateway(faulty.url, retry=QUICK)
        async with nothing_left(faulty), FAMILY.AsyncClient() as client:
            bare = client._transport
            assert gateway.protect(client) is client
            once = client._transport
            assert once is not bare
            assert gateway.protect(client) is client
            assert client._transport is once
            faulty.script("search", Throttle(0), repeat=True)
            answer = await _search(client, faulty.url)
        assert "rate-limited" in answer.text
        assert len(faulty.requests("search")) == QUICK.max_attempts


async def test_two_gateways_share_a_client_side_by_side() -> None:
    """D31. Each has its own endpoint, credential, budget and label; neither touches the other's."""
    sinks = RecordingSink(), RecordingSink()
    with FaultyGateway() as one, FaultyGateway() as two:
        first = Gateway(one.url, credentials=Bearer("first-token-1"), retry=QUICK, name="first",
                        evidence=sinks[0])  # fmt: skip
        second = Gateway(two.url, credentials=Bearer("second-token-2"), retry=None, name="second",
                         evidence=sinks[1])  # fmt: skip
        async with nothing_left(one, two), FAMILY.AsyncClient() as client:
            second.protect(first.protect(client))
            first.protect(second.protect(client))
            one.script("search", Throttle(0))
            two.script("search", Throttle(0))
            assert _text(await _search(client, one.url)) == "found it"
            assert "rate-limited" in (await _search(client, two.url)).text
            assert _text(await _search(client, two.url)) == "found it"
        assert [entry.header("authorization") for entry in one.journal] == [
            b"Bearer first-token-1"
        ] * 2
        assert [entry.header("authorization") for entry in two.journal] == [
            b"Bearer second-token-2"
        ] * 2
    labels = [{event["endpoint"] for event in sink.of("tool.request_attempts")} for sink in sinks]
    assert labels == [{"first"}, {"second"}]
    assert [len(sink.of("tool.request_attempts")) for sink in sinks] == [1, 2]


@pytest.mark.parametrize("retry", [QUICK, None], ids=["a series", "no series"])
async def test_the_same_endpoint_declared_twice_is_one_series(retry: Retry | None) -> None:
    """R30, R83. A second Gateway without a declaration joins; its ledger takes the evidence."""
    sink = RecordingSink()
    with FaultyGateway() as faulty:
        async with FAMILY.AsyncClient() as client:
            Gateway(faulty.url, retry=retry).protect(client)
            Gateway(faulty.url, retry=QUICK, evidence=sink, name="second").protect(client)
            faulty.script("search", Throttle(0), repeat=True)
            await _search(client, faulty.url)
        sends = 1 if retry is None else QUICK.max_attempts
        assert len(faulty.requests("search")) == sends
    (record,) = sink.of("tool.request_attempts")
    assert len(record["attempts"]) == sends  # type: ignore[arg-type]


async def test_two_different_declarations_for_one_endpoint_are_refused() -> None:
    """R83. The message says where to declare; the client is as it was."""
    url = "http://127.0.0.1:1/mcp"
    async with FAMILY.AsyncClient() as client:
        Gateway(url, replay=Replay(policy="app-authorized")).protect(client)
        before = client._transport
        other = Gateway(url, replay=Replay(tools={"search": ToolRule(repeat_on={"throttle"})}))
        with pytest.raises(ValueError, match="declare it once"):
            other.protect(client)
        assert client._transport is before


async def test_hooks_headers_and_defaults_of_the_client_stay() -> None:
    """DESIGN 6. A hook sees a request once, and the answer as the client; never a secret."""
    seen: list[tuple[str, Any]] = []

    async def on_request(request: Any) -> None:
        seen.append(("request", dict(request.headers)))

    async def on_response(response: Any) -> None:
        seen.append(("response", response.status_code))
        seen.append(("sent", dict(response.request.headers)))

    with FaultyGateway() as faulty:
        gateway = Gateway(faulty.url, credentials=Bearer("vended-token-77"), retry=QUICK)
        client = FAMILY.AsyncClient(
            headers={"x-mine": "1"},
            timeout=3,
            event_hooks={"request": [on_request], "response": [on_response]},
        )
        async with gateway.protect(client):
            faulty.script("search", Throttle(0))
            await _search(client, faulty.url)
            assert client.timeout == FAMILY.Timeout(3)
        assert {entry.header("x-mine") for entry in faulty.journal} == {b"1"}
        assert faulty.received("vended-token-77")
    assert [what for what, _ in seen] == ["request", "response", "sent"]
    assert seen[1] == ("response", 200)
    assert "vended-token-77" not in repr(seen)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("door", ["protect", "transport"])
async def test_a_proxy_of_the_environment_is_kept(
    door: str, kind: Kind, monkeypatch: pytest.MonkeyPatch
) -> None:
    """DESIGN 6. A `transport=` would have switched it off; wrapping in place does not."""
    with FaultyGateway() as faulty, LoopbackProxy() as proxy:
        monkeypatch.setenv("HTTP_PROXY", proxy.url)
        gateway = Gateway(faulty.url, retry=QUICK)
        async with FAMILY.AsyncClient(timeout=5) as client:
            protected = gateway.protect(client)
            streams = (
                gateway.transport() if door == "transport" else sdk_streams(faulty.url, protected)
            )
            async with opened(streams, kind) as session:
                faulty.script("search", Throttle(0))
                assert (await session.call("search", {"q": "it"})).text == "found it"
        assert len(proxy.asked) == len(faulty.journal)
        assert set(proxy.asked) == {faulty.url}


async def test_a_transport_argument_would_lose_the_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    """DESIGN 6. The control: the trap that `protect` avoids is a real one."""
    with FaultyGateway() as faulty, LoopbackProxy() as proxy:
        monkeypatch.setenv("HTTP_PROXY", proxy.url)
        async with FAMILY.AsyncClient(transport=FAMILY.AsyncHTTPTransport()) as client:
            await _search(client, faulty.url)
        assert proxy.asked == []


async def test_mounts_are_wrapped_where_they_are() -> None:
    """DESIGN 6. A mount keeps its pattern; `None` still means the client's own transport."""
    with FaultyGateway() as faulty, FaultyGateway() as local, LoopbackProxy() as proxy:
        through = FAMILY.AsyncHTTPTransport(proxy=proxy.url)
        host, _, _ = local.origin.removeprefix("http://").partition(":")
        mounts: dict[str, Any] = {"http://": through, f"all://{host}:1": None}
        first, second = Gateway(faulty.url, retry=QUICK), Gateway(local.url, retry=QUICK)
        async with FAMILY.AsyncClient(mounts=mounts) as client:
            patterns = list(client._mounts)
            second.protect(first.protect(client))
            assert list(client._mounts) == patterns
            assert [mount is None for mount in client._mounts.values()].count(True) == 1
            for server in (faulty, local):
                server.script("search", Throttle(0))
                assert _text(await _search(client, server.url)) == "found it"
        assert proxy.asked == [faulty.url] * 2 + [local.url] * 2


async def test_a_client_that_is_already_open_can_be_protected() -> None:
    """R105. From then on; closing the client still closes what was opened before."""
    with FaultyGateway() as faulty:
        async with nothing_left(faulty), FAMILY.AsyncClient() as client:
            assert (await _search(client, faulty.url)).status_code == 200
            faulty.script("search", Status(503), Status(503))
            assert (await _search(client, faulty.url)).status_code == 503
            Gateway(faulty.url, retry=QUICK).protect(client)
            assert "server-failure" in (await _search(client, faulty.url)).text


async def test_what_is_not_for_the_endpoint_passes_untouched() -> None:
    """D31. Elsewhere there is no credential, no header, no repeat, no words, no record."""
    sink = RecordingSink()
    with FaultyGateway() as faulty, FaultyGateway() as other:
        gateway = Gateway(
            faulty.url, credentials=Bearer("vended-token-77"), headers={"x-static": "1"},
            retry=QUICK, evidence=sink,
        )  # fmt: skip
        async with gateway.protect(FAMILY.AsyncClient()) as client:
            other.script("search", Throttle(0), Status(500, "their own words"))
            assert (await _search(client, other.url)).status_code == 429
            failed = await _search(client, other.url)
            assert (failed.status_code, failed.text) == (500, "their own words")
            for target in (faulty.origin + "/", faulty.url + "/deeper", faulty.origin + "/mcpx"):
                await client.get(target)
            # The control: a query may differ, and letter case of scheme and host does not matter.
            await _search(client, faulty.url + "?qualifier=DEFAULT")
        passed = [*other.journal, *faulty.journal[:-1]]
        assert len(passed) == 5
        assert {entry.header("authorization") for entry in passed} == {None}
        assert {entry.header("x-static") for entry in passed} == {None}
        assert faulty.journal[-1].header("authorization") == b"Bearer vended-token-77"
    assert len(sink.of("tool.request_attempts")) == 1


WRONG: Final[dict[str, Any]] = {
    "nothing": None,
    "a text": "canary-client",
    "a number": 5,
    "an object": object(),
    "a transport": FAMILY.AsyncHTTPTransport(),
    "a sync client": FAMILY.Client(),
    "the class": FAMILY.AsyncClient,
}


@pytest.mark.parametrize("wrong", WRONG.values(), ids=list(WRONG))
def test_what_is_no_async_client_is_refused_at_once(wrong: Any) -> None:
    """R71, R72. A sync client would fail in its first call, and for everybody who shares it."""
    before = getattr(wrong, "_transport", None)
    with pytest.raises(TypeError, match=r"^client: must be an httpx\.AsyncClient or") as caught:
        Gateway("http://127.0.0.1:1/mcp").protect(wrong)
    assert "canary" not in str(caught.value)
    assert getattr(wrong, "_transport", None) is before


@pytest.mark.parametrize("option", ["credentials", "signer"])
async def test_a_second_gateways_own_credentials_are_not_lost_in_silence(option: str) -> None:
    """R83, R105. They would never be used; the client is as it was, and nothing secret is said."""
    url = "http://127.0.0.1:1/mcp"
    canary = "canary-of-a-token-77d1"

    async def signer(request: Any) -> Any:
        return request

    brought: Any = {"credentials": Bearer(canary), "signer": signer}[option]
    async with FAMILY.AsyncClient() as client:
        Gateway(url).protect(client)
        before = client._transport
        with pytest.raises(ValueError, match=f"another Gateway, whose {option}") as caught:
            Gateway(url, **{option: brought}).protect(client)
        assert client._transport is before
        assert canary not in str(caught.value)
    async with FAMILY.AsyncClient() as client:
        Gateway(url, **{option: brought}).protect(client)
        once = client._transport
        Gateway(url, name="beside").protect(client)
        assert client._transport is not once
