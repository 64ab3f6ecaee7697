"""D14, D19, D22, D23, D34, D35, B7: what each era tells differently, and what a session is for.

The service gives a session its id and the client sends it back; none is ever invented. A 404 has
several meanings, and nothing is replayed on any of them.
"""

from __future__ import annotations

from typing import Any, Final

import pytest

from support.agentcore import gateway_of, runtime_of
from support.sessions import FAMILY, KINDS, SDK_ON_TRIO, Kind, opened, sdk_streams
from surefoot import MayHaveRunError, Retry, SessionLostError
from surefoot.testing import AgentCoreStandIn, FakeClock, RecordingSink

pytestmark = [pytest.mark.both_majors, pytest.mark.anyio, *SDK_ON_TRIO]

HANDSHAKE: Final = [kind for kind in KINDS if kind != "modern"]


@pytest.mark.parametrize("kind", KINDS)
async def test_the_sessions_id_is_the_services_own(kind: Kind) -> None:
    """No request invents one: the first names none, the later ones what the service gave."""
    with AgentCoreStandIn() as stand_in:
        async with opened(runtime_of(stand_in).transport(), kind) as session:
            await session.call("search", {"q": "it"})
        posts = [entry for entry in stand_in.journal if entry.http_method == "POST"]
        named = [entry.header("mcp-session-id") for entry in posts]
        assert named[0] is None
        given = {None} if kind == "modern" else set(named[1:])
        assert len(given) == 1
        assert {one.header("x-amzn-bedrock-agentcore-runtime-session-id") for one in posts} == {
            None
        }


@pytest.mark.parametrize("row", ["session-not-found", "not-found-api"])
@pytest.mark.parametrize("kind", HANDSHAKE)
async def test_a_404_in_a_session_is_told_in_the_sdks_own_words(kind: Kind, row: str) -> None:
    """D35. Frameworks know a lost session by them; whatever was lost, nothing is sent again."""
    with AgentCoreStandIn() as stand_in:
        async with opened(runtime_of(stand_in).transport(), kind) as session:
            stand_in.script("search", row)
            told = await session.call("search", {"q": "it"})
            assert told.text in ("Session not found", "Session terminated")
            assert len(stand_in.requests("search")) == 1
            assert stand_in.canary not in repr(told.raw)


async def test_our_own_session_is_opened_anew_and_replays_nothing() -> None:
    """D35. A stateful server forgot it; a machine that is provisioned anew is waited out."""
    clock = FakeClock()
    with AgentCoreStandIn(
        eras=("2025-11-25",), clock=clock, stateful=True, provisioning=2.0
    ) as stand_in:
        async with runtime_of(stand_in, clock=clock).session() as session:
            await session.call("search", {"q": "1"})
            stand_in.stop_sessions()
            with pytest.raises(SessionLostError):
                await session.call("charge", {"amount": 1})
            assert stand_in.executions("charge") == 0
            assert (await session.call("search", {"q": "2"})).text == "found 2"


@pytest.mark.parametrize("kind", HANDSHAKE)
async def test_an_unknown_tool_of_a_gateway_is_no_lost_session(kind: Kind) -> None:
    """D35. A gateway says it with a 404, and a client that opened a session anew would loop."""
    with AgentCoreStandIn(gateway_sessions=3600.0) as stand_in:
        made = gateway_of(stand_in)
        async with opened(made.transport(), kind) as session:
            stand_in.script("orders___search", "gateway-unknown-tool")
            told = await session.call("orders___search", {"q": "it"})
            assert told.code == -32602
            assert "does not know what was asked for" in told.text
            assert (await session.call("orders___search", {"q": "it"})).text == "found it"
        opened_once = [one for one in stand_in.journal if one.method == "initialize"]
        assert len(opened_once) == 1


@pytest.mark.parametrize("kind", HANDSHAKE)
async def test_a_gateways_session_that_ended_is_a_lost_session(kind: Kind) -> None:
    """D35. It ends at a fixed time from its beginning."""
    with AgentCoreStandIn(gateway_sessions=3600.0) as stand_in:
        async with opened(gateway_of(stand_in).transport(), kind) as session:
            stand_in.script("orders___search", "gateway-session-lost")
            told = await session.call("orders___search", {"q": "it"})
            assert told.text in ("Session not found", "Session terminated")


