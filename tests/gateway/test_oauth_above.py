"""D31, R105, R112. The SDK's own OAuth flow above a protected client, and our credential beside it.

Only requests to the Gateway's endpoint are ours. What we vend goes there and nowhere else: not to
the metadata, not to the authorization server, not to its token endpoint. What the SDK's flow needs
to see (401, 403, the challenge) reaches it on both majors.
"""

from __future__ import annotations

import base64
from collections import Counter
from collections.abc import Generator
from typing import Any, Final

import pytest

from support.oauth_above import CLIENT_SECRET, oauth_servers, oauth_session
from support.sessions import (
    FAMILY,
    KINDS,
    SDK_ON_TRIO,
    Kind,
    nothing_left,
)
from surefoot import ApiKey, Gateway, Retry
from surefoot.testing import (
    Entry,
    FaultyGateway,
    RecordingSink,
    Status,
    Throttle,
    mcp_request,
)

pytestmark = [pytest.mark.both_majors, pytest.mark.anyio, *SDK_ON_TRIO]

OURS: Final = "canary-of-the-vault-31"
QUICK: Final = Retry(max_attempts=3, base_delay=0.01)


def _holds(entry: Entry, text: str) -> bool:
    forms = (text.encode(), base64.b64encode(f"id:{text}".encode()))
    told = b"\n".join(
        [entry.path.encode(), entry.body, *(b": ".join(line) for line in entry.headers)]
    )
    return any(form in told for form in forms)


@pytest.mark.parametrize("kind", KINDS)
async def test_our_credential_goes_to_the_endpoint_and_the_clients_secret_to_its_issuer(
    kind: Kind,
) -> None:
    """D31. Every request of a whole flow, a revoked token and a 429 included, on both servers."""
    sink = RecordingSink()
    with oauth_servers() as (resource, issuer):
        ours = Gateway(resource.url, credentials=ApiKey(OURS), retry=QUICK, evidence=sink)
        async with (
            nothing_left(resource, issuer),
            oauth_session(ours, resource, issuer, kind) as session,
        ):
            assert (await session.call("search", {"q": 1})).text == "found 1"
            issuer.tokens.revoke_all()
            resource.script("search", Throttle(0))
            assert (await session.call("search", {"q": 2})).text == "found 2"
        assert issuer.tokens.count == 2
        at_endpoint = [entry for entry in resource.journal if entry.path == "/mcp"]
        beside = [entry for entry in resource.journal if entry.path != "/mcp"]
        # The flow really went everywhere that it goes.
        assert any(entry.path.startswith("/.well-known/oauth-protected") for entry in beside)
        assert {entry.http_method for entry in issuer.journal} == {"GET", "POST"}
        assert sum(entry.path == "/token" for entry in issuer.journal) == 2
        # The control: what is searched for is found where it belongs.
        assert all(_holds(entry, OURS) for entry in at_endpoint)
        assert any(_holds(entry, CLIENT_SECRET) for entry in issuer.journal)
        assert not [entry.path for entry in (*beside, *issuer.journal) if _holds(entry, OURS)]
        assert not [entry.path for entry in resource.journal if _holds(entry, CLIENT_SECRET)]
    records = sink.of("tool.request_attempts")
    assert sum(len(record["attempts"]) for record in records) == len(at_endpoint)  # type: ignore[arg-type, misc]


@pytest.mark.parametrize("kind", KINDS)
async def test_a_gateway_without_credentials_leaves_the_flow_as_it_is(kind: Kind) -> None:
    """D31. The same requests as without it, and the same results."""
    asked: list[Counter[str]] = []
    for protected in (False, True):
        with oauth_servers() as (resource, issuer):
            ours = Gateway(resource.url, retry=QUICK) if protected else None
            async with oauth_session(ours, resource, issuer, kind) as session:
                assert (await session.call("search", {"q": 1})).text == "found 1"
                issuer.tokens.revoke_all()
                assert (await session.call("search", {"q": 2})).text == "found 2"
            both = (*resource.journal, *issuer.journal)
            asked.append(Counter(f"{one.http_method} {one.path} {one.method}" for one in both))
    assert asked[0] == asked[1]


async def test_a_token_endpoint_that_fails_is_told_as_it_failed() -> None:
    """D31. Nothing of ours is put in its place: no wait, no repeat, no words."""
    with oauth_servers() as (resource, issuer):
        ours = Gateway(resource.url, credentials=ApiKey(OURS), retry=QUICK)
        issuer.script("token", Status(503, "out of tokens"), repeat=True)
        async with FAMILY.AsyncClient(timeout=5) as client:
            ours.protect(client)
            answer = await client.post(f"{issuer.origin}/token", data={"grant_type": "x"})
        assert (answer.status_code, answer.text) == (503, "out of tokens")
        assert len(issuer.journal) == 1


async def test_a_flow_above_sees_the_status_and_the_challenge() -> None:
    """D31, R26. On both majors, because the client has an `auth`; the body is in our words."""
    seen: list[tuple[int, str | None]] = []

    class Watches(FAMILY.Auth):
        def auth_flow(self, request: Any) -> Generator[Any, Any, None]:
            answer = yield request
            seen.append((answer.status_code, answer.headers.get("www-authenticate")))

    with FaultyGateway() as faulty:
        faulty.script("search", Status(401, "quotes canary"), Status(403, "quotes canary"))
        ours = Gateway(faulty.url, retry=QUICK)
        asked = mcp_request("tools/call", {"name": "search", "arguments": {}})
        async with ours.protect(FAMILY.AsyncClient(auth=Watches())) as client:
            for status, words in ((401, "unauthorized"), (403, "forbidden")):
                answer = await client.post(faulty.url, headers=asked.headers, content=asked.body)
                assert answer.status_code == status
                assert answer.json()["error"]["data"]["surefoot/outcome"]["kind"] == words
                assert "canary" not in answer.text
    assert seen == [(401, 'Bearer error="invalid_token"'), (403, None)]


async def test_without_a_flow_above_a_refusal_ends_no_session_of_1_x() -> None:
    """DESIGN 7. There 401 and 403 are words at 200, unless `auth_above` asks for the status."""
    ours_by_default = 401 if FAMILY.__name__ == "httpx2" else 200
    asked = mcp_request("tools/call", {"name": "search", "arguments": {}})
    for settings, status in (({}, ours_by_default), ({"auth_above": True}, 401)):
        with FaultyGateway() as faulty:
            faulty.script("search", Status(401))
            async with Gateway(faulty.url, retry=QUICK).http_client(**settings) as client:
                answer = await client.post(faulty.url, headers=asked.headers, content=asked.body)
            assert answer.status_code == status
            assert "did not accept the credential" in answer.text
