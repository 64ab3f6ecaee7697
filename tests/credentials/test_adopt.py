"""B9, B10. The SDK's own OAuth providers, adopted: on both majors, without their long lock."""

from __future__ import annotations

import inspect
import logging
import time
from collections.abc import AsyncGenerator, Callable, Iterator
from typing import Any

import anyio
import mcp.client.auth.oauth2 as sdk
import pytest
from mcp.client.auth.extensions.client_credentials import ClientCredentialsOAuthProvider
from mcp.shared.auth import OAuthToken

from support.oauth_server import OAuthServer, TokenRequest, oauth_server
from surefoot.credentials import (
    ApiKey,
    CredentialProvider,
    CredentialRequest,
    Issued,
    Secret,
    TransientCredentialError,
    adopt,
)
from surefoot.errors import CredentialError
from surefoot.testing import FakeClock, SecretAudit

pytestmark = [pytest.mark.anyio, pytest.mark.both_majors]


def _family() -> Any:
    """The HTTP family of the installed SDK."""
    return getattr(sdk, "httpx2", None) or vars(sdk)["httpx"]


http = _family()

PLAIN = CredentialRequest(service="billing")
CANARY = "CANARY-client-secret"


class Storage:
    """An app's own storage."""

    def __init__(self, tokens: OAuthToken | None = None) -> None:
        self.tokens = tokens
        self.stored = 0

    async def get_tokens(self) -> OAuthToken | None:
        return self.tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self.tokens = tokens
        self.stored += 1

    async def get_client_info(self) -> None:
        return None

    async def set_client_info(self, client_info: object) -> None:
        del client_info


@pytest.fixture
def server() -> Iterator[OAuthServer]:
    with oauth_server() as serving:
        yield serving


def sdk_provider(server: OAuthServer, storage: Storage | None = None, **options: Any) -> Any:
    kind: Any = ClientCredentialsOAuthProvider
    if "issuer" in inspect.signature(kind).parameters:
        options["issuer"] = server.origin
    if "scope" in options and "scope" not in inspect.signature(kind).parameters:
        options["scopes"] = options.pop("scope")  # as 1.x calls it
    return kind(server.url, storage or Storage(), client_id="me", client_secret=CANARY, **options)


async def token_of(provider: CredentialProvider, request: CredentialRequest = PLAIN) -> str:
    issued = await provider.vend(request)
    assert isinstance(issued, Issued)
    return issued.secrets()[0].decode()


async def call(client: Any, provider: CredentialProvider, url: str) -> int:
    """One request as the transport makes it: vended, and once more by force after a 401."""
    issued = await provider.vend(CredentialRequest())
    assert isinstance(issued, Issued)
    response = await client.post(url, headers=list(issued.lines()), content=b"{}")
    if response.status_code == 401:
        issued = await provider.vend(CredentialRequest(force=True, rejected=issued.generation))
        assert isinstance(issued, Issued)
        response = await client.post(url, headers=list(issued.lines()), content=b"{}")
    return int(response.status_code)


async def timed(number: int, work: Callable[[], Any]) -> float:
    """Seconds that so many take side by side; each must be answered 200."""
    statuses: list[int] = []

    async def one() -> None:
        statuses.append(await work())

    began = time.monotonic()
    with anyio.fail_after(30):
        async with anyio.create_task_group() as group:
            for _ in range(number):
                group.start_soon(one)
    assert statuses == [200] * number
    return time.monotonic() - began


async def test_slow_calls_side_by_side_take_the_time_of_one(server: OAuthServer) -> None:
    """B10. And the bare provider takes the sum of them: that is what is measured against.

    Ten calls of a third of a second; with a second each, the bare provider would take ten here.
    """
    server.slow = 0.3
    bare = sdk_provider(server)
    async with http.AsyncClient(timeout=30) as client:

        async def held() -> int:
            response = await client.post(server.url, content=b"{}", auth=bare)
            return int(response.status_code)

        alone = await timed(10, held)
        provider = adopt(sdk_provider(server))
        await token_of(provider)
        asked = len(server.tokens)
        adopted = await timed(10, lambda: call(client, provider, server.url))
    assert alone >= 3.0
    assert adopted < 1.3, "one of 0.3 s; a busy machine may take its time, but not theirs"
    assert len(server.tokens) == asked, "the token was vended ten times, and asked for once"


async def test_concurrent_401s_cause_one_token_request(server: OAuthServer) -> None:
    """B9. The token is revoked at the server; ten callers notice at once."""
    provider = adopt(sdk_provider(server))
    assert await token_of(provider, CredentialRequest()) == "token-1"
    server.valid.clear()
    async with http.AsyncClient(timeout=30) as client:
        await timed(10, lambda: call(client, provider, server.url))
    assert len(server.tokens) == 2
    assert server.calls.count("Bearer token-1") == 10
    assert server.calls.count("Bearer token-2") == 10


