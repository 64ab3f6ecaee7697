"""R18, R19, R105 to R121, B8: a credential is asked for per attempt, and goes onto a copy."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import anyio
import pytest

from support.sending import DONE, REFUSED, URL, lowest, message, post, sent_through
from surefoot.credentials import (
    ApiKey,
    AuthorizationRequired,
    Basic,
    Bearer,
    CredentialRequest,
    Headers,
    Issued,
    Secret,
    StaticCredentials,
    as_provider,
)
from surefoot.errors import (
    AuthorizationRequiredError,
    CredentialError,
    InvalidCredentialError,
    RateLimitedError,
)
from surefoot.policy import Retry
from surefoot.testing import Fails, FakeClock, Replies, ScriptedTransport
from surefoot.transports import RetryingTransport, VendingTransport

pytestmark = pytest.mark.anyio


def _provider(*vends: Any) -> tuple[Any, list[CredentialRequest]]:
    """Vends or raises these in order, and the requests that it gets."""
    script, asked = list(vends), list[CredentialRequest]()

    async def vend(request: CredentialRequest) -> Any:
        asked.append(request)
        await anyio.lowlevel.checkpoint()
        vended = script.pop(0) if len(script) > 1 else script[0]
        if isinstance(vended, BaseException):
            raise vended
        return vended

    return as_provider(vend), asked


@pytest.mark.parametrize(
    ("credential", "kind", "lines"),
    [
        (Bearer("token-of-1"), "bearer", [(b"authorization", b"Bearer token-of-1")]),
        (ApiKey("key-of-1"), "api-key", [(b"x-api-key", b"key-of-1")]),
        (ApiKey("key-of-1", header="X-Key"), "api-key", [(b"x-key", b"key-of-1")]),
        (Basic("u", "p"), "basic", [(b"authorization", b"Basic dTpw")]),
        (Headers({"X-A": "1", "x-b": "2"}), "headers", [(b"x-a", b"1"), (b"x-b", b"2")]),
        (Issued(Bearer("token-of-1")), "bearer", [(b"authorization", b"Bearer token-of-1")]),
    ],
)
async def test_each_kind_goes_over_the_wire_as_its_lines(
    family: Any, credential: Any, kind: str, lines: list[tuple[bytes, bytes]]
) -> None:
    """R105, R106, R119, R120. On the wire, and not on the request that the client knows."""
    provider, asked = _provider(credential)
    wire = ScriptedTransport(DONE)
    outcome = await sent_through(
        family, wire, between=lambda wire: VendingTransport(wire, credentials=provider)
    )
    sent = [(name.lower(), value) for name, value in wire.requests[0].headers]
    for line in lines:
        assert sent.count(line) == 1
    assert outcome.attempts[0]["credential"] == kind
    assert len(asked) == 1


async def test_the_request_that_the_client_knows_is_never_touched(family: Any) -> None:
    """R107, R119. Nor is what it hangs on answers and errors."""
    provider, _ = _provider(Bearer("token-of-1"))
    wire = ScriptedTransport(DONE, Fails("ReadError"))
    client = family.AsyncClient(transport=VendingTransport(wire, credentials=provider))
    body = message().body
    response = await client.post(URL, content=body)
    assert b"Bearer token-of-1" in dict(wire.requests[0].headers).values()
    assert "authorization" not in response.request.headers
    with pytest.raises(family.ReadError) as caught:
        await client.post(URL, content=body)
    assert "authorization" not in caught.value.request.headers


async def test_every_attempt_is_vended_anew_and_nothing_is_kept(family: Any) -> None:
    """R18, R19, R105, R107, R110, R114. Not between attempts, not between requests."""
    provider, asked = _provider(*(Bearer(f"token-of-{n}") for n in range(1, 6)))
    wire = ScriptedTransport(REFUSED, REFUSED, DONE, DONE)
    vending = VendingTransport(wire, credentials=provider)
    assert asked == []
    transport = RetryingTransport(vending, clock=FakeClock(), draw=lowest)
    for _ in range(2):
        assert (await post(family, transport)).status_code == 200
    tokens = [value for sent in wire.requests for value in sent.header_values("authorization")]
    assert tokens == [b"Bearer token-of-%d" % n for n in range(1, 5)]
    assert len(asked) == 4


async def test_the_provider_is_told_for_what_it_is_asked(family: Any) -> None:
    """R111, R122. Service, scopes, mode, principal and the user's token, sealed."""
    provider, asked = _provider(Bearer("token-of-1"))
    vending = VendingTransport(
        ScriptedTransport(DONE, DONE),
        credentials=provider,
        service="billing",
        scopes=("read",),
        mode="user",
        principal="u-1",
        user_token=Secret("token-of-the-user"),
    )
    await post(family, vending)
    (request,) = asked
    assert (request.service, request.scopes, request.mode) == ("billing", ("read",), "user")
    assert request.principal == "u-1"
    assert request.user_token is not None
    assert request.user_token.reveal() == "token-of-the-user"
    assert request.force is False
    rebuilt = vending.rewrapped(ScriptedTransport(DONE))
    await post(family, rebuilt)
    assert asked[1] == request


