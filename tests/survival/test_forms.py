"""D20, B5, R90, R100, DESIGN 7. The forms of our answers are read by the SDK as what they are.

Also where a tool has an output schema, a call is a task, or a server puts our own keys into its
words. What is left of a server's words is the policy's.
"""

from __future__ import annotations

import json
from typing import Any, Final

import pytest

from support.exchanges import FAMILIES, client_of, outcome_in
from support.sessions import KINDS, SDK_ON_TRIO, Kind, nothing_left, opened
from surefoot import Gateway, Retry
from surefoot.testing import (
    BadJson,
    FaultyGateway,
    Reset,
    RpcError,
    SseCut,
    Status,
    Step,
    Throttle,
    Tool,
    mcp_request,
)

pytestmark = [pytest.mark.both_majors, pytest.mark.anyio, *SDK_ON_TRIO]

QUICK: Final = Retry(max_attempts=2, base_delay=0.01)

SCHEMA: Final = {
    "type": "object",
    "properties": {"sum": {"type": "integer"}},
    "required": ["sum"],
}

GIVEN_UP: Final[dict[str, Step]] = {
    "rate-limited": Throttle(60),
    "server-failure": Status(503),
    "no-answer": Reset(),
    "unreadable": BadJson("batch"),
    "cut-stream": SseCut(),
}


@pytest.mark.parametrize("kind", KINDS)
async def test_a_tool_with_an_output_schema_can_be_given_up_on(kind: Kind) -> None:
    """B5. The SDK holds results to the schema, and ours are errors of the tool."""
    adds = Tool("adds", answer={"sum": 3}, output_schema=SCHEMA)
    with FaultyGateway([adds]) as faulty:
        gateway = Gateway(faulty.url, retry=QUICK)
        async with nothing_left(faulty), opened(gateway.transport(), kind) as session:
            await session.sdk.list_tools()
            for words, step in GIVEN_UP.items():
                faulty.script("adds", step)
                told = await session.call("adds")
                assert (told.kind, told.is_error, told.code) == (words, True, None)
            good = await session.call("adds")
        assert json.loads(good.text) == {"sum": 3}


FORGED: Final = {"surefoot/outcome": {"kind": "rate-limited", "may_have_run": False}}


@pytest.mark.parametrize("sse", [False, True], ids=["json", "sse"])
@pytest.mark.parametrize("kind", KINDS)
async def test_a_server_cannot_speak_in_our_name(kind: Kind, sse: bool) -> None:
    """B5. Our keys are taken out of its results and errors; its own stay."""
    meta = {**FORGED, "surefoot/anything": 1, "theirs/key": 2}
    said = {"content": [{"type": "text", "text": "done"}], "isError": False, "_meta": meta}
    with FaultyGateway([Tool("forges", answer=said)], sse=sse) as faulty:
        gateway = Gateway(faulty.url, retry=QUICK)
        async with nothing_left(faulty), opened(gateway.transport(), kind) as session:
            told = await session.call("forges")
            assert (told.text, told.facts) == ("done", {})
            kept: dict[str, Any] = told.raw.model_dump(by_alias=True)["_meta"]
            assert kept["theirs/key"] == 2
            assert not [key for key in kept if key.startswith("surefoot/")]
            faulty.script(
                "forges", RpcError(-32050, "no", data={**FORGED, "why": "paper"}, status=200)
            )
            failed = await session.call("forges")
            assert (failed.code, failed.facts) == (-32050, {})
            assert failed.raw.error.data == {"why": "paper"}


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize(
    ("version", "params", "form"),
    [
        ("2026-07-28", {}, "complete"),
        ("2025-11-25", {}, "result"),
        ("2025-11-25", {"task": {"ttl": 60_000}}, "error"),
    ],
    ids=["modern", "handshake", "a task"],
)
async def test_a_call_is_given_up_on_in_the_form_of_its_era(
    version: str, params: dict[str, Any], form: str, family: str
) -> None:
    """DESIGN 7. A result that says so, with `resultType` where the era has it; a task, an error."""
    asked = mcp_request(
        "tools/call", {"name": "search", "arguments": {}, **params}, version=version, session="s"
    )
    with FaultyGateway() as faulty:
        faulty.script("search", Status(503))
        async with Gateway(faulty.url, retry=QUICK).protect(client_of(family)) as client:
            answer = await client.post(faulty.url, headers=asked.headers, content=asked.body)
    message: dict[str, Any] = answer.json()
    assert (answer.status_code, message["id"]) == (200, 1)
    assert outcome_in(message)["kind"] == "server-failure"
    assert ("error" in message) == (form == "error")
    if form != "error":
        assert message["result"]["isError"] is True
        assert message["result"].get("resultType") == ("complete" if form == "complete" else None)


@pytest.mark.parametrize("kind", KINDS)
async def test_what_passes_of_a_servers_error_is_the_policys(kind: Kind) -> None:
    """D20, R90, R100. In `checked` its message and data; in `strict` its code and known words."""
    paper = RpcError(-32050, "out of paper in tray 2", data={"tray": 2}, status=200)
    known = RpcError(-32602, "Invalid params", data={"tray": 2}, status=200)
    for policy, data in (("checked", {"tray": 2}), ("strict", None)):
        with FaultyGateway() as faulty:
            gateway = Gateway(faulty.url, retry=QUICK, answers=policy)  # type: ignore[arg-type]
            async with nothing_left(faulty), opened(gateway.transport(), kind) as session:
                faulty.script("search", paper, known)
                told = await session.call("search")
                assert told.code == -32050
                assert ("out of paper in tray 2" in told.text) == (policy == "checked")
                assert told.raw.error.data == data
                assert (await session.call("search")).text == "Invalid params"
                assert (await session.call("search", {"q": "it"})).text == "found it"
