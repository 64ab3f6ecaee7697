"""R1 to R16, R23 to R28, D1 to D4, D32: the decision table, row by row, over the real shell.

Each row says what happened to the first attempt, what the app declared, how often the request went
out under each policy, what the caller got, and by whose word it was repeated.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, Literal

import pytest

from support.sending import DONE, REFUSED, lowest, message, sent_through
from surefoot.credentials import as_provider
from surefoot.errors import MayHaveRunError
from surefoot.policy import AnswerView, Replay, Rule, ThrottleRule, ToolRule, Verdict
from surefoot.testing import Fails, Replies, ScriptedTransport
from surefoot.transports import VendingTransport

pytestmark = pytest.mark.anyio

ASSUMED: Final = "refused-before-execution"
REJECTED: Final = "auth-rejected-before-execution"

NONE: Final[dict[str, ToolRule]] = {}
ON_THROTTLE: Final = {"search": ToolRule(repeat_on={"throttle"})}
ON_NETWORK: Final = {"search": ToolRule(repeat_on={"network"})}
CHANGES: Final = {"search": ToolRule(makes_changes=True)}
KEYED: Final = {"search": ToolRule(makes_changes=True, idempotency_key="arguments.key")}
KEYED_THROTTLE: Final = {
    "search": ToolRule(makes_changes=True, idempotency_key="arguments.key", repeat_on={"throttle"})
}
KEYED_NETWORK: Final = {
    "search": ToolRule(makes_changes=True, idempotency_key="arguments.key", repeat_on={"network"})
}

BUSY: Final = Replies(409)
UNAUTHORIZED: Final = Replies(401)
MOVED: Final = Replies(307, headers={"location": "/elsewhere"})
FAILED: Final = Fails("ReadError")
UNSENT: Final = Fails("ConnectError")


class Busy:
    """An adapter's recogniser: another form of refusal."""

    reads = 0

    def recognise(self, answer: AnswerView) -> Verdict | None:
        """Recognise a status of its own."""
        return Verdict(kind="session-busy") if answer.status == 409 else None


class ThrottledAtOk:
    """An adapter's recogniser of a throttle that comes with another status (D17)."""

    reads = 0

    def recognise(self, answer: AnswerView) -> Verdict | None:
        """Recognise a status of its own."""
        return Verdict(kind="throttle", retry_after=1.0) if answer.status == 299 else None


RULES: Final = (
    Rule(recognise=ThrottleRule()),
    Rule(recognise=Busy(), assumes="refused-before-execution"),
    Rule(recognise=ThrottledAtOk(), assumes="refused-before-execution"),
)

Grant = tuple[str, str | None] | None


@dataclass(frozen=True, slots=True)
class Row:
    """One row of the table; ``None`` as a grant means that it was not repeated."""

    name: str
    first: Any
    declared: dict[str, ToolRule]
    assume_refused: Grant
    app_authorized: Grant
    ends: int | str = 200
    """Without a repeat: the status that is delivered, or what is raised."""
    key: str | None = None


APP: Final = ("app", None)
POLICY: Final = ("policy", ASSUMED)
ADAPTER: Final = ("adapter", ASSUMED)
PROOF: Final = ("proof", None)
PROTOCOL: Final = ("protocol", None)
AUTH: Final = ("policy", REJECTED)

