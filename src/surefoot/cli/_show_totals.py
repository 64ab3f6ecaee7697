"""The law of this file: totals are counters, so that a record of any length fits into memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from surefoot.sinks import Unreadable

from ._show_calls import Call, Run, RunEnd, Step
from ._show_fields import fields_in, flag, text, whole
from ._show_words import (
    Style,
    counted,
    duration,
    grant_words,
    may_have_run,
    name_of,
    repeat_grants,
    waited,
)

__all__ = ["Totals"]

_MOST_NAMES: Final = 10


@dataclass(slots=True)
class Totals:
    """What a whole record comes to."""

    runs: int = 0
    calls: int = 0
    others: int = 0
    """Requests that are no calls, such as ``tools/list``."""
    attempts: int = 0
    waited_seconds: float = 0.0
    throttled: int = 0
    """Calls and requests of which an attempt was refused as too fast."""
    answered: int = 0
    failed: int = 0
    """Those that ended in anything but an answer below 400, or whose tool said that it failed."""
    may_have_run: int = 0
    may_have_run_names: list[str] = field(default_factory=list[str])
    throttled_names: list[str] = field(default_factory=list[str])
    permitted: Counter[tuple[str, str | None]] = field(
        default_factory=Counter[tuple[str, str | None]]
    )
    hook_failures: int = 0
    scrubbed_hits: int = 0
    unsearched: int = 0
    """Attempts that carried a secret too short to be searched for in their answer."""
    missing: int = 0
    dropped: int = 0
    unended_runs: int = 0
    unrecorded: int = 0
    """Calls that began, and of which nothing more is there."""
    unreadable: Counter[str] = field(default_factory=Counter[str])
    unknown: Counter[str] = field(default_factory=Counter[str])

    @property
    def complete(self) -> bool:
        """Whether everything that was recorded is there and could be read."""
        return not (self.missing or self.unended_runs or self.unreadable or self.unrecorded)

    def take(self, step: Step) -> None:
        """Count one step."""
        match step:
            case Run():
                self.runs += 1
            case Call():
                self._call(step)
            case RunEnd(run=run, ended=ended):
                self.unended_runs += ended is None
                self.missing += run.found.missing
                self.dropped += run.found.dropped
            case Unreadable(why=why):
                self.unreadable[why] += 1
            case _:
                kind = text(step, "type") or "?"
                if kind != "sink.failed" and (kind in self.unknown or len(self.unknown) < 100):
                    self.unknown[kind] += 1

    def _call(self, call: Call) -> None:
        if call.early and not call.requests:
            return  # it counts when the rest of it comes by
        self.calls += call.is_call
        self.others += not call.is_call
        self.waited_seconds += waited(call)
        throttled = False
        for request in call.requests:
            self.hook_failures += whole(request, "hook_failures") or 0
            for attempt in fields_in(request, "attempts"):
                self.attempts += 1
                throttled = throttled or text(attempt, "kind") == "throttle"
                self.scrubbed_hits += whole(attempt, "scrubbed_hits") or 0
                self.unsearched += bool(whole(attempt, "unsearched_secrets"))
                for grant in repeat_grants(attempt):
                    self.permitted[text(grant, "by") or "?", text(grant, "assumes")] += 1
        if throttled:
            self.throttled += 1
            if len(self.throttled_names) < _MOST_NAMES:
                self.throttled_names.append(name_of(call))
        last = call.requests[-1] if call.requests else None
        status = None if last is None else whole(last, "status")
        good = last is not None and text(last, "ended") == "answered" and (status or 200) < 400
        failed = call.ended is not None and flag(call.ended, "is_error")
        self.answered += good and not failed
        self.unrecorded += call.unrecorded
        self.failed += (not good or failed) and not call.unrecorded
        if may_have_run(call):
            self.may_have_run += 1
            if len(self.may_have_run_names) < _MOST_NAMES:
                self.may_have_run_names.append(name_of(call))

    def lines(self) -> list[tuple[Style, str]]:
        """The totals in words, the important ones first."""
        return [*self._what_happened(), *self._what_is_missing()]

    def _what_happened(self) -> list[tuple[Style, str]]:
        others = f" and {counted(self.others, 'other request')}" if self.others else ""
        size = f"{counted(self.calls, 'call')}{others} in {counted(self.runs, 'run')}"
        ends = f"{self.answered} answered, {self.failed} failed"
        if self.unrecorded:
            ends += f", {self.unrecorded} not recorded"
        slow = f"{self.throttled} throttled"
        if self.throttled:
            slow += f" ({_listed(self.throttled_names, self.throttled)})"
        lines: list[tuple[Style, str]] = [
            ("bold", f"{size}, {counted(self.attempts, 'attempt')}: {ends}"),
            (
                "wait" if self.throttled else "",
                f"{slow}; waited {duration(self.waited_seconds)} in all",
            ),
        ]
        for (by, assumes), count in sorted(self.permitted.items(), key=str):
            words = grant_words(by, assumes)
            lines.append(("wait" if assumes else "", f"{counted(count, 'repeat')} {words}"))
        if self.may_have_run:
            names = _listed(self.may_have_run_names, self.may_have_run)
            lines.append(("bad", f"MAY HAVE RUN without a result: {names}"))
        elif self.complete:
            lines.append(("good", "no call may have run without a result"))
        else:
            lines.append(("", "of what is recorded, no call may have run without a result"))
        if self.scrubbed_hits:
            lines.append(("bad", f"a secret in an answer was replaced {self.scrubbed_hits} times"))
        if self.unsearched:
            where = counted(self.unsearched, "answer")
            lines.append(("bad", f"a secret too short to search for was not sought in {where}"))
        if self.hook_failures:
            lines.append(("bad", f"on_retry failed {self.hook_failures} times"))
        return lines

    def _what_is_missing(self) -> list[tuple[Style, str]]:
        lines: list[tuple[Style, str]] = []
        if self.missing:
            lost = f" ({self.dropped} lost by a sink)" if self.dropped else ""
            lines.append(("bad", f"NOT RECORDED: {counted(self.missing, 'event')} missing{lost}"))
        if self.unended_runs:
            ends = f"the end of {counted(self.unended_runs, 'run')}"
            how = "still under way, or the process was killed"
            lines.append(("bad", f"NOT RECORDED: {ends}: {how}"))
        if self.unrecorded:
            what = f"what became of {counted(self.unrecorded, 'call')}"
            lines.append(("bad", f"NOT RECORDED: {what}: {_UNRECORDED}"))
        for why, count in sorted(self.unreadable.items()):
            lines.append(("bad", f"{counted(count, 'line')} {_UNREADABLE[why]}"))
        for kind, count in sorted(self.unknown.items()):
            lines.append(("dim", f"{counted(count, 'event')} of a type not known here: {kind!a}"))
        if self.complete:
            lines.append(("good", "the record is complete"))
        return lines

    def as_json(self) -> dict[str, Any]:
        """The totals as JSON-able values."""
        return {
            "type": "totals",
            "runs": self.runs,
            "calls": self.calls,
            "other_requests": self.others,
            "attempts": self.attempts,
            "answered": self.answered,
            "failed": self.failed,
            "throttled": self.throttled,
            "waited_seconds": round(self.waited_seconds, 6),
            "may_have_run": self.may_have_run,
            "permitted": [
                {"by": by, "assumes": assumes, "repeats": count}
                for (by, assumes), count in sorted(self.permitted.items(), key=str)
            ],
            "scrubbed_hits": self.scrubbed_hits,
            "unsearched_answers": self.unsearched,
            "hook_failures": self.hook_failures,
            "complete": self.complete,
            "missing": self.missing,
            "dropped": self.dropped,
            "unended_runs": self.unended_runs,
            "unrecorded_calls": self.unrecorded,
            "unreadable_lines": dict(self.unreadable),
            "unknown_events": dict(self.unknown),
        }


def _listed(names: Sequence[str], count: int) -> str:
    """The first names, each once, and how many more there are."""
    known = Counter(names)
    told = ", ".join(name if many == 1 else f"{name} x{many}" for name, many in known.items())
    more = count - len(names)
    return f"{told} and {more} more" if more else told


_UNRECORDED: Final = "in flight when its run was closed, or its process killed"

_UNREADABLE: Final = {
    "cut": "cut in the middle: its process was killed while it wrote",
    "not-json": "of the file not JSON",
    "not-an-event": "of the file JSON, but no event of surefoot",
}
