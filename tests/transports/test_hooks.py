"""R37 to R42, R53 to R55, D6, D8: who waits is told why, and a listener changes nothing."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any

import anyio
import pytest

from support.sending import DONE, ORIGIN, REFUSED, refused, sent_through
from surefoot.policy import (
    AnswerView,
    Limits,
    Replay,
    Retry,
    RetryNotice,
    Rule,
    ThrottleRule,
    ToolRule,
    Verdict,
)
from surefoot.testing import Fails, FakeClock, Replies, ScriptedTransport

pytestmark = pytest.mark.anyio

REPEATABLE = Replay(tools={"search": ToolRule(repeat_on={"network", "throttle"})})


async def test_a_notice_says_what_is_waited_for_and_where_and_no_more(family: Any) -> None:
    """R38 to R42, R53. The origin without path or query; the label only where one is declared."""
    told: list[RetryNotice] = []
    for name in ("billing", None):
        wire = ScriptedTransport(refused(2), REFUSED, DONE)
        await sent_through(
            family, wire, retry=Retry(on_retry=told.append, spread=0, max_attempts=4), name=name
        )
    first, second, third, _ = told
    assert first == RetryNotice(
        kind="throttle",
        attempt=2,
        max_attempts=4,
        wait_seconds=2.0,
        retry_after_seconds=2.0,
        url=ORIGIN,
        endpoint="billing",
    )
    assert (second.attempt, second.retry_after_seconds) == (3, None)
    assert second.wait_seconds == pytest.approx(0.2)
    assert third.endpoint is None


@pytest.mark.parametrize("failure", ["ReadError", "ConnectError"])
async def test_a_network_repeat_is_told_to_the_calls_own_hook(family: Any, failure: str) -> None:
    """R38, D8. Its kind is ``network``, also where it is proven that nothing left."""
    told: list[RetryNotice] = []
    of_rule: list[RetryNotice] = []
    wire = ScriptedTransport(Fails(failure), DONE, proves_not_sent=True)
    outcome = await sent_through(
        family,
        wire,
        retry=Retry(on_retry=told.append),
        rules=[Rule(recognise=ThrottleRule(), on_retry=of_rule.append)],
        replay=REPEATABLE,
    )
    assert outcome.sends == 2
    assert [notice.kind for notice in told] == ["network"]
    assert of_rule == []


class Busy:
    """Recognises a status of its own."""

    reads = 0

    def recognise(self, answer: AnswerView) -> Verdict | None:
        """Recognise a 409."""
        return Verdict(kind="session-busy") if answer.status == 409 else None


async def test_the_rule_whose_refusal_it_is_is_told_and_with_the_smaller_ceiling(
    family: Any,
) -> None:
    """D6, D8, R33, R39. A joining rule's own ceiling ends its repeats sooner, and is told."""
    throttle: list[RetryNotice] = []
    busy: list[RetryNotice] = []
    rules = [
        Rule(recognise=ThrottleRule(), on_retry=throttle.append),
        Rule(
            recognise=Busy(),
            on_retry=busy.append,
            assumes="refused-before-execution",
            limits=Limits(max_attempts=2),
        ),
    ]
    wire = ScriptedTransport(Replies(409), Replies(409))
    outcome = await sent_through(family, wire, rules=rules, retry=Retry(max_attempts=5))
    assert (outcome.status, outcome.sends, throttle) == (409, 2, [])
    assert [(one.kind, one.attempt, one.max_attempts) for one in busy] == [("session-busy", 2, 2)]


def _raises(_: RetryNotice) -> None:
    raise RuntimeError("canary-in-the-hook")


async def _raises_later(_: RetryNotice) -> None:
    await anyio.lowlevel.checkpoint()
    raise RuntimeError("canary-in-the-hook")


