"""The law of this file: the numbers of a run are counted from what the gateway wrote down.

From its journal: what reached it, when, and what it answered. From its books: what ran. The agent
adds one thing that only it can know, which texts it holds; each is looked up in the books.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from surefoot.testing import Entry

from ._agent import Task
from ._books import Books
from ._calls import PAYMENTS_WANTED, fingerprint

__all__ = ["Counts", "Sends", "counted", "sends_of"]

_OPENERS = frozenset({"server/discover", "initialize"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Sends:
    """How often one call reached the gateway, and how often its tool ran."""

    sent: int
    ran: int
    paid: int
    """How often money was moved by it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """What came of one run."""

    calls: int
    answered: int
    """Calls of which the agent holds a text that stands in the gateway's books."""

    unknown: int
    """Calls that may have run, said so in words, and were not sent again."""

    lost: int
    """Calls that were given up, however often they were made."""

    sessions_opened: int
    """Sessions that the gateway opened."""

    sessions_lost: int
    """Those of them that did not live to the end of the run."""

    payments_wanted: Mapping[str, int]
    payments_made: Mapping[str, int]
    waits_stated: int
    """Refusals that said how long to wait, and after which the client came back."""

    waits_kept: int
    """Those after which it came back no earlier, on the gateway's clock."""

    waited_seconds: float
    """Seconds between a refusal or a failure and the next attempt of the same call, all in all."""

    tool_calls_received: int
    tokens_seen: int
    """Different tokens that reached the gateway."""

    @property
    def paid_too_often(self) -> int:
        """Payments beyond what was wanted."""
        return sum(
            max(0, self.payments_made[tool] - wanted)
            for tool, wanted in self.payments_wanted.items()
        )

    @property
    def paid_too_seldom(self) -> int:
        """Payments that were wanted and never made."""
        return sum(
            max(0, wanted - self.payments_made[tool])
            for tool, wanted in self.payments_wanted.items()
        )


def sends_of(tasks: Iterable[Task], journal: Sequence[Entry], books: Books) -> dict[int, Sends]:
    """For each call, by its number, what the journal and the books say of it."""
    received = _by_call(journal)
    found: dict[int, Sends] = {}
    for task in tasks:
        entries = received.get(task.call.fingerprint, ())
        call = task.call
        found[call.number] = Sends(
            sent=len(entries),
            ran=sum(entry.ran for entry in entries),
            paid=books.payments(call.tool, call.about),
        )
    return found


def counted(
    tasks: Sequence[Task],
    journal: Sequence[Entry],
    books: Books,
    stated: Mapping[int, float],
    *,
    closed_soundly: bool,
) -> Counts:
    """Count one run.

    Args:
        tasks: the agent's calls, ended.
        journal: the gateway's.
        books: what ran behind it.
        stated: what refusals asked for: seconds by the entry's place in the journal.
        closed_soundly: the last session was closed by the agent, so that it was not lost.
    """
    receipts = {(one.tool, one.about, one.text) for one in books.receipts}
    opened = sum(entry.method in _OPENERS and entry.status == 200 for entry in journal)
    pairs = [pair for entries in _by_call(journal).values() for pair in pairwise(entries)]
    asked = [
        (stated[first.sequence], then.at - first.at)
        for first, then in pairs
        if first.sequence in stated
    ]
    return Counts(
        calls=len(tasks),
        answered=sum((task.call.tool, task.call.about, task.answer) in receipts for task in tasks),
        unknown=sum(task.end == "unknown" for task in tasks),
        lost=sum(task.end == "lost" for task in tasks),
        sessions_opened=opened,
        sessions_lost=opened - (1 if closed_soundly else 0),
        payments_wanted=PAYMENTS_WANTED,
        payments_made={tool: books.payments(tool) for tool in PAYMENTS_WANTED},
        waits_stated=len(asked),
        waits_kept=sum(gap >= seconds for seconds, gap in asked),
        waited_seconds=sum(max(0.0, then.at - _over(first)) for first, then in pairs),
        tool_calls_received=sum(map(len, _by_call(journal).values())),
        tokens_seen=len({entry.header("authorization") for entry in journal}),
    )


def _by_call(journal: Sequence[Entry]) -> dict[str, list[Entry]]:
    found: dict[str, list[Entry]] = {}
    for entry in journal:
        if entry.method == "tools/call":
            found.setdefault(fingerprint(entry.body), []).append(entry)
    return found


def _over(entry: Entry) -> float:
    """When an attempt was over for the gateway; it arrived then, where that is not known."""
    return entry.at if entry.ended_at is None else entry.ended_at
