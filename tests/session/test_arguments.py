"""The law of this file: a caller's mistake is the caller's error, and costs no session.

R71, R72 for the session's own door.
"""

from __future__ import annotations

from typing import Any

import anyio
import pytest

from surefoot import Bearer, CredentialError, Gateway, RateLimitedError, Retry
from surefoot.credentials import (
    CredentialRequest,
    EnvironmentCredentials,
    TransientCredentialError,
)
from surefoot.testing import FaultyGateway, Status, Throttle

CANARY = "canary-4be1-do-not-echo"


@pytest.mark.parametrize(
    ("given", "kind", "named"),
    [
        ({"arguments": ["W-7712"]}, TypeError, "arguments: "),
        ({"arguments": {"q": object()}}, TypeError, "arguments: "),
        ({"arguments": {"q": {CANARY}, "r": object()}}, TypeError, "arguments: "),
        ({"arguments": {1: "W-7712"}}, TypeError, "arguments: "),
        ({"name": 3}, TypeError, "name: "),
        ({"name": None}, TypeError, "name: "),
        ({"name": ""}, ValueError, "name: "),
        ({"meta": CANARY}, TypeError, "meta: "),
        ({"meta": {"key": object(), "other": CANARY}}, TypeError, "meta: "),
        ({"meta": {1: "key"}}, TypeError, "meta: "),
        ({"timeout": CANARY}, TypeError, "timeout: "),
        ({"timeout": True}, TypeError, "timeout: "),
        ({"timeout": 0}, ValueError, "timeout: "),
        ({"timeout": float("nan")}, ValueError, "timeout: "),
    ],
)
async def test_a_wrong_argument_is_named_and_the_session_lives(
    given: dict[str, Any], kind: type[Exception], named: str
) -> None:
    """R71, R72. The option is named, no text is echoed, nothing is sent, the next call works."""
    settings = {option: value for option, value in given.items() if option != "name"}
    with FaultyGateway() as gateway:
        async with Gateway(gateway.url).session() as session:
            await session.tools()
            before = len(gateway.journal)
            with pytest.raises(kind) as caught:
                await session.call(given.get("name", "search"), **settings)
            assert str(caught.value).startswith(named)
            assert CANARY not in str(caught.value)
            assert len(gateway.journal) == before
            answer = await session.call("search", {"q": "W-7712"})
            assert answer.text == "found W-7712"


async def test_a_call_outside_of_the_session_says_where_it_belongs() -> None:
    """R71."""
    session = Gateway("https://gateway.example.com/mcp").session()
    with pytest.raises(RuntimeError, match="not open: use it inside its own async with"):
        await session.call("search")


async def test_why_no_credential_could_be_had_reaches_the_caller(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """R108. The provider's own fixed phrase is what a person needs to mend it."""
    monkeypatch.setenv("SUREFOOT_TEST_TOKEN", "tok-8f14e45f")
    with FaultyGateway() as gateway:
        credentials = EnvironmentCredentials("SUREFOOT_TEST_TOKEN")
        async with Gateway(gateway.url, credentials=credentials).session() as session:
            assert (await session.call("search", {"q": "W-1"})).text == "found W-1"
            ran = gateway.executions("search")
            monkeypatch.delenv("SUREFOOT_TEST_TOKEN")
            with pytest.raises(CredentialError) as caught:
                await session.call("search", {"q": "W-2"})
            assert "environment variable" in caught.value.reason
            assert gateway.executions("search") == ran


@pytest.mark.parametrize("throttled", [True, False])
async def test_a_call_that_was_refused_before_no_credential_could_be_had_is_told_as_refused(
    throttled: bool,
) -> None:
    """R3, D35. It was sent, and a 429 proves nothing; the control was never sent."""
    asked = False

    async def vault(_: CredentialRequest) -> Bearer:
        if asked and (not throttled or faulty.requests("charge")):
            raise CredentialError("the vault is sealed")
        return Bearer("tok-8f14e45f")

    quick = Retry(base_delay=0.01)
    with FaultyGateway() as faulty, anyio.fail_after(10):
        faulty.script("charge", Throttle(0))
        async with Gateway(faulty.url, credentials=vault, retry=quick).session() as session:
            await session.tools()
            asked = True
            with pytest.raises(RateLimitedError if throttled else CredentialError) as caught:
                await session.call("charge", {"amount": 1})
        assert len(faulty.requests("charge")) == throttled
    why = caught.value.__cause__ if throttled else caught.value
    assert isinstance(why, CredentialError)
    assert why.reason == "the vault is sealed"


@pytest.mark.parametrize("kind", [CredentialError, TransientCredentialError])
async def test_why_no_credential_could_be_had_is_told_when_connecting_as_well(
    kind: type[CredentialError],
) -> None:
    """R108, D35. In the same words and by the same type; the control: a server's own 401 is not."""

    async def vault(request: CredentialRequest) -> Bearer:
        raise kind("the vault is sealed", service=request.service)

    with FaultyGateway() as faulty:
        with pytest.raises(CredentialError) as caught, anyio.fail_after(10):
            async with Gateway(faulty.url, credentials=vault).session():
                pass
        assert not faulty.journal
        assert type(caught.value) is kind
        assert caught.value.reason == "the vault is sealed"
        assert caught.value.__suppress_context__
        for opening in ("server/discover", "initialize"):
            faulty.script(opening, Status(401), repeat=True)
        with pytest.raises(CredentialError) as refused, anyio.fail_after(10):
            async with Gateway(faulty.url).session():
                pass
    assert refused.value.reason == "unauthorized"
