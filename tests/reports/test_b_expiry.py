"""R105, R110, B9, B10, D4. Kind b of the bug reports: credentials expire while connections live on.

The provider is asked for each attempt, so an expired token is never sent because it was once good.
One that is rejected is renewed once and the request sent once more; and whoever waits for a renewal
may leave without taking the place of the others with it.
"""

from __future__ import annotations

import anyio
import pytest

from support.exchanges import FAMILIES, client_of
from support.reports import say
from support.sessions import KINDS, SDK_ON_TRIO, Kind, nothing_left, opened
from surefoot import Bearer, Gateway, Retry
from surefoot.credentials import CredentialRequest, Issued, SharedCredentials
from surefoot.errors import CredentialError
from surefoot.testing import (
    Entry,
    ExpiringTokens,
    FakeClock,
    FaultyGateway,
    HeldStream,
    RecordingSink,
    Throttle,
    tool_call,
)

pytestmark = [pytest.mark.both_majors, pytest.mark.anyio, *SDK_ON_TRIO]


def _tokens(entries: tuple[Entry, ...]) -> list[bytes | None]:
    return [entry.header("authorization") for entry in entries]


class Vault:
    """Hands out what the gateway would accept now, and counts how often it was asked."""

    def __init__(self, faulty: FaultyGateway) -> None:
        self._faulty = faulty
        self.asked: list[CredentialRequest] = []

    async def vend(self, request: CredentialRequest, /) -> Issued:
        """The current one."""
        self.asked.append(request)
        return Issued(Bearer(self._faulty.tokens.current()))


@pytest.mark.parametrize("family", FAMILIES)
async def test_on_one_kept_connection_each_call_carries_the_token_of_its_own_time(
    family: str,
) -> None:
    """R105, R110, C07 of the bug reports. Two calls three seconds apart, and no 401 at all."""
    clock = FakeClock()
    with FaultyGateway(tokens=ExpiringTokens(2), clock=clock.monotonic) as faulty:
        vault = Vault(faulty)
        gateway = Gateway(faulty.url, credentials=vault, clock=clock)
        async with gateway.protect(client_of(family)) as client:
            for _ in range(4):
                assert (await say(client, faulty.url)).text == "charged 1"
                await clock.sleep(3)
        assert faulty.connections.opened == 1
        assert [entry.status for entry in faulty.journal] == [200] * 4
        assert len(set(_tokens(faulty.journal))) == len(vault.asked) == 4
        assert not any(asked.force for asked in vault.asked)


@pytest.mark.parametrize("family", FAMILIES)
async def test_a_repeat_after_a_wait_carries_the_token_of_its_own_time(family: str) -> None:
    """R18, R105, C07 of the bug reports. The first token is dead by the end of the wait."""
    clock = FakeClock()
    with FaultyGateway(tokens=ExpiringTokens(2), clock=clock.monotonic) as faulty:
        gateway = Gateway(faulty.url, credentials=Vault(faulty), clock=clock)
        faulty.script("charge", Throttle(3), Throttle(3))
        async with gateway.protect(client_of(family)) as client:
            assert (await say(client, faulty.url)).text == "charged 1"
        assert [entry.status for entry in faulty.journal] == [429, 429, 200]
        assert len(set(_tokens(faulty.journal))) == 3


@pytest.mark.parametrize("kind", KINDS)
async def test_a_session_outlives_its_tokens(kind: Kind) -> None:
    """R105, B1, C07 of the bug reports. Calls, lists and the messages beside them."""
    clock = FakeClock()
    with FaultyGateway(tokens=ExpiringTokens(2), clock=clock.monotonic) as faulty:
        gateway = Gateway(faulty.url, credentials=Vault(faulty), clock=clock)
        async with opened(gateway.transport(), kind) as session:
            for turn in range(3):
                assert (await session.call("charge", {"amount": turn})).text == f"charged {turn}"
                await clock.sleep(3)
                await session.sdk.list_tools()
        assert not [entry for entry in faulty.journal if entry.status == 401]


class Stale:
    """Keeps its first token until it is told that it was rejected; then, perhaps, a wrong one."""

    def __init__(self, faulty: FaultyGateway, *, renews: bool = True) -> None:
        self._faulty = faulty
        self._renews = renews
        self._kept = faulty.tokens.mint()
        self.forced = 0

    async def vend(self, request: CredentialRequest, /) -> Issued:
        """The one that is kept."""
        if request.force:
            self.forced += 1
            self._kept = self._faulty.tokens.mint() if self._renews else "somebody-elses-token"
        return Issued(Bearer(self._kept))


@pytest.mark.parametrize("shared", [False, True], ids=["bare", "shared"])
async def test_a_rejected_credential_is_renewed_once_and_the_call_sent_once_more(
    shared: bool,
) -> None:
    """B9, D4, R21, C07 of the bug reports. A 401 comes before anything runs."""
    with FaultyGateway(tokens=ExpiringTokens(60)) as faulty:
        stale = Stale(faulty)
        gateway = Gateway(faulty.url, credentials=SharedCredentials(stale) if shared else stale)
        async with gateway.session() as session:
            await session.call("search", {"q": "it"})
            faulty.tokens.revoke_all()
            assert (await session.call("charge", {"amount": 1})).text == "charged 1"
            assert stale.forced == 1
        assert [entry.status for entry in faulty.requests("charge")] == [401, 200]
        assert faulty.executions("charge") == 1


