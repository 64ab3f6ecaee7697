"""The law of this file: what every cell must come to is one table; a difference is a failure.

With surefoot each fault is one call's affair: the table says what that call's caller reads, how
often the request went out and how often the tool ran. Everywhere the call in flight beside it is
answered, a later call on the same session is, too, nothing is raised, and the run holds a record.
What one client words in its own way stands in `OTHERWISE`, with the reason.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from surefoot.wire import sentence

__all__ = ["EXPECTED", "OTHERWISE", "Expected", "judged"]


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
_FENCED: Final = sentence("fenced")
_UNANSWERED: Final = (("unanswered",),)
_ANSWERED: Final = (("answered",),)

EXPECTED: Final[Mapping[str, Expected]] = {
    "429": Expected(reads=("charged 1",), runs=1, sends=2, records=(("refused", "answered"),)),
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
    "unreadable": Expected(reads=(sentence("unreadable"),), runs=1, records=_ANSWERED),
    "payment": Expected(reads=(_NO_ANSWER,), runs=1, records=_UNANSWERED),
    "payment-again": Expected(
        reads=(_NO_ANSWER, _FENCED, _FENCED, _FENCED),
        runs=1,
        records=(("unanswered",), (), (), ()),
    ),
}  # fmt: skip

_RESUMED: Final = replace(EXPECTED["sse-cut-id"], reads=("charged 1",))
"""Where there are sessions the client comes back for the answer."""

OTHERWISE: Final[Mapping[tuple[str, str], Expected]] = {
    **{(key, "sse-cut-id"): _RESUMED for key in ("mcp1", "langchain", "adk")},
    ("mcp1", "slow"): replace(EXPECTED["slow"], reads=("Timed out",)),
    ("langchain", "slow"): replace(EXPECTED["slow"], reads=("Timed out",)),
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


def _differences(expected: Expected, seen: Mapping[str, Any]) -> list[str]:
    reads = [str(text) for text in seen["read"]]
    records = tuple(tuple(one) for one in seen["records"])
    rows: list[tuple[str, object, object]] = [
        ("how often the tool ran", expected.runs, seen["executions"]),
        ("how often it was sent", expected.sends, seen["sends"]),
        ("whether the call beside it was answered", True, seen["neighbour"]),
        ("whether a later call was answered", True, seen["later"]),
        ("whether it hung", False, seen["hung"]),
        ("what was raised", [], list(seen["raised"])),
        ("the attempts in the run", expected.records, records),
    ]
    wrong = [f"{what}: expected {want}, seen {was}" for what, want, was in rows if want != was]
    alike = len(reads) == len(expected.reads) and all(
        want in was for want, was in zip(expected.reads, reads, strict=True)
    )
    return wrong if alike else [*wrong, f"what was read: expected {expected.reads}, seen {reads}"]
