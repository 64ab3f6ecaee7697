"""B2, B3, B6, R13, D27, D33. A payment runs once, whoever asks again, and the caller is told.

Executions are counted by the server, over real sockets, in each era that the installed SDK speaks.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import anyio
import pytest

from support.sessions import KINDS, SDK_ON_TRIO, Gate, Kind, nothing_left, opened, sdk_streams
from surefoot import Bearer, Gateway, Replay, Retry, ToolRule
from surefoot.credentials import CredentialRequest
from surefoot.errors import MayHaveRunError, RateLimitedError
from surefoot.testing import FaultyGateway, RecordingSink, Reset, Slow, Throttle, Tool

pytestmark = [pytest.mark.both_majors, pytest.mark.anyio, *SDK_ON_TRIO]

ERAS: Final[dict[Kind, tuple[str, ...]]] = {
    "modern": ("2026-07-28",),
    "handshake": ("2025-11-25",),
    "mcp1": ("2025-11-25",),
}
PAYS: Final = Replay(tools={"charge": ToolRule(makes_changes=True)})


def _server(kind: Kind, *tools: Tool, sse: bool = False) -> FaultyGateway:
    return FaultyGateway(tools, eras=ERAS[kind], sse=sse)


@pytest.mark.parametrize("sse", [False, True], ids=["json", "sse"])
@pytest.mark.parametrize("kind", KINDS)
async def test_a_loop_of_three_pays_once_and_an_answered_payment_may_be_made_again(
    kind: Kind, sse: bool
) -> None:
    """B3. The loop is told of the first call by its id; an answered one stands in nobody's way."""
    with _server(kind, sse=sse) as faulty:
        gateway = Gateway(faulty.url, replay=PAYS)
        async with nothing_left(faulty), gateway.session() as session:
            for _ in range(2):
                await session.call("charge", {"amount": 1})
            assert faulty.executions("charge") == 2
            faulty.script("charge", Reset("after-run"))
            told: list[MayHaveRunError] = []
            for _ in range(3):
                with pytest.raises(MayHaveRunError) as raised:
                    await session.call("charge", {"amount": 5.0})
                told.append(raised.value)
            assert [one.cause for one in told] == ["no-answer", "fenced", "fenced"]
            assert len({one.call_id for one in told}) == 1
            assert faulty.executions("charge") == 3
            call_id = told[0].call_id or ""
            assert gateway.settle(call_id, ran=False)
            assert (await session.call("charge", {"amount": 5})).text == "charged 5"


@pytest.mark.parametrize("kind", KINDS)
async def test_three_impatient_tries_of_a_slow_payment_pay_once(kind: Kind) -> None:
    """B2, B3. The SDK's own client: each try is told something, and one payment is made."""
    with _server(kind) as faulty:
        faulty.script("charge", Slow(0.6, when="after"))
        gateway = Gateway(faulty.url, replay=PAYS)
        async with opened(gateway.transport(), kind) as session:
            told = [await session.call("charge", {"amount": 1}, patience=0.1) for _ in range(3)]
            assert told[0].code is not None
            assert {one.kind for one in told[1:]} <= {"in-flight", "fenced"}
            assert all(one.facts["earlier_call_id"] for one in told[1:])
            await anyio.sleep(0.7)
        assert faulty.executions("charge") == len(faulty.requests("charge")) == 1


@pytest.mark.parametrize("patient", ["cancel", "timeout", "caller_timeout"])
@pytest.mark.parametrize("kind", KINDS)
async def test_a_caller_who_left_during_a_wait_causes_no_later_send(
    kind: Kind, patient: str
) -> None:
    """B2, B6. A wait of 0.4 s, and a caller who leaves after 0.15 s."""
    with _server(kind) as faulty:
        faulty.script("search", Throttle("1"))
        options: dict[str, Any] = {"retry": Retry(spread=0)}
        if patient == "caller_timeout":
            options["caller_timeout"] = 0.3
        async with Gateway(faulty.url, **options).session() as session:
            if patient == "cancel":
                with anyio.move_on_after(0.3) as scope:
                    await session.call("search")
                assert scope.cancelled_caught
            else:
                limit = 0.3 if patient == "timeout" else None
                with pytest.raises(RateLimitedError):
                    await session.call("search", timeout=limit)
            await anyio.sleep(1.2)
        assert faulty.executions("search") == 0
        assert len(faulty.requests("search")) == 1


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "modern"])
async def test_two_sessions_on_one_client_do_not_cancel_each_other(kind: Kind) -> None:
    """B2. Both use the same JSON-RPC ids; a cancellation ends the waits of its own session."""
    with _server(kind) as faulty:
        gateway = Gateway(faulty.url, retry=Retry(spread=0))
        async with (
            gateway.http_client() as client,
            opened(sdk_streams(faulty.url, client), kind) as one,
            opened(sdk_streams(faulty.url, client), kind) as other,
        ):
            faulty.script("search", Throttle("1"), Throttle("1"))
            told: list[str] = []

            async def patient() -> None:
                told.append((await other.call("search", {"q": "kept"})).text)

            async with anyio.create_task_group() as group:
                group.start_soon(patient)
                await faulty.until(lambda: len(faulty.requests("search")) == 1)
                await one.call("search", {"q": "left"}, patience=0.2)
        assert told == ["found kept"]


