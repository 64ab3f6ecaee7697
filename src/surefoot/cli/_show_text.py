"""The law of this file: a timeline that reads at 80 columns, in ASCII, without colour.

Colour only where the stream is a terminal, ``NO_COLOR`` is unset and ``TERM`` is not ``dumb``. Each
call is drawn to its own scale: its bar is as wide as the call was long.
"""

from __future__ import annotations

import os
import shutil
import textwrap
from collections.abc import Sequence
from typing import Final, TextIO

from surefoot.sinks import Unreadable

from ._show_calls import Call, Run, RunEnd, Step
from ._show_fields import Fields, fields_in, flag, moment, plain, seconds, text, whole
from ._show_totals import Totals
from ._show_words import (
    NOT_RECORDED,
    Style,
    attempt_words,
    call_facts,
    call_words,
    counted,
    duration,
    endpoint_of,
    may_have_run,
    may_have_run_words,
    name_of,
    repeat_words,
    run_end_words,
)

__all__ = ["TextView", "bar"]

_NARROWEST: Final = 60
_WIDEST: Final = 120
_USUAL: Final = 80
_INDENT: Final = 12
_MOST: Final = 1_000
_WORDS: Final = 27
_CODES: Final[dict[Style, str]] = {
    "": "",
    "bold": "1",
    "dim": "2",
    "good": "32",
    "bad": "31",
    "wait": "33",
}
_LEGEND: Final = "- on the wire  = waiting  o answered  x refused  ! no answer  ? may have run"


class TextView:
    """Writes what is read, as soon as it is whole.

    Args:
        stream: Where to.
        width: Columns; by default those of the terminal, within bounds.
        at_once: Hand each line over at once, for a reader who waits.
    """

    def __init__(self, stream: TextIO, *, width: int | None = None, at_once: bool = False) -> None:
        self._stream = stream
        columns = shutil.get_terminal_size((_USUAL, 24)).columns if width is None else width
        self._width = max(_NARROWEST, min(_WIDEST, columns))
        self._at_once = at_once
        self._runs = 0
        self._lines = 0
        self._coloured = (
            stream.isatty()
            and not os.environ.get("NO_COLOR")
            and os.environ.get("TERM", "") != "dumb"
        )

    def take(self, step: Step) -> None:
        """Show one step."""
        match step:
            case Run():
                self._runs += 1
                self._run(step)
            case Call():
                self._call(step)
            case RunEnd():
                self._line()
                self._wrap(*run_end_words(step), lead="")
            case Unreadable(line=line, why=why):
                self._wrap("bad", f"line {line} cannot be read: {_UNREADABLE[why]}", lead="")
            case _:
                self._event(step)
        if self._at_once:
            self._stream.flush()

    def close(self, totals: Totals) -> None:
        """Show what it all comes to."""
        self._line()
        for style, words in totals.lines():
            self._wrap(style, words, lead="")
        self._stream.flush()

    def _run(self, run: Run) -> None:
        started = run.started
        name = None if started is None else text(started, "name")
        when = NOT_RECORDED if run.began is None else f"{run.began:%Y-%m-%d %H:%M:%S} UTC"
        called = "" if name is None else f' "{plain(name)}"'
        version = None if started is None else text(started, "library")
        by = "" if version is None else f", surefoot {plain(version)}"
        if self._lines:
            self._line()
        if started is None:
            words = f"run {run.label}: its start is {NOT_RECORDED}; first event {when}"
        else:
            words = f"run {run.label}{called}, began {when}{by}"
        self._wrap("bold", words, lead="")
        if self._runs == 1:
            self._wrap("dim", _LEGEND, lead="")

    def _call(self, call: Call) -> None:
        tag = f"{call.run.label} " if self._runs > 1 else ""
        at = call.at
        when = "?" if at is None else f"+{at:.2f} s"
        style, words = call_words(call)
        lead = f"{tag}{when}".rjust(_INDENT - 2) + "  "
        self._line()
        title = f"{name_of(call)}  at {endpoint_of(call)}"
        self._wrap("bold", title, lead=lead)
        self._wrap(style, f"{words}; {call_facts(call)}")
        for request in call.requests:
            self._request(request)
        if may_have_run(call):
            self._wrap("bad", may_have_run_words(call))
        if call.started is not None and call.ended is None:
            self._wrap("dim", f"the end of this call is {NOT_RECORDED}")

    def _request(self, request: Fields) -> None:
        attempts = fields_in(request, "attempts")
        room = self._width - _INDENT - _WORDS - 10
        for index, attempt in enumerate(attempts):
            style, words = attempt_words(attempt)
            words = plain(words, ascii_only=True)
            last = index == len(attempts) - 1
            drawn = bar(request, attempt, room, may=last and flag(request, "may_have_run"))
            number = whole(attempt, "number")
            label = "?" if number is None else str(number)
            lasted = seconds(attempt, "duration_seconds")
            took = "?" if lasted is None else duration(lasted)
            if len(words) > _WORDS - 1:
                self._wrap(style, words, lead=f"{label:>{_INDENT - 2}}  ")
                label, words = "", ""
            self._line(
                ("dim", f"{label:>{_INDENT - 2}}  "),
                (style, words.ljust(_WORDS)),
                ("wait", drawn.ljust(room)),
                ("dim", took.rjust(10)),
            )
            for style, words in repeat_words(attempt):
                self._wrap(style, words)

    def _event(self, event: Fields) -> None:
        kind = text(event, "type") or "?"
        if kind == "sink.failed":
            error, lost = text(event, "error") or "?", whole(event, "dropped")
            many = "events" if lost is None else counted(lost, "event")
            self._wrap("bad", f"a sink failed ({plain(error)}) and lost {many} here", lead="")
            return
        when = moment(event)
        at = "" if when is None else f" at {when:%H:%M:%S}"
        self._wrap("dim", f"an event of a type not known here{at}: {plain(kind)}", lead="")

    def _wrap(self, style: Style, words: str, *, lead: str = " " * _INDENT) -> None:
        """Write a text that may take several lines; the first one begins with ``lead``."""
        words = plain(words, ascii_only=True, most=_MOST)
        lines = textwrap.wrap(
            words, self._width - len(lead), break_on_hyphens=False, subsequent_indent=""
        )
        for number, line in enumerate(lines or [""]):
            self._line(("dim", lead if number == 0 else " " * len(lead)), (style, line))

    def _line(self, *parts: tuple[Style, str]) -> None:
        self._lines += 1
        last = len(parts) - 1
        for index, (style, words) in enumerate(parts):
            shown = words.rstrip() if index == last else words
            code = _CODES[style]
            painted = f"\x1b[{code}m{shown}\x1b[0m" if self._coloured and code and shown else shown
            self._stream.write(painted)
        self._stream.write("\n")


