"""R1 to R3, R26, R35, R37, R45, B1, B5. Kind a of the bug reports: a rate limit stays one.

It is waited out where it can be. Where it cannot, its caller is told that it is one, and how long
it lasts: neither "the tool is broken" nor "you may not", and nobody else's call is touched.
"""

from __future__ import annotations

from typing import Any, Final

import anyio
import pytest

from support.exchanges import FAMILIES, exchange
from support.reports import attempts_of
from support.sessions import KINDS, SDK_ON_TRIO, Gate, Kind, Told, nothing_left, opened, told
from surefoot import Gateway, RateLimitedError, Replay, Retry
from surefoot.errors import CredentialError
from surefoot.testing import (
    FakeClock,
    FaultyGateway,
    RecordingSink,
    Reset,
    RpcError,
    Status,
    Step,
    Throttle,
    Tool,
)

pytestmark = [pytest.mark.both_majors, pytest.mark.anyio, *SDK_ON_TRIO]


REFUSALS: Final[dict[str, Step]] = {
    "text": Throttle(1),
    "nothing": Throttle(1, body=""),
    "a JSON-RPC error": Throttle(1, rpc_code=-32000),
    "JSON of no protocol": Throttle(
        1, body='{"error":"slow down"}', headers={"content-type": "application/json"}
    ),
    "a page": Throttle(1, body="<h1>429</h1>", headers={"content-type": "text/html"}),
    "half of something": Throttle(1, body='{"jsonrpc":'),
}
"""What a refusal may hold: none of it may make it anything else."""


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("body", REFUSALS)
async def test_a_stated_wait_is_waited_and_the_caller_reads_the_result_alone(
    body: str, kind: Kind
) -> None:
    """R1, R2, R35, C01 of the bug reports. Two attempts, one wait of at least what was asked."""
    clock, sink = FakeClock(), RecordingSink()
    with FaultyGateway() as faulty:
        gateway = Gateway(faulty.url, clock=clock, evidence=sink)
        async with opened(gateway.transport(), kind) as session:
            faulty.script("charge", REFUSALS[body])
            told = await session.call("charge", {"amount": 1})
    assert (told.text, told.is_error, told.facts) == ("charged 1", False, {})
    assert (len(faulty.requests("charge")), faulty.executions("charge")) == (2, 1)
    first, second = attempts_of(sink)
    assert (first["status"], second["status"]) == (429, 200)
    assert first["retry_after_seconds"] == 1
    assert 1 <= first["wait_seconds"] <= 1.5
    assert clock.sleeps == pytest.approx((first["wait_seconds"],))


@pytest.mark.parametrize("family", FAMILIES[:1])
async def test_the_second_attempt_comes_no_sooner_than_was_asked(family: str) -> None:
    """R35, C01 of the bug reports. By the server's own clock, in real time."""
    with FaultyGateway() as faulty:
        faulty.script("charge", Throttle(1))
        gateway = Gateway(faulty.url, retry=Retry(spread=0), evidence=(sink := RecordingSink()))
        told = await exchange(gateway, faulty, sink, family=family)
    first, second = told.sends
    assert second.at - first.at >= 1.0
    assert first.body == second.body


TOO_LONG: Final[dict[str, dict[str, Any]]] = {
    "waiting": {"retry": Retry(max_wait=0.9)},
    "a deadline": {"retry": Retry(max_elapsed=0.9)},
    "the caller's patience": {"caller_timeout": 0.9},
    "no waiting": {"retry": Retry(max_wait=0)},
    "one attempt": {"retry": Retry(max_attempts=1)},
    "no repeats at all": {"retry": None},
}


@pytest.mark.parametrize("budget", TOO_LONG)
async def test_a_wait_that_does_not_fit_is_told_at_once_as_what_it_is(budget: str) -> None:
    """R26, R37, R45, B5, B6, C01 of the bug reports. Typed, with the wait; nothing was waited."""
    clock = FakeClock()
    with FaultyGateway() as faulty:
        gateway = Gateway(faulty.url, clock=clock, **TOO_LONG[budget])
        async with gateway.session() as session:
            faulty.script("charge", Throttle(1), repeat=True)
            with pytest.raises(RateLimitedError) as caught:
                await session.call("charge", {"amount": 1})
            faulty.clear_scripts()
            assert (await session.call("charge", {"amount": 2})).text == "charged 2"
    assert (caught.value.retry_after, caught.value.attempts) == (1, 1)
    assert clock.sleeps == ()