async def test_a_cancelled_call_that_was_on_the_wire_is_recorded_as_may_have_run() -> None:
    """D27. Cancellation stays cancellation, and the fence remembers."""
    gate, sink = Gate(), RecordingSink()
    replay = Replay(tools={"held": ToolRule(makes_changes=True)})
    for kind in KINDS:
        with _server(kind, Tool("held", answer=gate, makes_changes=True)) as faulty:
            gateway = Gateway(faulty.url, replay=replay, evidence=sink)
            async with gateway.session() as session:
                with anyio.CancelScope() as scope:
                    async with anyio.create_task_group() as group:
                        group.start_soon(session.call, "held")
                        await faulty.until(lambda: faulty.executions("held") == 1)
                        scope.cancel()
                assert scope.cancelled_caught
                with pytest.raises(MayHaveRunError):
                    await session.call("held")
            assert faulty.executions("held") == 1
            gate.open()
    records = [one for one in sink.of("tool.request_attempts") if one["tool"] == "held"]
    assert all(one["call"] for one in records), records
    told = [(one["may_have_run"], one["ended"], one["why"]) for one in records]
    # Of each kind the call that was cut, and the identical one that was not sent.
    assert sorted(told) == sorted(
        [(True, "cut", "cancelled"), (False, "not_sent", "fenced")] * len(KINDS)
    )


CHECKS: Final[list[tuple[object, str, int]]] = [
    (True, "already-ran", 1),
    (None, "fenced", 1),
    ("yes", "fenced", 1),
    (OSError("down"), "fenced", 1),
    (False, "charged 1", 2),
]


@pytest.mark.parametrize(("says", "told", "ran"), CHECKS, ids=str)
async def test_the_app_can_find_out_what_became_of_a_call(
    says: object, told: str, ran: int
) -> None:
    """B3. Asked once a call meets an open one that is over; only a plain yes or no settles it."""
    asked: list[tuple[str, Mapping[str, Any]]] = []

    async def check(tool: str, arguments: Mapping[str, Any]) -> Any:
        asked.append((tool, arguments))
        await anyio.lowlevel.checkpoint()
        if isinstance(says, Exception):
            raise says
        return says

    rule = ToolRule(makes_changes=True, check_effect=check)
    with FaultyGateway() as faulty:
        gateway = Gateway(faulty.url, replay=Replay(tools={"charge": rule}))
        async with opened(gateway.transport(), KINDS[0]) as session:
            faulty.script("charge", Reset("after-run"))
            assert (await session.call("charge", {"amount": 1})).kind == "no-answer"
            assert asked == []
            second = await session.call("charge", {"amount": 1})
        assert told in {second.kind, second.text}
        assert asked == [("charge", {"amount": 1})]
        assert faulty.executions("charge") == ran


async def test_nobody_asks_about_a_call_that_is_still_under_way() -> None:
    """B3."""
    gate = Gate()
    asked: list[str] = []

    async def check(tool: str, arguments: Mapping[str, Any]) -> bool:
        asked.append(tool + str(arguments))
        return False

    rule = ToolRule(makes_changes=True, check_effect=check)
    with FaultyGateway([Tool("held", answer=gate)]) as faulty:
        gateway = Gateway(faulty.url, replay=Replay(tools={"held": rule}))
        async with (
            opened(gateway.transport(), KINDS[0]) as session,
            anyio.create_task_group() as group,
        ):
            group.start_soon(session.call, "held")
            await faulty.until(lambda: faulty.executions("held") == 1)
            assert (await session.call("held")).kind == "in-flight"
            gate.open()
        assert asked == []
        assert faulty.executions("held") == 1


