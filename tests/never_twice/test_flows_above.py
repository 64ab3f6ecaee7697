"""B3, D31, D33. What the SDK itself sends again passes the fence, and the payment is made once.

Its own OAuth flow re-sends a call after a 401, its client re-sends one after a header mismatch, and
a call that asks for input goes on as another request. All three with the real SDK.
"""

from __future__ import annotations

import json
from typing import Any, Final

import pytest

from support.oauth_above import oauth_servers, oauth_session
from support.sessions import FAMILY, KINDS, MCP_MAJOR, SDK_ON_TRIO, Kind, nothing_left, sdk_streams
from surefoot import Gateway, Replay, Retry, ToolRule
from surefoot.testing import RecordingSink, Reset, Status

pytestmark = [pytest.mark.both_majors, pytest.mark.anyio, *SDK_ON_TRIO]

PAYS: Final = Replay(tools={"charge": ToolRule(makes_changes=True)})
QUICK: Final = Retry(max_attempts=3, base_delay=0.01)
MODERN: Final = pytest.mark.skipif(MCP_MAJOR < 2, reason="mcp 2.x alone does this")


@pytest.mark.parametrize("kind", KINDS)
async def test_a_payment_whose_token_was_revoked_is_sent_again_by_the_flow_and_made_once(
    kind: Kind,
) -> None:
    """B3. The same request twice, under one fence; a lost one is not sent again by any flow."""
    sink = RecordingSink()
    with oauth_servers() as (resource, issuer):
        gateway = Gateway(resource.url, retry=QUICK, replay=PAYS, evidence=sink)
        async with (
            nothing_left(resource, issuer),
            oauth_session(gateway, resource, issuer, kind) as session,
        ):
            for amount in (1, 2):
                assert (
                    await session.call("charge", {"amount": amount})
                ).text == f"charged {amount}"
                issuer.tokens.revoke_all()
            assert resource.executions("charge") == 2
            assert len(resource.requests("charge")) == 3
            resource.script("charge", Reset("after-run"))
            kinds = [(await session.call("charge", {"amount": 3})).kind for _ in range(3)]
            assert kinds == ["no-answer", "fenced", "fenced"]
        assert resource.executions("charge") == 3
    records: list[Any] = [
        one for one in sink.of("tool.request_attempts") if one["tool"] == "charge"
    ]
    statuses = [attempt["status"] for one in records for attempt in one["attempts"]]
    assert statuses == [200, 401, 200, 401, None]


@MODERN
@pytest.mark.parametrize("kind", KINDS)
async def test_a_flow_that_renews_in_vain_makes_no_payment(kind: Kind) -> None:
    """B3. Refused twice, and free to be made later; a session of 1.x would end with such a 401."""
    with oauth_servers() as (resource, issuer):
        gateway = Gateway(resource.url, retry=QUICK, replay=PAYS)
        async with oauth_session(gateway, resource, issuer, kind) as session:
            await session.call("search", {"q": 1})
            challenge = {"www-authenticate": "Bearer"}
            resource.script("charge", *(Status(401, headers=challenge) for _ in range(2)))
            await session.call("charge", {"amount": 1})
            assert resource.executions("charge") == 0
            assert (await session.call("charge", {"amount": 1})).text == "charged 1"
        assert resource.executions("charge") == 1


class _Server:
    """A server of 2026-07-28 in memory that plays one answer to each call."""

    def __init__(self, *plays: dict[str, Any]) -> None:
        self.plays = list(plays)
        self.calls: list[dict[str, Any]] = []
        self.methods: list[str] = []

    async def handle_async_request(self, request: Any) -> Any:
        """Answer."""
        asked: Any = json.loads(await request.aread())
        self.methods.append(asked["method"])
        base = {"resultType": "complete"}
        status, answer = 200, dict[str, Any]()
        match asked["method"]:
            case "server/discover":
                answer["result"] = {
                    **base, "supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}},
                    "ttlMs": 0, "cacheScope": "private",
                }  # fmt: skip
            case "tools/list":
                properties = {"amount": {"type": "integer", "x-mcp-header": "Amount"}}
                schema = {"type": "object", "properties": properties}
                answer["result"] = {
                    **base, "tools": [{"name": "charge", "inputSchema": schema}], "ttlMs": 0,
                    "cacheScope": "private",
                }  # fmt: skip
            case _:
                self.calls.append(asked["params"])
                answer = self.plays.pop(0)
                status = 400 if "error" in answer else 200
        body = {"jsonrpc": "2.0", "id": asked["id"], **answer}
        return FAMILY.Response(status, json=body)

    async def aclose(self) -> None:
        """Nothing is open."""


PAID: Final = {
    "result": {
        "resultType": "complete", "isError": False, "content": [{"type": "text", "text": "paid"}],
    }
}  # fmt: skip
_ELICIT: Final = {
    "method": "elicitation/create",
    "params": {
        "mode": "form",
        "message": "Really?",
        "requestedSchema": {"type": "object", "properties": {"yes": {"type": "boolean"}}},
    },
}


def _asks(state: str) -> dict[str, Any]:
    return {
        "result": {
            "resultType": "input_required", "inputRequests": {"q": _ELICIT}, "requestState": state,
        }
    }  # fmt: skip


@MODERN
async def test_rounds_of_the_real_client_pass_and_are_one_call() -> None:
    """B3, D33. Two questions to the user, three requests, one payment."""
    import mcp
    import mcp_types

    sdk: Any = mcp

    async def says_yes(context: Any, params: Any) -> Any:
        del context, params
        return mcp_types.ElicitResult(action="accept", content={"yes": True})

    sink = RecordingSink()
    server = _Server(_asks("state-1"), _asks("state-2"), PAID, PAID)
    gateway = Gateway("http://127.0.0.1:1/mcp", retry=QUICK, replay=PAYS, evidence=sink)
    async with (
        gateway.protect(FAMILY.AsyncClient(transport=server)) as client,
        sdk.Client(sdk_streams(gateway.url, client), elicitation_callback=says_yes) as session,
    ):
        for _ in range(2):
            answer = await session.call_tool("charge", {"amount": 1})
            assert answer.content[0].text == "paid"
    assert [one.get("requestState") for one in server.calls] == [None, "state-1", "state-2", None]
    calls = [one["call"] for one in sink.of("tool.request_attempts") if one["tool"] == "charge"]
    assert len(set(calls[:3])) == 1
    assert calls[3] not in calls[:3]


@MODERN
async def test_a_payment_that_the_real_client_sends_again_after_a_mismatch_passes() -> None:
    """B3, D33. It reads the tool's schema anew, and sends the same call with other headers."""
    import mcp

    sdk: Any = mcp
    sink = RecordingSink()
    mismatch = {"error": {"code": -32020, "message": "header mismatch"}}
    server = _Server(mismatch, PAID)
    gateway = Gateway("http://127.0.0.1:1/mcp", retry=QUICK, replay=PAYS, evidence=sink)
    async with (
        gateway.protect(FAMILY.AsyncClient(transport=server)) as client,
        sdk.Client(sdk_streams(gateway.url, client)) as session,
    ):
        answer = await session.call_tool("charge", {"amount": 1})
        assert answer.content[0].text == "paid"
    assert len(server.calls) == 2
    calls = [one["call"] for one in sink.of("tool.request_attempts") if one["tool"] == "charge"]
    assert len(calls) == 2
    assert calls[0] == calls[1]
