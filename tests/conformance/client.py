"""The law of this file: the MCP conformance suite judges a client that speaks through a Gateway.

The suite starts this script once for each scenario, with the scenario and the protocol version in
the environment and the server's URL as the last argument; exit code 0 means that the client did its
part. ``SUREFOOT_DOOR=bare`` speaks through the SDK alone, to show what passes without us.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Any, Final, cast
from urllib.parse import parse_qsl, urlsplit

import anyio
import httpx2
import mcp_types as types
from mcp import Client
from mcp.client.auth import OAuthClientProvider
from mcp.client.auth.extensions.client_credentials import (
    ClientCredentialsOAuthProvider,
    PrivateKeyJWTOAuthProvider,
    SignedJWTParameters,
)
from mcp.client.auth.extensions.identity_assertion import IdentityAssertionOAuthProvider
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import (
    AuthorizationCodeResult,
    OAuthClientInformationFull,
    OAuthClientMetadata,
    OAuthToken,
)
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import AnyUrl

from surefoot import Gateway

SCENARIO: Final = os.environ.get("MCP_CONFORMANCE_SCENARIO", "")
VERSION: Final = os.environ.get("MCP_CONFORMANCE_PROTOCOL_VERSION", "")
CONTEXT: Final[dict[str, Any]] = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT") or "{}")
BARE: Final = os.environ.get("SUREFOOT_DOOR") == "bare"

CALLBACK: Final = AnyUrl("http://localhost:3000/callback")
SECONDS: Final = 30.0
HANDSHAKE_ONLY: Final = frozenset({"json-schema-ref-no-deref"})
"""Scenarios whose server speaks the handshake era alone, whatever version is named."""

STAND_INS: Final[Mapping[str, Any]] = {
    "array": [],
    "boolean": False,
    "integer": 0,
    "null": None,
    "number": 0,
    "object": {},
}


class Tokens:
    """Where the SDK's OAuth provider keeps what it is given: in this process."""

    def __init__(self, known: OAuthClientInformationFull | None = None) -> None:
        self._tokens: OAuthToken | None = None
        self._client = known

    async def get_tokens(self) -> OAuthToken | None:
        return self._tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self._tokens = tokens

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return self._client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self._client = client_info


class Consent:
    """A person who always agrees: follows the authorization URL to its redirect."""

    def __init__(self) -> None:
        self._query: dict[str, str] = {}

    async def ask(self, url: str) -> None:
        async with httpx2.AsyncClient() as browser:
            answer = await browser.get(url, follow_redirects=False)
        self._query = dict(parse_qsl(urlsplit(answer.headers["location"]).query))

    async def answer(self) -> AuthorizationCodeResult:
        said, self._query = self._query, {}
        return AuthorizationCodeResult(
            code=said["code"], state=said.get("state"), iss=said.get("iss")
        )


async def accept(_: Any, params: Any) -> types.ElicitResult:
    """Accept what is asked, with the defaults of its schema."""
    schema: dict[str, Any] = getattr(params, "requested_schema", None) or {}
    asked: dict[str, dict[str, Any]] = schema.get("properties", {})
    content = {name: one["default"] for name, one in asked.items() if "default" in one}
    return types.ElicitResult(action="accept", content=content or {"confirmed": True})


async def sample(_: Any, __: Any) -> types.CreateMessageResult:
    """Say nothing, as a model."""
    nothing = types.TextContent(type="text", text="")
    return types.CreateMessageResult(role="assistant", content=nothing, model="none")


async def roots(_: Any) -> types.ListRootsResult:
    """There are none."""
    return types.ListRootsResult(roots=[])


def streams(url: str) -> AbstractAsyncContextManager[Any]:
    """The streams of a session without authorization."""
    return streamable_http_client(url) if BARE else Gateway(url).transport()


def connected(opened: AbstractAsyncContextManager[Any], **callbacks: Any) -> Client:
    """A client of the era that the scenario is run in."""
    modern = VERSION in MODERN_PROTOCOL_VERSIONS and SCENARIO not in HANDSHAKE_ONLY
    return Client(opened, mode="auto" if modern else "legacy", **callbacks)


