"""D1, D3, D9, D10, D31, D32, R4 to R13, R24, R27, B11. Both decision tables, over real sockets.

Each row says what the gateway does and what the app declared, and for both policies how often the
call goes out, how often its tool runs, who permitted each repeat, what the client reads, and what
the evidence says. Both HTTP families go through a protected client of their own. The server counts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

import pytest

from support.exchanges import FAMILIES, Exchanged, Grant, exchange
from surefoot import Bearer, Gateway, Replay, Retry, ToolRule
from surefoot.credentials import CredentialRequest
from surefoot.testing import (
    CutJson,
    FaultyGateway,
    RecordingSink,
    Redirect,
    Reset,
    Slow,
    SseCut,
    Status,
    Step,
    Throttle,
)

pytestmark = [pytest.mark.unmeasured, pytest.mark.anyio]

Policy = Literal["assume-refused", "app-authorized"]
POLICIES: Final[tuple[Policy, ...]] = ("assume-refused", "app-authorized")

NONE: Final = ToolRule()
THROTTLE: Final = ToolRule(repeat_on={"throttle"})
NETWORK: Final = ToolRule(repeat_on={"network"})
CHANGES: Final = ToolRule(makes_changes=True)
KEYED: Final = ToolRule(makes_changes=True, idempotency_key="arguments.request_id")
KEYED_ON_BOTH: Final = ToolRule(
    makes_changes=True,
    idempotency_key="arguments.request_id",
    repeat_on={"throttle", "network"},
)

WITH_KEY: Final = {"amount": 1, "request_id": "r-1"}

APP: Final = ("app", None)
ASSUMED: Final = ("policy", "refused-before-execution")
REJECTED: Final = ("policy", "auth-rejected-before-execution")
PROTOCOL: Final = ("protocol", None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ends:
    """How one row ends under one policy."""

    grants: tuple[Grant, ...] = ()
    """Who permitted each repeat; there are as many repeats as grants."""
    words: str | None = None
    """The outcome in words, or `None` where the tool's own answer came."""
    ran: int = 0
    ended: str = "answered"
    why: str = "final-answer"
    may_have_run: bool = False
    """What the evidence says of the whole call."""


ANSWERED: Final = Ends(ran=1)
DELIVERED: Final = Ends(words="rate-limited", ended="refused", why="no-permission")
BY_POLICY: Final = Ends(grants=(ASSUMED,), ran=1)
BY_APP: Final = Ends(grants=(APP,), ran=1)
MAY_HAVE_RUN: Final = Ends(
    words="no-answer", ran=1, ended="unanswered", why="no-permission", may_have_run=True
)
TWICE_BY_APP: Final = Ends(grants=(APP,), ran=2)


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """What the gateway does to a call, and how that ends under each policy."""

    name: str
    steps: tuple[Step, ...]
    rule: ToolRule = NONE
    arguments: Mapping[str, object] = field(default_factory=lambda: {"amount": 1})
    assume: Ends
    authorized: Ends
    vended: bool = False
    """The Gateway has a provider that can be asked again."""
    deadline: float | None = None

    def __str__(self) -> str:
        return self.name


def _row(
    name: str,
    *steps: Step,
    rule: ToolRule = NONE,
    both: Ends | None = None,
    assume: Ends | None = None,
    authorized: Ends | None = None,
    **more: Any,
) -> Row:
    one, other = assume or both, authorized or both
    assert one is not None
    assert other is not None
    return Row(name=name, steps=steps, rule=rule, assume=one, authorized=other, **more)


ONCE: Final = Throttle(0)
SILENT: Final = Reset("after-run")

