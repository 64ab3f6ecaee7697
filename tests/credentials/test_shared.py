"""B9, R107, R123, R117. One refresh for each generation, whoever asks, and nothing left behind."""

from __future__ import annotations

import anyio
import pytest

from support.issuers import PLAIN, Issuer, together, token_of, until
from surefoot.credentials import (
    AuthorizationRequired,
    Bearer,
    Credential,
    CredentialRequest,
    Issued,
    Secret,
    SharedCredentials,
    TransientCredentialError,
)
from surefoot.errors import CredentialError
from surefoot.testing import FakeClock

pytestmark = pytest.mark.anyio


async def test_one_vend_serves_a_hundred_callers() -> None:
    """B9. At first contact."""
    issuer = Issuer()
    shared = SharedCredentials(issuer, clock=FakeClock())
    ends = await together(100, lambda _: shared.vend(PLAIN))
    assert len({id(issued) for issued in ends}) == 1
    assert len(issuer.asked) == 1


async def test_a_hundred_callers_at_the_moment_of_expiry_cause_one_refresh() -> None:
    """B9. Skew is at most a tenth of the life, so a short-lived token is used at all."""
    clock, issuer = FakeClock(), Issuer(life=0.5)
    shared = SharedCredentials(issuer, clock=clock)
    assert await token_of(shared) == "t1"
    await clock.sleep(0.44)
    assert await token_of(shared) == "t1"
    await clock.sleep(0.02)
    assert await together(100, lambda _: token_of(shared)) == ["t2"] * 100
    assert [request.force for request in issuer.asked] == [False, False]


async def test_skew_is_taken_off_a_long_life_and_a_missing_life_has_no_end() -> None:
    """B9. 30 s of an hour by default; ``lifetime`` where the issuer stated nothing."""
    clock, issuer = FakeClock(), Issuer(life=3600)
    shared = SharedCredentials(issuer, clock=clock)
    await token_of(shared)
    await clock.sleep(3569)
    assert await token_of(shared) == "t1"
    await clock.sleep(2)
    assert await token_of(shared) == "t2"
    endless = SharedCredentials(Issuer(life=None), clock=clock)
    await token_of(endless)
    await clock.sleep(1e9)
    assert await token_of(endless) == "t1"
    bounded = SharedCredentials(Issuer(life=None), clock=clock, lifetime=100)
    await token_of(bounded)
    await clock.sleep(89)
    assert await token_of(bounded) == "t1"
    await clock.sleep(2)
    assert await token_of(bounded) == "t2"


async def test_a_rejected_generation_is_refreshed_once_for_all_whom_it_failed() -> None:
    """B9. The issuer is told that it was rejected, and which."""
    issuer = Issuer()
    shared = SharedCredentials(issuer, clock=FakeClock())
    first = await shared.vend(PLAIN)
    assert isinstance(first, Issued)
    rejected = CredentialRequest(force=True, rejected=first.generation)
    assert await together(100, lambda _: token_of(shared, rejected)) == ["t2"] * 100
    assert [(asked.force, asked.rejected) for asked in issuer.asked] == [
        (False, None),
        (True, first.generation),
    ]


async def test_a_late_rejection_of_an_old_generation_discards_nothing() -> None:
    """B9. A failure of generation g cannot discard g+1."""
    issuer = Issuer()
    shared = SharedCredentials(issuer, clock=FakeClock())
    first = await shared.vend(PLAIN)
    assert isinstance(first, Issued)
    late = CredentialRequest(force=True, rejected=first.generation)
    assert await token_of(shared, late) == "t2"
    assert await token_of(shared, late) == "t2"
    assert await token_of(shared) == "t2"
    assert len(issuer.asked) == 2


async def test_force_without_a_generation_means_the_current_one() -> None:
    """B9. The port allows it; callers that arrive together still share one refresh."""
    issuer = Issuer()
    shared = SharedCredentials(issuer, clock=FakeClock())
    await token_of(shared)
    assert await token_of(shared, CredentialRequest(force=True)) == "t2"
    assert await token_of(shared) == "t2"


