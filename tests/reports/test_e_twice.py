"""B2, B3, D27, R12, R24, R27. Kind e of the bug reports: who stops listening causes no second run.

A request that has left may have run, whatever its caller was told meanwhile. Nothing of ours sends
it again, the evidence says that its outcome is unknown, and the same call made anew is told so. The
server counts: at its end, long after its caller left, each tool ran once.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Final

import anyio
import pytest

from support.exchanges import FAMILIES, client_of
from support.reports import record_of, say
from support.sessions import FAMILY, KINDS, SDK_ON_TRIO, Kind, opened, sdk_streams
from surefoot import Gateway, MayHaveRunError, Replay, Retry, ToolRule
from surefoot.testing import (
    FaultyGateway,
    HeldStream,
    RecordingSink,
    Reset,
    Slow,
    SseCut,
    Step,
    Trickle,
)

pytestmark = [pytest.mark.both_majors, pytest.mark.anyio, *SDK_ON_TRIO]

LATE: Final = 0.5
PATIENCE: Final = 0.25
CHANGES: Final = Replay(tools={"charge": ToolRule(makes_changes=True)})

Leaves = Callable[[Any, FaultyGateway], Awaitable[None]]


async def _cancelled(session: Any, faulty: FaultyGateway) -> None:
    """Leave as soon as the tool runs."""
    async with anyio.create_task_group() as group:
        group.start_soon(session.call, "charge", {"amount": 1})
        await faulty.until(lambda: faulty.executions("charge") == 1)
        group.cancel_scope.cancel()


async def _timed_out_by_the_sdk(session: Any, faulty: FaultyGateway) -> None:
    told = await session.call("charge", {"amount": 1}, patience=PATIENCE)
    assert told.code is not None
    assert faulty.executions("charge") == 1


WAYS: Final[dict[str, Leaves]] = {
    "cancelled": _cancelled,
    "timed out by the SDK": _timed_out_by_the_sdk,
}
LATE_ANSWERS: Final[dict[str, Step]] = {
    "late": Slow(LATE, when="after"),
    "in drops": Trickle(0.02),
    "in a stream that says nothing": HeldStream(LATE),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("answer", ["late", "in a stream that says nothing"])
@pytest.mark.parametrize("how", WAYS)
async def test_a_call_whose_caller_left_ran_once_and_is_said_to_perhaps_have_run(
    how: str, answer: str, kind: Kind
) -> None:
    """B2, B3, D27, C23 of the bug reports. Cancelled stays cancelled; nothing is sent later.

    A framework that makes the same call anew is answered by us: not sent, an earlier one may have
    run. On mcp 1.x nobody is told that its caller is gone, so that one may still be in flight.
    """
    sink = RecordingSink()
    with FaultyGateway() as faulty:
        gateway = Gateway(faulty.url, replay=CHANGES, evidence=sink)
        async with opened(gateway.transport(), kind) as session:
            faulty.script("charge", LATE_ANSWERS[answer])
            await WAYS[how](session, faulty)
            told = await session.call("charge", {"amount": 1})
            assert told.kind in {"fenced", "in-flight"}
            assert told.facts["effect"] == "not_sent"
            assert (await session.call("search", {"q": "it"})).text == "found it"
            await anyio.sleep(LATE)
        assert (len(faulty.requests("charge")), faulty.executions("charge")) == (1, 1)
    records = [event for event in sink.of("tool.request_attempts") if event["tool"] == "charge"]
    first = next(event for event in records if event["attempts"])
    if kind != "mcp1":
        assert first["may_have_run"] is True
    assert [event["why"] for event in records if not event["attempts"]] == ["fenced"]


@pytest.mark.parametrize("answer", LATE_ANSWERS)
async def test_our_own_client_raises_that_it_may_have_run(answer: str) -> None:
    """B2, B3, R27, C23 of the bug reports. And settles it on the app's word."""
    with FaultyGateway() as faulty:
        gateway = Gateway(faulty.url, replay=CHANGES)
        async with gateway.session() as session:
            await session.tools()
            faulty.script("charge", LATE_ANSWERS[answer])
            with pytest.raises(MayHaveRunError) as caught:
                await session.call("charge", {"amount": 1}, timeout=PATIENCE)
            assert (caught.value.cause, caught.value.attempts) == ("deadline", 1)
            with pytest.raises(MayHaveRunError) as again:
                await session.call("charge", {"amount": 1})
            assert again.value.attempts == 0
            await anyio.sleep(LATE)
            assert (len(faulty.requests("charge")), faulty.executions("charge")) == (1, 1)
            assert gateway.settle(str(caught.value.call_id), ran=False)
            assert (await session.call("charge", {"amount": 1})).text == "charged 1"
        assert faulty.executions("charge") == 2


