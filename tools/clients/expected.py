"""The law of this file: what every cell must come to is one table; a difference is a failure.

With surefoot each fault is one call's affair: the table says what that call's caller reads, how
often the request went out and how often the tool ran. Everywhere the call in flight beside it is
answered, a later call on the same session is, too, nothing is raised, and the run holds a record.
What a client does in its own way stands in `OTHERWISE`, with the reason; `|` is "or".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from surefoot.wire import sentence

__all__ = ["EXPECTED", "OTHERWISE", "Expected", "judged", "wrong_cells"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """What one cell comes to with surefoot."""

    reads: tuple[str, ...]
    """What the caller reads holds these, one after the other; one for each time it called."""
    runs: int
    sends: int = 1
    records: tuple[tuple[str, ...], ...]
    """The outcomes of the attempts, for each record of the run."""


_NO_ANSWER: Final = sentence("no-answer")
_CUT: Final = sentence("cut-stream")
_FENCED: Final = (sentence("fenced"),) * 3
_NEVER: Final = ((),) * 3
"""The records of three calls that were never sent."""
_UNANSWERED: Final = (("unanswered",),)
_ANSWERED: Final = (("answered",),)
_ONCE: Final = Expected(reads=(_NO_ANSWER, *_FENCED), runs=1, records=(*_NEVER, ("unanswered",)))
_WAITED: Final = Expected(reads=("charged 1",), runs=1, sends=2, records=(("refused", "answered"),))

EXPECTED: Final[Mapping[str, Expected]] = {
    "429": _WAITED,
    "429-always": Expected(
        reads=(sentence("rate-limited", status=429, attempts=2, retry_after=0),),
        runs=0,
        sends=2,
        records=(("refused", "refused"),),
    ),
    "401": Expected(reads=("charged 1",), runs=1, sends=2, records=(("answered", "answered"),)),
    "403": Expected(reads=(sentence("forbidden", status=403),), runs=0, records=_ANSWERED),
    "500": Expected(reads=(sentence("server-failure", status=500),), runs=0, records=_ANSWERED),
    "reset-before": Expected(reads=(_NO_ANSWER,), runs=0, records=_UNANSWERED),
    "reset-after": Expected(reads=(_NO_ANSWER,), runs=1, records=_UNANSWERED),
    "sse-cut": Expected(reads=(_CUT,), runs=1, records=_ANSWERED),
    "sse-cut-id": Expected(reads=(_CUT,), runs=1, records=_ANSWERED),
    "slow": Expected(reads=("timed out",), runs=1, records=(("cut",),)),
    "slow-ours": Expected(reads=(sentence("deadline"),), runs=1, records=(("cut",),)),
    "unreadable": Expected(reads=(sentence("unreadable"),), runs=1, records=_ANSWERED),
    "payment": _ONCE,
    "payment-slow": replace(_ONCE, reads=("timed out", *_FENCED), records=(*_NEVER, ("cut",))),
    "payment-again": _ONCE,
    "sessions-429": _WAITED,
    "sessions-reset": Expected(reads=(_NO_ANSWER,), runs=1, records=_UNANSWERED),
    "sessions-resume": replace(_ONCE, reads=(_CUT, *_FENCED), records=(*_NEVER, ("answered",))),
}

_DEADLINE: Final = sentence("deadline")
_TOLD_LATE: Final = replace(EXPECTED["slow"], reads=(_DEADLINE,))
_TOLD_LATE_ONCE: Final = replace(EXPECTED["payment-slow"], reads=(_DEADLINE, *_FENCED))

OTHERWISE: Final[Mapping[tuple[str, str], Expected]] = {
    # Where there are sessions the client comes back for the answer.
    **{
        (key, "sse-cut-id"): replace(EXPECTED["sse-cut-id"], reads=("charged 1",))
        for key in ("mcp1", "langchain", "adk")
    },
    # The hooks of surefoot.integrations say it in our words.
    **{(key, "slow"): _TOLD_LATE for key in ("pydantic-ai", "openai-agents", "langchain")},
    **{
        (key, "payment-slow"): _TOLD_LATE_ONCE
        for key in ("pydantic-ai", "openai-agents", "langchain")
    },
    # mcp 1.x leaves the request on its way, so that the payment is still under way.
    ("mcp1", "payment-slow"): replace(
        EXPECTED["payment-slow"], reads=("timed out", *[sentence("in-flight")] * 3)
    ),
    # ADK gives its timeout to HTTP, too, and a server that is told of it answers: the first counts.
    ("adk", "slow"): replace(
        EXPECTED["slow"],
        reads=(f"timed out|{_NO_ANSWER}",),
        records=(("answered|cut|unanswered",),),
    ),
    ("adk", "payment-slow"): replace(
        EXPECTED["payment-slow"],
        reads=(f"timed out|{_NO_ANSWER}", *_FENCED),
        records=(*_NEVER, ("answered|cut|unanswered",)),
    ),
}


def judged(client: str, results: Sequence[Mapping[str, Any]], cells: Sequence[str]) -> list[str]:
    """Every difference between a client's results with surefoot and the table, in words."""
    found = {str(one["cell"]): one for one in results if one.get("surefoot")}
    wrong: list[str] = []
    for cell in cells:
        if cell not in found:
            wrong.append(f"{client}, {cell}: expected a result, seen none")
            continue
        expected = OTHERWISE.get((client, cell), EXPECTED[cell])
        wrong += [f"{client}, {cell}: {one}" for one in _differences(expected, found[cell])]
    return wrong


def wrong_cells(
    client: str, results: Sequence[Mapping[str, Any]], cells: Sequence[str]
) -> list[str]:
    """The cells in which a client's results with surefoot differ from the table."""
    return [cell for cell in cells if judged(client, results, [cell])]


def _differences(expected: Expected, seen: Mapping[str, Any]) -> list[str]:
    reads = [str(text) for text in seen["read"]]
    records = sorted("+".join(one) for one in seen["records"])
    wanted = sorted("+".join(one) for one in expected.records)
    rows: list[tuple[str, object, object]] = [
        ("how often the tool ran", expected.runs, seen["executions"]),
        ("how often it was sent", expected.sends, seen["sends"]),
        ("whether the call beside it was answered", True, seen["neighbour"]),
        ("whether a later call was answered", True, seen["later"]),
        ("whether it hung", False, seen["hung"]),
        ("what was raised", [], list(seen["raised"])),
    ]
    wrong = [f"{what}: expected {want}, seen {was}" for what, want, was in rows if want != was]
    if not _alike(wanted, records):
        wrong.append(f"the attempts in the run: expected {wanted}, seen {records}")
    if not _alike(expected.reads, reads):
        wrong.append(f"what was read: expected {expected.reads}, seen {reads}")
    return wrong


def _alike(wanted: Sequence[str], seen: Sequence[str]) -> bool:
    """Whether each text holds what is wanted, or one of several things; nothing holds nothing."""
    return len(wanted) == len(seen) and all(
        any(one.lower() in was.lower() if one else not was for one in want.split("|"))
        for want, was in zip(wanted, seen, strict=True)
    )
