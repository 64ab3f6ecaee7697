"""The law of this file: the whole scenario is this one table, the same for both runs.

A row is a tool call of the agent's and what the gateway does to it. Durations are scaled down: one
second here stands for half a minute there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Literal

from surefoot.testing import Reset, Slow, SseCut, Status, Step
from surefoot.wire import read_request, strict_json

from ._busy import Busy

__all__ = ["PAYMENTS_WANTED", "Call", "fingerprint", "twelve_calls"]

PAYMENTS_WANTED: Mapping[str, int] = {"charge": 1, "refund": 1}
"""How often the agent wants money moved, by tool."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One tool call, and what meets it."""

    number: int
    tool: str
    arguments: Mapping[str, object]
    """No two calls have the same tool and the same arguments."""

    gateway: str
    """What the gateway does, in a few words."""

    steps: tuple[Step, ...] = ()
    """The same for the gateway; fresh for each run. After the last one it answers soundly."""

    lasting: bool = False
    """The last step answers every attempt that follows, too."""

    repeated_on: Literal["throttle", "network"] | None = None
    """Which wait it can meet: two calls at once are told apart by it."""

    changes: bool = False
    """It changes something, as the server's own hints say."""

    beside: bool = False
    """It is sent together with the call before it."""

    settles: int | None = None
    """The call that it finds out about, in a way that only reads."""

    hours_before: int = 0
    """Hours that pass before it, in which tokens expire."""

    @property
    def about(self) -> str:
        """The first argument: which order, invoice or month."""
        return str(next(iter(self.arguments.values())))

    @property
    def label(self) -> str:
        """The call in a line of print."""
        return f"{self.tool} {self.about}"

    @property
    def fingerprint(self) -> str:
        """What the call is recognised by, on the wire and in the evidence."""
        params = {"name": self.tool, "arguments": dict(self.arguments)}
        message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
        return fingerprint(strict_json.dumps(message))


def fingerprint(body: bytes) -> str:
    """The SHA-256 of a tool call's canonical arguments after its tool; empty for anything else."""
    outgoing = read_request(body)
    arguments = None if outgoing is None else outgoing.canonical_arguments()
    if outgoing is None or arguments is None:
        return ""
    return f"{outgoing.tool}:{sha256(arguments).hexdigest()}"


def twelve_calls() -> tuple[Call, ...]:
    """The table, with fresh steps."""
    return (
        Call(
            number=1,
            tool="find_order",
            arguments={"order": "W-1001"},
            gateway="answers",
        ),
        Call(
            number=2,
            tool="find_order",
            arguments={"order": "W-1002"},
            gateway="429, Retry-After: 1",
            steps=(Busy(1.0, states="seconds"),),
            lasting=True,
            repeated_on="throttle",
        ),
        Call(
            number=3,
            tool="read_invoice",
            arguments={"invoice": "I-1003"},
            gateway="429, Retry-After: a date",
            steps=(Busy(1.0, states="date"),),
            lasting=True,
            repeated_on="throttle",
        ),
        Call(
            number=4,
            tool="read_invoice",
            arguments={"invoice": "I-1004"},
            gateway="429, Retry-After: soon",
            steps=(Busy(1.0, states="nonsense"),),
            lasting=True,
            repeated_on="throttle",
        ),
        Call(
            number=5,
            tool="charge",
            arguments={"order": "W-1005", "amount": 49, "request_id": "R-1005"},
            gateway="429 without Retry-After",
            steps=(Busy(1.0, states="nothing"),),
            lasting=True,
            repeated_on="throttle",
            changes=True,
        ),
        Call(
            number=6,
            tool="build_report",
            arguments={"month": "June"},
            gateway="is slow, 1.2 s",
            steps=(Slow(1.2, when="after"),),
        ),
        Call(
            number=7,
            tool="find_order",
            arguments={"order": "W-1007"},
            gateway="resets before the headers",
            # A moment later, so that the call beside it is surely under way.
            steps=(Slow(0.3, then=Reset(when="before-headers")),),
            repeated_on="network",
            beside=True,
        ),
        Call(
            number=8,
            tool="find_order",
            arguments={"order": "W-1008"},
            gateway="resets in the body",
            steps=(Reset(when="in-body"),),
            repeated_on="network",
        ),
        Call(
            number=9,
            tool="refund",
            arguments={"order": "W-1009"},
            gateway="refunds, then resets",
            steps=(Reset(when="after-run"),),
            changes=True,
        ),
        Call(
            number=10,
            tool="refund_status",
            arguments={"order": "W-1009"},
            gateway="cuts the event stream",
            steps=(SseCut(),),
            settles=9,
        ),
        Call(
            number=11,
            tool="find_order",
            arguments={"order": "W-1011"},
            gateway="503",
            steps=(Status(503, "upstream is not available\n"),),
        ),
        Call(
            number=12,
            tool="read_invoice",
            arguments={"invoice": "I-1012"},
            gateway="the token has expired",
            hours_before=1,
        ),
    )
