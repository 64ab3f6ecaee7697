"""The law of this file: any limits, any declaration, any script, any luck; nothing endless.

Where nothing counts attempts, the limits drawn here make every wait take from the budget, since a
caller who switches every bound off has asked for a series without an end.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import cycle
from typing import Any

from hypothesis import strategies as st

from support.series_play import Send, play
from surefoot.policy import (
    Answered,
    Call,
    Fact,
    Limits,
    NotSent,
    RepeatOn,
    Replay,
    ReplayPolicy,
    Rule,
    Series,
    ThrottleRule,
    ToolRule,
    Unanswered,
    Verdict,
)

__all__ = ["World", "final_facts", "worlds"]

_ASSUMED: Any = "refused-before-execution"


@dataclass(frozen=True, slots=True)
class World:
    """One series and all that will happen to it."""

    limits: Limits
    rules: tuple[Rule, ...]
    replay: Replay
    call: Call
    reconnect: bool
    patience: float | None
    started: float
    draws: tuple[float, ...]
    script: tuple[tuple[Fact, float], ...]

    def series(self, rules: tuple[Rule, ...] | None = None) -> Series:
        """A fresh series of this world."""
        draws = cycle(self.draws)
        return Series(
            self.call,
            self.rules if rules is None else rules,
            self.limits,
            self.replay,
            draw=lambda: next(draws),
            started=self.started,
            reconnect=self.reconnect,
            patience=self.patience,
        )

    def played(self, series: Series | None = None) -> list[Send]:
        """The whole history of it."""
        series = self.series() if series is None else series
        return play(series, self.script, at=self.started, most=2000)


def _number(low: float, high: float) -> st.SearchStrategy[float]:
    """Any float, or an eighth: eighths add up exactly, so that edges are met and not missed."""
    eighths = st.integers(math.ceil(low * 8), int(high * 8)).map(lambda count: count / 8)
    return eighths | eighths | st.floats(low, high)


_counted = st.builds(
    Limits,
    max_attempts=st.sampled_from([3, 4, 5, 6, 9, 2, 1, -1]),
    max_wait=st.sampled_from([None, 10.0, 15.0, 20.0, 0.0]) | _number(2, 20),
    max_elapsed=st.none() | _number(1, 30),
    base_delay=_number(0, 2),
    multiplier=_number(1, 4),
    jitter=st.sampled_from(["equal", "none", "full"]),
    max_delay=st.none() | _number(0, 5),
    spread=_number(0, 2),
)
_uncounted = st.builds(
    Limits,
    max_attempts=st.none(),
    max_wait=_number(1, 20),
    max_elapsed=st.none() | _number(1, 30),
    base_delay=_number(0.125, 2),
    multiplier=_number(1, 4),
    jitter=st.sampled_from(["equal", "none"]),
    max_delay=st.none() | _number(0.125, 5),
    spread=_number(0, 2),
)
_limits = _counted | _uncounted
_stated = (
    st.sampled_from([None, 0.0, 0.125, 1.0, 2.0]) | _number(0.125, 5) | st.floats(0.125, 1e308)
)
_took = st.sampled_from([0.0, 0.125, 0.3, 2.0])


_verdicts = st.builds(
    Verdict,
    kind=st.sampled_from(["throttle", "throttle", "session-busy"]),
    retry_after=_stated,
    malformed=st.booleans(),
)


def _refusals(rules: int) -> st.SearchStrategy[Fact]:
    return st.builds(
        Answered,
        status=st.sampled_from([429, 200, 503, 401]),
        verdict=_verdicts,
        rule=st.integers(0, rules - 1),
    )


final_facts = st.sampled_from([200, 204, 400, 403, 404, 500, 503]).map(
    lambda status: Answered(status=status)
)
"""Answers that nobody recognises."""

_lively = st.sampled_from(
    [
        Answered(status=401, rejected=True),
        Answered(status=307, redirect=True),
        Answered(status=308, redirect=True),
        Unanswered(error=ConnectionResetError()),
        Unanswered(error=TimeoutError()),
        NotSent(error=ConnectionRefusedError()),
        NotSent(error=ConnectionRefusedError()),
    ]
)
"""Facts after which a series may go on."""

_last = final_facts | st.sampled_from(
    [Answered(status=401), NotSent(error=PermissionError(), credential=True)]
)

_BOTH: set[RepeatOn] = {"throttle", "network"}
_KEYED = ToolRule(makes_changes=True, idempotency_key="arguments.id", repeat_on=_BOTH)
_RULES: list[ToolRule | None] = [
    *[ToolRule(repeat_on=_BOTH)] * 4,
    *[_KEYED] * 2,
    None,
    ToolRule(repeat_on={"network"}),
    ToolRule(makes_changes=True, idempotency_key="arguments.id"),
    ToolRule(makes_changes=True),
]
_POLICIES: list[ReplayPolicy] = ["assume-refused", "app-authorized"]
_replays = st.sampled_from(
    [
        Replay(policy=policy, tools={} if rule is None else {"t": rule}, trust_hints=hints)
        for rule in _RULES
        for policy in _POLICIES
        for hints in (False, True)
    ]
)

_calls = st.sampled_from(
    [
        *(
            Call(method="tools/call", tool="t", is_tool_call=True, key_carried=key, hinted=hint)
            for key in (True, True, True, False)
            for hint in (True, True, False)
        ),
        Call(method="tools/call", tool="t", is_tool_call=True, key_carried=True, resendable=False),
        Call(method=None, is_tool_call=True),
        *[Call(method="tools/list")] * 3,
        Call(method="notifications/initialized"),
    ]
)


@st.composite
def worlds(draw: st.DrawFn) -> World:
    """Any world; what surely ends a series comes last, for nothing would be played after it."""
    own = draw(st.lists(st.none() | _limits, min_size=1, max_size=3))
    rules = tuple(
        Rule(recognise=ThrottleRule(), limits=limits, assumes=_ASSUMED if index else None)
        for index, limits in enumerate(own)
    )
    facts = st.tuples(_refusals(len(rules)) | _lively, _took)
    script = draw(st.lists(facts, min_size=3, max_size=7))
    if draw(st.booleans()):
        script.append((draw(_last), draw(_took)))
    return World(
        limits=draw(_limits),
        rules=rules,
        replay=draw(_replays),
        call=draw(_calls),
        reconnect=draw(st.sampled_from([True, True, False])),
        patience=draw(st.none() | _number(1, 30)),
        started=draw(st.sampled_from([0.0, 0.1, 1000.0, 123456.789])),
        draws=tuple(draw(st.lists(st.floats(0, 1, exclude_max=True), min_size=1, max_size=4))),
        script=tuple(script),
    )
