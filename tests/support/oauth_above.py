"""The law of this file: the SDK's own OAuth flow, above a protected client, against two servers."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from inspect import signature
from typing import Any, Final

from mcp.client.auth import TokenStorage
from mcp.client.auth.extensions.client_credentials import ClientCredentialsOAuthProvider
from mcp.shared.auth import OAuthClientInformationFull, OAuthToken

from support.sessions import FAMILY, Kind, Session, opened, sdk_streams
from surefoot import Gateway
from surefoot.testing import ExpiringTokens, FaultyGateway

__all__ = ["CLIENT_SECRET", "Remembered", "oauth_servers", "oauth_session"]

CLIENT_SECRET: Final = "canary-of-the-client-31"


class Remembered(TokenStorage):
    """The SDK's storage of an OAuth client, in memory."""

    def __init__(self) -> None:
        self.tokens: OAuthToken | None = None
        self.client: OAuthClientInformationFull | None = None

    async def get_tokens(self) -> OAuthToken | None:
        return self.tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self.tokens = tokens

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return self.client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self.client = client_info


@contextmanager
def oauth_servers() -> Generator[tuple[FaultyGateway, FaultyGateway]]:
    """A resource, and on another origin the authorization server that its metadata names."""
    with (
        FaultyGateway(tokens=ExpiringTokens(60, endpoint="/token")) as issuer,
        FaultyGateway(tokens=ExpiringTokens(60, endpoint="/none-here")) as resource,
    ):
        known = {"resource": resource.url, "authorization_servers": [issuer.origin + "/"]}

        def metadata(endpoint: str) -> dict[str, object]:
            del endpoint
            return {**known}

        serving: Any = resource._serving
        serving._guards.mint = issuer.tokens
        serving._metadata = metadata
        yield resource, issuer


@asynccontextmanager
async def oauth_session(
    gateway: Gateway | None, resource: FaultyGateway, issuer: FaultyGateway, kind: Kind
) -> AsyncGenerator[Session]:
    since = "issuer" in signature(ClientCredentialsOAuthProvider).parameters  # mcp 1.30 and 2.1
    named: dict[str, Any] = {"issuer": issuer.origin} if since else {}
    auth = ClientCredentialsOAuthProvider(resource.url, Remembered(), "id", CLIENT_SECRET, **named)
    async with FAMILY.AsyncClient(auth=auth, timeout=5) as client:
        if gateway is not None:
            gateway.protect(client)
        async with opened(sdk_streams(resource.url, client), kind) as session:
            yield session
