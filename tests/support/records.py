"""The law of this file: records for tests are whole; a test names only what it is about."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import jsonschema

from surefoot.evidence import Attempt, Ledger, RequestAttempts, RunStarted, event_schema_text

__all__ = ["DIGEST", "NOON", "SCHEMA", "Kept", "a_request", "an_attempt", "filed", "validator"]

NOON = datetime(2026, 11, 30, 12, 0, 0, 5, tzinfo=UTC)
DIGEST = "0f" * 32
SCHEMA: dict[str, Any] = json.loads(event_schema_text())

validator: Any = jsonschema.Draft202012Validator(SCHEMA)


def an_attempt(**changes: Any) -> Attempt:
    """A first attempt that was answered, but for what the test changes."""
    fields: dict[str, Any] = {
        "number": 1,
        "outcome": "answered",
        "effect": "unknown",
        "reason": "first",
        "started_seconds": 0.0,
        "duration_seconds": 0.25,
        **changes,
    }
    return Attempt(**fields)


def a_request(**changes: Any) -> RequestAttempts:
    """A tool call that was answered at once, but for what the test changes."""
    fields: dict[str, Any] = {
        "method": "tools/call",
        "endpoint": "billing",
        "attempts": (),
        "ended": "answered",
        "why": "final-answer",
        **changes,
    }
    return RequestAttempts(**fields)


class Kept:
    """A sink that keeps events at once, and can be told to raise."""

    never_stalls = True

    def __init__(self) -> None:
        self.events: list[dict[str, Any]] = []
        self.broken = False

    def emit(self, event: Mapping[str, Any], /) -> None:
        if self.broken:
            raise OSError(28, "a text that stays here")
        self.events.append(dict(event))

    def types(self) -> list[str]:
        return [event["type"] for event in self.events]


def filed(*entries: Any) -> list[dict[str, Any]]:
    """What a sink gets when these are filed, the run's own events around them."""
    sink = Kept()
    ledger = Ledger(sink, run="r1", now=lambda: NOON, start=RunStarted(name="turn"))
    ledger.begin()
    for entry in entries:
        ledger.file(entry)
    ledger.close()
    return sink.events
