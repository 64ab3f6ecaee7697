"""R110, R111, R117, R121 to R124, B9: credentials from AgentCore Identity, over its stand-in.

Who is calling is one ladder, what comes back is a credential, a consent or an error in our words;
nothing is asked twice behind the caller's back.
"""

from __future__ import annotations

import logging
import threading
import traceback
from typing import Any, Final

import anyio
import pytest

from support.agentcore import library, session_of
from surefoot import Bearer
from surefoot.agentcore import AgentCoreIdentity
from surefoot.agentcore._consents import LIFE
from surefoot.credentials import (
    AuthorizationRequired,
    CredentialRequest,
    Issued,
    RetryingCredentials,
    Secret,
    TransientCredentialError,
)
from surefoot.errors import CredentialError, InvalidCredentialError
from surefoot.testing import AgentCoreStandIn, FakeClock, SecretAudit

pytestmark = [pytest.mark.both_majors, pytest.mark.anyio]

JWT: Final = "canaryheader.canarybody.canarysignature"
RETURN: Final = "https://app.example.com/back"
MACHINE: Final = CredentialRequest(service="tools", scopes=("read", "write"))
ANA: Final = CredentialRequest(service="tools", scopes=("read",), mode="user", principal="ana")
BEN: Final = CredentialRequest(service="tools", scopes=("read",), mode="user", principal="ben")
BY_JWT: Final = CredentialRequest(
    service="tools", scopes=("read",), mode="user", principal="a-digest", user_token=Secret(JWT)
)


@pytest.fixture
def stand_in() -> Any:
    """A stand-in that nobody has asked yet."""
    with AgentCoreStandIn() as opened:
        yield opened


def identity(stand_in: AgentCoreStandIn, **options: Any) -> AgentCoreIdentity:
    """A provider that asks the stand-in."""
    given: dict[str, Any] = {
        "region": "us-west-2", "workload_name": "agent", "aws": session_of(stand_in),
        "endpoint": stand_in.origin, "return_url": RETURN,
    }  # fmt: skip
    return AgentCoreIdentity(**given | options)


SDK: Final = ("botocore", "boto3", "urllib3")


def audited(*secrets: Any) -> SecretAudit:
    """An audit of all but what is filtered behind its ears: the SDK's own loggers."""
    return SecretAudit(secrets, skip=("requests",), without_loggers=SDK)


class Asked:
    """What the stand-in was asked in a block."""

    def __init__(self, stand_in: AgentCoreStandIn) -> None:
        self._stand_in = stand_in
        self._before = len(stand_in.journal)

    @property
    def bodies(self) -> list[dict[str, Any]]:
        """What was sent."""
        json = library("json")
        return [json.loads(entry.body) for entry in self._stand_in.journal[self._before :]]

    @property
    def paths(self) -> list[str]:
        """Where it was sent."""
        return [entry.path for entry in self._stand_in.journal[self._before :]]


TOKENS: Final = "/identities/oauth2/token"
WORKLOAD: Final = "/identities/GetWorkloadAccessToken"


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


# ---- trouble

TROUBLE: Final = [
    ("identity-throttle", TransientCredentialError, "is busy or failing"),
    ("identity-internal", TransientCredentialError, "is busy or failing"),
    ("identity-validation", CredentialError, "refused the request as not valid"),
    ("identity-denied", CredentialError, "denied access"),
    ("identity-linked", CredentialError, "denied access"),
    ("identity-unauthorized", CredentialError, "did not accept the caller"),
    ("identity-not-found", CredentialError, "knows no such workload or provider"),
    ("identity-nothing", CredentialError, "answered without a credential"),
]


