"""R29 to R34, R38, R80, R81, D6 to D8. Several rules are one series: they end it, never add."""

from __future__ import annotations

import pytest

from support.series_play import (
    LOST,
    MOVED,
    NEVER_LEFT,
    OK,
    REFUSED,
    REJECTED,
    REPEATABLE,
    THROTTLE_RULE,
    play,
    refused,
    series_of,
    waits_of,
)
from surefoot.policy import Deliver, Fact, Limits, Rule, Series, ThrottleRule, Wait

JOINED = refused(kind="session-busy", rule=1)
CALL = Limits(max_attempts=5, max_wait=10, jitter="none", spread=0)


def joined_series(
    own: Limits | None, call: Limits = CALL, *, patience: float | None = None
) -> Series:
    """A throttle rule that holds the budget, and a joined one with limits of its own."""
    busy = Rule(recognise=ThrottleRule(), limits=own, assumes="refused-before-execution")
    return series_of(call, rules=(THROTTLE_RULE, busy), replay=REPEATABLE, patience=patience)


@pytest.mark.parametrize(
    ("call", "own", "sends"),
    [(5, 2, 2), (5, 5, 5), (5, 9, 5), (2, 9, 2), (5, None, 5), (None, 4, 4), (1, 4, 1)],
)
def test_the_smaller_count_of_the_call_and_the_rule_is_in_force(
    call: int | None, own: int | None, sends: int
) -> None:
    """R31, R32, R33, R39, D6. And that smaller one is what a report names."""
    limits = Limits(max_attempts=call, max_wait=None)
    played = play(joined_series(Limits(max_attempts=own, max_wait=None), limits), [JOINED])
    assert len(played) == sends
    assert {wait.max_attempts for wait in waits_of(played)} == ({sends} if sends > 1 else set())
    assert played[-1].decision == Deliver(why="attempts-spent")


def test_a_joined_limit_is_compared_with_the_whole_call() -> None:
    """R34, D7. Attempts that were made for another reason count as well."""
    script: list[Fact] = [LOST, REFUSED, JOINED]
    played = play(joined_series(Limits(max_attempts=3)), script)
    assert [wait.cause for wait in waits_of(played)] == ["network", "throttle"]
    assert played[-1].decision == Deliver(why="attempts-spent")
    freer = play(joined_series(Limits(max_attempts=4)), [*script, OK])
    assert [wait.cause for wait in waits_of(freer)] == ["network", "throttle", "session-busy"]


def test_a_joined_limit_on_waiting_is_compared_with_the_whole_call() -> None:
    """R34, D5, D7. One second for any reason is one second of the joined rule's too."""
    script: list[Fact] = [refused(3.0), refused(2.0, kind="session-busy", rule=1), OK]
    own = {"jitter": "none", "spread": 0.0}
    played = play(joined_series(Limits(max_wait=5, **own)), script)  # type: ignore[arg-type]
    assert [wait.seconds for wait in waits_of(played)] == [3.0, 2.0]
    tighter = play(joined_series(Limits(max_wait=4.9, **own)), script)  # type: ignore[arg-type]
    assert [wait.seconds for wait in waits_of(tighter)] == [3.0]
    assert tighter[-1].decision == Deliver(why="waiting-spent")


def test_a_joined_limit_never_lengthens_the_call() -> None:
    """R32, R33. Whatever it allows itself, the call's own limits hold."""
    generous = Limits(max_attempts=None, max_wait=None, max_elapsed=None)
    tight = Limits(max_attempts=9, max_wait=1, max_elapsed=60)
    played = play(joined_series(generous, tight), [refused(1.5, kind="session-busy", rule=1)])
    assert [send.decision for send in played] == [Deliver(why="waiting-spent")]
    brief = Limits(max_attempts=9, max_elapsed=1)
    played = play(joined_series(generous, brief), [refused(1.5, kind="session-busy", rule=1)])
    assert [send.decision for send in played] == [Deliver(why="no-time")]


