"""R112, R113. One credential header goes out, and it is the vended one; what is passed is refused.

Facts of public bug reports: old headers copied over fresh ones, and a stale token sent again.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable
from typing import Any, Final

import pytest

from support.sending import DONE, REFUSED, URL, message
from surefoot import ApiKey, Bearer, Gateway
from surefoot.credentials import CredentialRequest, Issued
from surefoot.testing import FakeClock, ScriptedTransport

pytestmark = [pytest.mark.anyio]

CANARY: Final = "canary-old-4a21"
NAMES: Final = (
    "authorization",
    "Authorization",
    "COOKIE",
    "X-Api-Key",
    "x-amz-security-token",
    "x-auth-token",
    "api-key",
    "private-token",
    "x-goog-api-key",
    "ocp-apim-subscription-key",
)


class Vault:
    """Vends one after another."""

    def __init__(self) -> None:
        self.vended = 0

    async def vend(self, request: CredentialRequest, /) -> Issued:
        """One more."""
        del request
        self.vended += 1
        return Issued(Bearer(f"fresh-{self.vended}"))


FORMS: Final[dict[str, Callable[[str], Any]]] = {
    "mapping": lambda name: {name: CANARY},
    "pairs": lambda name: [(name, CANARY)],
    "bytes": lambda name: [(name.encode(), CANARY.encode())],
}


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
@pytest.mark.parametrize("name", NAMES)
def test_a_credential_header_beside_credentials_is_refused(name: str, form: Any) -> None:
    """R112. By either door that takes headers, before anything is sent, and without its value."""
    gateway = Gateway(URL, credentials=Bearer("vended-token"))
    for door in (gateway.http_client, gateway.http_client_factory):
        with pytest.raises(ValueError, match="headers: ") as caught:
            door(headers=form(name))
        assert name.lower() in str(caught.value)
        assert CANARY not in "".join(traceback.format_exception(caught.value))


async def test_other_headers_pass_and_so_does_a_credential_where_none_is_vended() -> None:
    """R112. Frameworks pass their own headers; without credentials= a token is the app's affair."""
    plain = Gateway(URL)
    vended = Gateway(URL, credentials=Bearer("vended-token"))
    clients = [
        plain.http_client(headers={"authorization": CANARY}),
        plain.http_client_factory(headers=None),
        vended.http_client(headers={"x-tenant": "blue"}),
        vended.http_client_factory(headers={}),
    ]
    assert clients[0].headers["authorization"] == CANARY
    assert clients[2].headers["x-tenant"] == "blue"
    for client in clients:
        await client.aclose()


@pytest.mark.parametrize("name", ["Authorization", "authorization", "AUTHORIZATION"])
async def test_of_a_protected_clients_own_header_nothing_goes_out(family: Any, name: str) -> None:
    """R112. In any case; on the repeat as well; one line, and the fresh one."""
    wire = ScriptedTransport(REFUSED, DONE)
    client = family.AsyncClient(transport=wire, headers={name: f"Bearer {CANARY}"})
    gateway = Gateway(URL, credentials=Vault(), clock=FakeClock())
    asked = message()
    headers = {**asked.headers, name: f"Bearer {CANARY}"}
    async with gateway.protect(client):
        await client.post(URL, content=asked.body, headers=headers)
    sent = [request.header_values("authorization") for request in wire.requests]
    assert sent == [(b"Bearer fresh-1",), (b"Bearer fresh-2",)]


async def test_another_credential_of_the_clients_own_is_left_to_it(family: Any) -> None:
    """R112, D31. An OAuth flow above sets one header, and our key is another."""
    wire = ScriptedTransport(DONE)
    client = family.AsyncClient(transport=wire, headers={"authorization": f"Bearer {CANARY}"})
    asked = message()
    async with Gateway(URL, credentials=ApiKey("vended-key")).protect(client):
        await client.post(URL, content=asked.body, headers=dict(asked.headers))
    (request,) = wire.requests
    assert tuple(request.header_values("authorization")) == (f"Bearer {CANARY}".encode(),)
    assert tuple(request.header_values("x-api-key")) == (b"vended-key",)
