"""The law of this file: the two runs stand side by side, in numbers that the gateway counted."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from ._agent import Task
from ._calls import Call
from ._counts import Counts
from ._declaration import PRINTED
from ._doors import lines_to_change
from ._run import Run
from ._terminal import Style, Terminal

__all__ = ["print_ending", "print_summary"]

_CALL: Final = 26
_GATEWAY: Final = 26
_CELL: Final = 14


def print_summary(terminal: Terminal, runs: Sequence[Run]) -> None:
    """Print what came of each call, and the totals."""
    wide = terminal.width >= _CALL + _CELL * len(runs) + _GATEWAY
    head = " " * _CALL + ("the gateway".ljust(_GATEWAY) if wide else "")
    terminal.line(("dim", head + "".join(run.client.ljust(_CELL) for run in runs)))
    for place, task in enumerate(runs[0].tasks):
        call = task.call
        cells = [_cell(*_ended(run.tasks[place], run)) for run in runs]
        terminal.line(
            f"{call.number:>3}  {call.label}"[: _CALL - 1].ljust(_CALL),
            ("dim", call.gateway.ljust(_GATEWAY) if wide else ""),
            *cells,
        )
    terminal.gap()
    for label, cell in _TOTALS:
        values = [_cell(*cell(run.counts)) for run in runs]
        terminal.line(
            f"  {label}".ljust(_CALL + (_GATEWAY if wide else 0)),
            *values,
        )
    terminal.line(
        "  seconds in all".ljust(_CALL + (_GATEWAY if wide else 0)),
        *(f"{run.seconds:.1f}".ljust(_CELL) for run in runs),
    )
    terminal.gap()
    for task in runs[0].tasks:
        if task.call.settles is not None:
            _settled(terminal, runs, task.call)
    terminal.text(
        "dim",
        "Counted by the gateway: its journal of what came and went, its books of what ran. "
        "2x: the tool ran twice to bring that answer; it only reads.",
        indent=2,
    )


def print_ending(terminal: Terminal) -> None:
    """Print the line that changes in the reader's own program, and where to read on."""
    was, becomes = lines_to_change()
    terminal.line(("bold", "Declared once, for the server; this is what the demo declares:"))
    terminal.gap()
    for line in PRINTED.splitlines():
        terminal.code("", f"    {line}")
    terminal.gap()
    terminal.line(("bold", "And the one line in your own program:"))
    terminal.gap()
    terminal.code("bad", f"  - {was}")
    terminal.code("good", f"  + {becomes}")
    terminal.gap()
    terminal.text(
        "",
        "Frameworks and HTTP clients have doors of their own. Read on: README.md, or "
        "python -m pydoc surefoot.gateway",
    )


def _settled(terminal: Terminal, runs: Sequence[Run], call: Call) -> None:
    """What a call that only reads found out about one that may have run."""
    found = [
        f"{run.client}: {task.answer or 'no answer'}"
        for run in runs
        for task in run.tasks
        if task.call.number == call.number
    ]
    words = f"What call {call.number} found out about call {call.settles}: {'; '.join(found)}."
    terminal.text("", words, indent=2)


def _ended(task: Task, run: Run) -> tuple[Style, str]:
    """What came of one call, in one cell."""
    sends = run.sends[task.call.number]
    if sends.paid > 1:
        return "bad", "DONE TWICE" if sends.paid == 2 else f"DONE {sends.paid}X"
    match task.end:
        case "answered":
            return "good", "answered" + (f", {sends.ran}x" if sends.ran > 1 else "")
        case "unknown":
            return "wait", "may have run"
        case _:
            return "bad", "LOST"


def _cell(style: Style, text: str) -> tuple[Style, str]:
    return style, text.ljust(_CELL)


def _of(good: bool, text: str) -> tuple[Style, str]:  # noqa: FBT001 - one cell: how it looks, and what it says
    return ("good" if good else "bad"), text


_TOTALS: Final[Sequence[tuple[str, Callable[[Counts], tuple[Style, str]]]]] = (
    (
        "calls answered",
        lambda c: _of(c.answered + c.unknown == c.calls, f"{c.answered} of {c.calls}"),
    ),
    ("said: it may have run", lambda c: ("", str(c.unknown))),
    ("calls lost", lambda c: _of(c.lost == 0, str(c.lost))),
    ("sessions lost", lambda c: _of(c.sessions_lost == 0, str(c.sessions_lost))),
    ("payments wanted", lambda c: ("", str(sum(c.payments_wanted.values())))),
    ("... made once too often", lambda c: _of(c.paid_too_often == 0, str(c.paid_too_often))),
    ("... never made", lambda c: _of(c.paid_too_seldom == 0, str(c.paid_too_seldom))),
    (
        "stated waits kept",
        lambda c: _of(c.waits_kept == c.waits_stated, f"{c.waits_kept} of {c.waits_stated}"),
    ),
    ("seconds between attempts", lambda c: ("", f"{c.waited_seconds:.1f}")),
    ("tokens used", lambda c: ("", str(c.tokens_seen))),
)
