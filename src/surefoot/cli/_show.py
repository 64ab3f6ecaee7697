"""The law of this file: `surefoot show` reads a record, says all of it, and says what is missing.

It streams: the first call is on the terminal before the last one is read.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from tempfile import mkstemp
from typing import BinaryIO, Final, Protocol

from surefoot.evidence import Event
from surefoot.sinks import Unreadable, read_events

from ._exit_codes import FAILED, INCOMPLETE, OK, USAGE
from ._show_calls import Step, steps
from ._show_html import HtmlView
from ._show_json import JsonView
from ._show_source import followed, lines_of
from ._show_text import TextView
from ._show_totals import Totals
from ._show_words import counted

__all__ = ["run"]

_PROOF: Final = 20
"""Lines after which a file without any event is called foreign."""


class _View(Protocol):
    def take(self, step: Step) -> None: ...
    def close(self, totals: Totals) -> None: ...


class _NoRecordError(Exception):
    """The file holds nothing that can be shown; the message says why."""


def run(argv: Sequence[str]) -> int:
    """Show a record; `INCOMPLETE` if something is missing in it."""
    asked = _parser().parse_args(argv)
    if asked.html is not None and (asked.follow or asked.json):
        return _mistake("--html writes a page of a whole record; leave out --follow and --json")
    if asked.follow and asked.file == "-":
        return _mistake("--follow needs a file; standard input is read as it comes anyway")
    try:
        if asked.html is not None:
            return _page(asked.file, Path(asked.html))
        at_once = asked.follow or asked.file == "-"
        kind = JsonView if asked.json else TextView
        view: _View = kind(sys.stdout, at_once=at_once)
        if asked.follow:
            return _follow(Path(asked.file), view)
        with _opened(asked.file) as file:
            return _code(_show(_found(read_events(lines_of(file)), asked.file), view))
    except _NoRecordError as error:
        print(f"surefoot show: {error}", file=sys.stderr)
        return FAILED


def _show(events: Iterable[Event | Unreadable], view: _View) -> Totals:
    totals = Totals()
    for step in steps(events):
        totals.take(step)
        view.take(step)
    view.close(totals)
    return totals


def _code(totals: Totals) -> int:
    return OK if totals.complete else INCOMPLETE


def _follow(path: Path, view: _View) -> int:
    """Show what is there and what comes, until Ctrl-C, which is how this ends."""
    totals = Totals()
    if not path.exists():
        print(f"surefoot show: waiting for {path}", file=sys.stderr)
    try:
        lines = (line for line in followed(path) if line is not None)
        for step in steps(read_events(lines)):
            totals.take(step)
            view.take(step)
    except KeyboardInterrupt:
        view.close(totals)
    return OK


def _page(file: str, target: Path) -> int:
    """Write the page beside its place and then put it there: nobody reads half of one."""
    with _opened(file) as source:
        events = _found(read_events(lines_of(source)), file)
        try:
            handle, name = mkstemp(dir=target.parent, prefix=f".{target.name}.")
        except OSError as error:  # it names a file that nobody asked for
            raise OSError(error.errno, error.strerror, str(target)) from None
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as page:
                totals = _show(events, HtmlView(page))
            Path(name).replace(target)
        except BaseException:
            Path(name).unlink()
            raise
    calls = counted(totals.calls, "call")
    state = "" if totals.complete else "; the record is not complete"
    print(f"{calls} written to {target}{state}")
    return _code(totals)


def _opened(file: str) -> BinaryIO:
    return sys.stdin.buffer if file == "-" else Path(file).open("rb")


def _found(events: Iterator[Event | Unreadable], file: str) -> Iterator[Event | Unreadable]:
    """The same events, once it is clear that there are some.

    Raises:
        _NoRecordError: the file is empty, cut before its first event ends, or somebody else's.
    """
    name = "standard input" if file == "-" else file
    before: list[Event | Unreadable] = []
    for event in events:
        before.append(event)
        if isinstance(event, dict):
            return chain(before, events)
        if len(before) >= _PROOF:
            break
    first = before[0] if before else None
    if not isinstance(first, Unreadable):
        msg = f"{name} is empty: nothing was recorded"
        raise _NoRecordError(msg)
    if first.why == "cut" and len(before) == 1:
        msg = f"{name} holds no whole event: it was cut while the first one was written"
        raise _NoRecordError(msg)
    is_json = "JSON, but no event" if first.why == "not-an-event" else "not JSON"
    msg = f"{name} is no record of surefoot: line {first.line} is {is_json}"
    raise _NoRecordError(msg)


def _mistake(words: str) -> int:
    print(f"surefoot show: {words}", file=sys.stderr)
    return USAGE


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="surefoot show",
        description=(
            "The timeline of a recorded run: every call, every attempt and wait, who permitted "
            "each repeat and under which assumption, and what may have run."
        ),
        epilog=(
            "Exit codes: 0 shown and complete, 1 there is no record to show, 2 wrong usage, "
            "3 shown, and something is missing in it. Record a run with surefoot.record(PATH)."
        ),
        allow_abbrev=False,
    )
    parser.add_argument("file", metavar="RUN.jsonl", help="the record, or - for standard input")
    parser.add_argument("--json", action="store_true", help="a JSON object for each call instead")
    parser.add_argument(
        "--follow", action="store_true", help="go on showing what is added, until Ctrl-C"
    )
    parser.add_argument(
        "--html", metavar="FILE", help="write one page that needs no network, instead"
    )
    return parser