@pytest.mark.parametrize("shared", [False, True], ids=["bare", "shared"])
async def test_a_fresh_credential_that_is_rejected_too_is_a_typed_error(shared: bool) -> None:
    """B9, D4, C07 of the bug reports. After two sends; and the session is there when it is mended.

    The SDK's other requests meanwhile are held to the same: two sends each.
    """
    with FaultyGateway(tokens=ExpiringTokens(60)) as faulty:
        stale = Stale(faulty, renews=False)
        gateway = Gateway(faulty.url, credentials=SharedCredentials(stale) if shared else stale)
        async with gateway.session() as session:
            await session.call("search", {"q": "it"})
            faulty.tokens.revoke_all()
            with pytest.raises(CredentialError) as caught:
                await session.call("charge", {"amount": 1})
            assert (caught.value.reason, stale.forced) == ("unauthorized", 1)
            assert [entry.status for entry in faulty.requests("charge")] == [401, 401]
            assert faulty.executions("charge") == 0
            stale._renews = True
            assert (await session.call("charge", {"amount": 2})).text == "charged 2"


@pytest.mark.parametrize("family", FAMILIES)
async def test_no_call_waits_for_a_stream_that_stands_open(family: str) -> None:
    """B9, B10, C09 of the bug reports. Nothing is held while an answer is being read.

    The token expires meanwhile, and is renewed while the stream that the old one opened stands.
    """
    clock = FakeClock()
    with FaultyGateway(tokens=ExpiringTokens(60), clock=clock.monotonic) as faulty:
        faulty.script("GET", HeldStream(ran=False), repeat=True)
        credentials = SharedCredentials(Stale(faulty), clock=clock)
        gateway = Gateway(faulty.url, credentials=credentials, clock=clock)
        async with nothing_left(faulty), gateway.protect(client_of(family)) as client:
            accept = {"accept": "text/event-stream"}
            async with client.stream("GET", faulty.url, headers=accept) as stream:
                assert stream.status_code == 200
                with anyio.fail_after(2):
                    assert (await say(client, faulty.url)).text == "charged 1"
                    faulty.tokens.revoke_all()
                    assert (await say(client, faulty.url)).text == "charged 1"
                (standing,) = faulty.requests("GET")
                assert standing.in_flight
        assert [entry.status for entry in faulty.requests("charge")] == [200, 401, 200]


@pytest.mark.parametrize("leaves", ["who asks", "who waits"])
@pytest.mark.parametrize("family", FAMILIES)
async def test_who_leaves_while_a_token_is_renewed_takes_nobody_along(
    leaves: str, family: str
) -> None:
    """B9, R123, C09 of the bug reports. The other is served, and so is a third."""
    gone = 0 if leaves == "who asks" else 1
    said: list[str] = []
    scopes = [anyio.CancelScope(), anyio.CancelScope()]
    sink = RecordingSink()
    with FaultyGateway(tokens=ExpiringTokens(60)) as faulty:
        go_on, entered = anyio.Event(), anyio.Event()

        async def slowly(_: CredentialRequest) -> Issued:
            entered.set()
            await go_on.wait()
            return Issued(Bearer(faulty.tokens.current()))

        gateway = Gateway(faulty.url, credentials=SharedCredentials(slowly), evidence=sink)
        async with nothing_left(faulty), gateway.protect(client_of(family)) as client:

            async def call(place: int) -> None:
                with scopes[place]:
                    call = tool_call("charge", {"amount": place})
                    said.append((await say(client, faulty.url, call)).text)

            with anyio.fail_after(3):
                async with anyio.create_task_group() as group:
                    group.start_soon(call, 0)
                    await entered.wait()
                    group.start_soon(call, 1)
                    await anyio.wait_all_tasks_blocked()
                    scopes[gone].cancel()
                    await anyio.wait_all_tasks_blocked()
                    go_on.set()
                said.append((await say(client, faulty.url)).text)
        assert said == [f"charged {1 - gone}", "charged 1"]
        assert faulty.executions("charge") == 2
    cut = [event for event in sink.of("tool.request_attempts") if event["why"] == "cancelled"]
    assert [event["may_have_run"] for event in cut] == [False]


async def test_a_renewal_that_never_ends_ends_with_its_caller() -> None:
    """B9, R122, R123, C09 of the bug reports. And the next caller asks anew."""
    with FaultyGateway() as faulty:
        asked: list[CredentialRequest] = []

        async def never(request: CredentialRequest) -> Issued:
            asked.append(request)
            if len(asked) == 1:
                await anyio.sleep_forever()
            return Issued(Bearer("a-good-token"))

        gateway = Gateway(faulty.url, credentials=SharedCredentials(never), retry=Retry())
        async with gateway.protect(client_of(FAMILIES[0])) as client:
            with anyio.move_on_after(0.1) as patience:
                await say(client, faulty.url)
            assert patience.cancelled_caught
            assert faulty.journal == ()
            with anyio.fail_after(2):
                assert (await say(client, faulty.url)).text == "charged 1"