ROWS: Final = [
    _row("429, nothing declared", ONCE, assume=BY_POLICY, authorized=DELIVERED),
    _row("429, repeatable on throttle", ONCE, rule=THROTTLE, both=BY_APP),
    _row("429, repeatable on network alone", ONCE, rule=NETWORK, assume=BY_POLICY,
         authorized=DELIVERED),
    _row("429, makes changes", ONCE, rule=CHANGES, both=DELIVERED),
    _row("429, makes changes, no key carried", ONCE, rule=KEYED_ON_BOTH, both=DELIVERED),
    _row("429, makes changes, key carried", ONCE, rule=KEYED, arguments=WITH_KEY,
         assume=BY_POLICY, authorized=DELIVERED),
    _row("429, makes changes, an empty key", ONCE, rule=KEYED,
         arguments={"request_id": ""}, both=DELIVERED),
    _row("429, key carried, repeatable", ONCE, rule=KEYED_ON_BOTH, arguments=WITH_KEY, both=BY_APP),
    _row("no response, nothing declared", SILENT, both=MAY_HAVE_RUN),
    _row("no response, repeatable on throttle", SILENT, rule=THROTTLE, both=MAY_HAVE_RUN),
    _row("no response, repeatable on network", SILENT, rule=NETWORK, both=TWICE_BY_APP),
    _row("no response, makes changes", SILENT, rule=CHANGES, both=MAY_HAVE_RUN),
    _row("no response, no key carried", SILENT, rule=KEYED_ON_BOTH, both=MAY_HAVE_RUN),
    _row("no response, key carried, not repeatable", SILENT, rule=KEYED, arguments=WITH_KEY,
         both=MAY_HAVE_RUN),
    _row("no response, key carried, repeatable", SILENT, rule=KEYED_ON_BOTH, arguments=WITH_KEY,
         both=TWICE_BY_APP),
    _row("a body that is cut, repeatable on network", CutJson(), rule=NETWORK, both=TWICE_BY_APP),
    _row("401 to ours, nothing declared", Status(401), vended=True,
         both=Ends(grants=(REJECTED,), ran=1)),
    _row("401 to ours, repeatable", Status(401), rule=NETWORK, vended=True,
         both=Ends(grants=(REJECTED,), ran=1)),
    _row("401 to ours, makes changes", Status(401), rule=CHANGES, vended=True,
         both=Ends(words="unauthorized", why="no-permission")),
    _row("401 to ours, key carried, repeatable", Status(401), rule=KEYED_ON_BOTH,
         arguments=WITH_KEY, vended=True, both=Ends(grants=(REJECTED,), ran=1)),
    _row("401 to ours twice", Status(401), Status(401), vended=True,
         both=Ends(grants=(REJECTED,), words="unauthorized")),
    _row("401 without a credential of ours", Status(401), both=Ends(words="unauthorized")),
    _row("307 in the origin", Redirect(), both=Ends(grants=(PROTOCOL,), ran=1)),
    _row("308 in the origin, makes changes", Redirect(308), rule=CHANGES,
         both=Ends(grants=(PROTOCOL,), ran=1)),
    _row("307 elsewhere", Redirect(to="http://127.0.0.1:1/mcp"), rule=NETWORK,
         both=Ends(words="redirected", may_have_run=True)),
    _row("500", Status(500), rule=KEYED_ON_BOTH, arguments=WITH_KEY,
         both=Ends(words="server-failure", may_have_run=True)),
    _row("503 with Retry-After", Status(503, headers={"retry-after": "0"}), rule=THROTTLE,
         both=Ends(words="server-failure", may_have_run=True)),
    _row("403", Status(403), rule=NETWORK, both=Ends(words="forbidden")),
    _row("404", Status(404), rule=NETWORK, both=Ends(words="not-found")),
    _row("400", Status(400), rule=NETWORK, both=Ends(words="rejected")),
    _row("deadline in flight", Slow(1.0, when="after"), rule=NETWORK, deadline=0.15,
         both=Ends(words="deadline", ran=1, ended="cut", why="deadline", may_have_run=True)),
    # The second table: what may have run.
    _row("all answered, last 429", ONCE, ONCE, ONCE, rule=THROTTLE,
         both=Ends(grants=(APP, APP), words="rate-limited", ended="refused",
                   why="attempts-spent")),
    _row("no response, then a 429 that lasts", SILENT, Throttle(60), rule=NETWORK,
         assume=Ends(grants=(APP,), words="no-answer", ran=1, ended="refused",
                     why="waiting-spent", may_have_run=True),
         authorized=Ends(grants=(APP,), words="no-answer", ran=1, ended="refused",
                         why="no-permission", may_have_run=True)),
    _row("no response, then 503", SILENT, Status(503), rule=NETWORK,
         both=Ends(grants=(APP,), words="no-answer", ran=1, may_have_run=True)),
    _row("no response, again and again", SILENT, SILENT, SILENT, rule=NETWORK,
         both=Ends(grants=(APP, APP), words="no-answer", ran=3, ended="unanswered",
                   why="attempts-spent", may_have_run=True)),
    _row("a stream that dies before the reply", SseCut(), rule=NETWORK,
         both=Ends(words="cut-stream", ran=1, ended="cut", why="stream-cut", may_have_run=True)),
]  # fmt: skip


class Vault:
    """A provider that can be asked again, and counts."""

    def __init__(self) -> None:
        self.forced = 0
        self.asked = 0

    async def vend(self, request: CredentialRequest, /) -> Bearer:
        """Another token each time."""
        self.asked += 1
        self.forced += request.force
        return Bearer(f"token-of-the-vault-{self.asked}")


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("row", ROWS, ids=str)
async def test_a_call_goes_out_and_runs_as_often_as_the_table_says(
    row: Row, policy: Policy, family: str
) -> None:
    """R6, R20, R21. And the evidence has one attempt for each time that it reached the gateway."""
    ends = row.assume if policy == "assume-refused" else row.authorized
    sink, vault = RecordingSink(), Vault()
    with FaultyGateway() as faulty:
        gateway = Gateway(
            faulty.url,
            credentials=vault if row.vended else None,
            retry=Retry(max_attempts=3, base_delay=0.01, max_elapsed=row.deadline),
            replay=Replay(policy=policy, tools={"charge": row.rule}),
            evidence=sink,
        )
        faulty.script("charge", *row.steps)
        told = await exchange(gateway, faulty, sink, family=family, arguments=row.arguments)
    _hold(told, ends)
    assert vault.forced == (1 if REJECTED in ends.grants else 0)
    if row.vended:
        tokens = {entry.header("authorization") for entry in told.sends}
        assert len(tokens) == len(told.sends)


def _hold(told: Exchanged, ends: Ends) -> None:
    """Compare the three sides with the row, and with each other."""
    sends = len(ends.grants) + 1
    assert (told.kind, told.ran, len(told.sends)) == (ends.words, ends.ran, sends), told
    assert told.grants == [*ends.grants, None]
    assert (told.record["ended"], told.record["why"]) == (ends.ended, ends.why)
    assert told.record["may_have_run"] is ends.may_have_run
    # The evidence has one attempt for each send, in the order of the gateway's journal.
    assert told.column("number") == list(range(1, sends + 1))
    assert told.column("status") == [
        None if one["outcome"] == "unanswered" else entry.status
        for entry, one in zip(told.sends, told.attempts, strict=True)
    ]
    assert {entry.body for entry in told.sends} == {told.sends[0].body}
    if ends.words is None:
        assert told.text.startswith("charged")
        assert told.attempts[-1]["effect"] == "ran"
    else:
        assert told.outcome["attempts"] == sends
        assert told.attempts[-1]["effect"] == "unknown"