async def test_force_reaches_the_provider_even_when_nothing_is_kept() -> None:
    """B9. What was rejected may have been vended by another one of these."""
    issuer, gone = Issuer(), Issued(Bearer("t0")).generation
    shared = SharedCredentials(issuer, clock=FakeClock())
    await token_of(shared, CredentialRequest(force=True, rejected=gone))
    assert [(asked.force, asked.rejected) for asked in issuer.asked] == [(True, gone)]


async def test_a_provider_that_vends_the_rejected_one_again_is_an_error() -> None:
    """B9. A rejected credential is not offered as a fresh one."""
    issuer = Issuer()
    same = issuer.token()
    issuer.answer = lambda: same
    shared = SharedCredentials(issuer, clock=FakeClock())
    first = await shared.vend(PLAIN)
    assert first is same
    with pytest.raises(CredentialError, match="vended the same one again"):
        await shared.vend(CredentialRequest(force=True, rejected=same.generation))


async def test_a_rejection_during_an_early_refresh_asks_once_more_by_force() -> None:
    """B9. The refresh under way did not know, and may bring the same one back."""
    clock, issuer = FakeClock(), Issuer(life=100)
    same = issuer.token()
    issuer.answer = lambda: same
    shared = SharedCredentials(issuer, clock=clock)
    await shared.vend(PLAIN)
    await clock.sleep(95)
    issuer.gate = anyio.Event()
    ends: list[str] = []

    async def call(request: CredentialRequest) -> None:
        ends.append(await token_of(shared, request))

    with anyio.fail_after(5):
        async with anyio.create_task_group() as group:
            group.start_soon(call, PLAIN)
            await until(lambda: issuer.entered == 2)
            group.start_soon(call, CredentialRequest(force=True, rejected=same.generation))
            await anyio.wait_all_tasks_blocked()
            original = issuer.answer

            def next_answer() -> Issued | Credential | AuthorizationRequired:
                issuer.answer = issuer.token
                return original()

            issuer.answer = next_answer
            issuer.gate.set()
    assert [asked.force for asked in issuer.asked] == [False, False, True]
    assert ends == ["t2", "t2"]


@pytest.mark.parametrize("who", ["leader", "waiter"])
async def test_a_cancelled_caller_leaves_nothing_behind(who: str) -> None:
    """B9, R123, C09 of the bug reports. The others are served, and nobody waits for ever."""
    issuer = Issuer()
    issuer.gate = anyio.Event()
    shared = SharedCredentials(issuer, clock=FakeClock())
    ends: list[str] = []
    scopes: list[anyio.CancelScope] = []

    async def call(place: int) -> None:
        with anyio.CancelScope() as scope:
            scopes.append(scope)
            ends.append(f"{place}:{await token_of(shared)}")

    with anyio.fail_after(5):
        async with anyio.create_task_group() as group:
            for place in range(3):
                group.start_soon(call, place)
                await anyio.wait_all_tasks_blocked()
            scopes[0 if who == "leader" else 1].cancel()
            await anyio.wait_all_tasks_blocked()
            issuer.gate.set()
    assert sorted(ends) == (["1:t1", "2:t1"] if who == "leader" else ["0:t1", "2:t1"])
    assert len(issuer.asked) == (2 if who == "leader" else 1)
    assert await token_of(shared) == "t1"
    entry = next(iter(shared._entries.values()))
    assert entry.flight.idle


async def test_everybody_cancelled_is_nobody_waiting() -> None:
    """B9. The next caller begins anew."""
    issuer = Issuer()
    issuer.gate = anyio.Event()
    shared = SharedCredentials(issuer, clock=FakeClock())
    with anyio.fail_after(5):
        async with anyio.create_task_group() as group:
            for _ in range(5):
                group.start_soon(shared.vend, PLAIN)
            await anyio.wait_all_tasks_blocked()
            group.cancel_scope.cancel()
    issuer.gate = None
    assert await token_of(shared) == "t1"


