"""B3, D29, D30, D33. Rounds of one call pass the fence, carry one id, and a lost one stays open.

Spoken on the wire of 2026-07-28, as the SDK speaks it: a round that asks for input answers with a
`requestState`, and the next round is another request that carries it.
"""

from __future__ import annotations

from typing import Any, Final

import anyio
import pytest

from support.sessions import FAMILY
from surefoot import Gateway, Replay, ToolRule
from surefoot.testing import Fails, RecordingSink, Replies, ScriptedTransport

pytestmark = [pytest.mark.both_majors, pytest.mark.anyio]

URL: Final = "http://127.0.0.1:1/mcp"
PAYS: Final = Replay(tools={"pay": ToolRule(makes_changes=True)})
ASKS: Final = Replies(
    result={"resultType": "input_required", "inputRequests": {}, "requestState": "v1.sealed"}
)
PAID: Final = Replies(result={"content": [], "isError": False})


async def _call(client: Any, number: int, **params: Any) -> dict[str, Any]:
    message = {
        "jsonrpc": "2.0",
        "id": number,
        "method": "tools/call",
        "params": {"name": "pay", "arguments": {"amount": 1}, **params},
    }
    response = await client.post(URL, json=message)
    answer: dict[str, Any] = response.json()
    return answer


def _kind(answer: dict[str, Any]) -> str | None:
    result: Any = answer.get("result", {})
    kind: str | None = result.get("_meta", {}).get("surefoot/outcome", {}).get("kind")
    return kind


async def test_rounds_of_a_call_pass_and_are_recorded_under_one_id() -> None:
    """B3, D33."""
    sink = RecordingSink()
    wire = ScriptedTransport(ASKS, PAID, PAID)
    gateway = Gateway(URL, replay=PAYS, evidence=sink)
    async with gateway.protect(FAMILY.AsyncClient(transport=wire)) as client:
        await _call(client, 1)
        done = await _call(client, 2, requestState="v1.sealed", inputResponses={})
        another = await _call(client, 3)
    assert _kind(done) is _kind(another) is None
    calls = [record["call"] for record in sink.of("tool.request_attempts")]
    assert calls[0] == calls[1] != calls[2]


async def test_a_call_whose_last_round_was_lost_is_not_begun_anew() -> None:
    """B3. The call that begins from the start is the same call, though it carries no state."""
    wire = ScriptedTransport(ASKS, Fails("ReadError"), PAID)
    gateway = Gateway(URL, replay=PAYS)
    async with gateway.protect(FAMILY.AsyncClient(transport=wire)) as client:
        await _call(client, 1)
        lost = await _call(client, 2, requestState="v1.sealed", inputResponses={})
        again = await _call(client, 3)
    assert (_kind(lost), _kind(again)) == ("no-answer", "fenced")


async def test_a_round_that_was_lost_is_not_sent_again_with_the_same_state() -> None:
    """B3. Its state says which call it goes on with, and not that it did not run."""
    wire = ScriptedTransport(ASKS, Fails("ReadError"), PAID)
    gateway = Gateway(URL, replay=PAYS)
    async with gateway.protect(FAMILY.AsyncClient(transport=wire)) as client:
        await _call(client, 1)
        for number, told in ((2, "no-answer"), (3, "fenced")):
            lost = await _call(client, number, requestState="v1.sealed", inputResponses={})
            assert _kind(lost) == told
        assert len(wire.requests) == 2


async def test_a_state_that_is_the_same_for_two_calls_makes_them_not_one() -> None:
    """B3, D33. A server may seal "step 2" alone: what ends one payment says nothing of another."""
    sink = RecordingSink()
    goes_on: Any = {"requestState": "v1.sealed", "inputResponses": {}}
    told: dict[int, dict[str, Any]] = {}
    first_is_out, both_are_out, first_is_over = anyio.Event(), anyio.Event(), anyio.Event()

    async def pays_once_both_are_out(_: object) -> Replies:
        first_is_out.set()
        await both_are_out.wait()
        return PAID

    async def is_lost_after_the_first(_: object) -> Fails:
        both_are_out.set()
        await first_is_over.wait()
        return Fails("ReadError")

    wire = ScriptedTransport(ASKS, ASKS, pays_once_both_are_out, is_lost_after_the_first, PAID)
    gateway = Gateway(URL, replay=PAYS, evidence=sink)
    async with gateway.protect(FAMILY.AsyncClient(transport=wire)) as client:

        async def next_round(amount: int) -> None:
            told[amount] = await _call(client, 2 + amount, arguments={"amount": amount}, **goes_on)
            if amount == 1:
                first_is_over.set()

        for amount in (1, 2):
            await _call(client, amount, arguments={"amount": amount})
        with anyio.fail_after(10):
            async with anyio.create_task_group() as group:
                group.start_soon(next_round, 1)
                await first_is_out.wait()
                group.start_soon(next_round, 2)
        again = await _call(client, 5, arguments={"amount": 2}, **goes_on)
    assert [_kind(one) for one in (told[1], told[2], again)] == [None, "no-answer", "fenced"]
    assert len(wire.requests) == 4
    ids: dict[object, set[object]] = {}
    for record in sink.of("tool.request_attempts"):
        request: Any = record["request"]
        ids.setdefault(request["sha256"], set()).add(record["call"])
    # Both rounds of a call are under its one id, and the two calls under two.
    assert [len(one) for one in ids.values()] == [1, 1]
    assert len(set[object]().union(*ids.values())) == 2


