"""R35, R36, R47 to R50, R65, D15. How long a wait is: the ceilings, the draws, and the spread."""

from __future__ import annotations

import math
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from surefoot.policy import MAX_SPREAD, Jitter, Limits, backoff, backoff_ceiling, stated_wait

ALMOST_ONE = 1 - 2**-53
LARGEST = sys.float_info.max

draws = st.floats(0, 1, exclude_max=True)
seconds = st.floats(0, 1e6)


@pytest.mark.parametrize(
    ("limits", "ceilings"),
    [
        (Limits(), [0.2, 0.4, 0.8, 1.6]),
        (Limits(base_delay=1, multiplier=3), [1, 3, 9, 27]),
        (Limits(base_delay=1, multiplier=1), [1, 1, 1, 1]),
        (Limits(base_delay=1, max_delay=3), [1, 2, 3, 3]),
        (Limits(base_delay=5, max_delay=3), [3, 3, 3, 3]),
        (Limits(base_delay=1, max_delay=0), [0, 0, 0, 0]),
        (Limits(base_delay=0), [0, 0, 0, 0]),
    ],
)
def test_the_ceiling_grows_by_the_multiplier_up_to_its_cap(
    limits: Limits, ceilings: list[float]
) -> None:
    """R47, R48, R50. The first ceiling is base_delay itself."""
    assert [backoff_ceiling(limits, repeat) for repeat in (1, 2, 3, 4)] == ceilings


@pytest.mark.parametrize("repeat", [1025, 5000, 10**9])
def test_a_ceiling_that_outgrows_a_float_stays_a_number(repeat: int) -> None:
    """R43, R50. With no count of attempts the exponent has no end."""
    assert backoff_ceiling(Limits(), repeat) == LARGEST
    assert backoff_ceiling(Limits(max_delay=30), repeat) == 30
    assert backoff_ceiling(Limits(base_delay=0), repeat) == 0
    assert backoff_ceiling(Limits(base_delay=10, multiplier=1e308), 2) == LARGEST
    for jitter in ("equal", "full", "none"):
        limits = Limits(base_delay=10, multiplier=1e308, jitter=jitter)
        assert math.isfinite(backoff(limits, repeat, 0.0))


@pytest.mark.parametrize(
    ("jitter", "draw", "wait"),
    [
        ("equal", 0.0, 0.2),
        ("equal", 0.5, 0.3),
        ("full", 0.0, 0.0),
        ("full", 0.5, 0.2),
        ("full", 0.25, 0.1),
        ("none", 0.0, 0.4),
        ("none", 0.9, 0.4),
    ],
)
def test_each_jitter_draws_from_its_own_band(jitter: Jitter, draw: float, wait: float) -> None:
    """R49. Half the ceiling to the ceiling, nothing to the ceiling, exactly the ceiling."""
    assert backoff(Limits(jitter=jitter), 2, draw) == pytest.approx(wait)


def test_the_defaults_wait_as_promised() -> None:
    """R65. 100 to 200 ms, then 200 to 400 ms."""
    limits = Limits()
    assert (backoff(limits, 1, 0.0), backoff(limits, 2, 0.0)) == (0.1, 0.2)
    assert backoff(limits, 1, ALMOST_ONE) == pytest.approx(0.2)
    assert backoff(limits, 2, ALMOST_ONE) == pytest.approx(0.4)


def test_capped_waits_still_spread() -> None:
    """R36. The cap comes before the draw; after it, all capped callers would return together."""
    limits = Limits(base_delay=8, max_delay=2)
    waits = [backoff(limits, 4, draw) for draw in (0.0, 0.25, 0.5, 0.75)]
    assert waits == [1.0, 1.25, 1.5, 1.75]


@given(
    base=seconds,
    multiplier=st.floats(1, 1e300),
    cap=st.none() | seconds,
    jitter=st.sampled_from(["equal", "full", "none"]),
    repeat=st.integers(1, 5000),
    draw=draws,
)
def test_every_backoff_stays_in_its_band(
    *, base: float, multiplier: float, cap: float | None, jitter: Jitter, repeat: int, draw: float
) -> None:
    """R36, R49, R50. Invariant 8, for any limits, any repeat and any draw."""
    limits = Limits(base_delay=base, multiplier=multiplier, max_delay=cap, jitter=jitter)
    ceiling = backoff_ceiling(limits, repeat)
    assert math.isfinite(ceiling)
    assert cap is None or ceiling <= cap
    floor = {"equal": ceiling / 2, "full": 0.0, "none": ceiling}[jitter]
    assert floor <= backoff(limits, repeat, draw) <= ceiling


