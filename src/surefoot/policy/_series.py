"""The law of this file: one call is one series, and its budget holds whatever the reason to repeat.

Facts in, decisions out; the shell sends, sleeps and records. Every fact is one attempt, every
repeat has one grant, a wait is begun only if all of it fits, and a series that has ended stays
ended (R20, R31 to R37, R43 to R45, D5 to D7). What may have run is a fact of the attempts, never of
the policy.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeVar

from ._limits import Limits
from ._replay import Call, Cause, Permission, Replay, permit
from ._rules import Rule, Verdict
from ._waits import backoff, stated_wait

__all__ = [
    "Answered",
    "Decision",
    "Deliver",
    "Fact",
    "Fail",
    "NotSent",
    "Series",
    "Unanswered",
    "Wait",
    "Why",
]

_MOST_REDIRECTS: Final = 20
"""A circle of redirects costs no waiting, so something else has to end it where nothing counts
attempts (RFC 9110 section 15.4)."""

Why = Literal[
    "final-answer",
    "no-permission",
    "body-not-resendable",
    "attempts-spent",
    "waiting-spent",
    "no-time",
    "reconnect-off",
    "credential-failed",
]
"""Why a series ended where it did: a closed set."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """The attempt got an HTTP answer. That is not a success (R23)."""

    status: int
    """The HTTP status."""

    verdict: Verdict | None = None
    """What a rule recognised in it."""

    rule: int = 0
    """Which of the series' rules recognised it."""

    rejected: bool = False
    """A 401, or a 403 for want of scopes, to a credential of ours; a forced vend could help."""

    redirect: bool = False
    """A 307 or 308 that stays within the origin (B11)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unanswered:
    """The attempt left, or may have, and no answer came: the effect is unknown (R10, R27)."""

    error: Exception
    """What the transport raised."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NotSent:
    """It is proven that nothing left (D3), or no credential could be had for the attempt."""

    error: Exception
    """What was raised instead."""

    credential: bool = False
    """Vending or signing failed: a repeat is the provider's affair, not the series'."""


Fact = Answered | Unanswered | NotSent


@dataclass(frozen=True, slots=True, kw_only=True)
class Deliver:
    """Hand the answer on as it was read (R26)."""

    why: Why


@dataclass(frozen=True, slots=True, kw_only=True)
class Fail:
    """There is no answer to hand on."""

    error: Exception
    why: Why


@dataclass(frozen=True, slots=True, kw_only=True)
class Wait:
    """Wait ``seconds``, then send the same request once more, by ``permission``."""

    seconds: float
    """How long; planned time, which is what the budget counts (D6)."""

    permission: Permission
    """The one grant of this repeat."""

    cause: Cause
    """Why it is sent again."""

    attempt: int
    """The attempt about to start; 2 is the first repeat."""

    max_attempts: int | None
    """The smaller of the call's and the rule's ceiling (D6)."""

    stated: float | None = None
    """Seconds that the server stated."""

    rule: int = 0
    """The rule whose hook is told; 0, the call's own, for everything but a rule's refusal (D8)."""


Decision = Deliver | Fail | Wait


