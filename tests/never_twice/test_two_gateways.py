"""B3, R30, R83. Two Gateways on one client, or one Gateway twice, remember a payment in one place.

Whoever declared it first keeps it for all of its clients; either of them takes the app's word on
it.
"""

from __future__ import annotations

from typing import Any, Final

import pytest

from support.exchanges import FAMILIES, client_of, outcome_in
from surefoot import Gateway, Replay, ToolRule
from surefoot.testing import Fails, Replies, ScriptedTransport, tool_call

pytestmark = [pytest.mark.both_majors, pytest.mark.anyio]

URL: Final = "http://127.0.0.1:1/mcp"
PAYS: Final = Replay(tools={"pay": ToolRule(makes_changes=True)})
LOST: Final = Fails("ReadError")
PAID: Final = Replies(result={"content": [], "isError": False})


async def pay(client: Any, tool: str = "pay", **arguments: Any) -> dict[str, Any]:
    """What surefoot says of one call; empty where the answer is the server's own."""
    asked = tool_call(tool, arguments)
    answer = await client.post(URL, content=asked.body, headers=dict(asked.headers))
    return dict(outcome_in(answer.json()))


DECLARED: Final[dict[str, tuple[Replay | None, Replay | None]]] = {
    "by both": (PAYS, PAYS), "by the first": (PAYS, None),
}  # fmt: skip


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("settles", ["the first", "the second"])
@pytest.mark.parametrize("declared", DECLARED.values(), ids=DECLARED)
async def test_a_payment_over_two_gateways_is_known_to_both(
    declared: tuple[Replay | None, Replay | None], settles: str, family: str
) -> None:
    """B3. The other client of the one that declared it makes it no second time."""
    first, second = (Gateway(URL, replay=replay) for replay in declared)
    wire = ScriptedTransport(LOST, PAID, PAID)
    shared = second.protect(first.protect(client_of(family, transport=wire)))
    other = first.protect(client_of(family, transport=wire))
    lost = await pay(shared)
    assert (lost["kind"], lost["may_have_run"]) == ("no-answer", True)
    assert (await pay(other))["kind"] == "fenced"
    assert (await pay(shared))["earlier_call_id"] == lost["call_id"]
    assert len(wire.requests) == 1
    teller = first if settles == "the first" else second
    assert not teller.settle("another-call", ran=False)
    assert teller.settle(lost["call_id"], ran=False)
    assert not teller.settle(lost["call_id"], ran=False)
    assert await pay(other) == {}
    assert await pay(shared, amount=2) == {}  # the control: what is settled or new is sent
    assert len(wire.requests) == 3
