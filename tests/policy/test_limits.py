"""R43 to R50, R57, R64, R65, R70 to R72, D15. What a limit may be, and how others are refused."""

from __future__ import annotations

import copy
import dataclasses
import math
import pickle
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from surefoot.policy import JITTERS, Limits, Retry, RetryNotice

CANARY = "CANARY-7d1f"
NAN = math.nan
INF = math.inf

NUMBERS = ("max_wait", "max_elapsed", "base_delay", "multiplier", "max_delay", "spread")
OPTIONS = ("max_attempts", *NUMBERS, "jitter")
OFF = ("max_attempts", "max_wait", "max_elapsed", "max_delay")


def built(kind: type[Limits], **options: Any) -> Limits:
    return kind(**options)


def described(error: BaseException) -> str:
    """All that a log could show of an error."""
    return f"{error!s} {error!r} {error.args!r} {error.__cause__!r} {error.__context__!r}"


both = pytest.mark.parametrize("kind", [Limits, Retry])


@both
def test_the_defaults_are_those_that_were_promised(kind: type[Limits]) -> None:
    """R43, R44, R47 to R50, R57, R64, R65, D15. Nothing set is on, with these numbers."""
    limits = kind()
    assert {name: getattr(limits, name) for name in OPTIONS} == {
        "max_attempts": 3,
        "max_wait": 10.0,
        "max_elapsed": None,
        "base_delay": 0.2,
        "multiplier": 2.0,
        "jitter": "equal",
        "max_delay": None,
        "spread": 0.5,
    }


def test_the_limits_are_these_and_no_other() -> None:
    """R36, R64. Seven numbers and the spread: none of them could shorten a stated wait."""
    assert {field.name for field in dataclasses.fields(Limits)} == set(OPTIONS)
    assert {field.name for field in dataclasses.fields(Retry)} == {
        *OPTIONS,
        "on_retry",
        "reconnect",
    }


@both
@pytest.mark.parametrize("name", OPTIONS)
@pytest.mark.parametrize(
    "value",
    [CANARY, CANARY.encode(), True, False, [1], {"a": 1}, object(), Decimal(1), 1j],
    ids=lambda value: type(value).__name__ + str(value)[:5],
)
def test_a_wrong_type_is_refused_by_the_name_of_the_option(
    kind: type[Limits], name: str, value: object
) -> None:
    """R71, R72. A bool is no number, and what was put in the wrong place is not shown."""
    wrong = ValueError if name == "jitter" and isinstance(value, str) else TypeError
    with pytest.raises(wrong, match=rf"^{name}: must be ") as caught:
        built(kind, **{name: value})
    assert type(caught.value) is wrong
    assert "CANARY" not in described(caught.value)


@both
@pytest.mark.parametrize("name", ["base_delay", "multiplier", "jitter", "spread"])
def test_none_is_no_way_to_switch_these_off(kind: type[Limits], name: str) -> None:
    """R71. A schedule needs a base, a factor, a jitter and a spread."""
    with pytest.raises(TypeError, match=rf"^{name}: must be "):
        built(kind, **{name: None})


@both
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("max_attempts", NAN),
        ("max_wait", NAN),
        ("max_elapsed", NAN),
        ("max_elapsed", 0),
        ("max_elapsed", -1),
        ("max_elapsed", -INF),
        ("base_delay", NAN),
        ("base_delay", -0.001),
        ("base_delay", INF),
        ("base_delay", 10**400),
        ("base_delay", -(10**5000)),
        ("multiplier", NAN),
        ("multiplier", 0.999),
        ("multiplier", 0),
        ("multiplier", INF),
        ("max_delay", NAN),
        ("max_delay", -1),
        ("spread", NAN),
        ("spread", -0.1),
        ("spread", INF),
        ("spread", 10**5000),
    ],
    ids=lambda value: str(value)[:12] if isinstance(value, str | float) else "whole",
)
def test_a_wrong_range_is_refused_by_the_name_of_the_option(
    kind: type[Limits], name: str, value: float
) -> None:
    """R48, R71, R72. NaN is a wrong range everywhere; a number may be shown, as a number."""
    with pytest.raises(ValueError, match=rf"^{name}: must be .*, not -?[0-9.a-z]+$"):
        built(kind, **{name: value})


@both
@pytest.mark.parametrize("value", [2.0, 2.5, -INF, 0.5])
def test_attempts_are_counted_in_whole_numbers(kind: type[Limits], value: float) -> None:
    """R43, R71. A float that is not infinite is the wrong type, a whole one too."""
    with pytest.raises(TypeError, match=r"^max_attempts: must be a whole number, or None"):
        built(kind, max_attempts=value)


@both
@pytest.mark.parametrize(("asked", "kept"), [(-(10**30), 1), (-1, 1), (0, 1), (1, 1), (2, 2)])
def test_attempts_below_one_read_as_one(kind: type[Limits], asked: int, kept: int) -> None:
    """R43. The first of the only two clamps."""
    assert built(kind, max_attempts=asked).max_attempts == kept


@both
@pytest.mark.parametrize(
    ("asked", "kept"), [(-INF, 0), (-(10**400), 0), (-0.001, 0), (0, 0), (0.25, 0.25), (7, 7)]
)
def test_waiting_below_zero_reads_as_zero(kind: type[Limits], asked: float, kept: float) -> None:
    """R43. The second of the only two clamps."""
    assert built(kind, max_wait=asked).max_wait == kept


