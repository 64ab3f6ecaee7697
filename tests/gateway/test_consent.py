"""R117. A person must consent: the app is told the URL, or a client that opens pages; nobody else.

The real SDK is the client. The URL is a capability, and is searched for in all that is said.
"""

from __future__ import annotations

import importlib
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import anyio
import pytest

from support.sessions import MCP_MAJOR, SDK_ON_TRIO
from surefoot import Gateway
from surefoot.credentials import ApiKey, AuthorizationRequired, CredentialRequest, Issued
from surefoot.errors import AuthorizationRequiredError
from surefoot.sinks import record
from surefoot.testing import FaultyGateway, SecretAudit

pytestmark = [pytest.mark.both_majors, pytest.mark.anyio, *SDK_ON_TRIO]

CANARY: Final = "canary-of-a-consent-4711"
PAGE: Final = f"https://issuer.example/authorize?state={CANARY}"
SENTENCE: Final = "a person"


class Vault:
    """Has a credential for connecting; then a person must consent."""

    def __init__(self, page: str = PAGE) -> None:
        self.page = page
        self.asks_a_person = False

    async def vend(self, request: CredentialRequest, /) -> Issued | AuthorizationRequired:
        """Vend, or send a person to a page."""
        if self.asks_a_person:
            return AuthorizationRequired(request.service, self.page)
        return Issued(ApiKey("key-to-connect-with"))


async def _elicited(context: object, params: object) -> Any:
    """An application's own: it can show a person something."""
    del context, params
    return importlib.import_module("mcp").types.ElicitResult(action="accept")


@asynccontextmanager
async def connected(
    gateway: Gateway, *, opens_pages: bool, mode: str = "legacy"
) -> AsyncGenerator[Any]:
    """The SDK's own session, bounded; on 2.x in either era."""
    mcp: Any = importlib.import_module("mcp")
    callback = _elicited if opens_pages else None
    with anyio.fail_after(10):
        if MCP_MAJOR > 1:
            client = mcp.Client(gateway.transport(), mode=mode, elicitation_callback=callback)
            async with client as sdk:
                yield sdk
        else:
            async with (
                gateway.transport() as pair,
                mcp.ClientSession(*pair, elicitation_callback=callback) as sdk,
            ):
                await sdk.initialize()
                yield sdk


async def refused(sdk: Any) -> Any:
    """The error that a call ends with."""
    mcp: Any = importlib.import_module("mcp")
    kind = mcp.MCPError if MCP_MAJOR > 1 else mcp.McpError
    with pytest.raises(kind) as caught:
        await sdk.call_tool("search", {"q": "W-7712"})
    error: Any = caught.value
    return error.error


async def words(sdk: Any) -> str:
    """The text of the result that a call ends with."""
    result = await sdk.call_tool("search", {"q": "W-7712"})
    assert result.model_dump(by_alias=True)["isError"] is True
    return str(result.content[0].text)


async def test_a_client_that_opens_pages_is_told_the_url_as_data() -> None:
    """R117. As the SDK's own error for it, whose text is a sentence of ours."""
    vault = Vault()
    with FaultyGateway() as server:
        async with connected(Gateway(server.url, credentials=vault), opens_pages=True) as sdk:
            vault.asks_a_person = True
            error = await refused(sdk)
        assert server.executions("search") == 0
    assert error.code == -32042
    assert SENTENCE in error.message
    assert CANARY not in error.message
    kind: Any = importlib.import_module("mcp").UrlElicitationRequiredError
    (elicitation,) = kind.from_error(error).elicitations
    assert elicitation.url == PAGE
    assert CANARY not in elicitation.message
    assert error.data["surefoot/outcome"]["kind"] == "consent-needed"
    assert error.data["surefoot/outcome"]["may_have_run"] is False


