"""The law of this file: the page of compatibility is made from results alone, the same each time.

What a run saw is kept in `results.json`, without times and addresses; the page is rendered from it,
and a test holds the two together.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from clients.cells import CELLS
from clients.roster import ROSTER
from surefoot.wire import is_sentence

__all__ = ["PAGE", "RESULTS", "rendered", "write"]

ROOT: Final = Path(__file__).resolve().parents[2]
RESULTS: Final = Path(__file__).parent / "results.json"
PAGE: Final = ROOT / "docs" / "reference" / "compatibility.md"

_FLEETING: Final = frozenset({"seconds", "start", "client"})
_TIMED_OUT: Final = re.compile("tools/call' timed out|Timed out while waiting")
_OWN: Final = ("charged 1", "refunded W-7712")

_TOP: Final = """\
# Clients

Nine clients, each in an environment of its own, against the same difficult gateway: one call meets
a fault while another is in flight, and a later call follows on the same session. `make compat`
drives them all and writes this page from what it saw; `make check-clients` drives four cells of
each. The line that adopts surefoot is in [use it with a framework](../how-to/frameworks.md).

| client | version | with `mcp` | its own retries |
|---|---|---|---|
"""

_WITH: Final = """
With surefoot every cell holds: the call in flight is answered, so is a later call on the same
session, nothing is raised or hangs, and the run holds one record for each call.

| word | the caller of the spoilt call reads |
|---|---|
| answered | the tool's own answer |
| told | one of the [sentences](sentences.md): what happened, whether it may have run, what to do |
| timed out | the client's own words for the end of its patience |
| error | some other error, in the client's words |
| wrong | one of two contradicting answers, as if it were sound |

## With surefoot

"""

_OWN_AFFAIR: Final = """
## What stays the client's own

When a client's own patience ends, nobody asks surefoot any more: the words are the client's, and do
not say that the call may have run. The next call of a tool that makes changes is told so all the
same. Give the Gateway less time than the client has, `retry=Retry(max_elapsed=...)`, and the call
ends in our words on all nine. What each says without that, and without a hook of
`surefoot.integrations`:

| client | what it says | where, in the version above |
|---|---|---|
"""

_RESUMED: Final = """
"Answered" beside "told", where a stream is cut after an event with an id: with sessions the client
comes back for the answer, and the tool still ran once.
"""

_WITHOUT: Final = """
## Without it

The same clients as they come. "Raised" means that the error ended the run of the agent, and the
model read nothing; "neighbour lost" that the call in flight got no answer; "session lost" that a
later call failed.

"""


def write(told: Iterable[tuple[Mapping[str, Any], Sequence[Mapping[str, Any]]]]) -> list[str]:
    """Keep the results of some clients beside those of the others, and write the page.

    Returns:
        The clients that some cell is missing of; the page is then left as it was.
    """
    known: list[dict[str, Any]] = json.loads(RESULTS.read_text("utf-8")) if RESULTS.exists() else []
    kept = {str(one["client"]): one for one in known}
    for head, rows in told:
        cells = [{name: row[name] for name in row if name not in _FLEETING} for row in rows]
        names = ("client", "version", "mcp", "line")
        kept[str(head["client"])] = {**{name: head[name] for name in names}, "cells": cells}
    ordered = [kept[client.key] for client in ROSTER if client.key in kept]
    RESULTS.write_text(json.dumps(ordered, indent=1, ensure_ascii=False) + "\n", "utf-8")
    wanted = {cell.key for cell in CELLS}
    seen = {one["client"]: {row["cell"] for row in one["cells"]} for one in ordered}
    missing = [client.key for client in ROSTER if not wanted <= seen.get(client.key, set())]
    if not missing:
        PAGE.write_text(rendered(ordered), "utf-8")
    return missing


def rendered(kept: Sequence[Mapping[str, Any]]) -> str:
    """The page."""
    seen = {str(one["client"]): one for one in kept}
    rows = [
        f"| {one.title} | {seen[one.key]['version']} | {seen[one.key]['mcp']} | {one.retries} |\n"
        for one in ROSTER
    ]
    return (
        _TOP
        + "".join(rows)
        + _WITH
        + _matrix(seen, with_surefoot=True)
        + _payments(seen, with_surefoot=True)
        + _OWN_AFFAIR
        + "".join(
            f"| {one.title} | {one.says} | `{one.where[0]}:{seen[one.key]['line']}` |\n"
            for one in ROSTER
        )
        + _RESUMED
        + _WITHOUT
        + _matrix(seen, with_surefoot=False)
        + _payments(seen, with_surefoot=False)
    )


def _matrix(seen: Mapping[str, Mapping[str, Any]], *, with_surefoot: bool) -> str:
    """One table: a row for each client, a column for each fault would be too wide; so turned."""
    lines = [
        "| fault | " + " | ".join(one.title for one in ROSTER) + " |\n",
        "|---" * (len(ROSTER) + 1) + "|\n",
    ]
    for cell in CELLS:
        if cell.max_elapsed is not None and not with_surefoot:
            continue  # it is about an option of ours
        words = [_words(_row(seen[one.key], cell.key, with_surefoot)) for one in ROSTER]
        lines.append(f"| {cell.title} | " + " | ".join(words) + " |\n")
    return "".join(lines)


def _payments(seen: Mapping[str, Mapping[str, Any]], *, with_surefoot: bool) -> str:
    """How often the payments ran, by the server's count."""
    cells = [cell for cell in CELLS if cell.tool == "refund"]
    lines = [
        "\nHow often the payment ran, by the server's own count"
        + (":\n\n" if with_surefoot else ". Where a session is lost, nobody can repeat it:\n\n"),
        "| payment | " + " | ".join(one.title for one in ROSTER) + " |\n",
        "|---" * (len(ROSTER) + 1) + "|\n",
    ]
    for cell in cells:
        runs = [_row(seen[one.key], cell.key, with_surefoot)["executions"] for one in ROSTER]
        lines.append(f"| {cell.title} | " + " | ".join(str(count) for count in runs) + " |\n")
    return "".join(lines)


def _row(one: Mapping[str, Any], cell: str, with_surefoot: bool) -> Mapping[str, Any]:  # noqa: FBT001
    for row in one["cells"]:
        if row["cell"] == cell and row["surefoot"] is with_surefoot:
            return row
    raise KeyError(f"{one['client']}, {cell}")


def _words(row: Mapping[str, Any]) -> str:
    """What came of the call, and of the others if they were lost."""
    word = _read([str(text) for text in row["read"]])
    raised = [str(text) for text in row["raised"]]
    if row["hung"]:
        return "hangs"
    if word == "nothing" and raised:
        word = "raised"
    elif any(text.startswith("run:") for text in raised):
        word += ", then raised"
    lost = [
        name for name, kept in (("neighbour", "neighbour"), ("session", "later")) if not row[kept]
    ]
    return f"{word}; {' and '.join(lost)} lost" if lost else word


def _read(texts: Sequence[str]) -> str:
    """One word for what was read last."""
    if not texts:
        return "nothing"
    text = texts[-1]
    if text in _OWN:
        return "answered"
    if text == "another answer":
        return "wrong"
    if _told(text):
        return "told"
    return "timed out" if _TIMED_OUT.search(text) else "error"


def _told(text: str) -> bool:
    """Whether one of our sentences is in a text, whatever a client puts around it."""
    return any(
        is_sentence(text[start:end])
        for start in range(len(text))
        if text[start : start + 2] in {"Th", "No"}
        for end in range(len(text), start, -1)
        if text[end - 1] == "."
    )