class Series:
    """All attempts of one request (R20).

    Args:
        call: What is known of the request.
        rules: Recognisers in order; their own limits can only end their repeats sooner (R33).
        limits: The call's budget: the first rule's (R32).
        replay: What the app declared.
        draw: Uniform in [0, 1).
        started: Monotonic seconds at which the call began.
        reconnect: Whether the proof that a request never left is a permission (D3). Without it,
            the app's word or the protocol's is, as for any network failure (R10, D2).
        patience: Seconds after which the caller stops listening, or ``None`` (B6).
    """

    __slots__ = (
        "_call",
        "_draw",
        "_end",
        "_kinds",
        "_limits",
        "_reconnect",
        "_rejected_once",
        "_replay",
        "_rules",
        "_started",
        "attempts",
        "deadline",
        "ended",
        "unanswered",
        "waited",
    )

    def __init__(
        self,
        call: Call,
        rules: Sequence[Rule],
        limits: Limits,
        replay: Replay,
        *,
        draw: Callable[[], float],
        started: float,
        reconnect: bool = True,
        patience: float | None = None,
    ) -> None:
        self._call = call
        self._rules = rules
        self._limits = limits
        self._replay = replay
        self._draw = draw
        self._reconnect = reconnect
        self._started = started
        self._rejected_once = False
        self._kinds: dict[Cause, int] = {}
        self.deadline: Final = None if limits.max_elapsed is None else started + limits.max_elapsed
        """Monotonic seconds at which a request in flight is cut, or ``None`` (R46)."""
        quits = None if patience is None else started + patience
        self._end = _smaller(self.deadline, quits)
        self.attempts = 0
        """Attempts so far."""
        self.waited = 0.0
        """Planned waiting so far, in seconds."""
        self.unanswered = False
        """Some attempt got no response at all (R28); the effect of the call is then unknown."""
        self.ended = False
        """The last decision was final."""

    def after(self, fact: Fact, *, now: float) -> Decision:
        """Take one attempt's fact at monotonic time ``now``, and say what is next.

        Raises:
            RuntimeError: the series has already ended: the shell asked once too often.
        """
        if self.ended:
            msg = "the series has ended; a new request needs a new series"
            raise RuntimeError(msg)
        self.attempts += 1
        decision = self._decide(fact, now)
        if isinstance(decision, Wait):
            self.waited += decision.seconds
            self._kinds[decision.cause] = self._kinds.get(decision.cause, 0) + 1
        else:
            self.ended = True
        return decision

    def _decide(self, fact: Fact, now: float) -> Decision:
        match fact:
            case Answered(verdict=Verdict() as verdict, rule=rule):
                found = self._repeat(verdict.kind, now, verdict.retry_after, rule)
            case Answered(rejected=True) if not self._rejected_once:
                found = self._repeat("auth", now)
                self._rejected_once = True
            case Answered(redirect=True) if self._kinds.get("redirect", 0) >= _MOST_REDIRECTS:
                return Deliver(why="attempts-spent")
            case Answered(redirect=True):
                found = self._repeat("redirect", now)
            case Answered():
                return Deliver(why="final-answer")
            case NotSent(error=error, credential=True):
                return Fail(error=error, why="credential-failed")
            case NotSent() if self._reconnect:
                found = self._repeat("reconnect", now)
            case NotSent():
                # Without the proof as a grant it is a network failure like any other (R10, R80).
                found = self._repeat("network", now)
                found = "reconnect-off" if found == "no-permission" else found
            case Unanswered():
                self.unanswered = True
                found = self._repeat("network", now)
        if isinstance(found, Wait):
            return found
        if isinstance(fact, Answered):
            return Deliver(why=found)
        return Fail(error=fact.error, why=found)

    def _repeat(
        self, cause: Cause, now: float, stated: float | None = None, index: int = 0
    ) -> Wait | Why:
        """Permission and limits for one more attempt: a wait, or why there is none."""
        rule = self._rules[index] if cause in ("throttle", "session-busy") else None
        permission = permit(
            self._call, self._replay, cause, assumes=None if rule is None else rule.assumes
        )
        if permission is None:
            return "no-permission"
        if not self._call.resendable:
            return "body-not-resendable"
        own = self._limits if rule is None or rule.limits is None else rule.limits
        most = _smaller(self._limits.max_attempts, own.max_attempts)
        if most is not None and self.attempts >= most:
            return "attempts-spent"
        seconds = self._seconds(cause, own, now, stated)
        if isinstance(seconds, str):
            return seconds
        return Wait(
            seconds=seconds,
            permission=permission,
            cause=cause,
            attempt=self.attempts + 1,
            max_attempts=most,
            stated=stated,
            rule=index,
        )

    def _seconds(
        self, cause: Cause, own: Limits, now: float, stated: float | None
    ) -> float | Literal["waiting-spent", "no-time"]:
        """How long to wait, all of it within the budget and the time that is left (D5, D7)."""
        if cause in ("auth", "redirect"):
            return 0.0 if self._end is None or now < self._end else "no-time"
        repeat = self._kinds.get(cause, 0) + 1
        draw = self._draw()
        if stated is None:
            lowest = backoff(own, repeat, draw)
        else:
            lowest = stated_wait(own, stated, 0.0, 0.0)
        most_wait = _smaller(self._limits.max_wait, own.max_wait)
        if most_wait is not None and self.waited + lowest > most_wait:
            return "waiting-spent"
        end = self._end
        if own.max_elapsed is not None:
            # A joining rule's deadline runs from the start of the call, like the call's own (R33).
            end = _smaller(end, self._started + own.max_elapsed)
        if end is not None and now + lowest >= end:
            return "no-time"
        if stated is None:
            return lowest
        room = [_MUCH if most_wait is None else most_wait - self.waited - stated]
        if end is not None:
            room.append(end - now - stated)
        taken = stated_wait(own, stated, min(room), draw)
        # Rounding must not carry a spread over an edge that the stated wait itself kept.
        over = most_wait is not None and self.waited + taken > most_wait
        return lowest if over or (end is not None and now + taken >= end) else taken


_MUCH: Final = float("inf")
_Number = TypeVar("_Number", int, float)


def _smaller(one: _Number | None, other: _Number | None) -> _Number | None:
    """The tighter of two limits, where ``None`` is no limit."""
    if one is None or other is None:
        return one if other is None else other
    return min(one, other)