TABLE: Final = [
    Row("429, undeclared", REFUSED, NONE, POLICY, None, 429),
    Row("429, repeatable on throttle", REFUSED, ON_THROTTLE, APP, APP, 429),
    Row("429, repeatable on network only", REFUSED, ON_NETWORK, POLICY, None, 429),
    Row("429, makes changes", REFUSED, CHANGES, None, None, 429),
    Row("429, makes changes, key not carried", REFUSED, KEYED, None, None, 429),
    Row("429, makes changes, key empty", REFUSED, KEYED, None, None, 429, key=""),
    Row("429, makes changes, key carried", REFUSED, KEYED, POLICY, None, 429, key="k"),
    Row("429, key carried, repeatable", REFUSED, KEYED_THROTTLE, APP, APP, 429, key="k"),
    Row("never sent, undeclared", UNSENT, NONE, PROOF, PROOF),
    Row("never sent, makes changes", UNSENT, CHANGES, PROOF, PROOF),
    Row("no response, undeclared", FAILED, NONE, None, None, "ReadError"),
    Row("no response, repeatable on throttle", FAILED, ON_THROTTLE, None, None, "ReadError"),
    Row("no response, repeatable on network", FAILED, ON_NETWORK, APP, APP),
    Row("no response, makes changes", FAILED, CHANGES, None, None, "ReadError"),
    Row("no response, key not carried", FAILED, KEYED_NETWORK, None, None, "ReadError"),
    Row("no response, key carried, repeatable", FAILED, KEYED_NETWORK, APP, APP, key="k"),
    Row("no response, key carried alone", FAILED, KEYED, None, None, "ReadError", key="k"),
    Row("busy, undeclared", BUSY, NONE, ADAPTER, ADAPTER, 409),
    Row("busy, makes changes", BUSY, CHANGES, None, None, 409),
    Row("busy, makes changes, key carried", BUSY, KEYED, ADAPTER, ADAPTER, 409, key="k"),
    Row("throttle at another status", Replies(299), NONE, ADAPTER, None, 299),
    Row("throttle at another status, repeatable", Replies(299), ON_THROTTLE, APP, APP, 299),
    Row("throttle at another status, changes", Replies(299), CHANGES, None, None, 299),
    Row("401, undeclared", UNAUTHORIZED, NONE, AUTH, AUTH, 401),
    Row("401, repeatable", UNAUTHORIZED, ON_THROTTLE, AUTH, AUTH, 401),
    Row("401, makes changes, not repeatable", UNAUTHORIZED, CHANGES, None, None, 401),
    Row("401, makes changes, key carried alone", UNAUTHORIZED, KEYED, None, None, 401, key="k"),
    Row("307 in the origin", MOVED, NONE, PROTOCOL, PROTOCOL, 307),
    Row("307 in the origin, makes changes", MOVED, CHANGES, PROTOCOL, PROTOCOL, 307),
    *(
        Row(f"{status}", Replies(status), ON_THROTTLE, None, None, status)
        for status in (200, 202, 204, 400, 403, 404, 405, 410, 422, 500, 501, 502, 503, 504)
    ),
]


@pytest.mark.parametrize("policy", ["assume-refused", "app-authorized"])
@pytest.mark.parametrize("row", TABLE, ids=[row.name for row in TABLE])
async def test_each_row_of_the_decision_table(
    family: Any, row: Row, policy: Literal["assume-refused", "app-authorized"]
) -> None:
    """D1 to D4, D17, R4 to R13, R61, R68. Sends, what is delivered, and by whose word."""
    granted = row.assume_refused if policy == "assume-refused" else row.app_authorized
    wire = ScriptedTransport(row.first, DONE, proves_not_sent=True)
    provider = as_provider(_fresh_token)
    outcome = await sent_through(
        family,
        wire,
        request=message(**({} if row.key is None else {"key": row.key})),
        between=lambda wire: VendingTransport(wire, credentials=provider),
        replay=Replay(policy=policy, tools=row.declared),
        rules=RULES,
        redirects=True,
    )
    if granted is not None:
        assert (outcome.sends, outcome.status) == (2, 200)
        assert outcome.permissions == [granted, None]
        assert wire.requests[0].body == wire.requests[1].body
    else:
        assert outcome.sends == 1
        assert outcome.permissions == [None]
        if isinstance(row.ends, int):
            assert outcome.status == row.ends
        else:
            assert type(outcome.error).__name__ == row.ends
    assert len(outcome.attempts) == outcome.sends
    assert wire.open_responses == 0


async def _fresh_token(request: object) -> Any:
    from surefoot.credentials import Bearer

    del request
    return Bearer("fresh-token")


