"""The law of this file: records for the tests of what reads them, each of one known story."""

from __future__ import annotations

import io
import json
from collections.abc import Iterable, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

from support.records import NOON, Kept, a_request, an_attempt
from surefoot.cli._show_calls import steps
from surefoot.cli._show_text import TextView
from surefoot.cli._show_totals import Totals
from surefoot.evidence import (
    Attempt,
    CallEnded,
    CallStarted,
    Grant,
    Ledger,
    RequestAttempts,
    RunStarted,
)
from surefoot.policy import Permission

__all__ = ["Story", "a_throttled_then_answered", "shown", "written"]

APP: Grant = Permission(by="app")
POLICY: Grant = Permission(by="policy", assumes="refused-before-execution")


class Story:
    """A run that is told call by call, on a clock of its own."""

    def __init__(self, run: str = "r1", name: str | None = "turn") -> None:
        self.sink = Kept()
        self.now = NOON
        self._calls = 0
        self._run = run
        self.ledger = Ledger(
            self.sink,
            run=run,
            now=lambda: self.now,
            start=RunStarted(name=name, library="0.1.0"),
        )
        self.ledger.begin()

    def request(self, *attempts: Attempt, **changes: Any) -> RequestAttempts:
        """File one request; its length and its waiting are those of its attempts."""
        last = attempts[-1]
        lasted = last.started_seconds + last.duration_seconds
        self.now += timedelta(seconds=lasted)
        fields: dict[str, Any] = {
            "tool": "search",
            "attempts": attempts,
            "status": last.status,
            "duration_seconds": lasted,
            "waited_seconds": sum(one.wait_seconds or 0.0 for one in attempts),
            **changes,
        }
        one = a_request(**fields)
        self.ledger.file(one)
        return one

    def call(self, *attempts: Attempt, is_error: bool = False, **changes: Any) -> None:
        """File a call of one request, with its start and its end."""
        self._calls += 1
        call_id = f"{self._run}-c{self._calls}"
        tool = changes.get("tool", "search")
        self.ledger.file(CallStarted(call_id=call_id, endpoint="billing", tool=tool))
        one = self.request(*attempts, call_id=call_id, **changes)
        self.ledger.file(
            CallEnded(
                call_id=call_id,
                duration_seconds=one.duration_seconds,
                is_error=is_error,
                effect="unknown",
            )
        )

    def end(self) -> list[dict[str, Any]]:
        """End the run; its events."""
        self.ledger.close()
        return self.sink.events


def a_throttled_then_answered(grant: Grant = POLICY, **changes: Any) -> Sequence[Attempt]:
    """A 429 with two seconds, waited out, then 200."""
    fields: dict[str, Any] = {
        "status": 429,
        "outcome": "refused",
        "kind": "throttle",
        "retry_after_seconds": 2.0,
        "wait_seconds": 2.5,
        "permission": grant,
        **changes,
    }
    return (
        an_attempt(**fields),
        an_attempt(number=2, reason="throttle", started_seconds=2.75, status=200),
    )


def written(path: Path, events: Iterable[Any]) -> Path:
    """A record on disk."""
    path.write_text("".join(json.dumps(event) + "\n" for event in events), "utf-8")
    return path


def shown(events: Iterable[Any], *, width: int = 80) -> str:
    """What the terminal shows of these events."""
    stream = io.StringIO()
    view, totals = TextView(stream, width=width), Totals()
    for step in steps(events):
        totals.take(step)
        view.take(step)
    view.close(totals)
    return stream.getvalue()
