"""B9, B10, R107, R108. OAuth client credentials against a real authorization server on loopback."""

from __future__ import annotations

import json
import logging
import threading
import traceback
from collections.abc import Iterator
from typing import Any

import anyio
import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from support.oauth_server import OAuthServer, TokenRequest, oauth_server
from surefoot.credentials import (
    ClientCredentials,
    CredentialRequest,
    Issued,
    Secret,
    TransientCredentialError,
)
from surefoot.errors import CredentialError
from surefoot.testing import FakeClock, SecretAudit

pytestmark = [pytest.mark.anyio, pytest.mark.both_majors]

CANARY = "CANARY-client-secret"
PLAIN = CredentialRequest(service="billing")


@pytest.fixture
def server() -> Iterator[OAuthServer]:
    with oauth_server() as serving:
        yield serving


def client(server: OAuthServer, **options: Any) -> ClientCredentials:
    settings: dict[str, Any] = {"issuer": server.origin, "client_id": "me", **options}
    if not {"private_key", "assertion"} & set(options):
        settings.setdefault("client_secret", CANARY)
    return ClientCredentials(server.url, **settings)


async def token_of(provider: ClientCredentials, request: CredentialRequest = PLAIN) -> str:
    with anyio.fail_after(10):
        issued = await provider.vend(request)
    assert isinstance(issued, Issued)
    assert issued.kind == "bearer"
    return issued.secrets()[0].decode()


@pytest.mark.parametrize("method", ["client_secret_basic", "client_secret_post"])
async def test_a_token_is_had_by_discovery_and_for_this_resource(
    server: OAuthServer, method: Any
) -> None:
    """RFC 9728, RFC 8414, RFC 8707: found, and asked for by name."""
    assert await token_of(client(server, auth_method=method)) == "token-1"
    [asked] = server.tokens
    assert asked.form["grant_type"] == "client_credentials"
    assert asked.form["resource"] == server.url
    if method == "client_secret_basic":
        assert asked.client == ("me", CANARY)
        assert "client_secret" not in asked.form
    else:
        assert (asked.form["client_id"], asked.form["client_secret"]) == ("me", CANARY)


async def test_metadata_is_found_where_the_challenge_says() -> None:
    """RFC 9728 section 5.1. The resource is asked once without a credential."""
    with oauth_server(metadata_elsewhere=True) as server:
        assert await token_of(client(server)) == "token-1"
        assert server.paths[:2] == ["GET /mcp", "GET /about"]


@pytest.mark.parametrize("where", ["request", "elsewhere"])
async def test_a_challenge_off_the_origin_is_not_followed(server: OAuthServer, where: str) -> None:
    """D23. Metadata is fetched from the endpoint's own origin, whatever a challenge says."""
    with oauth_server() as other:
        foreign = f'Bearer resource_metadata="{other.origin}/about"'
        challenge = foreign if where == "elsewhere" else None
        await token_of(client(server), CredentialRequest(challenge=challenge))
        assert other.paths == []


async def test_scopes_are_those_of_the_option_and_of_the_request(server: OAuthServer) -> None:
    """R111. Each set of scopes has its own token."""
    provider = client(server, scopes=("a",))
    assert await token_of(provider) == "token-1"
    assert await token_of(provider, CredentialRequest(scopes=("b",))) == "token-2"
    assert await token_of(provider) == "token-1"
    assert [asked.form["scope"] for asked in server.tokens] == ["a", "a b"]


async def test_a_hundred_callers_cause_one_token_request(server: OAuthServer) -> None:
    """B9. At first contact, and again when the token is rejected."""
    provider = client(server)
    tokens: list[str] = []

    async def call(request: CredentialRequest) -> None:
        tokens.append(await token_of(provider, request))

    async with anyio.create_task_group() as group:
        for _ in range(100):
            group.start_soon(call, PLAIN)
    assert set(tokens) == {"token-1"}
    issued = await provider.vend(PLAIN)
    assert isinstance(issued, Issued)
    rejected = CredentialRequest(service="billing", force=True, rejected=issued.generation)
    tokens.clear()
    async with anyio.create_task_group() as group:
        for _ in range(100):
            group.start_soon(call, rejected)
    assert set(tokens) == {"token-2"}
    assert len(server.tokens) == 2


@pytest.mark.parametrize(("life", "early", "late"), [(100, 89, 2), ("100", 89, 2), (0.5, 0.4, 0.1)])
async def test_a_token_is_refreshed_before_it_ends(
    server: OAuthServer, life: Any, early: float, late: float
) -> None:
    """B9. By its stated life, also where that is text or less than a second."""
    server.life = life
    clock = FakeClock()
    provider = client(server, clock=clock)
    assert await token_of(provider) == "token-1"
    await clock.sleep(early)
    assert await token_of(provider) == "token-1"
    await clock.sleep(late)
    assert await token_of(provider) == "token-2"


