"""B2, B6. Whoever has left by the time at which an attempt would leave causes no send.

A caller can leave before there is a record of its call, while a credential is being fetched, while
a request is being signed, or while a person is asked to consent.
"""

from __future__ import annotations

import importlib
from typing import Any, Final

import anyio
import anyio.lowlevel
import pytest

from support.exchanges import FAMILIES
from support.sending import URL, message
from support.sessions import MCP_MAJOR, SDK_ON_TRIO
from surefoot import Bearer, Gateway, Replay, ToolRule
from surefoot.credentials import AuthorizationRequired
from surefoot.testing import FaultyGateway, RecordingSink, Replies, ScriptedTransport

pytestmark = [pytest.mark.both_majors, pytest.mark.anyio, *SDK_ON_TRIO]

CHANGES: Final = Replay(tools={"search": ToolRule(makes_changes=True)})
DONE: Final = Replies(result={"content": [{"type": "text", "text": "done"}], "isError": False})


def protected(family: str, wire: ScriptedTransport, **options: Any) -> Any:
    """A client of the family whose Gateway sends into a script."""
    module: Any = importlib.import_module(family)
    return Gateway(URL, replay=CHANGES, **options).protect(module.AsyncClient(transport=wire))


async def post(client: Any) -> str:
    asked = message()
    answer = await client.post(URL, content=asked.body, headers=dict(asked.headers))
    return str(answer.text)


@pytest.mark.parametrize("slow", ["the credential", "the signature"])
@pytest.mark.parametrize(("patience", "sends"), [(0.1, 0), (30.0, 1)])
@pytest.mark.parametrize("family", FAMILIES)
async def test_what_is_ready_only_after_the_caller_left_is_not_sent(
    family: str, slow: str, patience: float, sends: int
) -> None:
    """B6, B2. The budget counts what happens before an attempt leaves, too."""

    async def vend(_: object) -> Bearer:
        await anyio.sleep(0.3 if slow == "the credential" else 0)
        return Bearer("a-token-that-came-late")

    async def sign(request: Any) -> Any:
        await anyio.sleep(0.3 if slow == "the signature" else 0)
        return request

    wire = ScriptedTransport(DONE)
    sink = RecordingSink()
    client = protected(
        family, wire, credentials=vend, signer=sign, caller_timeout=patience, evidence=sink
    )
    text = await post(client)
    assert len(wire.requests) == sends
    assert ("it did not run: the time allowed" in text) is (sends == 0)
    (record,) = sink.of("tool.request_attempts")
    assert record["may_have_run"] is False
    attempts: Any = record["attempts"]
    assert [one["effect"] for one in attempts] == ["not_sent" if not sends else "ran"]


@pytest.mark.parametrize("family", FAMILIES)
async def test_a_caller_who_leaves_while_a_person_is_asked_leaves_nothing_behind(
    family: str,
) -> None:
    """R117, B3. Nothing was sent, so nothing stands against the same call afterwards."""
    needed = True

    async def vend(_: object) -> Any:
        if needed:
            return AuthorizationRequired("gateway", "https://consent.test/once")
        return Bearer("a-token-after-consent")

    asked = anyio.Event()

    async def ask(_: object) -> None:
        asked.set()
        await anyio.sleep_forever()

    wire = ScriptedTransport(DONE)
    sink = RecordingSink()
    client = protected(family, wire, credentials=vend, on_authorization=ask, evidence=sink)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(post, client)
        with anyio.fail_after(10):
            await asked.wait()
        tasks.cancel_scope.cancel()
    (record,) = sink.of("tool.request_attempts")
    assert (record["ended"], record["may_have_run"]) == ("not_sent", False)
    needed = False
    assert "done" in await post(client)
    assert len(wire.requests) == 1


@pytest.mark.parametrize("turns", range(0, 24, 3))
async def test_a_call_of_our_session_that_is_cancelled_before_it_leaves_never_leaves(
    turns: int,
) -> None:
    """B2. At whatever turn of the loop; where a credential was asked for, it may have left.

    With mcp 1.x a cancellation can come between two of the SDK's tasks: one late execution is
    possible there, which the rule allows and the evidence has.
    """
    vended = left = 0

    async def vend(_: object) -> Bearer:
        nonlocal vended
        vended += 1
        return Bearer("a-token-for-a-session")

    async def pay(session: Any) -> None:
        nonlocal left
        try:
            await session.call("refund", {"order": "W-7712"})
        finally:
            left = vended  # as far as it had come when its caller was gone

    with FaultyGateway() as faulty:
        async with Gateway(faulty.url, credentials=vend).session() as session:
            await session.call("search", {"q": "first"})
            vended = 0
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(pay, session)
                for _ in range(turns):
                    await anyio.lowlevel.checkpoint()
                tasks.cancel_scope.cancel()
            await anyio.sleep(0.1)
            assert (await session.call("search", {"q": "later"})).text == "found later"
    assert faulty.executions("refund") <= (min(left, 1) if MCP_MAJOR > 1 else 1)
