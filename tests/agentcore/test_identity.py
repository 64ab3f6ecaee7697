"""R110, R111, R117, B9: credentials from AgentCore Identity, over its stand-in.

Who is calling is one ladder, what comes back is a credential or a consent; nothing is asked twice
behind the caller's back.
"""

from __future__ import annotations

from typing import Any, Final

import pytest

from support.agentcore_identity import (
    ANA,
    BY_JWT,
    JWT,
    MACHINE,
    RETURN,
    TOKENS,
    WORKLOAD,
    Asked,
    identity,
    stubbed,
)
from surefoot.agentcore._consents import LIFE
from surefoot.credentials import AuthorizationRequired, CredentialRequest, Issued, Secret
from surefoot.errors import CredentialError
from surefoot.testing import AgentCoreStandIn, FakeClock

pytestmark = pytest.mark.anyio

BEN: Final = CredentialRequest(service="tools", scopes=("read",), mode="user", principal="ben")


@pytest.mark.parametrize(
    ("request_", "path", "who"),
    [
        (MACHINE, WORKLOAD, {}),
        (BY_JWT, f"{WORKLOAD}ForJWT", {"userToken": JWT}),
        (ANA, f"{WORKLOAD}ForUserId", {"userId": "ana"}),
    ],
    ids=["machine", "user token", "user id"],
)
async def test_who_is_calling_is_the_first_of_the_ladder(
    stand_in: AgentCoreStandIn, request_: CredentialRequest, path: str, who: dict[str, str]
) -> None:
    """R111. The user's own token goes before the user's id, and either before the program."""
    asked = Asked(stand_in)
    vended = await identity(stand_in).vend(request_)
    assert asked.paths == [path, TOKENS]
    first, second = asked.bodies
    assert first == {"workloadName": "agent", **who}
    assert second["resourceCredentialProviderName"] == "tools"
    assert second["scopes"] == list(request_.scopes)
    assert second["oauth2Flow"] == ("M2M" if request_ is MACHINE else "USER_FEDERATION")
    if request_ is MACHINE:
        assert isinstance(vended, Issued)
        assert (vended.kind, vended.expires_in) == ("bearer", None)
        assert "resourceOauth2ReturnUrl" in second
    else:
        assert isinstance(vended, AuthorizationRequired)


async def test_a_token_that_came_with_the_request_is_the_callers(
    stand_in: AgentCoreStandIn,
) -> None:
    """Inside the Runtime: a workload of the service's own cannot ask for one."""
    first = identity(stand_in)
    workload = await first._workload_access(MACHINE)
    assert isinstance(workload, Secret)
    asked = Asked(stand_in)
    inside = identity(stand_in, workload_name=None, workload_token=workload.reveal)
    assert isinstance(await inside.vend(MACHINE), Issued)
    assert asked.paths == [TOKENS]
    assert asked.bodies[0]["workloadIdentityToken"] == workload.reveal()


@pytest.mark.parametrize("brought", [None, "", 3])
async def test_without_such_a_token_there_is_no_credential(
    stand_in: AgentCoreStandIn, brought: Any
) -> None:
    """R108. And what the function raises is named by its class."""
    inside = identity(stand_in, workload_name=None, workload_token=lambda: brought)
    with pytest.raises(CredentialError, match="there is no workload access token"):
        await inside.vend(MACHINE)

    def broken() -> str:
        raise LookupError("canary")

    with pytest.raises(CredentialError, match="workload_token raised LookupError") as caught:
        await identity(stand_in, workload_token=broken).vend(MACHINE)
    assert "canary" not in str(caught.value)


async def test_a_user_flow_without_a_user_is_not_asked_for(stand_in: AgentCoreStandIn) -> None:
    """R111. Or every user would share one consent."""
    asked = Asked(stand_in)
    with pytest.raises(CredentialError, match="a user flow needs a user"):
        await identity(stand_in).vend(CredentialRequest(service="tools", mode="user"))
    assert asked.paths == []


async def test_an_api_key_has_its_header(stand_in: AgentCoreStandIn) -> None:
    """R111. By the provider's own name, where that is not what the Gateway calls its service."""
    asked = Asked(stand_in)
    keyed = identity(stand_in, kind="api-key", api_key_header="x-tools-key", provider="my-keys")
    vended = await keyed.vend(MACHINE)
    assert isinstance(vended, Issued)
    assert vended.lines() == ((b"x-tools-key", stand_in.api_key.encode()),)
    assert asked.paths == [WORKLOAD, "/identities/api-key"]
    assert asked.bodies[1]["resourceCredentialProviderName"] == "my-keys"


