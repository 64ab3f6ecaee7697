"""R110, B8, R72. What was not configured fails closed; a variable is read when it is needed."""

from __future__ import annotations

import traceback
from typing import Any

import pytest

from surefoot.credentials import (
    ApiKey,
    Bearer,
    CredentialRequest,
    EnvironmentCredentials,
    Issued,
    MissingCredentials,
)
from surefoot.errors import CredentialError, InvalidCredentialError

pytestmark = pytest.mark.anyio

CANARY = "CANARY-77"


async def test_missing_credentials_fail_and_say_what_to_pass() -> None:
    """R111. Nothing is sent without a credential by accident."""
    with pytest.raises(CredentialError, match="pass credentials= a CredentialProvider") as caught:
        await MissingCredentials().vend(CredentialRequest(service="billing"))
    assert caught.value.service == "billing"
    with pytest.raises(CredentialError, match="pass vault="):
        await MissingCredentials(option="vault").vend(CredentialRequest())


@pytest.mark.parametrize("option", [CANARY, "", 5, None])
def test_missing_credentials_take_the_name_of_an_option(option: Any) -> None:
    """R72. Not echoed."""
    with pytest.raises(TypeError, match="option: must be") as caught:
        MissingCredentials(option=option)
    assert CANARY not in str(caught.value)


async def test_a_variable_is_read_at_every_vend(monkeypatch: pytest.MonkeyPatch) -> None:
    """R110. The vend happens inside the request, not at construction."""
    provider = EnvironmentCredentials("SUREFOOT_TEST_TOKEN")
    monkeypatch.setenv("SUREFOOT_TEST_TOKEN", "one")
    assert (await provider.vend(CredentialRequest())).secrets() == (b"one",)
    monkeypatch.setenv("SUREFOOT_TEST_TOKEN", "two")
    assert (await provider.vend(CredentialRequest())).secrets() == (b"two",)


async def test_a_variable_that_is_not_set_is_not_guessed() -> None:
    """R72. The error does not name it: a secret may have been put in the name's place."""
    provider = EnvironmentCredentials("ghp_CANARY", environ={})
    with pytest.raises(CredentialError, match="is not set") as caught:
        await provider.vend(CredentialRequest())
    assert "CANARY" not in str(caught.value)
    assert "CANARY" not in repr(provider)
    assert provider.variable == "ghp_CANARY"


async def test_kind_says_what_the_text_is() -> None:
    """A function of the user's may state the life as well."""
    environ = {"KEY": "k-1"}
    key = EnvironmentCredentials("KEY", environ=environ, kind=ApiKey)
    assert (await key.vend(CredentialRequest())).lines() == ((b"x-api-key", b"k-1"),)
    lived = EnvironmentCredentials(
        "KEY", environ=environ, kind=lambda text: Issued(Bearer(text), expires_in=9)
    )
    assert (await lived.vend(CredentialRequest())).expires_in == 9


async def test_a_rejected_variable_is_not_offered_again() -> None:
    """B9. The same value is not a fresh one."""
    provider = EnvironmentCredentials("KEY", environ={"KEY": "k"})
    with pytest.raises(CredentialError, match="cannot be refreshed"):
        await provider.vend(CredentialRequest(force=True))
    assert provider.refreshable is False


def _broken(text: str) -> Bearer:
    raise RuntimeError(text)


def _nothing(text: str) -> Any:
    return {"token": text}


@pytest.mark.parametrize(
    ("value", "kind", "error", "rule"),
    [
        ("", Bearer, InvalidCredentialError, "it is empty"),
        ("\n", Bearer, InvalidCredentialError, "it is empty"),
        (f"{CANARY}\n\n", Bearer, InvalidCredentialError, "line break"),
        (f" {CANARY}", Bearer, InvalidCredentialError, "blank"),
        (f"{CANARY}\xe9", ApiKey, InvalidCredentialError, "outside ASCII"),
        (CANARY, _broken, CredentialError, "kind raised RuntimeError"),
        (CANARY, _nothing, CredentialError, "kind returned no credential"),
    ],
)
async def test_text_that_is_no_credential_is_refused_unseen(
    value: str, kind: Any, error: type[Exception], rule: str
) -> None:
    """B8, R108. Not in the text, not behind it, and in no local of any frame of the raise."""
    provider = EnvironmentCredentials("KEY", environ={"KEY": value}, kind=kind)
    with pytest.raises(error, match=rule) as caught:
        await provider.vend(CredentialRequest(service="billing"))
    raised = caught.value
    assert isinstance(raised, CredentialError)
    assert raised.service == "billing"
    assert raised.__context__ is None
    assert raised.__cause__ is None
    ours = traceback.TracebackException.from_exception(raised, capture_locals=True).stack[1:]
    assert ours
    assert CANARY not in repr([frame.locals for frame in ours])


@pytest.mark.parametrize(
    ("variable", "error"),
    [("a b", ValueError), (f"{CANARY}.jwt", ValueError), ("", ValueError), (5, TypeError)],
)
def test_a_name_that_no_variable_has_is_refused(variable: Any, error: type[Exception]) -> None:
    """R72. Most often it is the value itself."""
    with pytest.raises(error, match="variable: must be the name") as caught:
        EnvironmentCredentials(variable)
    assert CANARY not in str(caught.value)


def test_kind_must_be_callable() -> None:
    """R71."""
    wrong: Any = Bearer("t")
    with pytest.raises(TypeError, match="kind: must be a callable"):
        EnvironmentCredentials("KEY", kind=wrong)