async def test_what_one_user_began_another_does_not_go_on_with() -> None:
    """B3, D33. The same words of two people are two calls, each with a beginning of its own."""
    sink = RecordingSink()
    mismatch = Replies(400, error={"code": -32020, "message": "header mismatch"})
    wires = {"ada": ScriptedTransport(mismatch, PAID), "bob": ScriptedTransport(ASKS, PAID)}
    gateway = Gateway(URL, replay=PAYS, evidence=sink)
    clients = {
        name: gateway.acting_for(user_id=name).protect(FAMILY.AsyncClient(transport=wire))
        for name, wire in wires.items()
    }
    first: dict[str, Any] = {}
    second: dict[str, Any] = {"requestState": "v1.sealed", "inputResponses": {}}
    async with clients["ada"], clients["bob"]:
        for number, (name, more) in enumerate(
            [("ada", first), ("bob", first), ("ada", first), ("bob", second)], start=1
        ):
            await _call(clients[name], number, **more)
    ada, bob, ada_again, bob_again = (record["call"] for record in sink.of("tool.request_attempts"))
    assert (ada, bob) == (ada_again, bob_again)
    assert ada != bob
    assert len(sink.of("call.started")) == 2


async def test_a_call_sent_again_after_a_header_mismatch_passes_under_the_same_id() -> None:
    """B3, D33."""
    sink = RecordingSink()
    mismatch = Replies(400, error={"code": -32020, "message": "header mismatch"})
    wire = ScriptedTransport(mismatch, PAID)
    gateway = Gateway(URL, replay=PAYS, evidence=sink)
    async with gateway.protect(FAMILY.AsyncClient(transport=wire)) as client:
        await _call(client, 1)
        assert _kind(await _call(client, 2)) is None
    calls = [record["call"] for record in sink.of("tool.request_attempts")]
    assert calls[0] == calls[1]


async def test_a_call_without_its_idempotency_key_is_fenced_and_one_with_it_is_not() -> None:
    """B3, D9. What guards is the key that this call carries, and not that a key was declared."""
    rule = ToolRule(
        makes_changes=True, idempotency_key="_meta.key", repeat_on={"network", "throttle"}
    )
    for meta, told in (({}, "fenced"), ({"key": "k-1"}, None)):
        lost = [Fails("ReadError")] * (1 if told else 3)
        wire = ScriptedTransport(*lost, PAID)
        gateway = Gateway(URL, replay=Replay(tools={"pay": rule}))
        async with gateway.protect(FAMILY.AsyncClient(transport=wire)) as client:
            assert _kind(await _call(client, 1, _meta=meta)) == "no-answer"
            assert _kind(await _call(client, 2, _meta=meta)) == told


async def test_the_fence_outlives_a_join_and_belongs_to_whoever_declared() -> None:
    """R30, B3."""
    wire = ScriptedTransport(Fails("ReadError"), PAID)
    first, second = Gateway(URL, replay=PAYS), Gateway(URL, replay=PAYS)
    async with second.protect(first.protect(FAMILY.AsyncClient(transport=wire))) as client:
        assert _kind(await _call(client, 1)) == "no-answer"
        stopped = await _call(client, 2)
        assert _kind(stopped) == "fenced"
        earlier = stopped["result"]["_meta"]["surefoot/outcome"]["earlier_call_id"]
        assert second.settle(earlier, ran=False)
        assert _kind(await _call(client, 3)) is None


async def test_a_list_in_pages_is_judged_when_it_is_whole(caplog: pytest.LogCaptureFixture) -> None:
    """D29. Once for each tool; a page alone says nothing about what other pages hold."""
    pages = [
        Replies(result={"tools": [{"name": "other"}], "nextCursor": "2"}),
        Replies(result={"tools": [{"name": "pay"}]}),
        Replies(result={"tools": []}),
        Replies(result={"tools": []}),
    ]
    gateway = Gateway(URL, replay=PAYS)
    wire = ScriptedTransport(*pages)
    said: list[int] = []
    async with gateway.protect(FAMILY.AsyncClient(transport=wire)) as client:
        for cursor in (None, "2", None, None):
            params = {} if cursor is None else {"cursor": cursor}
            message = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": params}
            await client.post(URL, json=message)
            said.append(sum("does not list" in record.getMessage() for record in caplog.records))
    assert said == [0, 0, 1, 1]


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"makes_changes": True, "check_effect": "secret"}, TypeError),
        ({"check_effect": print}, ValueError),
    ],
)
def test_a_check_that_could_never_be_asked_is_refused(
    options: dict[str, Any], error: type[Exception]
) -> None:
    """R71, R72, B3."""
    with pytest.raises(error, match=r"^check_effect: ") as raised:
        ToolRule(**options)
    assert "secret" not in str(raised.value)
