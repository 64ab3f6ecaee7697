"""B2, B3, R18, R24, R27. Kind i of the bug reports: one invocation of AgentCore runs once.

AWS's own client asks again when it has read nothing for a while, and the runtime, which may give
the copy to another container, runs the first all the same. Here nothing below a call repeats it.
"""

from __future__ import annotations

from typing import Final

import anyio
import pytest

from support.agentcore import gateway_of, runtime_of
from support.exchanges import FAMILIES, client_of
from support.reports import attempts_of, record_of, say
from support.sessions import FAMILY, KINDS, SDK_ON_TRIO, Kind, opened, sdk_streams
from surefoot import Gateway, MayHaveRunError, Replay, ToolRule
from surefoot.testing import (
    AgentCoreStandIn,
    HeldStream,
    RecordingSink,
    Reset,
    Slow,
    Status,
    Step,
    tool_call,
)

pytestmark = [pytest.mark.both_majors, pytest.mark.anyio, *SDK_ON_TRIO]

LATE: Final = 0.5
PATIENCE: Final = 0.2

PLACES: Final = {"runtime": (runtime_of, "charge"), "gateway": (gateway_of, "orders___charge")}

UNANSWERED: Final[dict[str, tuple[Step, str]]] = {
    "late": (Slow(LATE, when="after"), "no-answer"),
    "late, and a failure": (Slow(LATE, when="after", then=Status(500, ran=False)), "no-answer"),
    "a stream that says nothing": (HeldStream(LATE), "no-answer"),
    "a reset": (Reset("after-run"), "no-answer"),
    "a failure": (Status(500, ran=True), "server-failure"),
    "a gateway's timeout": (Status(504, ran=True), "server-failure"),
}


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("how", UNANSWERED)
@pytest.mark.parametrize("family", FAMILIES)
async def test_an_invocation_that_is_not_answered_in_time_runs_once(
    family: str, how: str, place: str
) -> None:
    """B3, R24, R27, C41 of the bug reports. Counted long after the client's own read timeout."""
    step, outcome = UNANSWERED[how]
    build, tool = PLACES[place]
    sink = RecordingSink()
    with AgentCoreStandIn() as stand_in:
        stand_in.script(tool, step)
        gateway: Gateway = build(stand_in, evidence=sink)
        async with gateway.protect(client_of(family, timeout=PATIENCE)) as client:
            said = await say(client, gateway.url, tool_call(tool, {"amount": 1}))
            await stand_in.until(lambda: not any(entry.in_flight for entry in stand_in.journal))
            await anyio.sleep(PATIENCE)
        assert (said.kind, said.outcome["may_have_run"]) == (outcome, True)
        assert (len(stand_in.requests(tool)), stand_in.executions(tool)) == (1, 1)
        assert stand_in.signature_faults == ()
    assert record_of(sink, tool)["may_have_run"] is True
    assert len(attempts_of(sink, tool)) == 1


@pytest.mark.parametrize("kind", KINDS)
async def test_a_session_with_a_read_timeout_runs_the_call_once(kind: Kind) -> None:
    """B1, B3, C41 of the bug reports. And an agent that tries again is told of the first."""
    replay = Replay(tools={"charge": ToolRule(makes_changes=True)})
    with AgentCoreStandIn() as stand_in:
        gateway = runtime_of(stand_in, replay=replay)
        client = gateway.http_client(timeout=FAMILY.Timeout(5, read=PATIENCE))
        async with client, opened(sdk_streams(gateway.url, client), kind) as session:
            stand_in.script("charge", Slow(LATE, when="after"))
            told = await session.call("charge", {"amount": 1})
            again = await session.call("charge", {"amount": 1})
            await anyio.sleep(LATE)
        assert (told.kind, again.kind) == ("no-answer", "fenced")
        assert (len(stand_in.requests("charge")), stand_in.executions("charge")) == (1, 1)


async def test_our_own_client_says_that_it_may_have_run() -> None:
    """B2, R27, C41 of the bug reports. Typed; the runtime is not stopped by a client that left."""
    with AgentCoreStandIn() as stand_in:
        async with runtime_of(stand_in).session() as session:
            await session.tools()
            stand_in.script("charge", Slow(LATE, when="after"))
            with pytest.raises(MayHaveRunError) as caught:
                await session.call("charge", {"amount": 1}, timeout=PATIENCE)
            await anyio.sleep(LATE)
        assert (caught.value.cause, caught.value.attempts) == ("deadline", 1)
        assert (len(stand_in.requests("charge")), stand_in.executions("charge")) == (1, 1)


@pytest.mark.parametrize("family", FAMILIES)
async def test_a_busy_session_is_waited_for_under_a_sound_signature(family: str) -> None:
    """R18, C41 of the bug reports. The control: what was refused before it ran is sent again."""
    with AgentCoreStandIn() as stand_in:
        stand_in.script("charge", "busy")
        gateway = runtime_of(stand_in)
        async with gateway.protect(client_of(family)) as client:
            said = await say(client, gateway.url)
        assert said.text == "charged 1"
        assert (len(stand_in.requests("charge")), stand_in.executions("charge")) == (2, 1)
        signed = [entry.header_values("authorization") for entry in stand_in.requests("charge")]
        assert [len(lines) for lines in signed] == [1, 1]
        assert stand_in.signature_faults == ()
