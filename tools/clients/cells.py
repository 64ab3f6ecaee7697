"""The law of this file: a cell is one fault, and says the same to every client."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from surefoot.testing import BadJson, Reset, Slow, SseCut, Status, Step, Throttle

__all__ = ["CELLS", "SMOKE", "Cell"]

LATE: Final = 2.0
PATIENCE: Final = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One fault that meets one call."""

    key: str
    title: str
    step: Step
    repeat: bool = False
    """It meets every attempt, and not the first alone."""
    tool: str = "charge"
    """`charge` is declared nowhere; `refund` is declared to make changes."""
    arguments: tuple[tuple[str, Any], ...] = (("amount", 1),)
    patience: float | None = None
    """The client's own timeout for one call, in seconds."""
    max_elapsed: float | None = None
    """The Gateway's own time for one call, in seconds."""
    retries: int | None = None
    """The client's own retries, where it has any; `None` leaves them at their default."""
    gets: Step | None = None
    """What meets every GET: a stream that is to be resumed, or the one that stands open."""
    eras: tuple[str, ...] = ("2026-07-28", "2025-11-25")
    """What the server speaks. Most servers today have sessions, and speak the older era alone."""
    insists: int = 0
    """How often the model calls again while it reads no word of success."""


def _after_a_moment(step: Step) -> Step:
    """So that the call beside it is under way when the fault comes."""
    return Slow(0.15, then=step)


_CUT_PAYMENT: Final = _after_a_moment(Reset("after-run"))
_ORDER: Final = (("order", "W-7712"),)
_SESSIONS: Final = ("2025-11-25",)

CELLS: Final = (
    Cell(key="429", title="429, then fine", step=_after_a_moment(Throttle(0))),
    Cell(
        key="429-always",
        title="429 beyond the budget",
        step=_after_a_moment(Throttle(0)),
        repeat=True,
    ),
    Cell(key="401", title="401 once", step=_after_a_moment(Status(401))),
    Cell(key="403", title="403", step=_after_a_moment(Status(403, "no"))),
    Cell(key="500", title="500", step=_after_a_moment(Status(500, "oops"))),
    Cell(key="reset-before", title="reset before the headers", step=_after_a_moment(Reset())),
    Cell(key="reset-after", title="reset after the tool ran", step=_CUT_PAYMENT),
    Cell(key="sse-cut", title="event stream cut", step=_after_a_moment(SseCut(1))),
    Cell(
        key="sse-cut-id",
        title="event stream cut after an event with an id",
        step=_after_a_moment(SseCut(1, after_event_id="e-1", retry=1)),
    ),
    Cell(
        key="slow",
        title="slower than the client waits",
        step=Slow(LATE, when="after"),
        patience=PATIENCE,
    ),
    Cell(
        key="slow-ours",
        title="slower than the client waits; `Retry(max_elapsed=)` is shorter",
        step=Slow(LATE, when="after"),
        patience=PATIENCE,
        max_elapsed=0.7 * PATIENCE,
    ),
    Cell(
        key="unreadable", title="unreadable answer", step=_after_a_moment(BadJson("duplicate-keys"))
    ),
    Cell(
        key="payment",
        title="payment cut after it ran; a model that calls again",
        step=_CUT_PAYMENT,
        repeat=True,
        tool="refund",
        arguments=_ORDER,
        insists=3,
    ),
    Cell(
        key="payment-slow",
        title="payment slower than the client waits; a model that calls again",
        step=Slow(3 * LATE, when="after"),
        repeat=True,
        tool="refund",
        arguments=_ORDER,
        patience=PATIENCE,
        insists=3,
    ),
    Cell(
        key="payment-again",
        title="payment cut after it ran; three retries of the client's own, too",
        step=_CUT_PAYMENT,
        repeat=True,
        tool="refund",
        arguments=_ORDER,
        retries=3,
        insists=3,
    ),
    Cell(
        key="sessions-429",
        title="a server with sessions: 429, then fine",
        step=_after_a_moment(Throttle(0)),
        eras=_SESSIONS,
    ),
    Cell(
        key="sessions-reset",
        title="a server with sessions: reset after the tool ran",
        step=_CUT_PAYMENT,
        eras=_SESSIONS,
    ),
    Cell(
        key="sessions-resume",
        title="a server with sessions: payment's event stream cut, and not to be resumed",
        step=_after_a_moment(SseCut(1, after_event_id="e-1", retry=1)),
        repeat=True,
        tool="refund",
        arguments=_ORDER,
        retries=3,
        insists=3,
        gets=Status(500),
        eras=_SESSIONS,
    ),
)

SMOKE: Final = ("429", "reset-after", "slow", "payment-again")
