"""R2, R13, R14, R16, R56, R60, R61, R67, R68, D4, D16: a session that is being provisioned.

The stand-in has a window of real length on its clock, in which it refuses whatever names the
session; the client waits on the same clock.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final, Literal

import pytest

from support.agentcore import aws_of, gateway_of, runtime_of
from support.sessions import KINDS, SDK_ON_TRIO, Kind, opened
from surefoot import Gateway, RateLimitedError, Replay, ToolRule
from surefoot.agentcore import DEFAULT_RETRY, SigV4Signer
from surefoot.policy import RetryNotice
from surefoot.testing import AgentCoreStandIn, FakeClock, RecordingSink
from surefoot.wire import sentence

pytestmark = [pytest.mark.both_majors, pytest.mark.anyio, *SDK_ON_TRIO]

Policy = Literal["assume-refused", "app-authorized"]

ADAPTER: Final = {"by": "adapter", "assumes": "refused-before-execution"}
PROTOCOL: Final = {"by": "protocol", "assumes": "refused-before-execution"}

CHANGES: Final = ToolRule(makes_changes=True)
KEYED: Final = ToolRule(makes_changes=True, idempotency_key="arguments.request_id")


def attempts_of(sink: RecordingSink, method: str | None = None) -> list[dict[str, Any]]:
    """Every attempt of the requests of one method, or of all."""
    records: Any = sink.of("tool.request_attempts")
    return [
        attempt
        for record in records
        if method in {None, record["method"]}
        for attempt in record["attempts"]
    ]


@pytest.mark.parametrize("busy", ["busy-json", "busy-sse", "busy-409"])
@pytest.mark.parametrize("draw", [0.0, 0.999], ids=["lowest waits", "highest waits"])
@pytest.mark.parametrize("kind", KINDS)
async def test_a_session_that_takes_twelve_seconds_is_waited_out_by_default(
    kind: Kind, draw: float, busy: str
) -> None:
    """R2, R56. Within the default limits, whatever chance says, in each form of the refusal."""
    clock, sink = FakeClock(), RecordingSink()
    with AgentCoreStandIn(clock=clock, provisioning=12.0, busy=busy) as stand_in:
        made = runtime_of(stand_in, evidence=sink, clock=clock, draw=lambda: draw)
        async with opened(made.transport(), kind) as session:
            told = await session.call("search", {"q": "it"})
        assert told.text == "found it"
        assert stand_in.executions("search") == 1
    refused = [one for one in attempts_of(sink) if one["kind"] == "session-busy"]
    assert 11.5 <= sum(one["wait_seconds"] for one in refused) <= 30.0
    assert {one["effect"] for one in refused} == {"unknown"}


@pytest.mark.parametrize("busy", ["busy-json", "busy-409"])
@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "modern"])
async def test_a_notification_is_waited_out_like_a_call(kind: Kind, busy: str) -> None:
    """D1, R2. A server that never hears that the client is ready refuses everything after it."""
    clock, sink = FakeClock(), RecordingSink()
    with AgentCoreStandIn(clock=clock, provisioning=4.0, busy=busy) as stand_in:
        made = runtime_of(stand_in, evidence=sink, clock=clock)
        async with opened(made.transport(), kind) as session:
            assert (await session.call("search", {"q": "it"})).text == "found it"
        said = [one for one in stand_in.journal if one.method == "notifications/initialized"]
        assert len(said) > 1
        assert said[-1].status == 202
    *refused, last = attempts_of(sink, "notifications/initialized")
    assert {one["kind"] for one in refused} == {"session-busy"}
    assert [one["permission"] for one in refused] == [PROTOCOL] * len(refused)
    assert last["outcome"] == "answered"


@pytest.mark.slow
@pytest.mark.timeout(60)
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_twelve_seconds_of_a_real_clock() -> None:
    """R2. Once for real: nothing else on the way loses patience."""
    sink = RecordingSink()
    with AgentCoreStandIn(provisioning=12.0) as stand_in:
        async with runtime_of(stand_in, evidence=sink).session() as session:
            answer = await session.call("search", {"q": "it"})
        assert answer.text == "found it"
        assert stand_in.executions("search") == 1


POLICIES: Final[tuple[Policy, ...]] = ("assume-refused", "app-authorized")
TOOLS: Final[dict[str, tuple[ToolRule | None, dict[str, Any], bool]]] = {
    "nothing declared": (None, {"amount": 1}, True),
    "repeatable on throttle": (ToolRule(repeat_on={"throttle"}), {"amount": 1}, True),
    "makes changes": (CHANGES, {"amount": 1}, False),
    "makes changes, no key carried": (KEYED, {"amount": 1}, False),
    "makes changes, key carried": (KEYED, {"amount": 1, "request_id": "r-1"}, True),
}


@pytest.mark.parametrize("row", ["busy-json", "busy-sse", "busy-409"])
@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize(("rule", "arguments", "again"), TOOLS.values(), ids=TOOLS)
async def test_the_rows_of_the_decision_table(
    rule: ToolRule | None, arguments: dict[str, Any], again: bool, policy: Policy, row: str
) -> None:
    """R13, R16, R61, R67, R68, D4. The same under both policies: the adapter's word suffices.

    Except for a tool that makes changes: that one is told, and may be made anew at once.
    """
    clock, sink = FakeClock(), RecordingSink()
    replay = Replay(policy=policy, tools={} if rule is None else {"charge": rule})
    with AgentCoreStandIn(clock=clock) as stand_in:
        made = runtime_of(stand_in, evidence=sink, clock=clock, replay=replay)
        async with opened(made.transport(), KINDS[0]) as session:
            stand_in.script("charge", row)
            told = await session.call("charge", arguments)
            assert stand_in.executions("charge") == (1 if again else 0)
            later = await session.call("charge", {**arguments, "note": "anew"})
            assert later.kind is None
            if not again:
                assert (await session.call("charge", arguments)).kind is None
    record: Any = next(one for one in sink.of("tool.request_attempts") if one["tool"] == "charge")
    first = record["attempts"][0]
    assert (first["kind"], first["effect"]) == ("session-busy", "unknown")
    assert record["may_have_run"] is False
    if again:
        assert first["permission"] == ADAPTER
        assert len(record["attempts"]) == 2
        assert (told.kind, record["ended"]) == (None, "answered")
    else:
        assert first["permission"] is None
        assert (told.kind, told.is_error) == ("session-busy", True)
        status = 409 if row == "busy-409" else 200
        type_ = "RetryableConflictException" if status == 409 else None
        assert told.text == sentence("session-busy", status=status, error_type=type_)
        assert (record["ended"], record["why"]) == ("refused", "no-permission")


THROTTLES: Final[list[tuple[ToolRule | None, Policy, dict[str, str | None] | None]]] = [
    (None, "assume-refused", {"by": "adapter", "assumes": "refused-before-execution"}),
    (None, "app-authorized", None),
    (ToolRule(repeat_on={"throttle"}), "assume-refused", {"by": "app", "assumes": None}),
    (ToolRule(repeat_on={"throttle"}), "app-authorized", {"by": "app", "assumes": None}),
    (CHANGES, "assume-refused", None),
    (CHANGES, "app-authorized", None),
]


@pytest.mark.parametrize(("rule", "policy", "grant"), THROTTLES)
@pytest.mark.parametrize("row", ["throttle", "gateway-throttle", "gateway-throttle-429"])
async def test_a_throttle_at_any_status_is_treated_as_a_429(
    row: str,
    rule: ToolRule | None,
    policy: Policy,
    grant: dict[str, str | None] | None,
) -> None:
    """D17, R68. The rows of a 429 apply; the adapter only names the assumption."""
    clock, sink = FakeClock(), RecordingSink()
    through_gateway = row.startswith("gateway")
    tool = "orders___charge" if through_gateway else "charge"
    replay = Replay(policy=policy, tools={} if rule is None else {tool: rule})
    with AgentCoreStandIn(clock=clock) as stand_in:
        door = gateway_of if through_gateway else runtime_of
        made = door(stand_in, evidence=sink, clock=clock, replay=replay)
        async with opened(made.transport(), KINDS[0]) as session:
            stand_in.script(tool, row)
            told = await session.call(tool, {"amount": 1})
            assert stand_in.executions(tool) == (0 if grant is None else 1)
    record: Any = next(one for one in sink.of("tool.request_attempts") if one["tool"] == tool)
    assert record["attempts"][0]["permission"] == grant
    assert record["attempts"][0]["kind"] == "throttle"
    assert told.kind == ("rate-limited" if grant is None else None)


async def test_what_is_no_tool_call_is_the_protocols_to_repeat() -> None:
    """D1. Listing the tools meets a busy session as often as a call does."""
    clock, sink = FakeClock(), RecordingSink()
    with AgentCoreStandIn(clock=clock) as stand_in:
        made = runtime_of(stand_in, evidence=sink, clock=clock)
        stand_in.script("tools/list", "busy", "throttle")
        async with made.session() as session:
            assert await session.tools()
    first, second, last = attempts_of(sink, "tools/list")
    assert (first["permission"], second["permission"]) == (PROTOCOL, PROTOCOL)
    assert (first["kind"], second["kind"]) == ("session-busy", "throttle")
    assert last["permission"] is None


async def test_a_session_that_stays_busy_ends_in_words_within_the_budget() -> None:
    """R37, R43, R56. A slower failure, and never a hung agent; the hook hears of each wait."""
    clock, sink = FakeClock(), RecordingSink()
    heard: list[RetryNotice] = []
    with AgentCoreStandIn(clock=clock) as stand_in:
        retry = replace(DEFAULT_RETRY, on_retry=heard.append)
        made = runtime_of(stand_in, evidence=sink, clock=clock, retry=retry)
        async with opened(made.transport(), KINDS[0]) as session:
            stand_in.script("search", "busy", repeat=True)
            told = await session.call("search", {"q": "it"})
        assert told.kind == "session-busy"
        assert told.facts["attempts"] == len(stand_in.requests("search"))
        assert 16.25 <= told.facts["waited_seconds"] <= 30.0
    kinds = {notice.kind for notice in heard}
    assert kinds == {"session-busy"}
    assert sum(notice.wait_seconds for notice in heard) == told.facts["waited_seconds"]


async def test_a_throttle_that_may_be_a_quota_is_given_up_on_sooner() -> None:
    """D17, R33. Five attempts by default: at 200 nothing tells one from the other."""
    clock = FakeClock()
    with AgentCoreStandIn(clock=clock) as stand_in:
        made = runtime_of(stand_in, clock=clock)
        async with opened(made.transport(), KINDS[0]) as session:
            stand_in.script("search", "throttle", repeat=True)
            told = await session.call("search", {"q": "it"})
    assert told.kind == "rate-limited"
    assert told.facts["attempts"] == 5
    assert told.facts["waited_seconds"] <= 7.5


async def test_a_plain_gateway_knows_nothing_of_it() -> None:
    """R16. The rule belongs to the adapter's own doors: elsewhere the same bytes are an error."""
    with AgentCoreStandIn() as stand_in:
        signer = SigV4Signer(region="us-west-2", aws=aws_of(stand_in))
        async with opened(
            Gateway(stand_in.runtime_url, signer=signer).transport(), KINDS[0]
        ) as session:
            stand_in.script("search", "busy")
            told = await session.call("search", {"q": "it"})
            assert (told.kind, told.code) == (None, -32005)
            assert len(stand_in.requests("search")) == 1
        assert stand_in.signature_faults == ()


