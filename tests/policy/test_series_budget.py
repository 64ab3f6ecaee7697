"""R35 to R37, R39, R43 to R45, D5, D6, D15, B6. One budget per call: sends, waiting and time."""

from __future__ import annotations

import math
import sys

import pytest

from support.series_play import (
    LOST,
    MOVED,
    NEVER_LEFT,
    OK,
    REFUSED,
    REJECTED,
    REPEATABLE,
    play,
    refused,
    series_of,
    waits_of,
)
from surefoot.policy import Answered, Deliver, Fact, Fail, Limits, Wait, Why

ALMOST_ONE = 1 - 2**-53


def limits(**options: object) -> Limits:
    """Limits whose waits can be added up by hand: no jitter and no spread unless asked for."""
    return Limits(**{"jitter": "none", "spread": 0.0, **options})  # type: ignore[arg-type]


def seconds_of(sends: object) -> list[float]:
    return [wait.seconds for wait in waits_of(sends)]  # type: ignore[arg-type]


@pytest.mark.parametrize(("most", "sends"), [(-3, 1), (0, 1), (1, 1), (2, 2), (3, 3), (7, 7)])
@pytest.mark.parametrize("fact", [REFUSED, LOST, NEVER_LEFT, MOVED])
def test_the_count_of_attempts_includes_the_first(most: int, sends: int, fact: Fact) -> None:
    """R43. Whatever the reason to repeat. The last refusal is delivered, a failure raised."""
    series = series_of(limits(max_attempts=most, max_wait=None), replay=REPEATABLE)
    played = play(series, [fact])
    assert len(played) == series.attempts == sends
    assert isinstance(played[-1].decision, Deliver if isinstance(fact, Answered) else Fail)
    assert played[-1].decision.why == "attempts-spent"


def test_each_report_names_the_attempt_that_is_about_to_start() -> None:
    """R39, D6. 2 is the first repeat; the ceiling counts the first attempt too."""
    waits = waits_of(play(series_of(limits(max_attempts=4)), [REFUSED]))
    assert [(wait.attempt, wait.max_attempts) for wait in waits] == [(2, 4), (3, 4), (4, 4)]


def test_without_a_count_waiting_is_what_ends_the_series() -> None:
    """R43. None counts nothing, and a report then names no ceiling."""
    played = play(series_of(limits(max_attempts=None, max_wait=10)), [REFUSED])
    assert seconds_of(played) == [0.2, 0.4, 0.8, 1.6, 3.2]
    assert played[-1].decision == Deliver(why="waiting-spent")
    assert {wait.max_attempts for wait in waits_of(played)} == {None}


@pytest.mark.parametrize(
    ("most", "stated", "repeats"),
    [
        (10.0, 5.0, 2),
        (10.0, 10.0, 1),
        (10.0, 10.000001, 0),
        (9.999999, 5.0, 1),
        (0.0, 5.0, 0),
        (0.0, None, 0),
        (0.2, None, 1),
        (0.6, None, 1),
        (0.61, None, 2),
    ],
)
def test_a_wait_may_fill_the_budget_and_not_pass_it(
    most: float, stated: float | None, repeats: int
) -> None:
    """R37, R43, D5. Equality is allowed; 0.2 + 0.4 is a hair above 0.6, and that is above."""
    played = play(series_of(limits(max_wait=most, max_attempts=9)), [refused(stated)])
    assert len(waits_of(played)) == repeats
    assert played[-1].decision == Deliver(why="waiting-spent")


@pytest.mark.parametrize(
    ("most", "took", "stated", "begun"),
    [
        (10.0, 0.0, 9.999, True),
        (10.0, 0.0, 10.0, False),
        (10.0, 0.0, 10.001, False),
        (10.0, 5.0, 4.999, True),
        (10.0, 5.0, 5.0, False),
        (10.0, 10.0, 0.0, False),
        (10.0, 12.0, 0.0, False),
        (0.15, 0.0, None, False),
        (0.25, 0.0, None, True),
    ],
)
def test_a_wait_that_would_end_at_the_deadline_is_never_begun(
    most: float, took: float, stated: float | None, begun: bool
) -> None:
    """R37, R44, R45, D5. The time that the requests took counts; at the deadline is too late."""
    series = series_of(limits(max_elapsed=most, max_wait=None), started=100.0)
    assert series.deadline == 100.0 + most
    decision = series.after(refused(stated), now=100.0 + took)
    assert isinstance(decision, Wait) is begun
    if not begun:
        assert decision == Deliver(why="no-time")