@both
@pytest.mark.parametrize("name", OFF)
@pytest.mark.parametrize("value", [None, INF])
def test_none_and_infinity_both_mean_off(
    kind: type[Limits], name: str, value: float | None
) -> None:
    """R43, R64. Off is None, and infinity is read as None, so that one form is compared."""
    limits = built(kind, **{name: value})
    assert getattr(limits, name) is None
    assert limits == built(kind, **{name: None})


@both
@pytest.mark.parametrize("name", ["max_wait", "max_elapsed", "max_delay"])
def test_a_number_that_no_float_holds_is_no_bound(kind: type[Limits], name: str) -> None:
    """R43, R71. It is not an error in the middle of the arithmetic."""
    assert getattr(built(kind, **{name: 10**400}), name) is None


@both
@pytest.mark.parametrize(
    ("name", "value"),
    [("base_delay", 0), ("multiplier", 1), ("max_delay", 0), ("spread", 0), ("max_elapsed", 1e-9)],
)
def test_the_edge_of_a_range_belongs_to_it(kind: type[Limits], name: str, value: float) -> None:
    """R47, R48, R50, D15. And a whole number is kept as a float."""
    kept = getattr(built(kind, **{name: value}), name)
    assert kept == value
    assert isinstance(kept, float)


@both
@pytest.mark.parametrize("jitter", ["equal", "full", "none"])
def test_the_three_jitters_are_known(kind: type[Limits], jitter: str) -> None:
    """R49. And no other word is, not even in capitals."""
    assert built(kind, jitter=jitter).jitter == jitter
    assert set(JITTERS) == {"equal", "full", "none"}
    with pytest.raises(ValueError, match=r'^jitter: must be "equal" or "full" or "none"$'):
        built(kind, jitter=jitter.upper())


@both
def test_limits_are_values(kind: type[Limits]) -> None:
    """R71. Frozen, without other attributes, compared by value, picklable, named at the call."""
    limits = built(kind, max_attempts=5, max_elapsed=2)
    assert limits == built(kind, max_attempts=5, max_elapsed=2.0)
    assert limits != built(kind, max_attempts=4, max_elapsed=2)
    assert pickle.loads(pickle.dumps(limits)) == limits  # noqa: S301 - our own bytes
    assert copy.deepcopy(limits) == limits
    assert len({limits, copy.copy(limits)}) == 1
    with pytest.raises(dataclasses.FrozenInstanceError):
        limits.max_attempts = 9  # type: ignore[misc]
    with pytest.raises(TypeError, match="positional"):
        kind(5)  # type: ignore[misc]


@given(
    value=st.one_of(
        st.none(),
        st.booleans(),
        st.integers(),
        st.floats(),
        st.text().map(lambda text: CANARY + text),
        st.complex_numbers(),
    ),
    name=st.sampled_from(OPTIONS),
)
def test_whatever_is_passed_is_a_limit_or_is_refused_by_name(value: object, name: str) -> None:
    """R71, R72. No other error, and what is kept can be computed with."""
    limits = refused = None
    try:
        limits = built(Limits, **{name: value})
    except (TypeError, ValueError) as error:
        refused = described(error)
    if limits is None:
        assert f"{name}: must be " in str(refused)
        assert CANARY not in str(refused)
        return
    kept = getattr(limits, name)
    assert kept is None or isinstance(kept, str) or math.isfinite(kept)
    assert not isinstance(kept, bool)


@pytest.mark.parametrize("value", [CANARY, 1, (), object()])
def test_a_hook_has_to_be_callable(value: object) -> None:
    """R71, R72. Found when it is built, not before the first wait."""
    with pytest.raises(TypeError, match=r"^on_retry: must be a callable") as caught:
        built(Retry, on_retry=value)
    assert CANARY not in described(caught.value)


@pytest.mark.parametrize("value", [None, 0, 1, CANARY, "true"])
def test_reconnect_is_on_or_off(value: object) -> None:
    """R71, R72, D3. Not a truth value of something else."""
    with pytest.raises(TypeError, match=r"^reconnect: must be True or False$") as caught:
        built(Retry, reconnect=value)
    assert CANARY not in described(caught.value)
    assert Retry().reconnect is True
    assert Retry(reconnect=False).reconnect is False


def test_the_hook_is_not_shown_and_the_limits_can_be_taken_alone() -> None:
    """R56, R64. A hook's repr is the app's; the numbers travel without it."""

    def hook(notice: RetryNotice) -> None:
        """Listen to nothing."""

    retry = Retry(max_attempts=7, max_wait=None, on_retry=hook)
    assert "hook" not in repr(retry)
    assert retry.on_retry is hook
    assert type(retry.limits) is Limits
    assert retry.limits == Limits(max_attempts=7, max_wait=None)


def test_a_notice_has_no_place_for_a_path_an_argument_or_an_answer() -> None:
    """R38 to R42, R53. What is told is a closed set of facts."""
    assert {field.name for field in dataclasses.fields(RetryNotice)} == {
        "kind",
        "attempt",
        "max_attempts",
        "wait_seconds",
        "retry_after_seconds",
        "url",
        "endpoint",
    }
