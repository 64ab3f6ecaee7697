"""R6, R24, R26, R31 to R37, R43 to R50, D5 to D7, D15, B6. The invariants, over random scripts."""

from __future__ import annotations

from dataclasses import replace
from functools import reduce
from math import inf, isfinite
from operator import add

import pytest
from hypothesis import Phase, find, given, settings
from hypothesis import strategies as st

from support.series_play import Send, waits_of
from support.series_worlds import World, final_facts, worlds
from surefoot.policy import (
    MAX_SPREAD,
    Answered,
    Call,
    Deliver,
    Fact,
    Fail,
    Limits,
    Replay,
    ToolRule,
    Unanswered,
    Wait,
    permit,
)

pytestmark = pytest.mark.unmeasured

CAUSES = ["throttle", "session-busy", "network", "reconnect", "auth", "redirect"]
LOST = Unanswered(error=ConnectionResetError())


def limits_of(world: World, wait: Wait) -> Limits:
    """The limits by whose schedule a wait was drawn."""
    own = world.rules[wait.rule].limits if wait.cause in CAUSES[:2] else None
    return world.limits if own is None else own


@pytest.mark.parametrize("cause", CAUSES)
def test_the_worlds_hold_repeats_of_every_kind(cause: str) -> None:
    """R24. The positive control: invariants over scripts that never repeat would hold of all."""

    def repeats(world: World) -> bool:
        return cause in [wait.cause for wait in waits_of(world.played())[1:]]

    found = find(
        worlds(),
        repeats,
        settings=settings(
            max_examples=500,
            phases=[Phase.generate],
            derandomize=True,
            database=None,
            deadline=None,
        ),
    )
    assert repeats(found)


@given(worlds())
def test_sends_never_exceed_the_calls_own_count(world: World) -> None:
    """R31, R32, R43. Invariant 1: redirects and the 401 re-send included, for every layering."""
    series = world.series()
    sends = world.played(series)
    assert series.attempts == len(sends)
    assert world.limits.max_attempts is None or len(sends) <= world.limits.max_attempts
    for number, wait in enumerate(waits_of(sends), start=2):
        assert wait.attempt == number
        assert wait.max_attempts is None or wait.attempt <= wait.max_attempts


@given(worlds())
def test_planned_waiting_never_exceeds_the_budget(world: World) -> None:
    """R43, D5, D6. Invariant 2: to the last bit, not nearly."""
    series = world.series()
    waits = waits_of(world.played(series))
    # Added one after the other: from Python 3.12 on, sum() of floats is exact to more bits.
    assert series.waited == reduce(add, (wait.seconds for wait in waits), 0.0)
    assert all(isfinite(wait.seconds) and wait.seconds >= 0 for wait in waits)
    assert world.limits.max_wait is None or series.waited <= world.limits.max_wait


@given(worlds())
def test_nothing_is_sent_at_or_after_the_deadline(world: World) -> None:
    """R44, R45, D5, B6. Invariant 3, and the same for a caller's patience."""
    elapsed = world.limits.max_elapsed
    end = world.started + min(
        inf if elapsed is None else elapsed, inf if world.patience is None else world.patience
    )
    assert all(send.at < end for send in world.played()[1:])


@given(worlds())
def test_every_repeat_has_the_one_grant_that_was_asked_for(world: World) -> None:
    """R6, R8, D32. Invariant 5: as many grants as repeats, each for its own cause."""
    sends = world.played()
    waits = waits_of(sends)
    assert len(waits) == len(sends) - 1
    for wait in waits:
        assumes = world.rules[wait.rule].assumes if wait.cause in CAUSES[:2] else None
        assert wait.permission == permit(world.call, world.replay, wait.cause, assumes=assumes)
    assert world.call.resendable or not waits


@given(
    world=worlds(),
    script=st.lists(final_facts | st.just(LOST), min_size=1, max_size=5),
    policy=st.sampled_from(["assume-refused", "app-authorized"]),
    causes=st.sampled_from([set[str](), {"throttle"}]),
)
def test_without_a_reason_to_repeat_there_is_one_send(
    world: World, script: list[Fact], policy: str, causes: set[str]
) -> None:
    """R10, R11, R24. Invariant 6: no refusal, no declared failure, no 401, no move, no proof."""
    quiet = replace(
        world,
        script=tuple((fact, 0.0) for fact in script),
        call=Call(method="tools/call", tool="t", is_tool_call=True),
        replay=Replay(policy=policy, tools={"t": ToolRule(repeat_on=causes)}),  # type: ignore[arg-type]
    )
    assert len(quiet.played()) == 1


