"""D3, D10, D27, R12, R37, R45, R80, R117. What never left, and what ends a series.

A refused port proves that nothing left; so does a credential that could not be had. A cancellation
and a deadline end a series wherever it stands, and nothing is sent later.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Any, Final, Literal

import anyio
import pytest

from support.exchanges import FAMILIES, client_of, exchange
from support.late_port import LatePort
from support.sessions import nothing_left
from surefoot import Bearer, Gateway, Replay, Retry, ToolRule
from surefoot.credentials import AuthorizationRequired, CredentialRequest
from surefoot.policy import RetryNotice
from surefoot.testing import (
    FaultyGateway,
    RecordingSink,
    Reset,
    Slow,
    Step,
    Throttle,
    TokenBucket,
    tool_call,
)

pytestmark = [pytest.mark.both_majors, pytest.mark.anyio]

Policy = Literal["assume-refused", "app-authorized"]

DECLARED: Final = {
    "nothing": ToolRule(),
    "makes changes": ToolRule(makes_changes=True),
    "on throttle": ToolRule(repeat_on={"throttle"}),
}


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("policy", ["assume-refused", "app-authorized"])
@pytest.mark.parametrize("declared", DECLARED)
async def test_what_never_left_is_sent_again_under_every_declaration(
    declared: str, policy: Policy, family: str
) -> None:
    """D3. A closed port that opens during the wait; the permission is the proof."""
    sink, notices = RecordingSink(), list[RetryNotice]()
    with FaultyGateway() as faulty, LatePort(faulty) as port:

        def opens(notice: RetryNotice) -> None:
            notices.append(notice)
            port.open()

        gateway = Gateway(
            port.url,
            retry=Retry(base_delay=0.01, on_retry=opens),
            replay=Replay(policy=policy, tools={"charge": DECLARED[declared]}),
            evidence=sink,
        )
        told = await exchange(gateway, faulty, sink, family=family)
    assert (told.text, told.ran, len(told.sends)) == ("charged 1", 1, 1)
    assert told.column("outcome") == ["not_sent", "answered"]
    assert told.column("effect") == ["not_sent", "ran"]
    assert told.column("reason") == ["first", "reconnect"]
    assert told.grants == [("proof", None), None]
    assert [(one.kind, one.attempt) for one in notices] == [("network", 2)]


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("reconnect", [True, False])
async def test_what_could_not_be_sent_did_not_run(reconnect: bool, family: str) -> None:
    """D3, R43. The port stays closed; without `reconnect` it is tried once."""
    sink = RecordingSink()
    with FaultyGateway() as faulty, LatePort(faulty) as port:
        retry = Retry(base_delay=0.01, reconnect=reconnect)
        gateway = Gateway(port.url, retry=retry, evidence=sink)
        told = await exchange(gateway, faulty, sink, family=family)
    tries = 3 if reconnect else 1
    assert (told.kind, told.ran, told.sends) == ("not-sent", 0, ())
    assert told.outcome["may_have_run"] is False
    assert told.outcome["effect"] == "not_sent"
    assert told.column("effect") == ["not_sent"] * tries
    why = "attempts-spent" if reconnect else "reconnect-off"
    assert (told.record["ended"], told.record["why"]) == ("not_sent", why)
    assert told.record["may_have_run"] is False


@pytest.mark.parametrize("family", FAMILIES)
async def test_once_it_may_have_run_no_closed_port_takes_that_back(family: str) -> None:
    """R27. The first attempt got no answer; then the server was gone."""
    sink = RecordingSink()
    with FaultyGateway() as faulty, LatePort(faulty) as port:
        port.open()
        faulty.script("charge", Reset("after-run"))

        def closes(_: RetryNotice) -> None:
            port.__exit__(None, None, None)

        gateway = Gateway(
            port.url,
            retry=Retry(base_delay=0.01, on_retry=closes),
            replay=Replay(tools={"charge": ToolRule(repeat_on={"network"})}),
            evidence=sink,
        )
        told = await exchange(gateway, faulty, sink, family=family)
    assert (told.kind, told.ran) == ("no-answer", 1)
    assert told.outcome["may_have_run"] is True
    assert told.record["may_have_run"] is True
    assert told.column("effect")[0] == "unknown"
    assert set(told.column("effect")[1:]) == {"not_sent"}


async def _raises(request: CredentialRequest) -> Bearer:
    del request
    message = "the vault quotes canary"
    raise ValueError(message)


async def _asks(request: CredentialRequest) -> AuthorizationRequired:
    return AuthorizationRequired(
        service=request.service, authorization_url="https://consent.example/canary"
    )


async def _bad_signer(request: Any) -> Any:
    del request
    message = "the signer quotes canary"
    raise RuntimeError(message)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"credentials": _raises}, "credentials-failed"),
        ({"credentials": _asks}, "consent-needed"),
        ({"signer": _bad_signer}, "credentials-failed"),
    ],
    ids=["the provider fails", "a person must consent", "the signer fails"],
)
async def test_without_a_credential_nothing_is_sent_and_nothing_ran(
    options: dict[str, Any], words: str, family: str
) -> None:
    """R117, section 4. One try, no repeat, no word of the provider's, and never a server's 401."""
    sink = RecordingSink()
    with FaultyGateway() as faulty:
        gateway = Gateway(faulty.url, retry=Retry(base_delay=0.01), evidence=sink, **options)
        told = await exchange(gateway, faulty, sink, family=family)
    assert (told.status, told.kind, told.ran, told.sends) == (200, words, 0, ())
    assert told.outcome["may_have_run"] is False
    assert "canary" not in told.text
    assert told.column("effect") == ["not_sent"]
    assert (told.record["ended"], told.record["why"]) == ("not_sent", "credential-failed")


CUTS: Final[dict[str, Step]] = {"while it waits": Throttle(5), "in flight": Slow(5.0)}


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("where", CUTS)
async def test_a_cancelled_call_sends_nothing_later_and_is_recorded_once(
    where: str, family: str
) -> None:
    """R12, D27, invariant 16. In a wait and in flight; the cancellation stays one."""
    sink = RecordingSink()
    waits: list[object] = []
    with FaultyGateway() as faulty:
        retry = Retry(spread=0, on_retry=waits.append)
        gateway = Gateway(faulty.url, retry=retry, evidence=sink)
        faulty.script("charge", CUTS[where], repeat=True)
        asked = tool_call("charge", {"amount": 1})
        async with nothing_left(faulty), gateway.protect(client_of(family)) as client:

            async def ask() -> None:
                await client.post(faulty.url, headers=asked.headers, content=asked.body)

            def begun() -> bool:
                if where == "while it waits":
                    return bool(waits)
                return any(entry.step is not None for entry in faulty.requests("charge"))

            async with anyio.create_task_group() as tasks:
                tasks.start_soon(ask)
                await faulty.until(begun)
                tasks.cancel_scope.cancel()
            assert tasks.cancel_scope.cancelled_caught
            faulty.script("charge", Throttle(0))
            answer = await client.post(faulty.url, headers=asked.headers, content=asked.body)
        assert "charged" in answer.text
        await faulty.until(lambda: not any(entry.in_flight for entry in faulty.journal))
        # One send of the cancelled call, two of the one after it.
        assert len(faulty.requests("charge")) == 3
        assert faulty.executions("charge") == 1
    first, second = sink.of("tool.request_attempts")
    assert (first["ended"], first["why"]) == ("cut", "cancelled")
    assert len(first["attempts"]) == 1  # type: ignore[arg-type]
    assert first["may_have_run"] is (where == "in flight")
    assert second["ended"] == "answered"


@pytest.mark.parametrize("family", FAMILIES)
async def test_a_wait_that_would_end_past_the_deadline_is_never_begun(family: str) -> None:
    """R45, R37. The refusal is delivered at once."""
    sink = RecordingSink()
    with FaultyGateway() as faulty:
        gateway = Gateway(faulty.url, retry=Retry(max_elapsed=2.0, max_wait=60), evidence=sink)
        faulty.script("charge", Throttle(5), repeat=True)
        with anyio.fail_after(1.5):
            told = await exchange(gateway, faulty, sink, family=family)
    assert (told.kind, len(told.sends), told.record["why"]) == ("rate-limited", 1, "no-time")
    assert told.outcome["retry_after_seconds"] == 5


@pytest.mark.parametrize("family", FAMILIES)
async def test_a_body_too_large_to_keep_is_sent_once_and_its_refusal_delivered(family: str) -> None:
    """D10. It goes out whole, is not sent again, and the 429 is handed on as the server's."""
    sink, size = RecordingSink(), 17 << 20

    async def body() -> AsyncGenerator[bytes]:
        for _ in range(17):
            yield b" " * (1 << 20)

    with FaultyGateway(limit=TokenBucket(0.01, 1, methods=None)) as faulty:
        gateway = Gateway(faulty.url, retry=Retry(base_delay=0.01, max_wait=None), evidence=sink)
        async with gateway.protect(client_of(family)) as client:
            await client.get(faulty.origin + "/mcp")
            with anyio.fail_after(5):
                answer = await client.post(faulty.url, content=body())
        entry = faulty.journal[-1]
    assert len(entry.body) == size
    assert (answer.status_code, len(faulty.requests("POST"))) == (429, 1)
    record = sink.of("tool.request_attempts")[-1]
    assert record["why"] == "body-not-resendable"
    assert len(record["attempts"]) == 1  # type: ignore[arg-type]


@pytest.mark.parametrize("family", FAMILIES)
async def test_without_retry_nothing_is_repeated_but_what_is_declared(family: str) -> None:
    """R80. `retry=None` switches the 429 off and nothing else; the default budget then holds."""
    for rule, step, sends in (
        (ToolRule(), Throttle(0), 1),
        (ToolRule(repeat_on={"network"}), Throttle(0), 1),
        (ToolRule(repeat_on={"network"}), Reset(), 2),
        (ToolRule(), Reset(), 1),
    ):
        sink = RecordingSink()
        with FaultyGateway() as faulty:
            replay = Replay(tools={"charge": rule})
            gateway = Gateway(faulty.url, retry=None, replay=replay, evidence=sink)
            faulty.script("charge", step)
            told = await exchange(gateway, faulty, sink, family=family)
        assert len(told.sends) == sends
