"""B9, R107, R71, R72. What shared credentials outlive: bad issuers, loops, threads, and age."""

from __future__ import annotations

import gc
import threading
import weakref
from typing import Any

import anyio
import pytest

from support.issuers import PLAIN, Issuer, token_of, until
from surefoot.credentials import (
    Bearer,
    CredentialRequest,
    Issued,
    SharedCredentials,
    StaticCredentials,
)
from surefoot.errors import CredentialError
from surefoot.testing import FakeClock

pytestmark = pytest.mark.anyio


async def reject(shared: SharedCredentials, *, accepted: bool = False) -> None:
    """One request: vend, be rejected, vend by force, and be rejected again unless accepted."""
    issued = await shared.vend(PLAIN)
    assert isinstance(issued, Issued)
    issued.generation.accepted = accepted
    await shared.vend(CredentialRequest(force=True, rejected=issued.generation))


async def test_fresh_credentials_that_keep_being_rejected_open_a_breaker() -> None:
    """B9. Then nothing is asked for until the cooldown ends, and then one is tried."""
    clock, issuer = FakeClock(), Issuer()
    shared = SharedCredentials(issuer, clock=clock, max_rejections=3, cooldown=30)
    await reject(shared)
    await reject(shared)
    with pytest.raises(CredentialError, match="keep being rejected"):
        await reject(shared)
    for _ in range(10):
        with pytest.raises(CredentialError, match="keep being rejected"):
            await shared.vend(PLAIN)
    assert len(issuer.asked) == 3
    await clock.sleep(30)
    with pytest.raises(CredentialError, match="keep being rejected"):
        await reject(shared)
    assert len(issuer.asked) == 4
    await clock.sleep(30)
    assert await token_of(shared) == "t5"


async def test_credentials_that_were_accepted_before_open_no_breaker() -> None:
    """B9. A token that ran out early is no token that never worked."""
    clock, issuer = FakeClock(), Issuer(life=None)
    shared = SharedCredentials(issuer, clock=clock, max_rejections=2)
    for _ in range(20):
        await reject(shared, accepted=True)
    assert len(issuer.asked) == 21


async def test_rejections_far_apart_open_no_breaker() -> None:
    """B9. It counts within ``window`` seconds only."""
    clock, issuer = FakeClock(), Issuer(life=None)
    shared = SharedCredentials(issuer, clock=clock, max_rejections=2, window=10)
    for _ in range(5):
        await reject(shared)
        await clock.sleep(10)
    assert len(issuer.asked) == 6


async def test_nothing_is_held_but_the_current_one() -> None:
    """R107. What was replaced is let go."""
    issuer = Issuer()
    shared = SharedCredentials(issuer, clock=FakeClock())
    first = await shared.vend(PLAIN)
    assert isinstance(first, Issued)
    watched = weakref.ref(first)
    request = CredentialRequest(force=True, rejected=first.generation)
    del first
    assert watched() is not None
    await shared.vend(request)
    gc.collect()
    assert watched() is None


def test_it_is_built_outside_of_any_loop_and_used_in_several() -> None:
    """B9. Nothing belongs to a loop; asyncio and trio share one, one after the other."""
    issuer = Issuer()
    shared = SharedCredentials(issuer, clock=FakeClock())
    assert anyio.run(token_of, shared, backend="asyncio") == "t1"
    assert anyio.run(token_of, shared, backend="trio") == "t1"
    assert len(issuer.asked) == 1


@pytest.mark.parametrize("other", ["asyncio", "trio"])
async def test_callers_in_another_thread_wait_for_the_same_refresh(other: str) -> None:
    """B9. A rotating refresh token is spent once, though a framework runs a loop of its own."""
    issuer = Issuer()
    issuer.gate = anyio.Event()
    shared = SharedCredentials(issuer, clock=FakeClock())
    ends: list[str] = []
    started = threading.Event()

    async def beside() -> None:
        async def one() -> None:
            ends.append(await token_of(shared))

        with anyio.fail_after(5):
            async with anyio.create_task_group() as group:
                group.start_soon(one)
                group.start_soon(one)
                await anyio.wait_all_tasks_blocked()
                started.set()

    thread = threading.Thread(target=lambda: anyio.run(beside, backend=other), daemon=True)

    async def lead() -> None:
        ends.append(await token_of(shared))

    with anyio.fail_after(10):
        async with anyio.create_task_group() as group:
            group.start_soon(lead)
            await until(lambda: issuer.entered == 1)
            thread.start()
            await anyio.to_thread.run_sync(started.wait)
            issuer.gate.set()
        await anyio.to_thread.run_sync(thread.join)
    assert ends == ["t1"] * 3
    assert len(issuer.asked) == 1


async def test_it_says_whether_what_it_wraps_can_be_refreshed() -> None:
    """B9. A static one behind it is still static."""
    assert SharedCredentials(Issuer()).refreshable is True
    assert SharedCredentials(StaticCredentials(Bearer("t"))).refreshable is False


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"skew": -1}, ValueError),
        ({"lifetime": "CANARY"}, TypeError),
        ({"max_rejections": 0}, ValueError),
        ({"window": float("nan")}, ValueError),
        ({"cooldown": True}, TypeError),
        ({"max_entries": 1.5}, TypeError),
    ],
)
def test_an_option_that_means_nothing_is_refused_by_name(
    options: dict[str, Any], error: type[Exception]
) -> None:
    """R71, R72."""
    with pytest.raises(error, match=next(iter(options))) as caught:
        SharedCredentials(Bearer("t"), **options)
    assert "CANARY" not in str(caught.value)