async def test_an_issuer_that_repeats_a_living_token_is_believed(server: OAuthServer) -> None:
    """B9. The same token is no fault, unless it was rejected."""
    server.life, server.same_token = 100, True
    clock = FakeClock()
    provider = client(server, clock=clock)
    assert await token_of(provider) == "token-1"
    await clock.sleep(95)
    assert await token_of(provider) == "token-1"
    issued = await provider.vend(PLAIN)
    assert isinstance(issued, Issued)
    with pytest.raises(CredentialError, match="no new credential"):
        await token_of(
            provider,
            CredentialRequest(service="billing", force=True, rejected=issued.generation),
        )


async def test_private_key_jwt_proves_who_asks(server: OAuthServer) -> None:
    """RFC 7523 sections 2.2 and 3: issuer, subject, audience, a short life, used once."""
    key = ec.generate_private_key(ec.SECP256R1())
    pem = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    ).decode()
    provider = client(server, private_key=pem, algorithm="ES256", key_id="k1")
    assert await token_of(provider) == "token-1"
    await token_of(provider, CredentialRequest(force=True))
    audiences = [server.origin, f"{server.origin}/"]
    first, second = [
        jwt.decode(asked.form["client_assertion"], key.public_key(), ["ES256"], audience=audiences)
        for asked in server.tokens
    ]
    assert (first["iss"], first["sub"]) == ("me", "me")
    assert first["exp"] - first["iat"] == 60
    assert first["jti"] != second["jti"]
    assert jwt.get_unverified_header(server.tokens[0].form["client_assertion"])["kid"] == "k1"


async def test_an_assertion_may_be_signed_elsewhere(server: OAuthServer) -> None:
    """A key that never leaves its vault."""
    audiences: list[str] = []

    async def signed(audience: str) -> str:
        audiences.append(audience)
        return "a.b.c"

    assert await token_of(client(server, assertion=signed)) == "token-1"
    assert [audience.rstrip("/") for audience in audiences] == [server.origin]
    assert server.tokens[0].form["client_assertion"] == "a.b.c"


async def test_the_secret_goes_to_the_named_issuer_and_nowhere_else() -> None:
    """R107. A server that leads elsewhere gets nothing; the control is every other test here."""
    with oauth_server() as thief, oauth_server(issuer=thief.origin) as server:
        with pytest.raises(CredentialError):
            await token_of(client(server))
        assert thief.tokens == []
        assert server.tokens == []


def refusal(status: int, body: bytes, **headers: str) -> Any:
    def answer(request: TokenRequest) -> tuple[int, dict[str, str], bytes]:
        del request
        return status, headers, body

    return answer


ECHO = json.dumps({"error": "invalid_client", "error_description": CANARY}).encode()


@pytest.mark.parametrize(
    ("answer", "error", "rule"),
    [
        (refusal(401, ECHO), CredentialError, "refused: invalid_client"),
        (refusal(400, CANARY.encode()), CredentialError, "refused with status 400"),
        (refusal(400, b'{"error":"CANARY"}'), CredentialError, "refused with status 400"),
        (refusal(429, ECHO, **{"retry-after": "7"}), TransientCredentialError, "answered 429"),
        (refusal(503, ECHO), TransientCredentialError, "answered 503"),
        (
            refusal(400, b'{"error":"temporarily_unavailable"}'),
            TransientCredentialError,
            "refused: temporarily_unavailable",
        ),
        (refusal(200, CANARY.encode()), CredentialError, "cannot be used: "),
        (refusal(200, b"[]"), CredentialError, "cannot be used: not-an-object"),
        (
            refusal(200, json.dumps({"access_token": f"{CANARY}\n"}).encode()),
            CredentialError,
            "cannot be used: access_token",
        ),
        (
            refusal(200, json.dumps({"access_token": CANARY, "token_type": "mac"}).encode()),
            CredentialError,
            "cannot be used: token_type",
        ),
        (refusal(200, b" " * 300_000), CredentialError, "too large"),
        (refusal(302, b"", location="http://127.0.0.1:9/x"), CredentialError, "status 302"),
    ],
)
async def test_a_failing_token_endpoint_fails_the_call_and_shows_nothing(
    server: OAuthServer, answer: Any, error: type[CredentialError], rule: str
) -> None:
    """B10, R108. Not in the error, its frames, or a log of the SDK; transient where it may help."""
    server.answer = answer
    provider = client(server)
    with SecretAudit(CANARY) as audit:
        with pytest.raises(error, match=rule) as caught:
            await token_of(provider)
        assert caught.value.service == "billing"
        assert (caught.value.__context__, caught.value.__cause__) == (None, None)
        if "429" in rule:
            assert isinstance(caught.value, TransientCredentialError)
            assert caught.value.retry_after == 7
        await anyio.wait_all_tasks_blocked()  # what was cut off in the middle is let go
        audit.add("error", caught.value)
        audit.add("provider", provider)
    server.answer = None
    assert (await token_of(provider)).startswith("token-")


