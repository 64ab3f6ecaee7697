"""R108, R109, B10. What ends an OAuth flow is logged by the SDK at ERROR, text and frames included.

That is before anybody can catch it: what an assertion or a handler of the app raises may quote a
secret, a state that does not match is printed, and frames hold keys.
"""

from __future__ import annotations

import importlib
import logging
from collections.abc import Callable, Iterator
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

import anyio
import mcp.client.auth.oauth2 as sdk
import pytest
from mcp.client.auth import OAuthClientProvider
from mcp.shared.auth import OAuthClientInformationFull, OAuthClientMetadata

from support.oauth_server import OAuthServer, oauth_server
from surefoot.credentials import (
    ClientCredentials,
    CredentialProvider,
    CredentialRequest,
    Issued,
    adopt,
)
from surefoot.errors import CredentialError
from surefoot.testing import SecretAudit

pytestmark = [pytest.mark.anyio, pytest.mark.both_majors]

http: Any = getattr(sdk, "httpx2", None) or vars(sdk)["httpx"]

PLAIN: Final = CredentialRequest(service="billing")
CANARY: Final = "CANARY-0b6d-flow"
PEM: Final = f"-----BEGIN PRIVATE KEY-----\n{CANARY}\n-----END PRIVATE KEY-----"
BACK: Any = ["http://localhost:1/back"]


class Storage:
    """A client that is registered already, and has no token yet."""

    async def get_tokens(self) -> Any:
        return None

    async def set_tokens(self, tokens: Any) -> None:
        """Forget them."""

    async def get_client_info(self) -> Any:
        return OAuthClientInformationFull(
            client_id="me", client_secret=f"{CANARY}-secret", redirect_uris=BACK
        )

    async def set_client_info(self, client_info: Any) -> None:
        """Forget it."""


class Person:
    """Who consents at a page: as asked, with another state, or not at all."""

    def __init__(self, does: str) -> None:
        self.does = does
        self.state = ""

    async def opens(self, url: str) -> None:
        """Look at the page."""
        if self.does == "no browser":
            message = f"cannot open {url}&{CANARY}"
            raise OSError(message)
        (self.state,) = parse_qs(urlsplit(url).query)["state"]

    async def comes_back(self) -> Any:
        """Bring the code, in the form of either major."""
        if self.does == "no code":
            message = f"no code in {CANARY}"
            raise ValueError(message)
        code = f"{CANARY}-code"
        state = f"{CANARY}-state" if self.does == "another state" else self.state
        kind: Any = getattr(
            importlib.import_module("mcp.shared.auth"), "AuthorizationCodeResult", None
        )
        return (code, state) if kind is None else kind(code=code, state=state)


def sdk_provider(server: OAuthServer, does: str) -> Any:
    """The SDK's own provider, for a person."""
    person = Person(does)
    about = OAuthClientMetadata(redirect_uris=BACK, client_name="an app")
    return OAuthClientProvider(
        server.url, about, Storage(), redirect_handler=person.opens,
        callback_handler=person.comes_back,
    )  # fmt: skip


async def raises(audience: str) -> str:
    """An assertion that fails, in words that say too much."""
    message = f"the key store said {CANARY} for {audience}"
    raise RuntimeError(message)


def program(server: OAuthServer, **proof: Any) -> ClientCredentials:
    return ClientCredentials(server.url, issuer=server.origin, client_id="me", **proof)


ENDS: Final[dict[str, Callable[[OAuthServer], CredentialProvider]]] = {
    "assertion raises": lambda server: program(server, assertion=raises),
    "no key": lambda server: program(server, private_key=PEM),
    "no browser": lambda server: adopt(sdk_provider(server, "no browser")),
    "no code": lambda server: adopt(sdk_provider(server, "no code")),
    "another state": lambda server: adopt(sdk_provider(server, "another state")),
}


@pytest.fixture
def server() -> Iterator[OAuthServer]:
    with oauth_server() as serving:
        yield serving


@pytest.mark.parametrize("end", ENDS)
async def test_what_ends_a_flow_is_in_no_log(
    end: str, server: OAuthServer, caplog: pytest.LogCaptureFixture
) -> None:
    """R108. The SDK's line stays, and ours says what kind of error it was."""
    caplog.set_level(logging.DEBUG)
    provider = ENDS[end](server)
    with SecretAudit(CANARY) as audit:
        with pytest.raises(CredentialError, match="the OAuth flow ended with") as caught:
            await provider.vend(PLAIN)
        audit.add("error", caught.value)
        audit.add("provider", provider)
    said = [one for one in caplog.records if one.getMessage() == "OAuth flow error"]
    assert [(one.levelno, one.exc_info) for one in said] == [(logging.ERROR, None)]
    assert audit.looked["logs"]


async def bare(server: OAuthServer, does: str) -> None:
    """The SDK's provider as the ``auth`` of a client, with nothing of ours around it."""
    async with http.AsyncClient(timeout=5) as client:
        with pytest.raises(Exception, match=CANARY):
            await client.post(server.url, content=b"{}", auth=sdk_provider(server, does))


@pytest.mark.parametrize("end", ["no browser", "no code", "another state"])
async def test_the_flow_of_somebody_else_is_logged_as_before(
    end: str, server: OAuthServer, caplog: pytest.LogCaptureFixture
) -> None:
    """R109. The control; and while one of ours is under way in another task."""
    begun = anyio.Event()
    over = anyio.Event()

    async def waits(_: str) -> str:
        begun.set()
        await over.wait()
        return await raises("nobody")

    async def ours() -> None:
        with pytest.raises(CredentialError):
            await program(server, assertion=waits).vend(PLAIN)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(ours)
        with anyio.fail_after(5):
            await begun.wait()
        await bare(server, end)
        over.set()
    said = [one for one in caplog.records if one.getMessage() == "OAuth flow error"]
    assert [one.exc_info is None for one in said] == [False, True]
    assert caplog.text.count(CANARY) > 0


async def test_a_person_who_consents_is_followed_by_a_token(server: OAuthServer) -> None:
    """B10. The control of the page's own way: as asked, it ends well, and shows nothing either."""
    provider = adopt(sdk_provider(server, "as asked"))
    with SecretAudit(CANARY) as audit:
        issued = await provider.vend(PLAIN)
        assert isinstance(issued, Issued)
        assert issued.secrets() == (b"token-1",)
        audit.add("provider", provider)
    assert server.tokens[0].form["code"] == f"{CANARY}-code"