async def test_the_lock_is_free_while_the_credential_is_used(server: OAuthServer) -> None:
    """B10, C09 of the bug reports. Nothing is held while a response is open."""
    inner = sdk_provider(server)
    provider = adopt(inner)
    await token_of(provider)
    assert not inner.context.lock.locked()
    server.answer = _slow(server)
    with anyio.move_on_after(0.3) as scope:
        await provider.vend(CredentialRequest(service="billing", force=True))
    assert scope.cancelled_caught
    assert not inner.context.lock.locked()
    server.answer = None
    forced = await provider.vend(CredentialRequest(service="billing", force=True))
    assert isinstance(forced, Issued)


def _slow(server: OAuthServer) -> Callable[[TokenRequest], tuple[int, dict[str, str], bytes]]:
    def answer(request: TokenRequest) -> tuple[int, dict[str, str], bytes]:
        server.stopped.wait(2)
        return server.issue(request)

    return answer


async def test_a_refresh_token_is_used_before_anybody_is_asked_again(server: OAuthServer) -> None:
    """B9. After a rejection, and before the end of the token's life."""
    server.refresh, server.life = True, 100
    clock = FakeClock()
    provider = adopt(sdk_provider(server), clock=clock)
    first = await provider.vend(PLAIN)
    assert isinstance(first, Issued)
    rejected = CredentialRequest(service="billing", force=True, rejected=first.generation)
    assert await token_of(provider, rejected) == "token-2"
    await clock.sleep(95)
    assert await token_of(provider) == "token-3"
    assert [asked.form["grant_type"] for asked in server.tokens] == [
        "client_credentials",
        "refresh_token",
        "refresh_token",
    ]
    assert server.tokens[2].form["refresh_token"] == "refresh-2"


async def test_a_refused_refresh_token_leads_to_a_new_grant(server: OAuthServer) -> None:
    """B9. The flow goes on from a refused refresh, and from nothing else."""
    server.refresh = True

    def answer(request: TokenRequest) -> tuple[int, dict[str, str], bytes]:
        if request.form["grant_type"] == "refresh_token":
            return 400, {}, b'{"error":"invalid_grant"}'
        return server.issue(request)

    server.answer = answer
    provider = adopt(sdk_provider(server))
    assert await token_of(provider) == "token-1"
    assert await token_of(provider, CredentialRequest(service="billing", force=True)) == "token-3"


async def test_a_busy_token_endpoint_loses_no_refresh_token(server: OAuthServer) -> None:
    """B10, and mcp-clients 5: a 429 there kills the SDK's session; here it fails one call."""
    server.refresh = True
    provider = adopt(sdk_provider(server))
    await token_of(provider)
    server.answer = lambda _: (429, {"retry-after": "3"}, b"slow down")
    forced = CredentialRequest(service="billing", force=True)
    with pytest.raises(TransientCredentialError, match="answered 429") as caught:
        await token_of(provider, forced)
    assert caught.value.retry_after == 3
    server.answer = None
    assert await token_of(provider, forced) == "token-3"
    assert server.tokens[2].form["grant_type"] == "refresh_token"


async def test_a_missing_scope_is_stepped_up_to(server: OAuthServer) -> None:
    """B10. The scopes of the request, after a 403 for want of them, join those that were had."""
    provider = adopt(sdk_provider(server, scope="read"))
    first = CredentialRequest(challenge='Bearer scope="read"')
    assert await token_of(provider, first) == "token-1"
    wider = CredentialRequest(scopes=("write",))
    assert await token_of(provider, wider) == "token-2"
    assert set(server.tokens[1].form["scope"].split()) == {"read", "write"}
    assert await token_of(provider, wider) == "token-2"


async def test_a_scope_that_is_not_granted_is_asked_for_once(server: OAuthServer) -> None:
    """B10. The server decides; nothing goes round in a circle."""

    def answer(request: TokenRequest) -> tuple[int, dict[str, str], bytes]:
        request.form["scope"] = "read"
        return server.issue(request)

    server.answer = answer
    provider = adopt(sdk_provider(server, scope="read"))
    await token_of(provider)
    assert (await token_of(provider, CredentialRequest(scopes=("admin",)))).startswith("token-")
    assert len(server.tokens) <= 3


async def test_the_apps_own_storage_is_used(server: OAuthServer) -> None:
    """B10. What it holds is vended; what comes is stored."""
    server.valid.add("stored")
    storage = Storage(OAuthToken(access_token="stored"))
    provider = adopt(sdk_provider(server, storage))
    assert await token_of(provider) == "stored"
    assert server.paths == []
    assert await token_of(provider, CredentialRequest(service="billing", force=True)) == "token-1"
    assert storage.stored == 1
    assert storage.tokens is not None
    assert storage.tokens.access_token == "token-1"