@pytest.mark.parametrize(
    ("stated", "spread", "room", "draw", "wait"),
    [
        (2.0, 0.5, 100.0, 0.0, 2.0),
        (2.0, 0.5, 100.0, 0.5, 2.5),
        (2.0, 1.0, 100.0, 0.5, 3.0),
        (2.0, 0.0, 100.0, 0.9, 2.0),
        (2.0, 0.5, 0.0, 0.9, 2.0),
        (2.0, 0.5, 0.4, 0.5, 2.2),
        (2.0, 0.5, -1.0, 0.9, 2.0),
        (2.0, 0.5, math.inf, 0.5, 2.5),
        (60.0, 0.5, 100.0, 0.5, 62.5),
        (60.0, 9.0, 100.0, 0.5, 62.5),
        (60.0, 0.5, 1.0, 0.5, 60.5),
        (0.05, 0.5, 100.0, 0.0, 0.05),
        (0.05, 0.0, 100.0, 0.9, 0.05),
    ],
)
def test_a_stated_wait_is_whole_and_only_a_bounded_share_is_added(
    stated: float, spread: float, room: float, draw: float, wait: float
) -> None:
    """R35, D15. Up to ``spread`` of it, at most 5 s, and only what the budget leaves."""
    assert MAX_SPREAD == 5.0
    assert stated_wait(Limits(spread=spread), stated, room, draw) == pytest.approx(wait)


@pytest.mark.parametrize("draw", [0.0, 0.5, ALMOST_ONE])
@pytest.mark.parametrize(("base", "wait"), [(0.2, 0.1), (4.0, 2.0), (0.0, 0.0)])
def test_a_stated_wait_of_zero_gets_half_of_the_base_delay(
    base: float, wait: float, draw: float
) -> None:
    """D15. What says "at once" was refused a moment ago; a share of nothing adds nothing."""
    assert stated_wait(Limits(base_delay=base), 0.0, 100.0, draw) == wait
    assert stated_wait(Limits(base_delay=base, spread=0), 0.0, 100.0, draw) == wait


@pytest.mark.parametrize("stated", [0.5, 2.0, 4.9])
def test_only_zero_gets_the_floor(stated: float) -> None:
    """D15. A large base_delay lengthens no wait that the server did state; spread 0 is exact."""
    assert stated_wait(Limits(base_delay=10, spread=0), stated, 100.0, 0.9) == stated


def test_no_delay_cap_touches_a_stated_wait() -> None:
    """R36. max_delay caps the backoff and nothing else."""
    assert stated_wait(Limits(max_delay=1, spread=0), 30.0, 100.0, 0.0) == 30.0
    assert backoff(Limits(base_delay=30, max_delay=1, jitter="none"), 1, 0.0) == 1.0


@given(
    stated=st.floats(0, LARGEST),
    spread=st.floats(0, 1e300),
    base=seconds,
    room=st.floats(-LARGEST, math.inf),
    draw=draws,
)
def test_no_stated_wait_is_shortened_nor_spread_too_far(
    stated: float, spread: float, base: float, room: float, draw: float
) -> None:
    """R36, R37, D15. Invariant 9 of one wait, for any limits and any draw."""
    wait = stated_wait(Limits(spread=spread, base_delay=base), stated, room, draw)
    least = stated or base / 2
    assert math.isfinite(wait)
    assert wait >= least
    assert wait - least <= MAX_SPREAD * (1 + 1e-9) + least * 1e-15
    assert wait <= max(least, stated + max(room, 0.0)) * (1 + 1e-15)


def test_callers_that_were_told_the_same_second_return_apart() -> None:
    """D15. The positive control of the spread: a hundred draws are a hundred moments."""
    waits = {stated_wait(Limits(), 1.0, 10.0, step / 100) for step in range(100)}
    assert len(waits) == 100
    assert max(waits) - min(waits) == pytest.approx(0.495)