async def test_every_vend_asks_anew(stand_in: AgentCoreStandIn) -> None:
    """R105, R107. No life is stated, so nothing is kept."""
    one = identity(stand_in)
    asked = Asked(stand_in)
    first, second = [await one.vend(MACHINE) for _ in range(2)]
    assert isinstance(first, Issued)
    assert isinstance(second, Issued)
    assert first.secrets() != second.secrets()
    assert asked.paths == [WORKLOAD, TOKENS] * 2


# ---- consent


async def test_a_consent_is_an_answer_until_it_was_given(stand_in: AgentCoreStandIn) -> None:
    """R117. The same page meanwhile, polled by whoever asks again; then the token; then no poll."""
    one = identity(stand_in)
    first = await one.vend(ANA)
    assert isinstance(first, AuthorizationRequired)
    assert first.service == "tools"
    assert first.authorization_url.startswith("https://identity.example/oauth2/authorize?")
    asked = Asked(stand_in)
    again = await one.vend(ANA)
    assert isinstance(again, AuthorizationRequired)
    assert again.authorization_url == first.authorization_url
    assert asked.bodies[1]["sessionUri"] == first.session_uri
    assert asked.bodies[1]["resourceOauth2ReturnUrl"] == RETURN
    assert first.session_uri is not None
    await one.complete(first.session_uri, user_id="ana")
    assert isinstance(await one.vend(ANA), Issued)
    asked = Asked(stand_in)
    assert isinstance(await one.vend(ANA), Issued)
    assert "sessionUri" not in asked.bodies[1]


async def test_users_do_not_share_a_consent(stand_in: AgentCoreStandIn) -> None:
    """R117. Nor do two sets of scopes."""
    one = identity(stand_in)
    urls: list[str] = []
    wider = CredentialRequest(
        service="tools", scopes=("read", "admin"), mode="user", principal="cem"
    )
    cem = CredentialRequest(service="tools", scopes=("read",), mode="user", principal="cem")
    for request in (BEN, cem, wider):
        consent = await one.vend(request)
        assert isinstance(consent, AuthorizationRequired)
        urls.append(consent.authorization_url)
    assert len(set(urls)) == 3


async def test_users_whom_only_a_brought_token_names_do_not_share_a_consent(
    stand_in: AgentCoreStandIn,
) -> None:
    """R111, R117. The control: the same user is told of the same page again, by polling it."""
    outside = identity(stand_in)
    ana, ben = [await outside._workload_access(request) for request in (ANA, BEN)]
    assert isinstance(ana, Secret)
    assert isinstance(ben, Secret)
    arriving = iter((ana, ben, ana, ben))
    inside = identity(stand_in, workload_name=None, workload_token=lambda: next(arriving).reveal())
    unnamed = CredentialRequest(service="tools", scopes=("read",), mode="user")
    asked = Asked(stand_in)
    consents: list[AuthorizationRequired] = []
    for _ in range(4):
        consent = await inside.vend(unnamed)
        assert isinstance(consent, AuthorizationRequired)
        consents.append(consent)
    pages = [consent.authorization_url for consent in consents]
    assert pages[0] != pages[1]
    assert pages[2:] == pages[:2]
    polled = [body.get("sessionUri") for body in asked.bodies]
    assert polled == [None, None, consents[0].session_uri, consents[1].session_uri]


async def test_a_consent_that_failed_ends_at_once_and_is_asked_for_anew(
    stand_in: AgentCoreStandIn,
) -> None:
    """R117. `FAILED` is final; the next call begins another consent."""
    one = identity(stand_in)
    dee = CredentialRequest(service="tools", mode="user", principal="dee")
    first = await one.vend(dee)
    assert isinstance(first, AuthorizationRequired)
    assert stand_in.settle_consents(granted=False) >= 1
    asked = Asked(stand_in)
    with pytest.raises(CredentialError, match="the consent failed or was refused") as caught:
        await one.vend(dee)
    assert type(caught.value) is CredentialError
    assert len(asked.paths) == 2
    second = await one.vend(dee)
    assert isinstance(second, AuthorizationRequired)
    assert second.authorization_url != first.authorization_url