async def test_static_headers_come_first_a_vended_one_wins_and_the_signer_has_the_last_word(
    family: Any,
) -> None:
    """R111, R112, R113. Whatever the case of a name; what nobody names stays as it was."""
    provider, _ = _provider(Headers({"X-Both": "vended", "x-signed": "vended"}))
    seen: list[dict[str, str]] = []

    async def sign(request: Any) -> Any:
        seen.append(dict(request.headers))
        request.headers["x-signed"] = "signed"
        del request.headers["x-dropped"]
        return request

    wire = ScriptedTransport(DONE)
    vending = VendingTransport(
        wire,
        credentials=provider,
        signer=sign,
        headers={"x-static": "static", "x-both": "static", "X-Dropped": "static"},
    )
    client = family.AsyncClient(
        transport=vending, headers={"X-Own": "own", "X-Static": "own", "X-BOTH": "own"}
    )
    await client.post(URL, content=message().body)
    names = ("x-own", "x-static", "x-both", "x-signed", "x-dropped")
    values = {name: wire.requests[0].header_values(name) for name in names}
    assert values == {
        "x-own": (b"own",),
        "x-static": (b"static",),
        "x-both": (b"vended",),
        "x-signed": (b"signed",),
        "x-dropped": (),
    }
    assert (seen[0]["x-both"], seen[0]["x-signed"]) == ("vended", "vended")


async def test_a_signer_alone_vends_nothing_and_may_return_another_request(family: Any) -> None:
    """R113, R115, R116. It is called with the final request, per attempt."""

    async def sign(request: Any) -> Any:
        kind = request.__class__
        headers = [*request.headers.raw, (b"x-signature", b"s")]
        return kind(request.method, request.url, headers=headers, stream=request.stream)

    wire = ScriptedTransport(REFUSED, DONE)
    transport = RetryingTransport(
        VendingTransport(wire, signer=sign), clock=FakeClock(), draw=lowest
    )
    assert (await post(family, transport)).status_code == 200
    assert [sent.header_values("x-signature") for sent in wire.requests] == [(b"s",), (b"s",)]
    assert wire.requests[0].body == wire.requests[1].body == message().body


async def test_a_signer_reads_the_body_of_a_request_that_was_streamed(family: Any) -> None:
    """R113, D10. It was made whole before the first attempt, so it can be signed."""
    signed: list[bytes] = []

    async def sign(request: Any) -> Any:
        signed.append(request.content)
        return request

    async def pieces() -> AsyncIterator[bytes]:
        yield b"one, "
        yield b"two"

    wire = ScriptedTransport(Replies(429), Replies())
    transport = RetryingTransport(
        VendingTransport(wire, signer=sign), clock=FakeClock(), draw=lowest
    )
    await family.AsyncClient(transport=transport).post(URL, content=pieces())
    assert signed == [b"one, two"] * 2


@pytest.mark.parametrize("result", [None, "signed", object(), 7])
async def test_a_signer_that_returns_no_request_sends_nothing(family: Any, result: Any) -> None:
    """R113, R108. What it returned is not shown."""

    async def sign(_: Any) -> Any:
        return result

    wire = ScriptedTransport(DONE)
    outcome = await sent_through(
        family, wire, between=lambda wire: VendingTransport(wire, signer=sign)
    )
    assert isinstance(outcome.error, CredentialError)
    assert "must return the request" in str(outcome.error)
    assert (outcome.sends, outcome.record["may_have_run"]) == (0, False)
    assert outcome.record["why"] == "credential-failed"


async def test_a_signer_of_the_other_family_sends_nothing(family: Any) -> None:
    """R113. A request of unrelated classes would only fail further down."""
    other = pytest.importorskip("httpx" if family.__name__ == "httpx2" else "httpx2")

    async def sign(request: Any) -> Any:
        return other.Request("POST", str(request.url))

    wire = ScriptedTransport(DONE)
    with pytest.raises(CredentialError):
        await post(family, VendingTransport(wire, signer=sign))
    assert wire.requests == []


RAISED = [
    (RuntimeError("canary"), CredentialError, "the provider raised RuntimeError"),
    (RateLimitedError(attempts=3), CredentialError, "the provider raised RateLimitedError"),
    (TimeoutError("canary"), CredentialError, "the provider raised TimeoutError"),
    (CredentialError("the vault is sealed"), CredentialError, "the vault is sealed"),
    (InvalidCredentialError("token: has a line break"), InvalidCredentialError, "a line break"),
]


