"""The law of this file: a limit that cannot mean anything is refused when it is built, by name.

A refusal names the option, the rule and the way out, and never echoes a value that is not a number
(R71, R72). The only clamps are R43's two: ``max_attempts`` below 1 is 1, ``max_wait`` below 0 is 0.
Off is ``None``; a ``bool`` is never a number here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields
from math import inf, isnan
from typing import Final, Literal, get_args

from ._options import a_bool, one_of, wrong_type, wrong_value

__all__ = ["JITTERS", "Jitter", "Limits", "Retry", "RetryNotice"]

Jitter = Literal["equal", "full", "none"]
"""How a backoff is drawn below its ceiling (R49)."""

JITTERS: Final[tuple[Jitter, ...]] = get_args(Jitter)


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How often, how long and how spread out one call may be sent again. Durations are seconds.

    Raises:
        TypeError: an option has the wrong type.
        ValueError: an option is out of its range, or not a number.
    """

    max_attempts: int | None = 3
    """Sends in all, the first included; below 1 reads as 1; ``None`` counts nothing (R43)."""

    max_wait: float | None = 10.0
    """Waiting in all; a wait that would pass it is not begun (R43, D5); below 0 reads as 0."""

    max_elapsed: float | None = None
    """Deadline from the start of the call, requests included (R44 to R46)."""

    base_delay: float = 0.2
    """Ceiling of the first backoff draw (R47)."""

    multiplier: float = 2.0
    """How much each further ceiling grows; at least 1 (R48)."""

    jitter: Jitter = "equal"
    """``equal``: half the ceiling to it; ``full``: zero to it; ``none``: exactly it (R49).
    """

    max_delay: float | None = None
    """Caps a backoff's ceiling before the draw; never touches a stated wait (R36, R50)."""

    spread: float = 0.5
    """What is added to a stated wait: up to this share of it, at most 5 s (D15); 0 is exact."""

    def __post_init__(self) -> None:
        """Check each option, and apply R43's two clamps."""
        object.__setattr__(self, "max_attempts", _count("max_attempts", self.max_attempts))
        self._check("max_wait", none="no bound", low=-inf)
        if self.max_wait is not None and self.max_wait < 0:
            object.__setattr__(self, "max_wait", 0.0)
        self._check("max_elapsed", none="no deadline", low=0.0, above=True)
        self._check("base_delay", low=0.0, finite=True)
        self._check("multiplier", low=1.0, finite=True)
        self._check("max_delay", none="no cap", low=0.0)
        self._check("spread", low=0.0, finite=True)
        one_of("jitter", self.jitter, JITTERS)

    def _check(
        self,
        name: str,
        *,
        low: float,
        none: str | None = None,
        above: bool = False,
        finite: bool = False,
    ) -> None:
        """Hold one duration or factor to its type and range; infinity means what ``None`` means."""
        value: object = getattr(self, name)
        off = "" if none is None else f", or None for {none}"
        if value is None and none is not None:
            return
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise wrong_type(name, f"a number{off}")
        number = _as_float(value)
        rule = f"{'above' if above else 'at least'} {low:g}" if low != -inf else "a number"
        if isnan(number) or number < low or (above and number == low) or (finite and number == inf):
            raise wrong_value(name, f"{rule}{' and finite' if finite else ''}{off}", number)
        object.__setattr__(self, name, None if number == inf else number)


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryNotice:
    """What ``on_retry`` is told before a wait (R38 to R42): no path, no argument, no answer."""

    kind: Literal["throttle", "session-busy", "network"]
    """What is waited for."""

    attempt: int
    """The attempt about to start; 2 is the first repeat."""

    max_attempts: int | None
    """The ceiling in force for this refusal, the first attempt included; ``None`` is no count."""

    wait_seconds: float
    """How long the wait will be."""

    retry_after_seconds: float | None
    """What the server stated, or ``None`` when it stated nothing usable."""

    url: str
    """The ORIGIN only: scheme, host and port; empty where there is none (R41)."""

    endpoint: str | None
    """The declared label; never derived from the URL (R42)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Retry(Limits):
    """How a Gateway asks again: the limits of a call, and who is told before each wait.

    ``Retry()`` is on with its defaults, ``retry=None`` switches everything off. See ``Limits`` for
    the numbers and for what is raised.
    """

    on_retry: Callable[[RetryNotice], object] | None = field(default=None, repr=False)
    """Called before each wait, sync or async; what it raises changes nothing (R53, R55, D8)."""

    reconnect: bool = True
    """Send again, within the same budget, what is proven never to have left (D3)."""

    def __post_init__(self) -> None:
        """Check the limits, then the two options of its own."""
        # Zero-argument super() does not survive the class copy that slots=True makes.
        Limits.__post_init__(self)
        if self.on_retry is not None and not callable(self.on_retry):
            raise wrong_type("on_retry", "a callable that takes one RetryNotice, or None")
        a_bool("reconnect", self.reconnect)

    @property
    def limits(self) -> Limits:
        """The numbers alone."""
        return Limits(**{f.name: getattr(self, f.name) for f in fields(Limits)})


def _count(name: str, value: object) -> int | None:
    """Read a number of sends: below 1 is 1 (R43), infinity is no count at all."""
    rule = "a whole number, or None for no count"
    if value is None or (isinstance(value, float) and value == inf):
        return None
    if isinstance(value, float) and isnan(value):
        raise wrong_value(name, rule, value)
    if isinstance(value, bool) or not isinstance(value, int):
        raise wrong_type(name, rule)
    return max(1, int(value))


def _as_float(value: float) -> float:
    """The nearest float; a whole number that no float holds is infinite."""
    try:
        return float(value)
    except OverflowError:
        return inf if value > 0 else -inf