@pytest.mark.parametrize("kind", KINDS)
async def test_headers_that_do_not_match_are_mended_by_the_sdk_where_it_can(kind: Kind) -> None:
    """DESIGN 7. 2026-07-28 has the client read the tool's schema and send it again."""
    with AgentCoreStandIn() as stand_in:
        async with opened(gateway_of(stand_in).transport(), kind) as session:
            stand_in.script("orders___search", "gateway-header-mismatch")
            told = await session.call("orders___search", {"q": "it"})
        if kind == "modern":
            assert told.text == "found it"
        else:
            assert (told.code, told.text) == (
                -32020, "The request's headers do not match its body",
            )  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
async def test_a_result_is_the_tools_own_and_still_holds_no_secret_of_ours(kind: Kind) -> None:
    """D19, B7. A gateway that debugs quotes its target; what we sent is taken out of it."""
    sink = RecordingSink()
    with AgentCoreStandIn() as stand_in:
        async with opened(gateway_of(stand_in, evidence=sink).transport(), kind) as session:
            stand_in.script("orders___search", "gateway-tool-debug")
            told = await session.call("orders___search", {"q": "it"})
        assert told.is_error
        assert told.text.startswith("Error from arn:aws:lambda:")
        seen = repr(told.raw)
        assert stand_in.canary in seen, "the control: the target is quoted"
        assert stand_in.keys.session_token is not None
        assert stand_in.keys.session_token not in seen
        assert "Signature=" not in seen
    (record,) = [
        one for one in sink.of("tool.request_attempts") if one["tool"] == "orders___search"
    ]
    attempts: Any = record["attempts"]
    assert attempts[0]["scrubbed_hits"] >= 2


@pytest.mark.parametrize("kind", KINDS)
async def test_a_consent_that_the_gateway_asks_for_is_data_and_no_text(kind: Kind) -> None:
    """R90. The page is for the app; the model reads that somebody has to open one."""
    with AgentCoreStandIn() as stand_in:
        async with opened(gateway_of(stand_in).transport(), kind) as session:
            stand_in.script("orders___search", "gateway-consent")
            told = await session.call("orders___search", {"q": "it"})
        assert told.code == -32042
        assert "https://" not in told.text
        data: Any = told.raw.error.data
        assert data["elicitations"][0]["url"].startswith("https://consent.example/authorize?")


async def test_a_wait_that_is_stated_as_a_date_is_measured_from_the_answers_own() -> None:
    """D14, D34. What was stated is in the evidence, also where it is too long to be waited."""
    sink = RecordingSink()
    with AgentCoreStandIn() as stand_in:
        made = runtime_of(stand_in, evidence=sink, retry=Retry(max_wait=0.01))
        async with opened(made.transport(), KINDS[0]) as session:
            stand_in.script("search", "throttle-429-date")
            told = await session.call("search", {"q": "it"})
    assert told.kind == "rate-limited"
    assert 0.0 < told.facts["retry_after_seconds"] <= 2.0


@pytest.mark.parametrize("door", ["transport", "http_client", "protect", "session"])
async def test_every_door_signs_waits_and_answers_in_words(door: str) -> None:
    """R17, R104. One stack behind all of them."""
    clock = FakeClock()
    with AgentCoreStandIn(clock=clock, provisioning=2.0) as stand_in:
        made = runtime_of(stand_in, clock=clock)
        stand_in.script("search", "throttle", "bad-gateway-502")
        if door == "session":
            with pytest.raises(MayHaveRunError) as caught:
                async with made.session() as ours:
                    await ours.call("search", {"q": "it"})
            kind = caught.value.cause
        elif door == "transport":
            async with opened(made.transport(), KINDS[0]) as session:
                kind = (await session.call("search", {"q": "it"})).kind
        else:
            bare = FAMILY.AsyncClient()
            client = made.http_client() if door == "http_client" else made.protect(bare)
            async with client, opened(sdk_streams(made.url, client), KINDS[0]) as session:
                kind = (await session.call("search", {"q": "it"})).kind
            await bare.aclose()
        assert kind == "server-failure"
        assert stand_in.signature_faults == ()
        assert len(stand_in.requests("search")) >= 2