@given(worlds())
def test_a_joined_rule_ends_its_own_repeats_sooner_and_adds_none(world: World) -> None:
    """R33, R34, D6, D7. Invariant 7: its limits hold against the totals of the whole call."""
    waited = 0.0
    for send in world.played():
        if not isinstance(send.decision, Wait):
            break
        wait = send.decision
        waited += wait.seconds
        if wait.cause not in CAUSES[:2]:
            continue
        own = limits_of(world, wait)
        assert own.max_attempts is None or wait.attempt <= own.max_attempts
        assert own.max_wait is None or waited <= own.max_wait
        end = inf if own.max_elapsed is None else world.started + own.max_elapsed
        assert send.asked + wait.seconds < end


@given(worlds())
def test_a_rule_that_recognises_nothing_changes_nothing(world: World) -> None:
    """R30, R33. Invariant 7: joining costs nothing where the joined rule has nothing to say."""
    alone = tuple(entry for entry in world.script if getattr(entry[0], "rule", 0) == 0)
    if not alone:
        return
    only = replace(world, script=alone)
    assert only.played() == only.played(only.series(world.rules[:1]))


@given(worlds())
def test_every_backoff_of_a_series_stays_in_its_band(world: World) -> None:
    """R35, R36, R47 to R50. Invariant 8: by the schedule of whoever asked, repeat by repeat."""
    counts = dict.fromkeys(CAUSES, 0)
    for wait in waits_of(world.played()):
        counts[wait.cause] += 1
        if wait.stated is not None or wait.cause in ("auth", "redirect"):
            continue
        limits = limits_of(world, wait)
        ceiling = limits.base_delay * limits.multiplier ** (counts[wait.cause] - 1)
        ceiling = min(ceiling, inf if limits.max_delay is None else limits.max_delay)
        floor = {"equal": ceiling / 2, "full": 0.0, "none": ceiling}[limits.jitter]
        assert floor * (1 - 1e-9) <= wait.seconds <= ceiling * (1 + 1e-9)


@given(worlds())
def test_a_stated_wait_is_used_whole_or_not_at_all(world: World) -> None:
    """R35 to R37, R40, D15. Invariant 9: never shortened, and spread only so far."""
    for send in world.played():
        verdict = send.fact.verdict if isinstance(send.fact, Answered) else None
        stated = None if verdict is None else verdict.retry_after
        if not isinstance(send.decision, Wait):
            continue
        assert send.decision.stated == stated
        if stated is None:
            continue
        limits = limits_of(world, send.decision)
        least = stated or limits.base_delay / 2
        assert send.decision.seconds >= least
        most = least + min(limits.spread * stated, MAX_SPREAD)
        assert send.decision.seconds <= most * (1 + 1e-9)


@given(worlds())
def test_a_stated_wait_that_fits_is_waited(world: World) -> None:
    """R35, R37, D5. The counterpart: a refusal ends for want of room only where there is none."""
    waited = 0.0
    for send in world.played():
        if isinstance(send.decision, Wait):
            waited += send.decision.seconds
        elif send.decision.why in ("waiting-spent", "no-time"):
            assert not has_room(world, send, waited)


def has_room(world: World, send: Send, waited: float) -> bool:
    """Whether even the longest wait that could have been drawn would have fitted."""
    fact = send.fact
    verdict = fact.verdict if isinstance(fact, Answered) else None
    own = None if not isinstance(fact, Answered) else world.rules[fact.rule].limits
    limits = world.limits if own is None or verdict is None else own
    if verdict is None:
        longest = 0.0 if isinstance(fact, Answered) else backoff_at_most(limits)
    elif verdict.retry_after is None:
        longest = backoff_at_most(limits)
    else:
        longest = verdict.retry_after or limits.base_delay / 2
    room = min(bound(world.limits.max_wait), bound(limits.max_wait)) - waited
    time = min(bound(world.limits.max_elapsed), bound(limits.max_elapsed), bound(world.patience))
    waits = verdict is not None or not isinstance(fact, Answered)
    fits = longest * (1 + 1e-9) + 1e-9 < room or not waits
    return fits and send.asked + longest + 1e-6 < world.started + time


def backoff_at_most(limits: Limits) -> float:
    """No backoff of a short script is longer."""
    return min(limits.base_delay * limits.multiplier**400, bound(limits.max_delay))


def bound(value: float | None) -> float:
    return inf if value is None else value


@given(worlds())
def test_every_script_ends_with_the_fact_that_ended_it(world: World) -> None:
    """R12, R26. Invariants 10 and 17: an answer is delivered, a failure raised, as it came."""
    series = world.series()
    last = world.played(series)[-1]
    assert series.ended
    if isinstance(last.fact, Answered):
        assert isinstance(last.decision, Deliver)
    else:
        assert isinstance(last.decision, Fail)
        assert last.decision.error is last.fact.error
    assert series.unanswered is any(isinstance(send.fact, Unanswered) for send in world.played())
    with pytest.raises(RuntimeError):
        series.after(last.fact, now=last.asked)


@given(worlds())
def test_the_same_facts_and_the_same_luck_decide_the_same(world: World) -> None:
    """R14. Pure: no clock, no chance and no memory beside the arguments."""
    assert world.played() == world.played()
