"""R71, R72, R107 to R109, R121 to R124, B8: what AgentCore Identity says no with, and blocks with.

Its texts quote tokens, and its SDK prints them and blocks a thread; none of that reaches anybody.
"""

from __future__ import annotations

import logging
import threading
import traceback
from typing import Any, Final

import anyio
import pytest

from support.agentcore import gateway_of, runtime_of
from support.agentcore_identity import BY_JWT, JWT, MACHINE, Asked, identity, stubbed
from support.sessions import KINDS, opened
from surefoot.credentials import (
    CredentialRequest,
    Issued,
    RetryingCredentials,
    SharedCredentials,
    TransientCredentialError,
)
from surefoot.errors import CredentialError, InvalidCredentialError
from surefoot.testing import AgentCoreStandIn, FakeClock, SecretAudit

pytestmark = pytest.mark.anyio

NOBODY: Final = CredentialRequest(service="tools", mode="user", principal="")


def audited(*secrets: Any) -> SecretAudit:
    """An audit of all that is said, also by the SDK's own loggers."""
    return SecretAudit(secrets, skip=("requests",))


class Broken:
    """A session that makes no client."""

    def client(self, *_: Any, **__: Any) -> Any:
        """Fail in words that nobody should read."""
        raise LookupError("canary")


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


@pytest.mark.parametrize(
    ("options", "asking", "says"),
    [
        ({}, NOBODY, "would not accept the request"),
        ({"aws": Broken()}, MACHINE, "asking AgentCore Identity raised LookupError"),
    ],
)
async def test_what_the_sdk_itself_raises_is_told_in_our_words(
    stand_in: AgentCoreStandIn, options: dict[str, Any], asking: CredentialRequest, says: str
) -> None:
    """R108. It quotes what it was given."""
    with pytest.raises(CredentialError, match=says) as caught:
        await identity(stand_in, **options).vend(asking)
    assert "canary" not in str(caught.value)
    assert caught.value.__context__ is None


async def test_a_throttle_is_waited_out_where_the_app_wants_that(
    stand_in: AgentCoreStandIn,
) -> None:
    """R107. By `RetryingCredentials`, which counts."""
    stand_in.script("GetResourceOauth2Token", "identity-throttle", "identity-internal")
    clock = FakeClock()
    vended = await RetryingCredentials(identity(stand_in), clock=clock).vend(MACHINE)
    assert isinstance(vended, Issued)
    assert len(clock.sleeps) == 2


async def test_a_consent_without_a_place_to_return_to_says_what_is_missing(
    stand_in: AgentCoreStandIn,
) -> None:
    """R72. The service says it in words that are not passed on."""
    with pytest.raises(CredentialError, match="a consent needs return_url="):
        await identity(stand_in, return_url=None).vend(BY_JWT)


async def test_many_at_once_are_answered_without_a_word(
    stand_in: AgentCoreStandIn, caplog: pytest.LogCaptureFixture
) -> None:
    """R109. As many connections as there are threads: nothing warns of a pool that is full."""
    one = identity(stand_in)
    vended: list[Any] = []

    async def ask() -> None:
        vended.append(await one.vend(MACHINE))

    async with anyio.create_task_group() as group:
        for _ in range(60):
            group.start_soon(ask)
    assert len({issued.secrets() for issued in vended}) == 60
    assert caplog.records == []


async def test_what_may_be_kept_is_kept_by_shared_credentials(stand_in: AgentCoreStandIn) -> None:
    """B9, R107. Where the app says for how long; each user has one of its own."""
    shared = SharedCredentials(identity(stand_in), lifetime=300)
    first, again = [await shared.vend(MACHINE) for _ in range(2)]
    assert first is again
    with pytest.raises(CredentialError, match="a user flow needs a user"):
        await shared.vend(CredentialRequest(service="tools", mode="user"))


async def test_a_service_out_of_reach_is_a_passing_trouble() -> None:
    """R108. Named without the address."""
    with AgentCoreStandIn() as gone:
        held = identity(gone, timeout=2.0)
    with pytest.raises(TransientCredentialError, match="could not be reached"):
        await held.vend(MACHINE)


async def test_without_aws_keys_nothing_is_asked(
    stand_in: AgentCoreStandIn,
) -> None:
    """R108."""
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


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        ({"authorizationUrl": "no-url-canary", "sessionUri": "urn:ietf:params:oauth:askinguri:1"},
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
    with AgentCoreStandIn(auth="bearer", reuse_after=None) as bearer:
        vendor = identity(bearer)
        for made, tool in (
            (runtime_of(bearer, credentials=vendor, service="tools"), "search"),
            (gateway_of(bearer, credentials=vendor, service="tools"), "orders___search"),
        ):
            async with opened(made.transport(), KINDS[0]) as session:
                told = await session.call(tool, {"q": "it"})
                assert told.text == "found it"
                bearer.script(tool, "no-bearer")  # one that the service no longer takes
                told = await session.call(tool, {"q": "it"})
                assert told.text == "found it"
        sent = {
            entry.header("authorization")
            for entry in bearer.journal
            if not entry.path.startswith("/identities")
        }
        assert len(sent) >= 4
        assert all(line is not None and line.startswith(b"Bearer ") for line in sent)