def arguments_for(tool: Any) -> dict[str, Any]:
    """The least that a tool's schema takes."""
    schema: dict[str, Any] = tool.input_schema
    named = schema.get("properties", {})
    return {
        name: STAND_INS.get(named.get(name, {}).get("type"), "x")
        for name in schema.get("required", [])
    }


async def call_each(client: Client, calls: list[tuple[str, dict[str, Any]]]) -> None:
    """Make calls, each of which may fail."""
    for name, arguments in calls:
        try:
            await client.call_tool(name, arguments)
        except Exception as error:  # noqa: BLE001 - the suite judges what was sent
            sys.stderr.write(f"{name}: {error}\n")


async def call_some(url: str) -> None:
    """List the tools, then make the one call of the scenario."""
    tool, arguments = {
        "tools_call": ("add_numbers", {"a": 5, "b": 3}),
        "sse-retry": ("test_reconnection", {}),
        "request-metadata": ("add_numbers", {"a": 5, "b": 3}),
        "elicitation-sep1034-client-defaults": ("test_client_elicitation_defaults", {}),
    }[SCENARIO]
    declared = (
        {"sampling_callback": sample, "list_roots_callback": roots}
        if SCENARIO == "request-metadata"
        else {}
    )
    async with connected(streams(url), elicitation_callback=accept, **declared) as client:
        await client.list_tools()
        await client.call_tool(tool, cast("dict[str, Any]", arguments))


async def list_tools(url: str) -> None:
    """Connect and list the tools."""
    async with connected(streams(url)) as client:
        await client.list_tools()


async def echo_schema(url: str) -> None:
    """Send a tool's schema back as it was listed."""
    async with connected(streams(url)) as client:
        listed = {tool.name: tool for tool in (await client.list_tools()).tools}
        schema = listed["json_schema_2020_12_tool"].input_schema
        await client.call_tool("json_schema_echo", {"schema": schema})


async def one_of_each(url: str) -> None:
    """Use a tool, a resource and a prompt, so that each standard header is seen."""
    async with connected(streams(url)) as client:
        for tool in (await client.list_tools()).tools[:1]:
            await client.call_tool(tool.name, arguments_for(tool))
        for resource in (await client.list_resources()).resources[:1]:
            await client.read_resource(resource.uri)
        for prompt in (await client.list_prompts()).prompts[:1]:
            await client.get_prompt(prompt.name)


async def call_all(url: str) -> None:
    """Call every tool that is shown, or those that the suite names, with its arguments."""
    async with connected(streams(url)) as client:
        shown = {tool.name: tool for tool in (await client.list_tools()).tools}
        if SCENARIO == "http-custom-headers":
            named: list[dict[str, Any]] = CONTEXT.get("toolCalls", [])
            calls: list[tuple[str, dict[str, Any]]] = [
                (one["name"], one.get("arguments") or {}) for one in named if one["name"] in shown
            ]
            await call_each(client, calls)
        else:
            await call_each(client, [(name, arguments_for(tool)) for name, tool in shown.items()])


async def request_state(url: str) -> None:
    """Calls that take several rounds, and one between them that takes one."""
    async with connected(streams(url), elicitation_callback=accept) as client:
        await client.list_tools()
        # mcp 2.3 sends what it must in the last one, and then refuses a result without its type.
        rounds = ("echo_state", "unrelated", "no_state", "no_result_type")
        await call_each(client, [(f"test_mrtr_{name}", {}) for name in rounds])


async def authorized(url: str) -> None:
    """Connect with the SDK's own OAuth flow above us, and call a tool."""
    auth = await provider(url)
    if BARE:
        http: Any = httpx2.AsyncClient(auth=auth, timeout=SECONDS)
    else:
        http = Gateway(url).http_client(auth=auth, timeout=SECONDS)
    async with http:
        opened = streamable_http_client(url, http_client=http)
        async with connected(opened, elicitation_callback=accept) as client:
            tools = (await client.list_tools()).tools
            await call_each(client, [(tool.name, {}) for tool in tools[:1]])


