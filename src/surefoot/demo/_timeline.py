"""The law of this file: each attempt and each wait is drawn to one scale, from the evidence alone.

The evidence says who permitted each repeat and what that takes for granted; so does this.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final

from ._calls import Call
from ._terminal import Terminal

__all__ = ["bar", "draw"]

_LABEL: Final = 26
_NOTE: Final = 24
_WIDE: Final = 72
"""From this many columns on there is room for a note beside each bar."""

_ACCEPTED: Final = range(200, 300)

_LEGEND: Final = "- under way  = waiting  x refused  ! no answer  ? may have run  o answered"


def draw(terminal: Terminal, calls: Sequence[Call], evidence: Sequence[Mapping[str, Any]]) -> None:
    """Print the timeline of a run's tool calls.

    Args:
        terminal: where.
        calls: the table, for the names of the calls.
        evidence: the events that were filed.
    """
    by_print = {call.fingerprint: call for call in calls}
    records = [
        (call, event)
        for event in evidence
        if event["type"] == "tool.request_attempts" and event["method"] == "tools/call"
        if (call := by_print.get(f"{event['tool']}:{event['request']['sha256']}")) is not None
    ]
    records.sort(key=lambda record: record[0].number)
    note = _NOTE if terminal.width >= _WIDE else 0
    width = terminal.width - _LABEL - note - 2
    longest = max((float(event["duration_seconds"]) for _, event in records), default=0.0)
    scale = max(longest, 0.001) / width
    right = f"{longest:.2f} s"
    terminal.line(("dim", " " * _LABEL + " 0 s" + right.rjust(width - 3)))
    for call, event in records:
        label = f"{call.number:>3}  {call.label}"[:_LABEL].ljust(_LABEL)
        beside = f" {_note(event)}" if note else ""
        terminal.line(label, " ", ("wait", bar(event, scale).ljust(width)), ("dim", beside))
    terminal.gap()
    terminal.text("dim", _LEGEND, indent=2)
    for line in _permissions(event for _, event in records):
        terminal.text("", line, indent=2)


def bar(event: Mapping[str, Any], scale: float) -> str:
    """The attempts and waits of one request, `scale` seconds to a column."""
    cells: list[str] = []
    attempts: Sequence[Mapping[str, Any]] = event["attempts"]
    for attempt in attempts:
        begins = round(float(attempt["started_seconds"]) / scale)
        ends = round((attempt["started_seconds"] + attempt["duration_seconds"]) / scale)
        cells += "=" * (begins - len(cells))
        cells += "-" * (ends - len(cells) - 1)
        cells.append(_mark(attempt, event, last=attempt is attempts[-1]))
    return "".join(cells)


def _mark(attempt: Mapping[str, Any], event: Mapping[str, Any], *, last: bool) -> str:
    if last and event["may_have_run"]:
        return "?"
    if attempt["outcome"] == "answered":
        return "o" if attempt["status"] in _ACCEPTED else "x"
    return "x" if attempt["outcome"] == "refused" else "!"


def _note(event: Mapping[str, Any]) -> str:
    waited = float(event["waited_seconds"])
    attempts: Sequence[Mapping[str, Any]] = event["attempts"]
    asked = [one["retry_after_seconds"] for one in attempts if one["retry_after_seconds"]]
    if waited and asked:
        return f"{waited:.2f} s, asked {sum(asked):.2f}"
    if waited:
        waits = sum(1 for one in attempts if one["wait_seconds"])
        return f"{waited:.2f} s" + (f" in {waits} waits" if waits > 1 else "")
    if event["may_have_run"]:
        return "may have run"
    status = event["status"]
    return "" if status in _ACCEPTED and len(attempts) == 1 else _statuses(attempts)


def _statuses(attempts: Sequence[Mapping[str, Any]]) -> str:
    return ", then ".join(str(one["status"] or one["outcome"]) for one in attempts)


def _permissions(events: Any) -> list[str]:
    """Who permitted how many repeats, and what that takes for granted."""
    granted: Counter[tuple[str, str | None]] = Counter()
    for event in events:
        for attempt in event["attempts"]:
            if (grant := attempt["permission"]) is not None:
                granted[grant["by"], grant["assumes"]] += 1
    return [
        f"{count} repeat{'s' if count > 1 else ''} by {_WHO.get(by, by)}"
        + (f", assuming {assumes}" if assumes else ", assuming nothing")
        for (by, assumes), count in sorted(granted.items(), key=str)
    ]


_WHO: Final = {"app": "the app's own declaration", "policy": "the default policy"}