async def test_two_principals_share_the_fence_by_name_and_never_a_credential() -> None:
    """B3, R111. Each call carries its own user's credential; a payment stops only its own."""

    async def vault(request: CredentialRequest) -> Bearer:
        assert request.mode == "user"
        assert request.user_token is None
        await anyio.lowlevel.checkpoint()
        return Bearer(f"token-of-{request.principal}")

    with FaultyGateway() as faulty:
        gateway = Gateway(faulty.url, credentials=vault, replay=PAYS)
        users = {name: gateway.acting_for(user_id=name) for name in ("ada", "bob")}

        async def work(name: str) -> None:
            async with users[name].session() as session:
                for number in range(5):
                    await session.call("search", {"q": f"{name}-{number}"})

        async with anyio.create_task_group() as group:
            for name in users:
                group.start_soon(work, name)
        for entry in faulty.requests("search"):
            body = entry.body.decode()
            name = "ada" if "ada-" in body else "bob"
            assert entry.header("authorization") == f"Bearer token-of-{name}".encode()
        async with users["ada"].session() as ada, users["bob"].session() as bob:
            faulty.script("charge", Reset("after-run"))
            with pytest.raises(MayHaveRunError) as raised:
                await ada.call("charge", {"amount": 1})
            with pytest.raises(MayHaveRunError, match="fenced"):
                await ada.call("charge", {"amount": 1})
            assert (await bob.call("charge", {"amount": 1})).text == "charged 1"
        assert gateway.settle(raised.value.call_id or "", ran=True)


@pytest.mark.parametrize(
    ("first", "then", "stands"),
    [
        ({"user_id": "ada"}, {"user_id": "ada"}, True),
        ({"user_token": "token-1"}, {"user_token": "token-1"}, True),
        ({"user_token": "token-1"}, {"user_token": "token-2"}, False),
        ({"user_token": "token-1"}, {"user_id": "token-1"}, False),
    ],
    ids=["an id", "a token", "a new token", "a token as an id"],
)
async def test_a_user_is_known_by_the_id_or_by_the_token_that_the_app_gives(
    first: dict[str, str], then: dict[str, str], stands: bool
) -> None:
    """B3. Objects do not matter, and a token that was renewed is another user's."""

    async def vault(_: CredentialRequest) -> Bearer:
        return Bearer("a-token-of-the-vault")

    with FaultyGateway() as faulty:
        gateway = Gateway(faulty.url, credentials=vault, replay=PAYS)
        faulty.script("charge", Reset("after-run"))
        async with gateway.acting_for(**first).session() as session:
            with pytest.raises(MayHaveRunError):
                await session.call("charge", {"amount": 1})
        async with gateway.acting_for(**then).session() as session:
            if stands:
                with pytest.raises(MayHaveRunError, match="fenced"):
                    await session.call("charge", {"amount": 1})
            else:
                assert (await session.call("charge", {"amount": 1})).text == "charged 1"
        assert faulty.executions("charge") == 2 - stands


async def test_a_client_of_one_principal_is_not_protected_for_another() -> None:
    """R111. It would call with the first one's credentials."""
    gateway = Gateway("http://127.0.0.1:1/mcp", credentials=Bearer("token-of-nobody"))
    async with gateway.acting_for(user_id="ada").http_client() as client:
        with pytest.raises(ValueError, match="another principal"):
            gateway.acting_for(user_id="bob").protect(client)


@pytest.mark.parametrize("trusted", [False, True])
@pytest.mark.parametrize("sse", [False, True], ids=["json", "sse"])
async def test_a_hint_grants_a_repeat_only_where_it_is_trusted(trusted: bool, sse: bool) -> None:
    """D30. Learned from the list that went by, and recorded as what it is."""
    sink = RecordingSink()
    with FaultyGateway(sse=sse) as faulty:
        replay = Replay(policy="app-authorized", trust_hints=trusted)
        retry = Retry(base_delay=0.01)
        gateway = Gateway(faulty.url, retry=retry, replay=replay, evidence=sink)
        async with gateway.session() as session:
            await session.tools()
            faulty.script("search", Reset())
            faulty.script("charge", Reset())
            if trusted:
                assert (await session.call("search")).text == "found everything"
            for tool in ("charge",) if trusted else ("charge", "search"):
                with pytest.raises(MayHaveRunError):
                    await session.call(tool)
        assert len(faulty.requests("search")) == 1 + trusted
        assert len(faulty.requests("charge")) == 1
    records: list[Any] = sink.of("tool.request_attempts")
    given = [attempt.get("permission") for one in records for attempt in one["attempts"]]
    assert {one["by"] for one in given if one} == ({"hint"} if trusted else set[str]())