ENDS: Final[dict[str, tuple[Step, dict[str, Any], str]]] = {
    "the call's deadline": (
        Slow(LATE, when="after"), {"retry": Retry(max_elapsed=PATIENCE)}, "deadline",
    ),
    "a read timeout": (Slow(LATE, when="after"), {"timeout": PATIENCE}, "no-answer"),
    "a reset after it ran": (Reset("after-run"), {}, "no-answer"),
    "a close after it ran": (Reset("after-run", how="close"), {}, "no-answer"),
    "a reset in its answer": (Reset("in-body"), {}, "no-answer"),
    "a stream that ends before it": (SseCut(how="end"), {}, "cut-stream"),
}  # fmt: skip


@pytest.mark.parametrize("rule", ["not declared", "makes changes", "repeatable on throttle"])
@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("family", FAMILIES)
async def test_a_call_without_an_answer_is_sent_once_by_every_layer(
    family: str, end: str, rule: str
) -> None:
    """R10, R12, R24, R27, C23 of the bug reports. Only the app's word "on network" changes that."""
    step, settings, outcome = ENDS[end]
    rules = {
        "not declared": {},
        "makes changes": {"charge": ToolRule(makes_changes=True)},
        "repeatable on throttle": {"charge": ToolRule(repeat_on={"throttle"})},
    }[rule]
    sink = RecordingSink()
    with FaultyGateway() as faulty:
        faulty.script("charge", step, repeat=True)
        options = {key: value for key, value in settings.items() if key == "retry"}
        timeout = settings.get("timeout", 5)
        gateway = Gateway(faulty.url, replay=Replay(tools=rules), evidence=sink, **options)
        async with gateway.protect(client_of(family, timeout=timeout)) as client:
            said = await say(client, faulty.url)
            assert (said.kind, said.outcome["may_have_run"]) == (outcome, True)
            assert "may have run" in said.text
            await anyio.sleep(0.05)
            assert (len(faulty.requests("charge")), faulty.executions("charge")) == (1, 1)
    record = record_of(sink)
    assert (record["may_have_run"], len(record["attempts"])) == (True, 1)


@pytest.mark.parametrize("family", FAMILIES)
async def test_on_the_apps_word_it_is_sent_again(family: str) -> None:
    """R10, C23 of the bug reports. The control: a second send would have been counted above."""
    replay = Replay(tools={"charge": ToolRule(repeat_on={"network"})})
    with FaultyGateway() as faulty:
        faulty.script("charge", Reset("after-run"))
        gateway = Gateway(faulty.url, replay=replay, retry=Retry(base_delay=0.01))
        async with gateway.protect(client_of(family)) as client:
            assert (await say(client, faulty.url)).text == "charged 1"
        assert (len(faulty.requests("charge")), faulty.executions("charge")) == (2, 2)


async def test_a_client_without_it_runs_the_call_twice() -> None:
    """C23 of the bug reports. The control: the bare SDK, whose caller tries again as agents do."""
    with FaultyGateway() as faulty:
        client = FAMILY.AsyncClient(timeout=5)
        async with client, opened(sdk_streams(faulty.url, client), KINDS[0]) as session:
            faulty.script("charge", Slow(LATE, when="after"))
            await _cancelled(session, faulty)
            assert (await session.call("charge", {"amount": 1})).text == "charged 1"
        assert faulty.executions("charge") == 2