async def test_each_one_has_an_id_of_its_own() -> None:
    """R117. By which a client tells pages apart."""
    vault = Vault()
    with FaultyGateway() as server:
        async with connected(Gateway(server.url, credentials=vault), opens_pages=True) as sdk:
            vault.asks_a_person = True
            errors = [await refused(sdk) for _ in range(2)]
    names = {error.data["elicitations"][0]["elicitationId"] for error in errors}
    assert len(names) == 2


async def test_a_client_that_does_not_say_so_reads_the_sentence() -> None:
    """R117. It never declared that it opens pages."""
    vault = Vault()
    with FaultyGateway() as server:
        async with connected(Gateway(server.url, credentials=vault), opens_pages=False) as sdk:
            vault.asks_a_person = True
            text = await words(sdk)
    assert SENTENCE in text
    assert CANARY not in text


@pytest.mark.skipif(MCP_MAJOR == 1, reason="mcp 1.x has no stateless era")
async def test_the_next_protocol_version_has_no_such_error() -> None:
    """R117. It retired -32042: its clients read the sentence."""
    vault = Vault()
    with FaultyGateway() as server:
        gateway = Gateway(server.url, credentials=vault)
        async with connected(gateway, opens_pages=True, mode="auto") as sdk:
            vault.asks_a_person = True
            text = await words(sdk)
    assert SENTENCE in text
    assert CANARY not in text


async def test_where_the_app_is_told_the_client_is_not() -> None:
    """R117. A person is asked once."""
    vault = Vault()
    told: list[AuthorizationRequiredError] = []
    with FaultyGateway() as server:
        gateway = Gateway(server.url, credentials=vault, on_authorization=told.append)
        async with connected(gateway, opens_pages=True) as sdk:
            vault.asks_a_person = True
            text = await words(sdk)
    assert [error.authorization_url for error in told] == [PAGE]
    assert CANARY not in text


async def test_a_page_that_is_not_https_is_told_to_the_app_alone() -> None:
    """R117. A client would refuse it, or open it where others read along."""
    vault = Vault(f"http://issuer.example/?state={CANARY}")
    with FaultyGateway() as server:
        async with connected(Gateway(server.url, credentials=vault), opens_pages=True) as sdk:
            vault.asks_a_person = True
            assert CANARY not in await words(sdk)


async def test_one_clients_word_does_not_hold_for_another() -> None:
    """R117. Two sessions through one Gateway: only the one that opens pages is told."""
    vault = Vault()
    with FaultyGateway() as server:
        gateway = Gateway(server.url, credentials=vault)
        async with (
            connected(gateway, opens_pages=True) as able,
            connected(gateway, opens_pages=False) as unable,
        ):
            vault.asks_a_person = True
            assert CANARY not in await words(unable)
            assert (await refused(able)).code == -32042


async def test_the_url_is_in_no_log_event_or_file(tmp_path: Path) -> None:
    """R117, R109. Told by the hook; nothing that is printed, filed, raised or kept shows it."""
    vault = Vault()
    told: list[str] = []
    evidence = tmp_path / "run.jsonl"

    def hook(error: AuthorizationRequiredError) -> None:
        told.append(str(error))

    with FaultyGateway() as server:
        with SecretAudit(CANARY, files=[evidence], skip=["objects"]) as audit, record(evidence):
            gateway = Gateway(server.url, credentials=vault, on_authorization=hook)
            async with connected(gateway, opens_pages=True) as sdk:
                vault.asks_a_person = True
                audit.add("told", await words(sdk))
            await gateway.aclose()
        assert audit.looked["logs"]
        assert audit.looked["files"]
    assert len(told) == 1
    assert CANARY not in told[0]


async def test_our_own_client_raises_it_typed() -> None:
    """R117. The URL is a field of the error, and in none of its texts."""
    vault = Vault()
    with FaultyGateway() as server:
        async with Gateway(server.url, credentials=vault).session() as session:
            vault.asks_a_person = True
            with pytest.raises(AuthorizationRequiredError) as caught:
                await session.call("search", {"q": "W-7712"})
    assert caught.value.authorization_url == PAGE
    assert CANARY not in f"{caught.value} {caught.value!r}"