async def test_its_own_requests_go_through_the_given_client(server: OAuthServer) -> None:
    """B10. A proxy, a certificate, other timeouts: whatever the client has."""
    made: list[Any] = []

    def client() -> Any:
        made.append(http.AsyncClient(headers={"x-corp": "1"}))
        return made[-1]

    assert await token_of(adopt(sdk_provider(server), http_client=client)) == "token-1"
    assert [one.is_closed for one in made] == [True]


class Numbered(http.Auth):
    """An auth of an app's own, which is no OAuth provider."""

    def __init__(self) -> None:
        self.number = 0

    async def async_auth_flow(self, request: Any) -> AsyncGenerator[Any, Any]:
        self.number += 1
        request.headers["x-signed"] = f"s{self.number}"
        response = yield request
        if response.status_code == 401:
            request.headers["x-signed"] = "again"
            yield request


async def test_any_other_auth_is_asked_every_time(server: OAuthServer) -> None:
    """B10, R105. It keeps no token that could be kept for it."""
    provider = adopt(Numbered(), url=server.url)
    issued = [await provider.vend(PLAIN) for _ in range(2)]
    assert [one.lines() for one in issued if isinstance(one, Issued)] == [
        ((b"x-signed", b"s1"),),
        ((b"x-signed", b"s2"),),
    ]
    assert server.paths == []


class Nothing(http.Auth):
    """An auth that adds nothing."""

    async def async_auth_flow(self, request: Any) -> AsyncGenerator[Any, Any]:
        yield request


class Failing(http.Auth):
    """An auth that fails with the secret in its text."""

    async def async_auth_flow(self, request: Any) -> AsyncGenerator[Any, Any]:
        raise ValueError(CANARY)
        yield request


@pytest.mark.parametrize(
    ("auth", "rule"),
    [(Nothing, "no new credential"), (Failing, "ended with ValueError")],
)
async def test_an_auth_that_brings_nothing_is_an_error_of_ours(
    server: OAuthServer, auth: type[Any], rule: str
) -> None:
    """R108. Named by its kind, never in its words."""
    with pytest.raises(CredentialError, match=rule) as caught:
        await adopt(auth(), url=server.url).vend(PLAIN)
    with SecretAudit(CANARY) as audit:
        audit.add("error", caught.value)
    assert caught.value.service == "billing"


@pytest.mark.parametrize(
    "request_", [CredentialRequest(principal="ann"), CredentialRequest(user_token=Secret("u"))]
)
async def test_one_identity_acts_for_nobody_else(
    server: OAuthServer, request_: CredentialRequest
) -> None:
    """R111. Its token is one user's or one program's."""
    with pytest.raises(CredentialError, match="acts for no other user"):
        await adopt(sdk_provider(server)).vend(request_)
    assert server.paths == []


async def test_neither_the_secret_nor_a_token_is_shown(
    server: OAuthServer, caplog: pytest.LogCaptureFixture
) -> None:
    """R107, R109. Through success, rejection and refusal, with every logger at DEBUG."""
    caplog.set_level(logging.DEBUG)
    inner = sdk_provider(server)
    provider = adopt(inner)
    with SecretAudit(CANARY) as audit:
        await token_of(provider)
        server.answer = lambda _: (401, {}, f'{{"error":"{CANARY}"}}'.encode())
        with pytest.raises(CredentialError, match="refused with status 401") as caught:
            await token_of(provider, CredentialRequest(service="billing", force=True))
        audit.add("error", caught.value)
        audit.add("provider", provider)
    assert server.tokens[0].client == ("me", CANARY)


@pytest.mark.parametrize(
    ("auth", "options", "error", "rule"),
    [
        ("CANARY", {"url": "https://a.example"}, TypeError, "provider: must be an httpx"),
        (ApiKey("CANARY"), {"url": "https://a.example"}, TypeError, "provider: must be an httpx"),
        (Nothing(), {}, TypeError, "url: must be given"),
        (Nothing(), {"url": "CANARY"}, ValueError, "url: must be an http or https URL"),
        (Nothing(), {"url": "https://CANARY@a.example"}, ValueError, "url: must be an http"),
        (Nothing(), {"url": 5}, TypeError, "url: must be a str"),
        (Nothing(), {"url": "https://a.example", "timeout": -1}, ValueError, "timeout: must"),
        (Nothing(), {"url": "https://a.example", "skew": "x"}, TypeError, "skew: must"),
    ],
)
def test_what_cannot_be_adopted_is_refused_unseen(
    auth: Any, options: dict[str, Any], error: type[Exception], rule: str
) -> None:
    """R71, R72."""
    with pytest.raises(error, match=rule) as caught:
        adopt(auth, **options)
    assert "CANARY" not in str(caught.value)
