"""The law of this file: the demo in its order; it asserts nothing and shows what happened.

Whether surefoot kept its word is a value, computed from the gateway's counts.
"""

from __future__ import annotations

import logging
import platform
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any

import anyio

from ._calls import twelve_calls
from ._doors import SDK, load_sdk
from ._run import CLIENTS, Client, Run, run_once, without_proxies
from ._story import Story
from ._summary import print_ending, print_summary
from ._terminal import Terminal
from ._timeline import draw

__all__ = ["Performance", "perform"]

_TITLES: Mapping[Client, str] = {
    "plain": "the plain client",
    "surefoot": "one changed line",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Performance:
    """What the demo showed."""

    seed: int
    runs: tuple[Run, ...]

    @property
    def kept(self) -> bool | None:
        """Whether surefoot kept its word; `None` where it did not run.

        Every call was answered, or said in words that it may have run; no session was lost; money
        was moved as often as it was wanted; no stated wait was cut short.
        """
        protected = [run.counts for run in self.runs if run.client == "surefoot"]
        if not protected:
            return None
        return all(
            counts.answered + counts.unknown == counts.calls
            and counts.sessions_lost == 0
            and counts.payments_made == counts.payments_wanted
            and counts.waits_kept == counts.waits_stated
            for counts in protected
        )

    def as_json(self) -> dict[str, Any]:
        """The numbers, the calls and the evidence as JSON-able values."""
        return {
            "mcp": SDK,
            "seed": self.seed,
            "kept": self.kept,
            "runs": [_as_json(run) for run in self.runs],
        }


def perform(
    clients: Sequence[Client] = CLIENTS, *, seed: int = 0, terminal: Terminal | None = None
) -> Performance:
    """Make the twelve calls once through each client, on an event loop of its own.

    Args:
        clients: which ones, in order.
        seed: for the chance that spreads waits.
        terminal: where it is told while it happens; `None` tells nothing.

    Raises:
        OSError: nothing can listen on loopback.
    """
    runs: list[Run] = []
    with without_proxies(), _quiet():
        if terminal is not None:
            _introduce(terminal)
        load_sdk()
        for place, client in enumerate(clients, 1):
            calls = twelve_calls()
            story = None if terminal is None else Story(terminal, calls)
            if terminal is not None:
                _title(terminal, f"{place} of {len(clients)}: {_TITLES[client]}")
            runs.append(anyio.run(_run, client, seed, story))
            if terminal is not None and runs[-1].evidence:
                _title(terminal, "every attempt and wait of it, to scale")
                draw(terminal, calls, runs[-1].evidence)
    performance = Performance(seed=seed, runs=tuple(runs))
    if terminal is not None:
        _title(terminal, "what came of it")
        print_summary(terminal, runs)
        terminal.gap()
        print_ending(terminal)
    return performance


async def _run(client: Client, seed: int, story: Story | None) -> Run:
    return await run_once(client, seed=seed, show=(lambda _: None) if story is None else story.tell)


def _introduce(terminal: Terminal) -> None:
    terminal.line(("bold", "surefoot demo: twelve tool calls, one difficult gateway"))
    terminal.text(
        "dim",
        f"mcp {SDK} on Python {platform.python_version()}. The gateway is embedded and listens on "
        "127.0.0.1; nothing leaves this machine. The agent calls up to three times, and opens a "
        "new session when the old one died.",
    )


def _title(terminal: Terminal, text: str) -> None:
    terminal.gap()
    terminal.line(("bold", f"== {text} ".ljust(terminal.width, "=")))
    terminal.gap()


@contextmanager
def _quiet() -> Generator[None]:
    """Keep what libraries log off the terminal, unless somebody set logging up to see it."""
    root, silent = logging.getLogger(), logging.NullHandler()
    root.addHandler(silent)
    try:
        yield
    finally:
        root.removeHandler(silent)


def _as_json(run: Run) -> dict[str, Any]:
    counts = run.counts
    return {
        "client": run.client,
        "seconds": round(run.seconds, 3),
        "counts": {
            **asdict(counts),
            "waited_seconds": round(counts.waited_seconds, 3),
            "paid_too_often": counts.paid_too_often,
            "paid_too_seldom": counts.paid_too_seldom,
        },
        "calls": [
            {
                "number": task.call.number,
                "tool": task.call.tool,
                "arguments": dict(task.call.arguments),
                "gateway": task.call.gateway,
                "end": task.end,
                "answer": task.answer,
                "tries": task.tries,
                **asdict(run.sends[task.call.number]),
            }
            for task in run.tasks
        ],
        "happenings": [asdict(happening) for happening in run.happenings],
        "evidence": list(run.evidence),
    }
