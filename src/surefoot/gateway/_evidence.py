"""The law of this file: what is sent outside any run is recorded where the Gateway says (R22)."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING, Any

from surefoot.evidence import Ledger

if TYPE_CHECKING:
    from collections.abc import Callable

    from surefoot.evidence import Event, EventSink
    from surefoot.transports import Clock

__all__ = ["ledger_for"]


class _CallableSink:
    """A function as a sink."""

    __slots__ = ("emit",)

    def __init__(self, emit: Callable[[Event], object]) -> None:
        self.emit: Any = emit


def ledger_for(evidence: EventSink | Callable[[Event], object], clock: Clock) -> Ledger:
    """Build the ledger of everything that a Gateway sends outside of any run.

    Raises:
        TypeError: ``evidence`` is neither a sink nor a callable.
    """
    emit: Any = getattr(evidence, "emit", None)
    if not callable(emit) and not callable(evidence):
        msg = "evidence: must be an EventSink or a callable that takes one event, or None"
        raise TypeError(msg)
    sink: Any = evidence if callable(emit) else _CallableSink(evidence)  # type: ignore[arg-type]
    return Ledger(
        sink,
        run=f"gateway-{secrets.token_hex(8)}",
        now=clock.now,
        fresh_id=lambda: secrets.token_hex(8),
        close=getattr(evidence, "close", None),
    )
