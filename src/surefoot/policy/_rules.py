"""The law of this file: a rule recognises a refusal and never authorises anything (R58, R59).

It is pure. It says that an answer is "not now" and what wait was asked for; whether the request may
be sent again is the replay declaration's to say. The library holds one decision a file: here it is
HTTP 429; a service's own forms live with that service (R60, R63).
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from math import isfinite
from typing import Final, Literal, Protocol, get_args, runtime_checkable

from ._limits import Limits, RetryNotice
from ._options import one_of, wrong_type
from ._retry_after import parse_http_date, parse_retry_after

__all__ = ["AnswerView", "RefusalKind", "RefusalRule", "Rule", "ThrottleRule", "Verdict"]

RefusalKind = Literal["throttle", "session-busy"]
"""The closed set of refusals (R60, R74); an adapter may recognise more forms of these two."""

_KINDS: Final[tuple[RefusalKind, ...]] = get_args(RefusalKind)
_TOO_MANY_REQUESTS: Final = 429


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerView:
    """What a rule may look at: plain values of one answer, as they were read."""

    status: int
    """The HTTP status."""

    headers: Sequence[tuple[str, str]]
    """Header lines in order, names in lower case."""

    now: datetime
    """Our own time, aware, at which the answer arrived."""

    body: bytes = b""
    """The body's first ``reads`` bytes, or nothing where the rule asked for none."""

    def values(self, name: str) -> list[str]:
        """Every line of one header, in order; ``name`` in lower case."""
        return [value for key, value in self.headers if key == name]


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """Says that an answer is a refusal, and what wait it asked for."""

    kind: RefusalKind
    """Which refusal it is."""

    retry_after: float | None = None
    """Seconds that the server stated, or ``None`` when it stated nothing usable. A rule may pass on
    what it found in a body: NaN, infinity, a negative or no number at all become malformed here."""

    malformed: bool = False
    """Something was stated that cannot be read: own backoff, and the record says so (D14)."""

    def __post_init__(self) -> None:
        """Hold the kind to its closed set (R74), and a wait to what can be waited (D14, D17)."""
        one_of("kind", self.kind, _KINDS)
        if self.retry_after is not None:
            seconds = _waitable(self.retry_after)
            object.__setattr__(self, "retry_after", seconds)
            object.__setattr__(self, "malformed", self.malformed or seconds is None)


@runtime_checkable
class RefusalRule(Protocol):
    """**Protocol**: recognises one kind of refusal. Pure: no clock, no I/O, no memory, no raise.

    ``reads`` is how many body bytes the shell must hand over; 0 leaves the body unread.
    """

    @property
    def reads(self) -> int:
        """Body bytes that ``recognise`` looks at, at most 64 KiB (D16)."""
        ...

    def recognise(self, answer: AnswerView) -> Verdict | None:
        """Return a verdict if the answer is this rule's refusal, else ``None``."""
        ...


@dataclass(frozen=True, slots=True)
class ThrottleRule:
    """HTTP 429, with the server's own `Retry-After` where it sent a readable one (R63, D14)."""

    @property
    def reads(self) -> int:
        """A status and two headers say it all."""
        return 0

    def recognise(self, answer: AnswerView) -> Verdict | None:
        """A 429 is a throttle; nothing else is."""
        if answer.status != _TOO_MANY_REQUESTS:
            return None
        lines = answer.values("retry-after")
        if not lines:
            return Verdict(kind="throttle")
        stated = parse_retry_after(lines[0], now=_server_now(answer)) if len(lines) == 1 else None
        return Verdict(kind="throttle", retry_after=stated, malformed=stated is None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One entry of a series: how a refusal is recognised, and its own tighter limits (R33, R66)."""

    recognise: RefusalRule
    """The recogniser."""

    limits: Limits | None = None
    """Ends this rule's repeats sooner than the call's; never lengthens the call (R33)."""

    on_retry: Callable[[RetryNotice], object] | None = field(default=None, repr=False)
    """Told before the waits of this rule (D8)."""

    assumes: Literal["refused-before-execution"] | None = None
    """Set only by an adapter that repeats a refusal as its own policy (R67)."""

    def __post_init__(self) -> None:
        """Refuse what could only fail at the first refusal (R71)."""
        _check_rule(self.recognise, self.limits)
        if self.on_retry is not None and not callable(self.on_retry):
            raise wrong_type("on_retry", "a callable that takes one RetryNotice, or None")
        if self.assumes is not None:
            one_of("assumes", self.assumes, ("refused-before-execution",))


def _server_now(answer: AnswerView) -> datetime:
    """The response's own well-formed `Date`, which cancels a skewed clock, else our time (D34)."""
    lines = answer.values("date")
    dated = parse_http_date(lines[0].strip(" \t"), now=answer.now) if len(lines) == 1 else None
    return answer.now if dated is None else dated


def _check_rule(recognise: object, limits: object) -> None:
    """Hold a rule's recogniser and limits to their types."""
    if not isinstance(recognise, RefusalRule):
        raise wrong_type("recognise", "an object with reads and recognise(answer)")
    if limits is not None and not isinstance(limits, Limits):
        raise wrong_type("limits", "a Limits, or None for the call's own")


def _waitable(stated: object) -> float | None:
    """Seconds that can be waited; NaN passes every clamp, and a sleep on it never ends."""
    if isinstance(stated, bool) or not isinstance(stated, (int, float)):
        return None
    try:
        seconds = float(stated)
    except OverflowError:
        seconds = sys.float_info.max if stated > 0 else -1.0
    return seconds if isfinite(seconds) and seconds >= 0 else None