async def test_a_failure_reaches_all_who_waited_and_is_not_kept() -> None:
    """B9, R108. Each gets an error of its own; the next caller asks again."""
    issuer = Issuer()
    issuer.fails = TransientCredentialError("the issuer is busy", retry_after=3)
    shared = SharedCredentials(issuer, clock=FakeClock())
    ends = await together(20, lambda _: shared.vend(PLAIN))
    assert {type(error) for error in ends} == {TransientCredentialError}
    assert {(error.reason, error.retry_after) for error in ends} == {("the issuer is busy", 3)}
    assert len({id(error) for error in ends}) == 20
    assert len(issuer.asked) == 1
    issuer.fails = None
    assert await token_of(shared) == "t1"


async def test_a_strangers_error_is_never_quoted() -> None:
    """R108. Its text, its cause and its frames stay behind."""
    issuer = Issuer()
    issuer.fails = RuntimeError("CANARY")
    shared = SharedCredentials(issuer, clock=FakeClock())
    with pytest.raises(CredentialError, match="the provider raised RuntimeError") as caught:
        await shared.vend(PLAIN)
    assert caught.value.__context__ is None
    assert caught.value.__cause__ is None


async def test_an_early_refresh_that_fails_leaves_the_one_that_is_alive() -> None:
    """C03 of the bug reports: could not find out is not no. Looked at again a second later."""
    clock, issuer = FakeClock(), Issuer(life=100)
    shared = SharedCredentials(issuer, clock=clock)
    await token_of(shared)
    issuer.fails = TransientCredentialError("busy")
    await clock.sleep(95)
    assert await token_of(shared) == "t1"
    assert await token_of(shared) == "t1"
    assert len(issuer.asked) == 2
    await clock.sleep(1.1)
    assert await token_of(shared) == "t1"
    assert len(issuer.asked) == 3
    await clock.sleep(10)
    with pytest.raises(TransientCredentialError):
        await token_of(shared)


async def test_a_consent_is_shared_and_not_kept() -> None:
    """R117. A person is asked once; after consent the next caller gets a credential."""
    issuer = Issuer()
    consent = AuthorizationRequired("s", "https://issuer.example/consent")
    issuer.answer = lambda: consent
    shared = SharedCredentials(issuer, clock=FakeClock())
    ends = await together(10, lambda _: shared.vend(PLAIN))
    assert all(end is consent for end in ends)
    assert len(issuer.asked) == 1
    issuer.answer = issuer.token
    assert await token_of(shared) == "t1"


async def test_each_service_scope_and_principal_has_its_own() -> None:
    """R111. One user's credential is never another's; two seals over one token are one user."""
    issuer = Issuer()
    shared = SharedCredentials(issuer, clock=FakeClock())
    requests = [
        CredentialRequest(),
        CredentialRequest(service="b"),
        CredentialRequest(scopes=("x",)),
        CredentialRequest(mode="user", principal="ann"),
        CredentialRequest(mode="user", principal="bob"),
        CredentialRequest(mode="user", user_token=Secret("u1")),
        CredentialRequest(mode="user", user_token=Secret("u2")),
    ]
    tokens = [await token_of(shared, request) for request in requests]
    assert len(set(tokens)) == len(requests)
    again = CredentialRequest(mode="user", user_token=Secret("u1"))
    assert await token_of(shared, again) == tokens[5]
    assert "u1" not in repr(list(shared._entries))


async def test_what_is_kept_is_bounded() -> None:
    """A thousand users do not become a leak; the oldest is asked for again."""
    issuer = Issuer()
    shared = SharedCredentials(issuer, clock=FakeClock(), max_entries=3)
    for user in "abcd":
        await token_of(shared, CredentialRequest(principal=user))
    assert len(shared._entries) == 3
    assert await token_of(shared, CredentialRequest(principal="d")) == "t4"
    assert await token_of(shared, CredentialRequest(principal="a")) == "t5"