@pytest.mark.parametrize("fact", [REJECTED, MOVED])
@pytest.mark.parametrize(("now", "again"), [(9.999, True), (10.0, False), (11.0, False)])
def test_what_needs_no_wait_needs_time_all_the_same(fact: Fact, now: float, again: bool) -> None:
    """R45, B11. No send at or after the deadline, not for a fresh credential either."""
    decision = series_of(limits(max_elapsed=10)).after(fact, now=now)
    assert isinstance(decision, Wait) is again
    if not again:
        assert decision == Deliver(why="no-time")


@pytest.mark.parametrize("fact", [LOST, NEVER_LEFT])
def test_a_failure_without_time_left_is_raised(fact: Fact) -> None:
    """R12, R45. There is no answer to deliver."""
    decision = series_of(limits(max_elapsed=0.1), replay=REPEATABLE).after(fact, now=0)
    assert isinstance(decision, Fail)
    assert decision.why == "no-time"


def test_without_limits_on_time_there_is_no_deadline() -> None:
    """R44. And no wait is too long for it."""
    series = series_of(limits(max_wait=None, max_attempts=2))
    assert series.deadline is None
    assert seconds_of(play(series, [refused(86400.0)], at=1e9)) == [86400.0]


@pytest.mark.parametrize(
    ("patience", "deadline", "stated", "begun"),
    [
        (5.0, None, 4.9, True),
        (5.0, None, 5.0, False),
        (5.0, 60.0, 5.0, False),
        (60.0, 5.0, 5.0, False),
        (None, None, 5.0, True),
    ],
)
def test_a_wait_that_outlasts_the_callers_patience_is_not_begun(
    patience: float | None, deadline: float | None, stated: float, begun: bool
) -> None:
    """B6, R39. The tighter of the two counts; patience cuts no request in flight."""
    series = series_of(limits(max_elapsed=deadline), patience=patience, started=7.0)
    assert series.deadline == (None if deadline is None else 7.0 + deadline)
    decision = series.after(refused(stated), now=7.0)
    assert isinstance(decision, Wait) is begun
    if not begun:
        assert decision == Deliver(why="no-time")


def test_patience_holds_a_fresh_credential_too() -> None:
    """B6. A caller that has gone must not cause a later send."""
    assert isinstance(series_of(patience=5.0).after(REJECTED, now=4.9), Wait)
    assert series_of(patience=5.0).after(REJECTED, now=5.0) == Deliver(why="no-time")


def test_the_server_is_waited_for_as_long_as_it_said() -> None:
    """R35, R36, R40. Whole, beside our own backoff where it said nothing, and both are told."""
    played = play(
        series_of(limits(max_attempts=4, max_delay=1, base_delay=0.5)),
        [refused(4.0), REFUSED, refused(3.0), OK],
    )
    assert [(wait.seconds, wait.stated) for wait in waits_of(played)] == [
        (4.0, 4.0),
        (1.0, None),
        (3.0, 3.0),
    ]


@pytest.mark.parametrize("stated", [0.0, 0.5, 30.0, 86400.0, sys.float_info.max])
@pytest.mark.parametrize("most", [0.05, 0.4, 29.9])
def test_a_stated_wait_that_does_not_fit_is_never_shortened(stated: float, most: float) -> None:
    """R37, D14. The series stops and the 429 is delivered with the server's own number."""
    budgets: list[tuple[Limits, Why]] = [
        (limits(max_wait=most), "waiting-spent"),
        (limits(max_wait=None, max_elapsed=most), "no-time"),
    ]
    for budget, why in budgets:
        decision = series_of(budget).after(refused(stated), now=0)
        if max(stated, 0.1) > most:
            assert decision == Deliver(why=why)
        else:
            assert isinstance(decision, Wait)
            assert decision.seconds == (stated or 0.1)