async def test_a_page_that_is_too_old_is_not_polled(stand_in: AgentCoreStandIn) -> None:
    """It lives ten minutes."""
    clock = FakeClock()
    one = identity(stand_in, clock=clock)
    eve = CredentialRequest(service="tools", mode="user", principal="eve")
    await one.vend(eve)
    await clock.sleep(LIFE)
    asked = Asked(stand_in)
    await one.vend(eve)
    assert "sessionUri" not in asked.bodies[1]


async def test_asking_again_does_not_make_a_page_younger(stand_in: AgentCoreStandIn) -> None:
    """R117. Its ten minutes began with it; the control: until then it is polled."""
    clock = FakeClock()
    one = identity(stand_in, clock=clock)
    eve = CredentialRequest(service="tools", mode="user", principal="eve")
    first = await one.vend(eve)
    assert isinstance(first, AuthorizationRequired)
    asked = Asked(stand_in)
    for seconds in (LIFE / 2, LIFE / 2 - 1, 1):
        await clock.sleep(seconds)
        await one.vend(eve)
    polled = [body.get("sessionUri") for body in asked.bodies[1::2]]
    assert polled == [first.session_uri, first.session_uri, None]


async def test_a_page_that_takes_the_place_of_another_has_ten_minutes_of_its_own(
    stand_in: AgentCoreStandIn,
) -> None:
    """R117. The service may answer a poll with another session."""
    clock = FakeClock()
    one = identity(stand_in, clock=clock)
    _, stubber = stubbed(one)
    for number in (1, 2):
        stubber.add_response("get_workload_access_token_for_user_id", {"workloadAccessToken": "w"})
        page = {
            "authorizationUrl": f"https://identity.example/{number}",
            "sessionUri": f"urn:ietf:params:oauth:request_uri:{number}",
        }
        stubber.add_response("get_resource_oauth2_token", page)
    with stubber:
        await one.vend(ANA)
        await clock.sleep(LIFE - 1)
        second = await one.vend(ANA)
    assert isinstance(second, AuthorizationRequired)
    await clock.sleep(LIFE - 1)
    asked = Asked(stand_in)
    with pytest.raises(CredentialError):  # the stand-in knows no session of the stub's
        await one.vend(ANA)
    assert asked.bodies[1]["sessionUri"] == second.session_uri


async def test_a_session_that_is_gone_is_not_polled_again(stand_in: AgentCoreStandIn) -> None:
    """Or the user would be stuck until the page is too old."""
    one = identity(stand_in)
    fay = CredentialRequest(service="tools", mode="user", principal="fay")
    await one.vend(fay)
    stand_in.script("GetResourceOauth2Token", "identity-not-found")
    with pytest.raises(CredentialError, match="knows no such workload or provider"):
        await one.vend(fay)
    asked = Asked(stand_in)
    assert isinstance(await one.vend(fay), AuthorizationRequired)
    assert "sessionUri" not in asked.bodies[1]


async def test_a_rejected_token_of_a_user_is_followed_by_a_fresh_consent(
    stand_in: AgentCoreStandIn,
) -> None:
    """B9. The vault would give the same again. A machine is simply given another."""
    one = identity(stand_in)
    gus = CredentialRequest(service="tools", mode="user", principal="gus")
    consent = await one.vend(gus)
    assert isinstance(consent, AuthorizationRequired)
    stand_in.settle_consents()
    assert isinstance(await one.vend(gus), Issued)
    asked = Asked(stand_in)
    forced = CredentialRequest(service="tools", mode="user", principal="gus", force=True)
    assert isinstance(await one.vend(forced), AuthorizationRequired)
    assert asked.bodies[1]["forceAuthentication"] is True
    asked = Asked(stand_in)
    machine = CredentialRequest(service="tools", force=True)
    assert isinstance(await one.vend(machine), Issued)
    assert "forceAuthentication" not in asked.bodies[1]


@pytest.mark.parametrize("who", [{}, {"user_token": "canary", "user_id": "ana"}])
async def test_a_consent_is_completed_for_one_user(
    stand_in: AgentCoreStandIn, who: dict[str, str]
) -> None:
    """R72. With exactly one name; and the service wants the one that asked."""
    one = identity(stand_in)
    with pytest.raises(TypeError, match="takes exactly one of user_token and user_id"):
        await one.complete("urn:x", **who)
    hal = CredentialRequest(service="tools", mode="user", principal="hal")
    consent = await one.vend(hal)
    assert isinstance(consent, AuthorizationRequired)
    assert consent.session_uri is not None
    with pytest.raises(CredentialError, match="denied access"):
        await one.complete(consent.session_uri, user_id="ana")