def test_a_joined_deadline_ends_its_own_repeats_and_cuts_nothing() -> None:
    """R33, R34, D5. It runs from the start of the call; the one that cuts is the call's."""
    series = joined_series(Limits(max_attempts=9, max_elapsed=2, jitter="none", spread=0))
    assert series.deadline is None
    assert isinstance(series.after(refused(1.0, kind="session-busy", rule=1), now=0.5), Wait)
    assert isinstance(series.after(REFUSED, now=5.0), Wait)
    last = series.after(refused(0.5, kind="session-busy", rule=1), now=1.5)
    assert last == Deliver(why="no-time")


def test_patience_holds_joined_rules_too() -> None:
    """R32, B6. The caller is one, however many rules there are."""
    series = joined_series(Limits(max_elapsed=60, spread=0), patience=2.0)
    decision = series.after(refused(2.0, kind="session-busy", rule=1), now=0)
    assert decision == Deliver(why="no-time")


def test_a_joined_rule_limits_nobody_else() -> None:
    """R33. Its one attempt is spent at once; the throttle goes on to the call's five."""
    played = play(joined_series(Limits(max_attempts=1)), [REFUSED])
    assert len(played) == 5
    played = play(joined_series(Limits(max_attempts=1, max_wait=0, max_elapsed=0.1)), [LOST])
    assert len(played) == 5


def test_a_joined_rule_waits_by_its_own_schedule() -> None:
    """R33, R66. Its backoff, its jitter and its spread are its own."""
    own = Limits(max_attempts=9, max_wait=None, base_delay=1, multiplier=3, jitter="none", spread=1)
    call = Limits(max_attempts=9, max_wait=None, jitter="none", spread=0)
    rules = (THROTTLE_RULE, Rule(recognise=ThrottleRule(), limits=own))
    series = series_of(call, rules=rules, draw=0.5)
    script: list[Fact] = [
        REFUSED,
        refused(2.0),
        refused(2.0, rule=1),
        refused(rule=1),
        refused(0.0, rule=1),
        OK,
    ]
    seconds = [wait.seconds for wait in waits_of(play(series, script))]
    assert seconds[:3] == [0.2, 2.0, 3.0]
    assert seconds[4] == 0.5
    assert seconds[3] in (1 * 3.0**n for n in range(4))


def test_the_first_rule_may_have_tighter_limits_of_its_own() -> None:
    """R32, R33. The budget is the call's; a rule's own numbers only ever take away."""
    rules = (Rule(recognise=ThrottleRule(), limits=Limits(max_attempts=2)),)
    series = series_of(CALL, rules=rules, replay=REPEATABLE)
    assert len(play(series, [REFUSED])) == 2
    assert len(play(series_of(CALL, rules=rules, replay=REPEATABLE), [LOST])) == 5


@pytest.mark.parametrize(
    ("fact", "rule"),
    [
        (REFUSED, 0),
        (JOINED, 1),
        (LOST, 0),
        (NEVER_LEFT, 0),
        (REJECTED, 0),
        (MOVED, 0),
    ],
)
def test_it_is_known_whose_hook_is_told(fact: Fact, rule: int) -> None:
    """R38, D8. A refusal goes to the rule that recognised it, all else to the call's own."""
    decision = joined_series(None).after(fact, now=0)
    assert isinstance(decision, Wait)
    assert decision.rule == rule


def test_a_series_without_rules_repeats_only_what_was_declared() -> None:
    """R80, R81. Inert: it recognises nothing and holds the default budget."""
    assert len(play(series_of(rules=(), replay=REPEATABLE), [LOST])) == 3
    assert len(play(series_of(rules=()), [LOST])) == 1
    assert len(play(series_of(rules=(), replay=REPEATABLE), [OK])) == 1


@pytest.mark.parametrize("count", [1, 2, 5, 20])
def test_joined_rules_do_not_multiply_requests(count: int) -> None:
    """R30, R31. Invariant 7: however many rules take turns, the call sends its own three."""
    rules = [THROTTLE_RULE] * count
    script: list[Fact] = [refused(rule=index % count) for index in range(50)]
    assert len(play(series_of(rules=rules), script)) == 3