@pytest.mark.parametrize(
    ("first", "outcome", "effect", "kind"),
    [
        (DONE, "answered", "unknown", None),
        (Replies(503), "answered", "unknown", None),
        (REFUSED, "refused", "unknown", "throttle"),
        (BUSY, "refused", "unknown", "session-busy"),
        (FAILED, "unanswered", "unknown", None),
        (UNSENT, "not_sent", "not_sent", None),
    ],
)
async def test_outcome_effect_and_permission_are_three_facts(
    family: Any, first: Any, outcome: str, effect: str, kind: str | None
) -> None:
    """R5, R23, R28, R61, R68. A refusal leaves the effect unknown; no answer is no success."""
    wire = ScriptedTransport(first, proves_not_sent=True)
    read = await sent_through(family, wire, rules=RULES, retry=None, replay=Replay(tools=CHANGES))
    (attempt,) = read.attempts
    assert (attempt["outcome"], attempt["effect"], attempt["kind"]) == (outcome, effect, kind)
    assert attempt["permission"] is None
    assert read.record["may_have_run"] is (outcome == "unanswered")


@pytest.mark.parametrize(
    ("method", "first", "sends"),
    [
        ("tools/list", FAILED, 2),
        ("server/discover", FAILED, 2),
        ("resources/read", FAILED, 2),
        ("ping", FAILED, 2),
        ("resources/subscribe", FAILED, 1),
        ("logging/setLevel", FAILED, 1),
        ("resources/subscribe", REFUSED, 2),
        ("tools/list", REFUSED, 2),
        ("tools/list", Replies(503), 1),
    ],
)
async def test_what_is_no_tool_call_is_the_protocols_to_repeat(
    family: Any, method: str, first: Any, sends: int
) -> None:
    """D1, D2, D36, R11. Reads after no answer, everything after a refusal, nothing after a 5xx."""
    wire = ScriptedTransport(first, DONE)
    replay = Replay(policy="app-authorized")
    outcome = await sent_through(family, wire, request=message(method), replay=replay)
    assert outcome.sends == sends
    if sends == 2:
        assert outcome.permissions[0] is not None
        assert outcome.permissions[0][0] == "protocol"


async def test_a_body_that_is_no_message_counts_as_an_undeclared_tool_call(family: Any) -> None:
    """D1. Under app-authorized it is sent once; the control under the default is repeated."""
    from surefoot.testing import McpRequest

    odd = McpRequest(headers={}, body=b"no json")
    for policy, sends in (("app-authorized", 1), ("assume-refused", 2)):
        wire = ScriptedTransport(REFUSED, DONE)
        replay = Replay(policy=policy)  # type: ignore[arg-type]
        outcome = await sent_through(family, wire, request=odd, replay=replay)
        assert outcome.sends == sends, policy
        assert outcome.record["method"] == "POST"


@pytest.mark.parametrize(
    ("plays", "ends", "may_have_run"),
    [
        ([REFUSED, REFUSED, REFUSED], 429, False),
        ([FAILED, DONE], 200, True),
        ([FAILED, REFUSED, REFUSED], 429, True),
        ([FAILED, Replies(503)], 503, True),
        ([FAILED, FAILED, FAILED], "ReadError", True),
        ([UNSENT, UNSENT, UNSENT], "ConnectError", False),
        ([UNSENT, FAILED, UNSENT], "ConnectError", True),
    ],
)
async def test_what_may_have_run_is_a_fact_of_all_attempts(
    family: Any, plays: list[Any], ends: int | str, may_have_run: bool
) -> None:
    """R27, R28. A later refusal takes nothing back; only the layer above knows of a result."""
    wire = ScriptedTransport(*plays, proves_not_sent=True)
    outcome = await sent_through(family, wire, replay=Replay(tools=ON_NETWORK), draw=lowest)
    assert outcome.record["may_have_run"] is may_have_run
    if isinstance(ends, int):
        assert outcome.status == ends
    else:
        assert type(outcome.error).__name__ == ends
        assert not isinstance(outcome.error, MayHaveRunError)