@pytest.mark.parametrize(("row", "kind", "says"), TROUBLE, ids=[row[0] for row in TROUBLE])
@pytest.mark.parametrize("operation", ["GetResourceOauth2Token", "GetWorkloadAccessTokenForJWT"])
async def test_what_the_service_says_no_with_is_told_in_our_words(  # noqa: PLR0917
    stand_in: AgentCoreStandIn,
    operation: str,
    row: str,
    kind: type[CredentialError],
    says: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """R108. And it is asked once: the SDK's own retries are off."""
    if row == "identity-nothing" and operation != "GetResourceOauth2Token":
        says = "there is no workload access token"
    caplog.set_level(logging.DEBUG)
    asked = Asked(stand_in)
    stand_in.script(operation, row, repeat=True)
    with pytest.raises(CredentialError, match=says) as caught:
        await identity(stand_in).vend(BY_JWT)
    told = traceback.TracebackException.from_exception(caught.value, capture_locals=True)
    for secret in (JWT, stand_in.canary):
        assert secret not in repr([frame.locals for frame in told.stack[1:]])
        assert secret not in str(caught.value)
    assert JWT not in caplog.text
    assert stand_in.canary not in caplog.text
    assert type(caught.value) is kind
    assert (caught.value.service, caught.value.__cause__) == ("tools", None)
    assert caught.value.__context__ is None
    assert len(asked.paths) == (1 if operation.endswith("JWT") else 2)


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_nothing_that_it_was_asked_with_is_seen_anywhere(stand_in: AgentCoreStandIn) -> None:
    """R107 to R109. Its texts quote tokens; neither they nor the SDK's frames go anywhere."""
    stand_in.script("GetResourceOauth2Token", "identity-validation")
    with audited(JWT, stand_in.canary, stand_in.keys.secret_access_key) as audit:
        one = identity(stand_in)
        with pytest.raises(CredentialError) as caught:
            await one.vend(BY_JWT)
        audit.add("raised", caught.value)
        consent = await one.vend(BY_JWT)
        audit.add("consent", consent)
    assert audit.looked["exceptions"] > 0
    assert audit.looked["objects"] > 0


async def test_a_throttle_is_waited_out_where_the_app_wants_that(
    stand_in: AgentCoreStandIn,
) -> None:
    """R107. By `RetryingCredentials`, which counts."""
    stand_in.script("GetResourceOauth2Token", "identity-throttle", "identity-internal")
    clock = FakeClock()
    vended = await RetryingCredentials(identity(stand_in), clock=clock).vend(MACHINE)
    assert isinstance(vended, Issued)
    assert len(clock.sleeps) == 2


async def test_a_service_out_of_reach_is_a_passing_trouble() -> None:
    """R108. Named without the address."""
    with AgentCoreStandIn() as gone:
        held = identity(gone, timeout=2.0)
    with pytest.raises(TransientCredentialError, match="could not be reached"):
        await held.vend(MACHINE)


async def test_without_aws_keys_nothing_is_asked(
    stand_in: AgentCoreStandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R108."""
    del monkeypatch
    asked = Asked(stand_in)
    with pytest.raises(CredentialError, match="no AWS credentials were found"):
        await identity(stand_in, aws=None).vend(MACHINE)
    assert asked.paths == []


async def test_a_value_that_may_not_stand_in_a_header_is_refused(
    stand_in: AgentCoreStandIn,
) -> None:
    """B8. By its rule."""
    one = identity(stand_in)
    client, stubber = stubbed(one)
    stubber.add_response("get_workload_access_token", {"workloadAccessToken": "w"})
    stubber.add_response("get_resource_oauth2_token", {"accessToken": "canary\ntoken"})
    with stubber, pytest.raises(InvalidCredentialError, match="control character") as caught:
        await one.vend(MACHINE)
    assert caught.value.service == "tools"
    assert "canary" not in str(caught.value)
    del client


def stubbed(one: AgentCoreIdentity) -> tuple[Any, Any]:
    """The provider's own client, and botocore's Stubber around it."""
    client = one._calls._connected()
    return client, library("botocore.stub").Stubber(client)


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        ({"authorizationUrl": "no-url-canary", "sessionUri": "urn:ietf:params:oauth:request_uri:1"},
         "the authorization URL is none"),
        ({"sessionStatus": "IN_PROGRESS"}, "answered without a credential"),
        ({}, "answered without a credential"),
    ],
)  # fmt: skip
async def test_an_answer_that_is_neither_is_an_error(
    stand_in: AgentCoreStandIn, answer: dict[str, str], says: str
) -> None:
    """R108. Whatever the service may send."""
    one = identity(stand_in)
    _, stubber = stubbed(one)
    stubber.add_response("get_workload_access_token", {"workloadAccessToken": "w"})
    stubber.add_response("get_resource_oauth2_token", answer)
    with stubber, pytest.raises(CredentialError, match=says) as caught:
        await one.vend(MACHINE)
    assert "canary" not in str(caught.value)


# ---- the loop


async def test_the_loop_goes_on_while_the_service_thinks(
    stand_in: AgentCoreStandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R121 to R124. The SDK blocks a thread, and a caller who leaves does not wait for it."""
    one = identity(stand_in)
    entered, go_on = threading.Event(), threading.Event()

    def slow(**_: Any) -> dict[str, str]:
        entered.set()
        go_on.wait(5)
        return {"workloadAccessToken": "w"}

    monkeypatch.setattr(one._calls._connected(), "get_workload_access_token", slow)
    try:
        with anyio.move_on_after(0.05) as scope:
            await one.vend(MACHINE)
        assert scope.cancelled_caught
        assert entered.is_set()
    finally:
        go_on.set()


async def test_the_sdk_is_silent_for_us_and_speaks_for_others(
    stand_in: AgentCoreStandIn, caplog: pytest.LogCaptureFixture
) -> None:
    """R109. At DEBUG it prints requests, answers and signatures; an app's own use still does."""
    caplog.set_level(logging.DEBUG)
    one = identity(stand_in)
    await one.vend(BY_JWT)
    assert JWT not in caplog.text
    assert not [line for line in caplog.records if "workload" in line.getMessage().lower()]
    client = one._calls._connected()
    client.get_workload_access_token(workloadName="agent")
    assert "workloadAccessToken" in caplog.text, "the control"


async def test_a_bearer_runtime_is_called_with_what_it_vends() -> None:
    """R105. Every attempt carries a token of its own, and nothing is signed."""
    from support.agentcore import gateway_of, runtime_of
    from support.sessions import KINDS, opened

    with AgentCoreStandIn(auth="bearer") as bearer:
        vendor = identity(bearer)
        for made, tool in (
            (runtime_of(bearer, credentials=vendor, service="tools"), "search"),
            (gateway_of(bearer, credentials=vendor, service="tools"), "orders___search"),
        ):
            async with opened(made.transport(), KINDS[0]) as session:
                told = await session.call(tool, {"q": "it"})
                assert told.text == "found it"
        sent = {
            entry.header("authorization")
            for entry in bearer.journal
            if not entry.path.startswith("/identities")
        }
        assert len(sent) >= 4
        assert all(line is not None and line.startswith(b"Bearer ") for line in sent)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"region": "canary"}, "region: must be one such as"),
        ({"workload_name": None}, "workload_name: is needed"),
        ({"workload_name": ""}, "workload_name: must not be empty"),
        ({"workload_name": 3}, "workload_name: must be a str"),
        ({"provider": ""}, "provider: must not be empty"),
        ({"kind": "canary"}, "kind: must be one of oauth2, api-key"),
        ({"kind": 3}, "kind: must be one of"),
        ({"flow": "canary"}, "flow: must be one of M2M"),
        ({"workload_token": "canary"}, "workload_token: must be a function"),
        ({"api_key_header": "canary header"}, "header"),
        ({"timeout": 0}, "timeout: must be above 0"),
        ({"timeout": "canary"}, "timeout: must be a number"),
        ({"aws": object()}, "aws: must be a boto3 session"),
    ],
)
async def test_an_option_that_means_nothing_is_refused_when_it_is_built(
    stand_in: AgentCoreStandIn, options: dict[str, Any], says: str
) -> None:
    """R71, R72."""
    with pytest.raises((TypeError, ValueError), match=says) as caught:
        identity(stand_in, **options)
    assert "canary" not in str(caught.value)
    assert isinstance(Bearer("x"), Bearer)