@pytest.mark.parametrize("hook", [_raises, _raises_later])
async def test_a_hook_that_raises_changes_nothing_and_is_counted(
    family: Any, hook: Callable[[RetryNotice], object], caplog: pytest.LogCaptureFixture
) -> None:
    """R55, D8. Its class is logged; its text may hold anything and is not."""
    caplog.set_level(logging.DEBUG, logger="surefoot")
    plain = await sent_through(family, ScriptedTransport(REFUSED, REFUSED, DONE))
    outcome = await sent_through(
        family, ScriptedTransport(REFUSED, REFUSED, DONE), retry=Retry(on_retry=hook)
    )
    assert (outcome.status, outcome.slept) == (plain.status, pytest.approx(plain.slept))
    assert (plain.record["hook_failures"], outcome.record["hook_failures"]) == (0, 2)
    assert "on_retry raised RuntimeError" in caplog.text
    assert "canary" not in caplog.text


async def test_an_async_hook_is_awaited_and_its_time_is_part_of_the_wait(family: Any) -> None:
    """D8, R37. The stated wait is neither shortened nor lengthened by it."""
    clock = FakeClock()
    told: list[float] = []

    async def hook(notice: RetryNotice) -> None:
        await clock.sleep(1.5)
        told.append(notice.wait_seconds)

    wire = ScriptedTransport(refused(2), DONE)
    outcome = await sent_through(family, wire, clock=clock, retry=Retry(on_retry=hook, spread=0))
    assert (told, outcome.slept) == ([2.0], (1.5, 0.5))


async def test_an_async_hook_is_cut_when_the_wait_that_it_announces_ends(family: Any) -> None:
    """D8. Also one that will not be cut: what it swallows does not hold the call up."""
    ended: list[str] = []

    async def endless(_: RetryNotice) -> None:
        try:
            await anyio.sleep(30)
        finally:
            ended.append("cut")

    async def stubborn(_: RetryNotice) -> None:
        try:
            await anyio.sleep(30)
        except BaseException:  # noqa: BLE001 - this is the fault that is played
            ended.append("swallowed")

    for hook in (endless, stubborn):
        wire = ScriptedTransport(REFUSED, DONE)
        with anyio.fail_after(5):
            outcome = await sent_through(family, wire, retry=Retry(on_retry=hook, base_delay=0.04))
        assert outcome.status == 200
    assert ended == ["cut", "swallowed"]


async def test_a_cancellation_that_a_hook_swallows_still_ends_the_call(family: Any) -> None:
    """B2, R12. Nothing is sent for a caller who has left."""
    inside = anyio.Event()

    async def stubborn(_: RetryNotice) -> None:
        inside.set()
        try:
            await anyio.sleep(30)
        except BaseException:  # noqa: BLE001 - this is the fault that is played
            return

    wire = ScriptedTransport(refused(9))
    with anyio.fail_after(5):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(
                lambda: sent_through(family, wire, retry=Retry(on_retry=stubborn, spread=0))
            )
            await inside.wait()
            tasks.cancel_scope.cancel()
    assert len(wire.requests) == 1


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_so_does_a_cancellation_of_asyncios_own(family: Any) -> None:
    """B2. It comes once; the task has counted it."""
    inside = asyncio.Event()

    async def stubborn(_: RetryNotice) -> None:
        inside.set()
        try:
            await anyio.sleep(30)
        except asyncio.CancelledError:
            return

    wire = ScriptedTransport(refused(9))
    call = asyncio.ensure_future(
        sent_through(family, wire, retry=Retry(on_retry=stubborn, spread=0))
    )
    await inside.wait()
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(call, 5)
    assert len(wire.requests) == 1


async def test_without_a_hook_a_repeat_is_still_visible(family: Any) -> None:
    """R51, R54. In the record, and in the time that the call took."""
    outcome = await sent_through(family, ScriptedTransport(refused(3), DONE), retry=Retry(spread=0))
    assert [one["wait_seconds"] for one in outcome.attempts] == [3.0, None]
    assert outcome.record["duration_seconds"] == 3.0


async def test_what_moves_at_once_is_not_announced(family: Any) -> None:
    """R38, D8. A redirect is no wait: nobody is told of one, and nobody sleeps."""
    told: list[RetryNotice] = []
    wire = ScriptedTransport(Replies(307, headers={"location": "/b"}), DONE)
    outcome = await sent_through(family, wire, retry=Retry(on_retry=told.append), redirects=True)
    assert (outcome.sends, told, outcome.slept) == (2, [], ())
