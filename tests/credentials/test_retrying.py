"""RetryingCredentials: R117, R123, R35, R37, R43, R71, and REQUIREMENTS, first table."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from surefoot.credentials import (
    AuthorizationRequired,
    Bearer,
    CredentialRequest,
    Issued,
    RetryingCredentials,
    TransientCredentialError,
)
from surefoot.errors import CredentialError, InvalidCredentialError
from surefoot.testing import FakeClock

pytestmark = pytest.mark.anyio

ISSUED = Issued(Bearer("t"))
CONSENT = AuthorizationRequired("s", "https://issuer.example/")


class Scripted:
    """Answers as told, in order; the last one again and again."""

    def __init__(self, *script: object) -> None:
        self.script = list(script)
        self.asked: list[CredentialRequest] = []

    async def vend(self, request: CredentialRequest, /) -> Issued | AuthorizationRequired:
        self.asked.append(request)
        step = self.script.pop(0) if len(self.script) > 1 else self.script[0]
        if isinstance(step, BaseException):
            raise step
        assert isinstance(step, (Issued, AuthorizationRequired))
        return step


def transient(retry_after: float | None = None) -> TransientCredentialError:
    return TransientCredentialError("the issuer is busy", retry_after=retry_after)


def retrying(
    provider: object, clock: FakeClock, draw: Callable[[], float] = lambda: 0.5, **options: Any
) -> RetryingCredentials:
    return RetryingCredentials(provider, clock=clock, draw=draw, **options)


@pytest.mark.parametrize("answer", [ISSUED, CONSENT])
async def test_both_results_return_at_once(answer: Issued | AuthorizationRequired) -> None:
    """R117. Consent is an answer, and never a reason to ask again."""
    clock, provider = FakeClock(), Scripted(answer)
    assert await retrying(provider, clock).vend(CredentialRequest()) is answer
    assert len(provider.asked) == 1
    assert clock.sleeps == ()


async def test_a_transient_failure_is_asked_again_after_a_jittered_backoff() -> None:
    """R35, R47. The first wait is drawn below 0.2 s, the second below 0.4 s."""
    clock, provider = FakeClock(), Scripted(transient(), transient(), ISSUED)
    request = CredentialRequest(service="billing", force=True)
    assert await retrying(provider, clock).vend(request) is ISSUED
    assert provider.asked == [request] * 3
    assert clock.sleeps == (pytest.approx(0.15), pytest.approx(0.3))


async def test_after_the_last_try_the_providers_own_error_is_raised() -> None:
    """The table's first row: the last error, as it is, with nothing behind it."""
    errors = [transient(), transient(), transient()]
    clock, provider = FakeClock(), Scripted(*errors)
    with pytest.raises(TransientCredentialError) as caught:
        await retrying(provider, clock).vend(CredentialRequest())
    assert caught.value is errors[2]
    assert caught.value.__context__ is None
    assert len(provider.asked) == 3


@pytest.mark.parametrize(
    "failure",
    [
        CredentialError("the client is unknown"),
        InvalidCredentialError("token: must not be empty"),
        ValueError("a bug"),
        TimeoutError(),
    ],
)
async def test_what_is_not_marked_transient_is_raised_at_once(failure: Exception) -> None:
    """A rejection is final, and a stranger's error is nobody's promise."""
    clock, provider = FakeClock(), Scripted(failure)
    with pytest.raises(type(failure)) as caught:
        await retrying(provider, clock).vend(CredentialRequest())
    assert caught.value is failure
    assert len(provider.asked) == 1
    assert clock.sleeps == ()


@pytest.mark.parametrize(
    ("stated", "max_wait", "sleeps"),
    [
        (3.0, 5.0, (pytest.approx(3.75),)),  # whole, and spread by at most half of itself
        (5.0, 5.0, (pytest.approx(5.0),)),  # the spread takes only what room is left
        (5.1, 5.0, ()),  # never shortened: not begun
        (0.0, 5.0, (pytest.approx(0.1),)),
        (1.0, 0.0, ()),
    ],
)
async def test_a_stated_wait_is_whole_or_not_at_all(
    stated: float, max_wait: float, sleeps: tuple[float, ...]
) -> None:
    """R37, R43. The issuer's own number, within the one total."""
    clock, provider = FakeClock(), Scripted(transient(stated), ISSUED)
    asking = retrying(provider, clock, max_wait=max_wait)
    if sleeps:
        assert await asking.vend(CredentialRequest()) is ISSUED
    else:
        with pytest.raises(TransientCredentialError):
            await asking.vend(CredentialRequest())
    assert clock.sleeps == sleeps


async def test_a_cancellation_ends_the_wait_and_asks_no_more() -> None:
    """R123. The wait ends at the abort, with the abort."""
    clock, provider = FakeClock(auto=False), Scripted(transient())
    with anyio.fail_after(5):
        async with anyio.create_task_group() as group:
            group.start_soon(retrying(provider, clock).vend, CredentialRequest())
            await clock.until_sleeping()
            group.cancel_scope.cancel()
    assert len(provider.asked) == 1
    assert clock.sleeping == 0


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"max_attempts": "CANARY"}, TypeError),
        ({"max_attempts": None}, ValueError),
        ({"max_attempts": True}, TypeError),
        ({"max_wait": float("nan")}, ValueError),
        ({"base_delay": -1}, ValueError),
        ({"base_delay": "CANARY"}, TypeError),
    ],
)
def test_an_option_that_means_nothing_is_refused_by_name(
    options: dict[str, Any], error: type[Exception]
) -> None:
    """R71, R72."""
    with pytest.raises(error, match=next(iter(options))) as caught:
        RetryingCredentials(Bearer("t"), **options)
    assert "CANARY" not in str(caught.value)


def test_a_provider_that_is_none_is_refused_by_name() -> None:
    """R71, R72."""
    with pytest.raises(TypeError, match="provider: must be a CredentialProvider") as caught:
        RetryingCredentials("CANARY")
    assert "CANARY" not in str(caught.value)


@given(
    script=st.lists(st.sampled_from([None, 0.0, 0.3, 2.0, 9.0]), max_size=8),
    attempts=st.integers(-1, 6),
    max_wait=st.sampled_from([0.0, 0.5, 5.0]),
    draw=st.floats(0, 0.999),
)
def test_no_script_asks_or_waits_past_its_limits(
    script: list[float | None], attempts: int, max_wait: float, draw: float
) -> None:
    """R43, R37. For any script of transient failures."""

    async def run() -> None:
        clock = FakeClock()
        provider = Scripted(*[transient(wait) for wait in script], ISSUED)
        asking = retrying(provider, clock, lambda: draw, max_attempts=attempts, max_wait=max_wait)
        try:
            await asking.vend(CredentialRequest())
            assert len(provider.asked) == len(script) + 1
        except TransientCredentialError:
            assert len(provider.asked) <= len(script)
        assert len(provider.asked) <= max(1, attempts)
        assert sum(clock.sleeps) <= max_wait + 1e-9
        for stated, slept in zip(script, clock.sleeps, strict=False):
            assert slept >= (stated or 0.0)

    anyio.run(run)