_UNREADABLE: Final = {
    "cut": "it was cut, because its process was killed while it wrote",
    "not-json": "it is no JSON",
    "not-an-event": "it is JSON, but no event of surefoot",
}


def bar(request: Fields, attempt: Fields, room: int, *, may: bool = False) -> str:
    """Draw one attempt and the wait after it on the time that its request took.

    Args:
        request: The record of the request.
        attempt: One of its attempts.
        room: Columns for the whole request.
        may: It may have run.
    """
    begins = seconds(attempt, "started_seconds") or 0.0
    ends = begins + (seconds(attempt, "duration_seconds") or 0.0)
    waits = ends + (seconds(attempt, "wait_seconds") or 0.0)
    whole_time = max(_span(fields_in(request, "attempts")), waits, 1e-9)
    scale = (room - 1) / whole_time
    first, end, after = (min(room - 1, round(time * scale)) for time in (begins, ends, waits))
    mark = "?" if may else _MARKS.get(text(attempt, "outcome") or "", "!")
    if mark == "o" and (whole(attempt, "status") or 200) >= 400:
        mark = "x"
    return " " * first + "-" * (end - first) + mark + "=" * (after - end)


_MARKS: Final = {"answered": "o", "refused": "x"}


def _span(attempts: Sequence[Fields]) -> float:
    """When the last attempt of a request was over, in seconds from its start."""
    if not attempts:
        return 0.0
    last = attempts[-1]
    return (seconds(last, "started_seconds") or 0.0) + (seconds(last, "duration_seconds") or 0.0)
