"""R105, R110, R111, R117, R71, R72. The port: what is asked, what is answered, what is refused."""

from __future__ import annotations

import functools
import math
from typing import Any

import pytest

from surefoot.credentials import (
    ApiKey,
    AuthorizationRequired,
    Basic,
    Bearer,
    Credential,
    CredentialProvider,
    CredentialRequest,
    Headers,
    Issued,
    StaticCredentials,
    as_issued,
    as_provider,
)
from surefoot.errors import CredentialError

pytestmark = pytest.mark.anyio

CANARY = "CANARY-90aa"


class Vault:
    """A user's provider."""

    async def vend(self, request: CredentialRequest, /) -> Issued:
        return Issued(Bearer(f"for-{request.service}"))


class Askable:
    """An object with an async call."""

    async def __call__(self, request: CredentialRequest) -> Bearer:
        return Bearer(f"for-{request.service}")


async def ask(request: CredentialRequest) -> Bearer:
    """Answer as a plain function."""
    return Bearer(f"for-{request.service}")


async def ask_as(prefix: str, request: CredentialRequest) -> Bearer:
    """Answer as a function that needs a partial."""
    return Bearer(f"{prefix}-{request.service}")


@pytest.mark.parametrize(
    ("credential", "kind"),
    [
        (Bearer("t"), "bearer"),
        (ApiKey("k"), "api-key"),
        (Basic("u", "p"), "basic"),
        (Headers({"x": "y"}), "headers"),
    ],
)
def test_issued_says_its_kind_and_hands_on_its_lines(credential: Credential, kind: str) -> None:
    """R105. The transport needs no other question."""
    issued = Issued(credential, expires_in=30)
    assert issued.kind == kind
    assert issued.lines() is credential.lines()
    assert issued.secrets() is credential.secrets()
    assert issued.expires_in == 30.0
    assert repr(issued) == f"Issued({type(credential).__name__}(<hidden>), expires_in=30)"


@pytest.mark.parametrize(
    ("life", "read"), [(None, None), (0, 0.0), (7, 7.0), (0.5, 0.5), (math.inf, None)]
)
def test_a_stated_life_is_seconds(life: float | None, read: float | None) -> None:
    """R71. One without an end is the same as one that was not stated."""
    assert Issued(Bearer("t"), expires_in=life).expires_in == read


@pytest.mark.parametrize(
    ("life", "error"),
    [(-1, ValueError), (math.nan, ValueError), (True, TypeError), ("CANARY", TypeError)],
)
def test_a_life_that_means_nothing_is_refused(life: Any, error: type[Exception]) -> None:
    """R71, R72. Named, and not echoed unless it is a number."""
    with pytest.raises(error, match="expires_in: must be") as caught:
        Issued(Bearer("t"), expires_in=life)
    assert "CANARY" not in str(caught.value)


@pytest.mark.parametrize("wrong", [CANARY, None, 5, Issued(Bearer("t"))])
def test_issued_takes_a_kind_and_nothing_else(wrong: Any) -> None:
    """R72. A bare token is refused without an echo."""
    with pytest.raises(TypeError, match="credential: must be Bearer") as caught:
        Issued(wrong)
    assert CANARY not in str(caught.value)


def test_each_issued_is_a_generation_of_its_own() -> None:
    """B9. Rejecting one says nothing about another of the same value."""
    credential = Bearer("t")
    one, other = Issued(credential), Issued(credential)
    assert one.generation is one.generation
    assert one.generation is not other.generation


def test_a_consent_holds_its_url_as_a_field_only() -> None:
    """R117. The URL is a capability."""
    url = f"https://issuer.example/consent?state={CANARY}"
    consent = AuthorizationRequired("calendar", url, "urn:session:1")
    assert consent.service == "calendar"
    assert consent.authorization_url == url
    assert consent.session_uri == "urn:session:1"
    assert repr(consent) == "AuthorizationRequired(service='calendar', <hidden>)"


@pytest.mark.parametrize(
    ("arguments", "error", "rule"),
    [
        ((None, "https://a.example"), TypeError, "service: must"),
        (("s", None), TypeError, "authorization_url: must"),
        (("s", "https://a.example", 5), TypeError, "session_uri: must"),
        (("s", f"javascript:{CANARY}"), ValueError, "http or https"),
        (("s", f"https://[{CANARY}"), ValueError, "http or https"),
        (("s", f"https:///{CANARY}"), ValueError, "http or https"),
        (("s", f"https://a.example/\n{CANARY}"), ValueError, "http or https"),
    ],
)
def test_a_consent_that_no_person_can_follow_is_refused(
    arguments: tuple[Any, ...], error: type[Exception], rule: str
) -> None:
    """R117, R72. Named, never echoed, and no inner error behind it."""
    with pytest.raises(error, match=rule) as caught:
        AuthorizationRequired(*arguments)
    assert CANARY not in str(caught.value)
    assert caught.value.__context__ is None