async def issuer_of(url: str) -> str:
    """The authorization server that the resource names; an enterprise would have it configured."""
    parts = urlsplit(url)
    where = f"{parts.scheme}://{parts.netloc}/.well-known/oauth-protected-resource{parts.path}"
    async with httpx2.AsyncClient() as http:
        return str((await http.get(where)).raise_for_status().json()["authorization_servers"][0])


async def assertion(audience: str, resource: str) -> str:
    """Exchange the identity token at the enterprise's own provider (RFC 8693)."""
    kinds = "urn:ietf:params:oauth:token-type"
    asked = {
        "grant_type": "urn:ietf:params:oauth:grant-type:token-exchange",
        "requested_token_type": f"{kinds}:id-jag",
        "subject_token": CONTEXT["idp_id_token"],
        "subject_token_type": f"{kinds}:id_token",
        "audience": audience,
        "resource": resource,
        "client_id": CONTEXT["idp_client_id"],
    }
    async with httpx2.AsyncClient() as http:
        answer = await http.post(CONTEXT["idp_token_endpoint"], data=asked)
    return str(answer.raise_for_status().json()["access_token"])


async def provider(url: str) -> httpx2.Auth:
    """The OAuth provider of the scenario."""
    client_id, secret = CONTEXT.get("client_id"), CONTEXT.get("client_secret")
    if SCENARIO == "auth/client-credentials-jwt":
        signed = SignedJWTParameters(
            issuer=str(client_id),
            subject=str(client_id),
            signing_algorithm=CONTEXT.get("signing_algorithm", "ES256"),
            signing_key=CONTEXT["private_key_pem"],
        )
        return PrivateKeyJWTOAuthProvider(
            server_url=url,
            storage=Tokens(),
            client_id=str(client_id),
            assertion_provider=signed.create_assertion_provider(),
        )
    if SCENARIO == "auth/client-credentials-basic":
        return ClientCredentialsOAuthProvider(
            server_url=url,
            storage=Tokens(),
            client_id=str(client_id),
            client_secret=str(secret),
            token_endpoint_auth_method="client_secret_basic",
        )
    if SCENARIO == "auth/enterprise-managed-authorization":
        return IdentityAssertionOAuthProvider(
            server_url=url,
            storage=Tokens(),
            client_id=str(client_id),
            client_secret=str(secret),
            issuer=await issuer_of(url),
            assertion_provider=assertion,
            token_endpoint_auth_method="client_secret_basic",
        )
    known = None
    if client_id:
        known = OAuthClientInformationFull(
            client_id=client_id,
            client_secret=secret,
            redirect_uris=[CALLBACK],
            token_endpoint_auth_method="client_secret_basic" if secret else "none",
        )
    person = Consent()
    return OAuthClientProvider(
        server_url=url,
        client_metadata=OAuthClientMetadata(
            client_name="surefoot conformance",
            redirect_uris=[CALLBACK],
            grant_types=["authorization_code", "refresh_token"],
            response_types=["code"],
        ),
        storage=Tokens(known),
        redirect_handler=person.ask,
        callback_handler=person.answer,
        client_metadata_url="https://conformance-test.local/client-metadata.json",
    )


SCENARIOS: Final[Mapping[str, Callable[[str], Awaitable[None]]]] = {
    "elicitation-sep1034-client-defaults": call_some,
    "http-custom-headers": call_all,
    "http-invalid-tool-headers": call_all,
    "http-standard-headers": one_of_each,
    "initialize": list_tools,
    "json-schema-2020-12-preservation": echo_schema,
    "json-schema-ref-no-deref": list_tools,
    "request-metadata": call_some,
    "sep-2322-client-request-state": request_state,
    "sse-retry": call_some,
    "tools_call": call_some,
}


async def main() -> None:
    """Play one scenario."""
    play = authorized if SCENARIO.startswith("auth/") else SCENARIOS[SCENARIO]
    await play(sys.argv[-1])


if __name__ == "__main__":
    anyio.run(main)
