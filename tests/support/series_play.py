"""The law of this file: a series is played with nothing but numbers: no loop, no socket, no sleep.

`play` does what a shell does: it sends, lets each attempt take its time, asks what is next, and
lets exactly the planned wait pass.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import chain, repeat

from surefoot.policy import (
    Answered,
    Call,
    Decision,
    Fact,
    Limits,
    NotSent,
    RefusalKind,
    Replay,
    Rule,
    Series,
    ThrottleRule,
    ToolRule,
    Unanswered,
    Verdict,
    Wait,
)

__all__ = [
    "BUSY_RULE",
    "CHANGES",
    "LOST",
    "MOVED",
    "NEVER_LEFT",
    "NO_CREDENTIAL",
    "OK",
    "REFUSED",
    "REJECTED",
    "REPEATABLE",
    "THROTTLE_RULE",
    "UNAVAILABLE",
    "Send",
    "play",
    "refused",
    "series_of",
    "tool_call",
    "waits_of",
]

THROTTLE_RULE = Rule(recognise=ThrottleRule())
BUSY_RULE = Rule(recognise=ThrottleRule(), assumes="refused-before-execution")
"""Who recognises is not the series' affair; what a rule assumes and its limits are."""

REPEATABLE = Replay(tools={"t": ToolRule(repeat_on={"throttle", "network"})})
CHANGES = Replay(tools={"t": ToolRule(makes_changes=True)})


@dataclass(frozen=True, slots=True)
class Send:
    """One attempt of a series that was played."""

    at: float
    """When it was sent."""

    fact: Fact
    """What came of it."""

    asked: float
    """When the series was asked what is next."""

    decision: Decision
    """What it said."""


def refused(
    retry_after: float | None = None,
    *,
    kind: RefusalKind = "throttle",
    rule: int = 0,
    status: int = 429,
) -> Answered:
    """An answer in which a rule recognised a refusal."""
    return Answered(status=status, verdict=Verdict(kind=kind, retry_after=retry_after), rule=rule)


OK = Answered(status=200)
UNAVAILABLE = Answered(status=503)
REFUSED = refused()
REJECTED = Answered(status=401, rejected=True)
MOVED = Answered(status=307, redirect=True)
LOST = Unanswered(error=ConnectionResetError("reset"))
NEVER_LEFT = NotSent(error=ConnectionRefusedError("refused"))
NO_CREDENTIAL = NotSent(error=PermissionError("vault"), credential=True)


def tool_call(*, key_carried: bool = False, resendable: bool = True, hinted: bool = False) -> Call:
    """A call of the tool ``t``."""
    return Call(
        method="tools/call",
        tool="t",
        is_tool_call=True,
        key_carried=key_carried,
        resendable=resendable,
        hinted=hinted,
    )


def series_of(
    limits: Limits | None = None,
    *,
    call: Call | None = None,
    rules: Sequence[Rule] = (THROTTLE_RULE,),
    replay: Replay | None = None,
    draw: float | Callable[[], float] = 0.0,
    started: float = 0.0,
    reconnect: bool = True,
    patience: float | None = None,
) -> Series:
    """A series of a tool call, with defaults for what a test does not vary."""
    drawn = draw if callable(draw) else lambda: draw
    return Series(
        tool_call() if call is None else call,
        rules,
        Limits() if limits is None else limits,
        Replay() if replay is None else replay,
        draw=drawn,
        started=started,
        reconnect=reconnect,
        patience=patience,
    )


def play(
    series: Series,
    script: Iterable[Fact | tuple[Fact, float]],
    *,
    at: float = 0.0,
    most: int = 500,
) -> list[Send]:
    """Play a series to its end; the last fact of the script is what every later attempt meets.

    A fact may come with the seconds that its attempt took.
    """
    facts = list(script)
    sends: list[Send] = []
    now = at
    for entry in chain(facts, repeat(facts[-1])):
        assert len(sends) < most, "the series does not end"
        fact, took = entry if isinstance(entry, tuple) else (entry, 0.0)
        sent, now = now, now + took
        decision = series.after(fact, now=now)
        sends.append(Send(sent, fact, now, decision))
        if not isinstance(decision, Wait):
            break
        now += decision.seconds
    return sends


def waits_of(sends: Iterable[Send]) -> list[Wait]:
    """The waits of a series that was played, in order."""
    return [send.decision for send in sends if isinstance(send.decision, Wait)]
