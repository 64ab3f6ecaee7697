"""R105, R111, R117: what AgentCore Identity is asked is what was declared, and no more."""

from __future__ import annotations

import socket
import time
from typing import Any, Final

import pytest

from support.agentcore_identity import ANA, BY_JWT, MACHINE, RETURN, Asked, identity
from support.issuers import together
from surefoot.agentcore import AgentCoreIdentity
from surefoot.agentcore._consents import LIFE, Consents
from surefoot.credentials import (
    AuthorizationRequired,
    CredentialRequest,
    Issued,
    RetryingCredentials,
    SharedCredentials,
    TransientCredentialError,
)
from surefoot.errors import CredentialError
from surefoot.testing import AgentCoreStandIn

pytestmark = pytest.mark.anyio

PAGE: Final = "https://identity.example/page"
ALWAYS: Final = {
    "workloadIdentityToken", "resourceCredentialProviderName", "scopes", "oauth2Flow",
}  # fmt: skip


@pytest.mark.parametrize(
    ("options", "asking", "members"),
    [
        ({"return_url": None}, MACHINE, {"oauth2Flow": "M2M"}),
        ({"return_url": None, "flow": "M2M"}, ANA, {"oauth2Flow": "M2M"}),
        ({}, ANA, {"oauth2Flow": "USER_FEDERATION", "resourceOauth2ReturnUrl": RETURN}),
        (
            {"return_url": None, "flow": "ON_BEHALF_OF_TOKEN_EXCHANGE"},
            BY_JWT,
            {"oauth2Flow": "ON_BEHALF_OF_TOKEN_EXCHANGE"},
        ),
        (
            {"return_url": None, "parameters": {"audience": "orders", "prompt": "login"}},
            MACHINE,
            {"customParameters": {"audience": "orders", "prompt": "login"}},
        ),
        ({"return_url": None, "parameters": {}}, MACHINE, {"customParameters": {}}),
        (
            {"return_url": None, "provider": "orders-idp"},
            MACHINE,
            {"resourceCredentialProviderName": "orders-idp"},
        ),
    ],
    ids=["machine", "M2M for a user", "consent", "exchange", "parameters", "none", "provider"],
)
async def test_what_was_declared_is_asked_for(
    stand_in: AgentCoreStandIn,
    options: dict[str, Any],
    asking: CredentialRequest,
    members: dict[str, Any],
) -> None:
    """R111. The members of the question, and no other beside those that every question has."""
    asked = Asked(stand_in)
    assert isinstance(
        await identity(stand_in, **options).vend(asking), Issued | AuthorizationRequired
    )
    body = asked.bodies[-1]
    assert members.items() <= body.items()
    assert set(body) == ALWAYS | set(members)


async def test_what_was_declared_later_changes_nothing(stand_in: AgentCoreStandIn) -> None:
    """R71. The mapping is copied: what was checked is what is sent."""
    parameters = {"prompt": "login"}
    one = identity(stand_in, parameters=parameters)
    parameters["prompt"] = "none"
    asked = Asked(stand_in)
    await one.vend(MACHINE)
    assert asked.bodies[-1]["customParameters"] == {"prompt": "login"}


@pytest.mark.parametrize(
    ("row", "kind", "says"),
    [
        ("identity-throttle", TransientCredentialError, "is busy or failing"),
        ("identity-not-found", CredentialError, "knows no such workload or provider"),
        ("identity-nothing", CredentialError, "answered without a credential"),
    ],
)
async def test_an_api_key_that_is_not_given_is_told_in_our_words(
    stand_in: AgentCoreStandIn, row: str, kind: type[CredentialError], says: str
) -> None:
    """R108. As a token that is not."""
    stand_in.script("GetResourceApiKey", row, repeat=True)
    with pytest.raises(CredentialError, match=says) as caught:
        await identity(stand_in, kind="api-key").vend(MACHINE)
    assert type(caught.value) is kind
    assert stand_in.canary not in str(caught.value)