@pytest.mark.parametrize(
    ("budget", "room"),
    [
        (Limits(max_wait=10), 1.0),
        (Limits(max_wait=2.25), 0.25),
        (Limits(max_wait=2), 0.0),
        (Limits(max_wait=None, max_elapsed=60), 1.0),
        (Limits(max_wait=None, max_elapsed=2.25), 0.25),
        (Limits(max_wait=2.5, max_elapsed=2.25), 0.25),
        (Limits(max_wait=2.25, max_elapsed=2.5), 0.25),
        (Limits(max_wait=10, spread=0), 0.0),
        (Limits(max_wait=None, spread=0.25), 0.5),
    ],
)
def test_the_spread_takes_only_what_the_budget_leaves(budget: Limits, room: float) -> None:
    """D15. Up to the edge and no further, and never at the stated wait's expense."""
    for draw in (0.0, 0.5, 0.99):
        decision = series_of(budget, draw=draw).after(refused(2.0), now=0)
        assert isinstance(decision, Wait)
        assert decision.seconds == pytest.approx(2.0 + room * draw)


@pytest.mark.parametrize("edge", [2.25, 2.1, 2.3, 2.0000001])
def test_rounding_carries_no_spread_over_an_edge(edge: float) -> None:
    """D5, D15. The largest draw there is, at edges that no float holds exactly."""
    for budget in (Limits(max_wait=edge), Limits(max_wait=None, max_elapsed=edge)):
        series = series_of(budget, draw=ALMOST_ONE, started=0.1)
        decision = series.after(refused(2.0), now=0.1)
        assert isinstance(decision, Wait)
        assert decision.seconds >= 2.0
        assert budget.max_wait is None or series.waited <= budget.max_wait
        assert series.deadline is None or 0.1 + decision.seconds < series.deadline


def test_what_was_waited_before_is_not_left_for_the_spread() -> None:
    """D15. The second wait has half a second of room, and draws from that."""
    played = play(series_of(Limits(max_wait=9.5), draw=0.5), [refused(4.0), refused(4.0), OK])
    assert seconds_of(played) == [5.0, 4.25]


def test_the_spread_is_drawn_for_every_wait_anew() -> None:
    """D15. Chance is asked once for each wait."""
    draws = iter([0.0, 0.5, 0.25, 0.75])
    played = play(
        series_of(Limits(max_attempts=4, max_wait=None), draw=lambda: next(draws)), [refused(4.0)]
    )
    assert seconds_of(played) == [4.0, 5.0, 4.5]


@pytest.mark.parametrize("stated", [0.0, -0.0])
def test_a_stated_zero_is_still_a_pause(stated: float) -> None:
    """D15. Half of base_delay, every time: it does not grow, for the server did state a wait."""
    played = play(series_of(Limits(max_attempts=4)), [refused(stated)])
    assert seconds_of(played) == [0.1, 0.1, 0.1]


def test_each_reason_has_its_own_backoff_and_all_share_one_budget() -> None:
    """R31, R32, R47. A lost connection does not start with the third wait of a throttle."""
    played = play(
        series_of(limits(max_attempts=9), replay=REPEATABLE),
        [REFUSED, REFUSED, LOST, NEVER_LEFT, REFUSED, OK],
    )
    assert seconds_of(played) == [0.2, 0.4, 0.2, 0.2, 0.8]
    assert [wait.cause for wait in waits_of(played)] == [
        "throttle",
        "throttle",
        "network",
        "reconnect",
        "throttle",
    ]


def test_planned_waiting_is_what_is_counted() -> None:
    """D6. A clock that runs late changes the time, and not the waiting."""
    series = series_of(limits(max_attempts=9, max_wait=1.5))
    now = 0.0
    for _ in range(3):
        decision = series.after(REFUSED, now=now)
        assert isinstance(decision, Wait)
        now += decision.seconds + 100
    assert series.waited == pytest.approx(1.4)
    assert series.after(REFUSED, now=now) == Deliver(why="waiting-spent")


def test_no_budget_makes_a_wait_that_is_no_number() -> None:
    """R35, R43. With every limit off the waits grow as far as a float does, and stay numbers."""
    for jitter in ("equal", "full", "none"):
        series = series_of(
            Limits(max_attempts=None, max_wait=None, multiplier=1e300, jitter=jitter), draw=0.5
        )
        for _ in range(30):
            decision = series.after(REFUSED, now=0)
            assert isinstance(decision, Wait)
            assert math.isfinite(decision.seconds)