async def test_with_repeats_off_a_busy_session_is_told_and_nothing_is_repeated() -> None:
    """R57. In the same words, and by the same type of our own session."""
    with AgentCoreStandIn() as stand_in:
        made = runtime_of(stand_in, retry=None)
        async with opened(made.transport(), KINDS[0]) as session:
            stand_in.script("search", "busy")
            told = await session.call("search", {"q": "it"})
            assert told.kind == "session-busy"
            assert len(stand_in.requests("search")) == 1
        async with made.session() as ours:
            stand_in.script("search", "busy")
            with pytest.raises(RateLimitedError):
                await ours.call("search", {"q": "it"})


@pytest.mark.parametrize("kind", KINDS)
async def test_a_stopped_session_is_provisioned_anew_and_waited_out(kind: Kind) -> None:
    """R2. After 15 idle minutes the same session starts on another machine."""
    clock = FakeClock()
    with AgentCoreStandIn(clock=clock, provisioning=3.0) as stand_in:
        made = runtime_of(stand_in, clock=clock)
        async with opened(made.transport(), kind) as session:
            assert (await session.call("search", {"q": "1"})).text == "found 1"
            stand_in.stop_sessions()
            assert (await session.call("search", {"q": "2"})).text == "found 2"
            assert (await session.call("search", {"q": "3"})).text == "found 3"
        assert stand_in.executions("search") == 3