async def test_a_success_shows_nothing_either(
    server: OAuthServer, caplog: pytest.LogCaptureFixture
) -> None:
    """R107, R109. Neither the secret nor the token; the control: the server saw both."""
    caplog.set_level(logging.DEBUG)
    provider = client(server)
    with SecretAudit([CANARY, "token-1-"]) as audit:
        assert await token_of(provider) == "token-1"
        audit.add("provider", provider)
    assert server.tokens[0].client == ("me", CANARY)
    assert audit.looked["objects"]
    assert audit.looked["logs"]


async def test_an_issuer_that_cannot_be_reached_is_a_transient_failure(
    server: OAuthServer,
) -> None:
    """B10. The call fails, not the session; nothing of the request is shown."""
    provider = ClientCredentials(
        "http://127.0.0.1:9/mcp", issuer=server.origin, client_id="me", client_secret=CANARY
    )
    with pytest.raises(TransientCredentialError, match="could not be asked: ") as caught:
        await token_of(provider)
    told = traceback.TracebackException.from_exception(caught.value, capture_locals=True)
    ours = [frame.locals for frame in told.stack if frame.filename != __file__]
    assert CANARY not in repr(ours)


async def test_a_slow_issuer_is_bounded(server: OAuthServer) -> None:
    """R123. By the option, and by the caller's own cancellation."""

    def slow(request: TokenRequest) -> tuple[int, dict[str, str], bytes]:
        del request
        held.wait(5)
        return 200, {}, b"{}"

    held = threading.Event()
    server.answer = slow
    with pytest.raises(TransientCredentialError, match="TimeoutError"):
        await token_of(client(server, timeout=0.3))
    provider = client(server)
    with anyio.move_on_after(0.3) as scope:
        await provider.vend(PLAIN)
    assert scope.cancelled_caught
    held.set()
    server.answer = None
    assert (await token_of(provider)).startswith("token-")


@pytest.mark.parametrize(
    "request_", [CredentialRequest(principal="ann"), CredentialRequest(user_token=Secret("u"))]
)
async def test_a_program_does_not_act_for_a_user(
    server: OAuthServer, request_: CredentialRequest
) -> None:
    """R111. Its token would act as the program."""
    with pytest.raises(CredentialError, match="act for no user"):
        await token_of(client(server), request_)
    assert server.paths == []


def test_it_is_built_outside_of_any_loop_and_used_in_several(server: OAuthServer) -> None:
    """B9. No lock, client or provider belongs to a loop."""
    provider = client(server)
    assert anyio.run(token_of, provider, backend="asyncio") == "token-1"
    forced = CredentialRequest(service="billing", force=True)
    assert anyio.run(token_of, provider, forced, backend="trio") == "token-2"
    assert anyio.run(token_of, provider, forced, backend="asyncio") == "token-3"


@pytest.mark.parametrize(
    ("options", "error", "rule"),
    [
        ({"client_id": ""}, TypeError, "client_id: must"),
        ({"client_secret": None}, ValueError, "exactly one"),
        ({"client_secret": CANARY, "private_key": CANARY}, ValueError, "exactly one"),
        ({"client_secret": CANARY.encode()}, TypeError, "client_secret: must"),
        ({"private_key": 5, "client_secret": None}, TypeError, "private_key: must"),
        ({"assertion": CANARY, "client_secret": None}, TypeError, "assertion: must"),
        ({"auth_method": CANARY}, ValueError, "auth_method: must"),
        ({"issuer": CANARY}, ValueError, "issuer: must"),
        ({"issuer": 5}, TypeError, "issuer: must"),
        ({"skew": -1}, ValueError, "skew: must"),
        ({"timeout": "x"}, TypeError, "timeout: must"),
    ],
)
def test_an_option_that_means_nothing_is_refused_unseen(
    options: dict[str, Any], error: type[Exception], rule: str
) -> None:
    """R71, R72."""
    settings: dict[str, Any] = {"issuer": "https://a.example", "client_id": "me"}
    settings |= {"client_secret": CANARY, **options}
    with pytest.raises(error, match=rule) as caught:
        ClientCredentials("https://a.example/mcp", **settings)
    told = traceback.TracebackException.from_exception(caught.value, capture_locals=True)
    ours = [frame.locals for frame in told.stack if frame.filename != __file__]
    assert ours
    assert "CANARY" not in str(caught.value)
    assert "CANARY" not in repr(ours)
