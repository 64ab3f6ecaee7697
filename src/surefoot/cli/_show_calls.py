"""The law of this file: events are joined to calls as they come, and memory stays bounded.

A call is shown when it ended. What has no end (its process was killed, or it is still under way) is
shown at the end of the reading, or when too many calls are open.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from surefoot.evidence import Completeness
from surefoot.sinks import Unreadable

from ._show_fields import Fields, moment, seconds, text

__all__ = ["Call", "Run", "RunEnd", "Step", "steps"]

_MOST_OPEN: Final = 10_000


@dataclass(slots=True, kw_only=True)
class Run:
    """One run, as far as it was read."""

    label: str
    """A letter, for the reader of this output."""

    id: str
    started: Fields | None
    began: datetime | None
    """The time from which its calls are counted: its start, or the first event there is."""

    found: Completeness = field(default_factory=Completeness)
    calls: int = 0
    unrecorded: int = 0
    """Calls that began in it, and of which nothing more is there."""

    @property
    def complete(self) -> bool:
        """Whether every event is there, and what became of every call."""
        return self.found.complete and not self.unrecorded


@dataclass(slots=True, kw_only=True)
class Call:
    """One call, or one request that belongs to none."""

    run: Run
    id: str | None
    started: Fields | None = None
    requests: list[Fields] = field(default_factory=list[Fields])
    ended: Fields | None = None
    early: bool = False
    """It is shown before the record says more of it, because too many are open."""

    @property
    def unrecorded(self) -> bool:
        """It began, and what became of it is not there.

        Its process was killed, or its run was closed before its answer came: it may have run.
        """
        known = self.requests or self.ended is not None or self.early
        return self.started is not None and not known

    @property
    def is_call(self) -> bool:
        """Whether it is the use of a tool, as the agent sees it."""
        methods = (text(request, "method") for request in self.requests)
        return bool(self.id) or any(method == "tools/call" for method in methods)

    @property
    def at(self) -> float | None:
        """Seconds from the start of the run at which it began, or ``None``."""
        if self.started is not None:
            began = moment(self.started)
        else:
            began = moment(self.requests[0]) if self.requests else None
        if began is None or self.run.began is None:
            return None
        offset = (began - self.run.began).total_seconds()
        if self.started is None:
            # A request is filed when its answer is closed; it began so much earlier.
            offset -= seconds(self.requests[0], "duration_seconds") or 0.0
        return max(0.0, offset)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunEnd:
    """A run has its end, or reading is over."""

    run: Run
    ended: Fields | None


Step = Run | Call | RunEnd | Unreadable | Fields
"""What a reader is told: a run begins, a call is whole, a run ends, a line cannot be read, or an
event that is neither: a sink that failed, or one of a type that this version does not know."""


class _Joiner:
    """The runs and calls that are open while events go by."""

    def __init__(self) -> None:
        self._runs: dict[str, Run] = {}
        self._calls: OrderedDict[tuple[str, str], Call] = OrderedDict()
        self._labelled = 0

    def take(self, event: Fields) -> Iterator[Step]:
        run_id = text(event, "run") or ""
        run = self._runs.get(run_id)
        if run is None:
            yield (run := self._begin(run_id, event))
            if len(self._runs) > _MOST_OPEN:
                yield from self._end(next(iter(self._runs.values())), None)
        run.found.take(event)
        match text(event, "type"):
            case "run.started" if run.started is event:
                pass
            case "call.started":
                yield from self._open(run, event)
            case "tool.request_attempts":
                yield from self._request(run, event)
            case "call.ended":
                yield from self._close(run, event)
            case "credential.vended":
                pass
            case "run.ended":
                yield from self._end(run, event)
            case _:
                yield event

    def rest(self) -> Iterator[Step]:
        for key in list(self._calls):
            yield self._whole(self._calls.pop(key))
        for run in self._runs.values():
            yield RunEnd(run=run, ended=None)

    def _begin(self, run_id: str, event: Fields) -> Run:
        began = moment(event)
        started = event if text(event, "type") == "run.started" else None
        run = Run(label=_letters(self._labelled), id=run_id, started=started, began=began)
        self._labelled += 1
        self._runs[run_id] = run
        return run

    def _open(self, run: Run, event: Fields) -> Iterator[Step]:
        call_id = text(event, "call") or ""
        key = run.id, call_id
        if key in self._calls:
            yield self._whole(self._calls.pop(key))
        self._calls[key] = Call(run=run, id=call_id, started=event)
        yield from self._bounded()

    def _bounded(self) -> Iterator[Step]:
        """Show the oldest open call before its time, where too many are open."""
        if len(self._calls) > _MOST_OPEN:
            call = self._calls.popitem(last=False)[1]
            call.early = True
            yield self._whole(call)

    def _request(self, run: Run, event: Fields) -> Iterator[Step]:
        call_id = text(event, "call")
        if call_id is None:
            yield self._whole(Call(run=run, id=None, requests=[event]))
            return
        # Where its beginning was lost, or shown early, its end is still to come.
        call = self._calls.setdefault((run.id, call_id), Call(run=run, id=call_id))
        call.requests.append(event)
        yield from self._bounded()

    def _close(self, run: Run, event: Fields) -> Iterator[Step]:
        call_id = text(event, "call") or ""
        call = self._calls.pop((run.id, call_id), None) or Call(run=run, id=call_id)
        call.ended = event
        yield self._whole(call)

    def _end(self, run: Run, event: Fields | None) -> Iterator[Step]:
        for key in [key for key, call in self._calls.items() if call.run is run]:
            yield self._whole(self._calls.pop(key))
        del self._runs[run.id]
        yield RunEnd(run=run, ended=event)

    def _whole(self, call: Call) -> Call:
        call.run.calls += 1
        call.run.unrecorded += call.unrecorded
        return call


def steps(events: Iterable[Fields | Unreadable]) -> Iterator[Step]:
    """Join events to runs and calls, and tell what becomes whole as soon as it does."""
    joiner = _Joiner()
    for event in events:
        if isinstance(event, Unreadable):
            yield event
        else:
            yield from joiner.take(event)
    yield from joiner.rest()


def _letters(number: int) -> str:
    """A to Z, then AA, AB and so on."""
    name = ""
    number += 1
    while number:
        number, digit = divmod(number - 1, 26)
        name = chr(65 + digit) + name
    return name