@pytest.mark.parametrize(("raised", "kind", "says"), RAISED, ids=[str(row[2]) for row in RAISED])
async def test_a_provider_that_fails_is_blinded_and_nothing_is_sent_or_repeated(
    family: Any, raised: Exception, kind: type[Exception], says: str
) -> None:
    """R107, R108, B8, D3. Its class is told, its text never; retrying is the provider's affair."""
    provider, asked = _provider(raised)
    wire = ScriptedTransport(DONE)
    outcome = await sent_through(
        family, wire, between=lambda wire: VendingTransport(wire, credentials=provider)
    )
    error = outcome.error
    assert error is not None
    assert type(error) is kind
    assert says in str(error)
    assert "canary" not in str(error)
    assert (error.__cause__, error.__context__) == (None, None)
    assert (outcome.sends, len(asked)) == (0, 1)
    (attempt,) = outcome.attempts
    assert (attempt["outcome"], attempt["effect"]) == ("not_sent", "not_sent")
    assert (outcome.record["ended"], outcome.record["why"]) == ("not_sent", "credential-failed")


@pytest.mark.parametrize("vended", [None, "token", b"token", 7, object()])
async def test_a_provider_that_vends_something_else_is_told_apart(family: Any, vended: Any) -> None:
    """R108, R111. What it vended is most often the bare token, and is not shown."""
    provider, _ = _provider(vended)
    wire = ScriptedTransport(DONE)
    with pytest.raises(CredentialError, match="returned no credential") as caught:
        await post(family, VendingTransport(wire, credentials=provider))
    assert "token" not in str(caught.value)
    assert wire.requests == []


async def test_consent_that_is_needed_is_an_error_with_the_url_as_a_field(family: Any) -> None:
    """R117. In no text; nothing is sent."""
    url = "https://issuer.example/consent?state=canary"
    provider, _ = _provider(AuthorizationRequired("billing", url, "session-1"))
    wire = ScriptedTransport(DONE)
    with pytest.raises(AuthorizationRequiredError) as caught:
        await post(family, VendingTransport(wire, credentials=provider))
    error = caught.value
    assert error.code == "ERR_GATEWAY_AUTHORIZATION_REQUIRED"
    assert (error.service, error.authorization_url) == ("billing", url)
    assert error.session_uri == "session-1"
    assert "canary" not in f"{error!s}{error!r}"
    assert wire.requests == []


async def test_a_static_credential_that_is_missing_sends_nothing(family: Any) -> None:
    """R111. For this service there is none."""
    provider = StaticCredentials({"other": Bearer("token-of-1")})
    wire = ScriptedTransport(DONE)
    with pytest.raises(CredentialError, match="this service"):
        await post(family, VendingTransport(wire, credentials=provider))
    assert wire.requests == []


async def test_slow_vends_do_not_wait_for_each_other(family: Any) -> None:
    """R105, B10. No lock is held over a vend or a request."""
    inside = 0
    all_inside = anyio.Event()

    async def vend(_: object) -> Any:
        nonlocal inside
        inside += 1
        if inside == 5:
            all_inside.set()
        await all_inside.wait()
        return Bearer("token-of-1")

    wire = ScriptedTransport(DONE, repeat=True)
    transport = RetryingTransport(
        VendingTransport(wire, credentials=as_provider(vend)), retry=Retry()
    )
    with anyio.fail_after(5):
        async with anyio.create_task_group() as tasks:
            for _ in range(5):
                tasks.start_soon(post, family, transport)
    assert len(wire.requests) == 5


async def test_a_provider_that_answers_without_a_coroutine_is_served_too(family: Any) -> None:
    """R106. The port asks for something that can be awaited, and no more."""

    class Vends:
        def __await__(self) -> Any:
            yield from anyio.lowlevel.checkpoint().__await__()
            return Bearer("token-of-1")

    class Provider:
        def vend(self, request: CredentialRequest, /) -> Any:
            del request
            return Vends()

    wire = ScriptedTransport(DONE)
    await post(family, VendingTransport(wire, credentials=Provider()))
    assert wire.requests[0].header_values("authorization") == (b"Bearer token-of-1",)


async def test_a_provider_that_is_not_async_at_all_is_an_error_of_ours(family: Any) -> None:
    """R108. Nothing is sent."""

    class Provider:
        def vend(self, request: CredentialRequest, /) -> Any:
            del request
            return Bearer("token-of-1")

    wire = ScriptedTransport(DONE)
    with pytest.raises(CredentialError, match="the provider raised TypeError"):
        await post(family, VendingTransport(wire, credentials=Provider()))
    assert wire.requests == []


async def test_what_is_not_a_post_is_vended_too(family: Any) -> None:
    """R105, R118. A standing GET and the DELETE of a session carry a credential as well."""
    provider, asked = _provider(Bearer("token-of-1"))
    wire = ScriptedTransport(Replies(), Replies())
    client = family.AsyncClient(transport=VendingTransport(wire, credentials=provider))
    await client.get(URL)
    await client.delete(URL)
    assert len(asked) == 2
    assert all(sent.header_values("authorization") for sent in wire.requests)