COULD_NOT_FIND_OUT: Final[dict[str, tuple[Step, str, str]]] = {
    "a rate limit": (Throttle(60), "rate-limited", "wait about 60 seconds"),
    "a rate limit without a wait": (Throttle(), "rate-limited", "give the server time"),
    "a failure": (Status(503), "server-failure", "failed while it handled"),
    "no answer": (Reset(), "no-answer", "No answer"),
}
NOT_ALLOWED: Final[dict[str, tuple[Step, str, str]]] = {
    "403": (Status(403), "forbidden", "access is not permitted"),
    "401": (Status(401), "unauthorized", "did not accept the credential"),
}
LOOK_UPS: Final = {**COULD_NOT_FIND_OUT, **NOT_ALLOWED}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("how", LOOK_UPS)
async def test_could_not_find_out_is_not_the_same_as_may_not(how: str, kind: Kind) -> None:
    """R2, R3, B5, C03 of the bug reports. A look-up that fails is told by its own name, each time.

    Nothing is remembered of it: the next look-up works, and so does the tool meanwhile.
    """
    step, outcome, words = LOOK_UPS[how]
    with FaultyGateway() as faulty:
        gateway = Gateway(faulty.url, retry=Retry(max_wait=0), replay=Replay(trust_hints=True))
        async with opened(gateway.transport(), kind) as session:
            await session.sdk.list_tools()
            faulty.script("tools/list", step, repeat=True)
            for _ in range(2):
                read = await told(session.sdk.list_tools())
                assert (read.kind, words in read.text) == (outcome, True), read
            assert (await session.call("search", {"q": "it"})).text == "found it"
            faulty.clear_scripts()
            assert (await session.sdk.list_tools()).tools


@pytest.mark.parametrize("how", LOOK_UPS)
async def test_what_was_known_of_the_tools_stays_known_and_usable(how: str) -> None:
    """R2, D29, D30, C03 of the bug reports. Our own client: temporary and "no" are two types."""
    step, _, _ = LOOK_UPS[how]
    with FaultyGateway() as faulty:
        gateway = Gateway(faulty.url, retry=Retry(max_wait=0), replay=Replay(trust_hints=True))
        async with gateway.session() as session:
            known = {tool.name for tool in await session.tools()}
            faulty.script("tools/list", step, repeat=True)
            with pytest.raises(Exception) as caught:  # noqa: PT011 - its type is looked at below
                await session.refresh()
            assert isinstance(caught.value, CredentialError) == (how in NOT_ALLOWED)
            assert isinstance(caught.value, RateLimitedError) == ("rate limit" in how)
            assert {tool.name for tool in await session.tools()} == known
            assert (await session.call("search", {"q": "it"})).text == "found it"
            faulty.clear_scripts()
            await session.refresh()
            assert {tool.name for tool in await session.tools()} == known


ONE_CALLS_AFFAIR: Final[dict[str, Step]] = {
    "429 in text": Throttle(60),
    "429 without a word": Throttle(body=""),
    "429 as JSON-RPC": Throttle(60, rpc_code=-32000),
    **{f"{status} in text": Status(status, "oops") for status in (400, 409, 500, 502, 503, 504)},
    "500 as JSON-RPC": RpcError(-32603, status=500),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("how", ONE_CALLS_AFFAIR)
async def test_a_refusal_ends_no_session_and_no_other_call(how: str, kind: Kind) -> None:
    """B1, R26, C05 of the bug reports. A standing stream is open, and another call in flight."""
    gate, others, spoilt = Gate(), list[Told](), list[Told]()
    with FaultyGateway([Tool("held", answer=gate)]) as faulty:
        gateway = Gateway(faulty.url, retry=Retry(max_wait=0))
        async with nothing_left(faulty), opened(gateway.transport(), kind) as session:
            if kind != "modern":
                await faulty.until(lambda: len(faulty.requests("GET")) == 1)

            async def held() -> None:
                others.append(await session.call("held"))

            async with anyio.create_task_group() as group:
                group.start_soon(held)
                await faulty.until(lambda: faulty.executions("held") == 1)
                faulty.script("charge", ONE_CALLS_AFFAIR[how])
                with anyio.fail_after(2):
                    spoilt.append(await session.call("charge", {"amount": 1}))
                assert (await session.call("charge", {"amount": 2})).text == "charged 2"
                gate.open()
        assert [one.is_error or one.code is not None for one in spoilt] == [True]
        assert [one.text for one in others] == ["held a while"]
        assert faulty.executions("charge") == 1
        assert all(entry.step is None or entry.tool == "charge" for entry in faulty.journal)