def test_a_request_has_the_defaults_of_the_ledger() -> None:
    """R111. Service ``gateway``, no scopes, machine."""
    request = CredentialRequest()
    assert (request.service, request.scopes, request.mode) == ("gateway", (), "machine")
    assert (request.principal, request.user_token, request.force, request.rejected) == (
        None,
        None,
        False,
        None,
    )


@pytest.mark.parametrize(
    "passed", [Vault(), Askable(), ask, functools.partial(ask_as, "for"), Bearer("for-gateway")]
)
async def test_anything_that_can_answer_becomes_a_provider(passed: object) -> None:
    """R106, R110. A provider, a kind, an async callable: all are asked by ``vend``."""
    provider = as_provider(passed)
    assert isinstance(provider, CredentialProvider)
    vended = as_issued(await provider.vend(CredentialRequest()))
    assert isinstance(vended, Issued)
    assert vended.secrets() == (b"for-gateway",)


def test_a_provider_stays_as_it_is() -> None:
    """R106. No wrapper around what already speaks the port."""
    vault = Vault()
    assert as_provider(vault) is vault


def not_async(request: CredentialRequest) -> Bearer:
    """Answer too early."""
    return Bearer(request.service)


@pytest.mark.parametrize("wrong", [CANARY, CANARY.encode(), None, 5, not_async, Vault, Bearer, {}])
def test_what_cannot_answer_is_refused_by_the_options_name(wrong: object) -> None:
    """R71, R72. When built, with the way out, without an echo."""
    with pytest.raises(TypeError, match="login: must be a CredentialProvider") as caught:
        as_provider(wrong, option="login")
    assert CANARY not in str(caught.value)
    assert ("Bearer(token)" in str(caught.value)) == isinstance(wrong, (str, bytes))


@pytest.mark.parametrize("wrong", [None, CANARY, {"Authorization": CANARY}, 5])
def test_an_answer_outside_the_port_is_refused_unseen(wrong: object) -> None:
    """R108. The provider's mistake is named; what it returned is not shown."""
    with pytest.raises(CredentialError, match="returned no credential") as caught:
        as_issued(wrong, service="billing")
    assert caught.value.service == "billing"
    assert CANARY not in str(caught.value)


def test_both_answers_of_the_port_pass_as_they_are() -> None:
    """R117. A consent is an answer, not an error, until the transport makes it one."""
    issued = Issued(Bearer("t"))
    consent = AuthorizationRequired("s", "https://issuer.example/")
    assert as_issued(issued) is issued
    assert as_issued(consent) is consent


async def test_static_credentials_answer_by_service() -> None:
    """R111. One for all, or one for each; never another service's."""
    each = StaticCredentials({"a": Bearer("for-a"), "b": ApiKey("for-b")})
    assert (await each.vend(CredentialRequest(service="a"))).secrets() == (b"for-a",)
    assert (await each.vend(CredentialRequest(service="b"))).secrets() == (b"for-b",)
    with pytest.raises(CredentialError, match="none is kept for this service") as caught:
        await each.vend(CredentialRequest(service="c"))
    assert caught.value.service == "c"
    assert repr(each) == "StaticCredentials(['a', 'b'])"
    assert repr(StaticCredentials(Bearer(CANARY))) == "StaticCredentials(any)"


async def test_a_rejected_static_credential_is_not_offered_again() -> None:
    """B9. The same value is not a fresh one, so nothing is re-sent with it."""
    static = StaticCredentials(Bearer("t"))
    first = await static.vend(CredentialRequest())
    assert await static.vend(CredentialRequest()) is first
    with pytest.raises(CredentialError, match="cannot be refreshed"):
        await static.vend(CredentialRequest(force=True, rejected=first.generation))


@pytest.mark.parametrize(
    ("wrong", "error"),
    [
        (CANARY, TypeError),
        ({}, ValueError),
        ({"a": CANARY}, TypeError),
        ({1: Bearer("t")}, TypeError),
    ],
)
def test_static_credentials_take_kinds_only(wrong: Any, error: type[Exception]) -> None:
    """R71, R72. Refused when built, without an echo."""
    with pytest.raises(error, match="credentials: ") as caught:
        StaticCredentials(wrong)
    assert CANARY not in str(caught.value)
