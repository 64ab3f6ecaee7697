"""The law of this file: a stated wait is never shortened, and a backoff is capped before its draw.

If the cap came after the draw, every capped wait would be the same number and callers would return
together (R36). A stated wait is taken whole; what is added spreads callers that were told the same
whole second (D15). Chance is an argument: a draw is uniform in [0, 1).
"""

from __future__ import annotations

import sys
from typing import Final

from ._limits import Limits

__all__ = ["MAX_SPREAD", "backoff", "backoff_ceiling", "stated_wait"]

MAX_SPREAD: Final = 5.0
"""Seconds: the most that is ever added to a stated wait (D15)."""


def backoff_ceiling(limits: Limits, repeat: int) -> float:
    """Seconds: the ceiling of the draw before repeat number ``repeat`` (1 is the first repeat)."""
    most = sys.float_info.max if limits.max_delay is None else limits.max_delay
    if not limits.base_delay:
        return 0.0
    try:
        return min(limits.base_delay * limits.multiplier ** (repeat - 1), most)
    except OverflowError:
        return most


def backoff(limits: Limits, repeat: int, draw: float) -> float:
    """Seconds to wait of our own accord before repeat number ``repeat`` (R35, R47 to R50)."""
    ceiling = backoff_ceiling(limits, repeat)
    if limits.jitter == "none":
        return ceiling
    if limits.jitter == "full":
        return ceiling * draw
    return ceiling / 2 + ceiling / 2 * draw


def stated_wait(limits: Limits, stated: float, room: float, draw: float) -> float:
    """Seconds to wait when the server stated ``stated`` and ``room`` more are left above it.

    A stated wait of zero, or a date in the past, still gets a floor of half of ``base_delay``: what
    reached us late was refused a moment ago. Any other is exact where ``spread`` is 0 (D15). The
    result is never below ``stated``.
    """
    floor = stated or limits.base_delay / 2
    spare = max(0.0, room - (floor - stated))
    return floor + draw * min(limits.spread * stated, MAX_SPREAD, spare)