async def test_a_service_that_is_silent_is_given_up_on_in_time(stand_in: AgentCoreStandIn) -> None:
    """R108. After `timeout` seconds, once: a silent service holds no call for longer."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        origin = f"http://127.0.0.1:{silent.getsockname()[1]}"
        one = identity(stand_in, endpoint=origin, timeout=0.3)
        started = time.monotonic()
        with pytest.raises(TransientCredentialError, match="could not be reached"):
            await one.vend(MACHINE)
    assert 0.3 <= time.monotonic() - started < 5


def test_consents_under_way_have_a_bound() -> None:
    """R117. The oldest makes room; the control: those after it are still known."""
    kept = Consents()
    consent = AuthorizationRequired("tools", PAGE, "urn:x")
    for number in range(10_001):
        kept.begun(number.to_bytes(4, "big"), consent, now=0.0)
    assert repr(kept) == "Consents(10000)"
    first, second = (number.to_bytes(4, "big") for number in (0, 1))
    assert kept.under_way(first, now=1.0) is None
    assert kept.under_way(second, now=1.0) is consent
    assert kept.under_way(second, now=LIFE) is None
    assert PAGE not in repr(kept) + repr(vars(type(kept)))


@pytest.mark.parametrize("between", [None, RetryingCredentials, SharedCredentials])
async def test_a_kept_credential_is_for_whom_the_brought_token_names(between: Any) -> None:
    """R111. The control: the same user has the one that is kept, and is not asked for again."""

    class Client:
        asked = 0

        def get_resource_oauth2_token(self, **given: Any) -> dict[str, str]:
            Client.asked += 1
            return {"accessToken": f"token-of-{given['workloadIdentityToken']}"}

    class Session:
        def client(self, *_: object, **__: object) -> Client:
            return Client()

    now = ["ana"]
    inside = AgentCoreIdentity(
        region="us-west-2", workload_token=lambda: now[0], aws=Session(), return_url=RETURN
    )
    kept = SharedCredentials(inside if between is None else between(inside), lifetime=300)
    got: list[bytes] = []
    for name in ("ana", "ben", "ana", "ben"):
        now[0] = name
        vended = await kept.vend(CredentialRequest(mode="user"))
        assert isinstance(vended, Issued)
        got += vended.secrets()
    assert got == [b"token-of-ana", b"token-of-ben"] * 2
    assert Client.asked == 2
    now[0] = ""
    with pytest.raises(CredentialError, match="there is no workload access token"):
        await kept.vend(CredentialRequest(mode="user"))


@pytest.mark.parametrize("completed", [0, 1, 2])
async def test_calls_of_one_user_at_once_are_told_of_one_page(
    stand_in: AgentCoreStandIn, completed: int
) -> None:
    """R117. Whichever of them a person follows, it is the page that later calls ask about."""
    one = identity(stand_in)
    consents = await together(3, lambda _: one.vend(ANA))
    assert len({consent.authorization_url for consent in consents}) == 1
    await one.complete(consents[completed].session_uri, user_id="ana")
    assert isinstance(await one.vend(ANA), Issued)


def test_the_end_of_a_consent_leaves_a_newer_one_alone() -> None:
    """R117. Its control: the very one is forgotten, and so is any once a token came."""
    first, second = [AuthorizationRequired("tools", f"{PAGE}/{number}") for number in (1, 2)]
    kept = Consents()
    assert kept.begun(b"ana", first, now=0.0) is first
    assert kept.begun(b"ana", second, now=1.0) is first
    assert kept.begun(b"ana", second, now=1.0, after=first) is second
    kept.over(b"ana", first)
    assert kept.under_way(b"ana", 2.0) is second
    kept.over(b"ana", second)
    assert kept.under_way(b"ana", 2.0) is None
    kept.begun(b"ana", first, now=3.0)
    assert kept.begun(b"ana", second, now=3.0 + LIFE) is second
    kept.over(b"ana")
    assert kept.under_way(b"ana", 4.0 + LIFE) is None
