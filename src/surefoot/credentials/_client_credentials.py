"""The law of this file: the client's secret is sent to its own issuer, and to nobody else.

The OAuth itself is the SDK's: metadata of the resource (RFC 9728) and of the issuer (RFC 8414), the
resource indicator (RFC 8707), the grant (OAuth 2.1 section 4.2) and the assertion (RFC 7523). What
is added is who may be told the secret, single flight (B9), and that tokens stay in memory.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Awaitable, Callable
from inspect import signature
from typing import Any, Final, Literal
from urllib.parse import parse_qsl, urlsplit

from surefoot.credentials._adopt import acts_for_a_user, broken_url
from surefoot.credentials._auth_flow import AuthFlow
from surefoot.credentials._blind import sealed
from surefoot.credentials._issuer_http import Guard
from surefoot.credentials._options import seconds
from surefoot.credentials._port import AuthorizationRequired, CredentialRequest, Issued
from surefoot.credentials._shared import SharedCredentials
from surefoot.credentials._time import Clock, MachineClock
from surefoot.errors import CredentialError
from surefoot.wire import is_private

__all__ = ["Assertion", "ClientCredentials"]

Assertion = Callable[[str], Awaitable[str]]
"""Takes the audience (the issuer's identifier) and returns a signed JWT (RFC 7523 section 2.2)."""

_ASSERTION_LIFE: Final = 60
_AuthMethod = Literal["client_secret_basic", "client_secret_post"]


class ClientCredentials:
    """A program's own credentials by OAuth 2.1: a client secret, or a signed assertion.

    One of ``client_secret``, ``private_key`` and ``assertion`` is given. Tokens are kept in memory,
    refreshed once for all callers, and shared by nobody else.

    Args:
        server_url: The MCP endpoint that the token is for.
        issuer: The authorization server that knows the client; the secret goes nowhere else.
        client_id: The client.
        client_secret: Its secret.
        private_key: Its private key in PEM, for ``private_key_jwt``.
        assertion: Or an async function that has assertions signed elsewhere.
        algorithm: How ``private_key`` signs.
        key_id: The ``kid`` of ``private_key``, where the issuer wants one.
        auth_method: How ``client_secret`` is sent.
        scopes: What to ask for; by default what the server advertises.
        skew: Seconds before its end at which a token is refreshed.
        http_client: Makes the ``AsyncClient`` for the requests to the issuer.
        timeout: Seconds for each of them.
        clock: Time.

    Raises:
        TypeError: an option has the wrong type.
        ValueError: an option is out of its range, or not exactly one kind of proof is given.
    """

    __slots__ = ("_flows", "_make", "_settings", "_shared", "refreshable")

    def __init__(
        self,
        server_url: str,
        /,
        *,
        issuer: str,
        client_id: str,
        client_secret: str | None = None,
        private_key: str | None = None,
        assertion: Assertion | None = None,
        algorithm: str = "RS256",
        key_id: str | None = None,
        auth_method: _AuthMethod = "client_secret_basic",
        scopes: tuple[str, ...] = (),
        skew: float = 30.0,
        http_client: Callable[[], Any] | None = None,
        timeout: float = 30.0,
        clock: Clock | None = None,
    ) -> None:
        broken = (
            broken_url("server_url", server_url)
            or broken_url("issuer", issuer)
            or _broken_proof(client_id, client_secret, private_key, assertion, auth_method)
        )
        proof = sealed((client_secret, private_key, assertion))
        del client_secret, private_key, assertion
        if broken is not None:
            # Any of them may be the secret, put in the wrong place.
            del server_url, issuer, client_id, auth_method, proof
            raise broken
        url = server_url
        time_source = clock or MachineClock()
        self._settings: dict[str, Any] = {
            "url": url, "http_client": http_client, "timeout": seconds("timeout", timeout),
            "clock": time_source,
        }  # fmt: skip

        def make(asked: tuple[str, ...]) -> AuthFlow:
            secret, key, signed = proof()
            if key is not None:
                signed = _signing(client_id, key, algorithm, key_id)
            auth = _sdk_provider(
                url, issuer, client_id, secret=secret, assertion=signed, auth_method=auth_method
            )
            wanted = tuple(dict.fromkeys((*scopes, *asked)))
            return AuthFlow(
                auth, scopes=wanted, guard=_guard(auth, issuer, client_id), **self._settings
            )

        self._make = make
        self._flows: dict[tuple[str, tuple[str, ...]], AuthFlow] = {}
        self._shared = SharedCredentials(self._ask, skew=skew, clock=time_source)
        self.refreshable: bool = True

    def __repr__(self) -> str:
        return "ClientCredentials(...)"

    async def vend(self, request: CredentialRequest, /) -> Issued | AuthorizationRequired:
        """Return the token, refreshed where it has to be.

        Raises:
            TransientCredentialError: the issuer could not be reached, or is busy.
            CredentialError: it refused, or the request is for a user: a client is none.
        """
        if acts_for_a_user(request):
            reason = "client credentials are the program's own and act for no user"
            raise CredentialError(reason, service=request.service)
        return await self._shared.vend(request)

    async def _ask(self, request: CredentialRequest) -> Issued:
        """Drive the flow that this kind of request has for its own; one at a time by B9."""
        key = (request.service, request.scopes)
        flow = self._flows.get(key)
        if flow is None:
            flow = self._flows[key] = self._make(request.scopes)
        flow.unbind()
        return await flow.vend(request)


class _Memory:
    """The SDK's token storage, for as long as the process lives; the client is never registered."""

    def __init__(self) -> None:
        self._tokens: Callable[[], Any] = sealed(None)

    async def held(self) -> Any:
        return self._tokens()

    async def set_tokens(self, tokens: Any) -> None:
        self._tokens = sealed(tokens)

    async def nothing(self, *_: object) -> None:
        """Know of no registration."""

    # The names are the SDK's.
    get_tokens = held
    get_client_info = set_client_info = nothing


def _sdk_provider(
    url: str,
    issuer: str,
    client_id: str,
    *,
    secret: str | None,
    assertion: Assertion | None,
    auth_method: str,
) -> Any:
    """The SDK's own provider, of whichever major is installed."""
    from mcp.client.auth.extensions.client_credentials import (  # noqa: PLC0415 - the SDK is slow to load
        ClientCredentialsOAuthProvider,
        PrivateKeyJWTOAuthProvider,
    )

    kind: Any = ClientCredentialsOAuthProvider if assertion is None else PrivateKeyJWTOAuthProvider
    settings: dict[str, Any] = {"server_url": url, "storage": _Memory(), "client_id": client_id}
    if assertion is None:
        settings |= {"client_secret": secret, "token_endpoint_auth_method": auth_method}
    else:
        settings["assertion_provider"] = assertion
    if "issuer" in signature(kind).parameters:  # since 1.30 and 2.1; our guard holds it on all
        settings["issuer"] = issuer
    return kind(**settings)


def _guard(auth: Any, issuer: str, client_id: str) -> Guard:
    """Let a request that carries the client's secret pass only to the issuer that was named."""

    def checked(request: Any) -> Any:
        if request.method != "POST":
            return request
        found = getattr(auth.context.oauth_metadata, "issuer", None)
        if found is None or str(found).rstrip("/") != issuer.rstrip("/"):
            return "the server leads to another authorization server than the issuer that was named"
        parts = urlsplit(str(request.url))
        if not is_private(parts.scheme, parts.hostname or ""):
            return "the token endpoint is not https"
        form = dict(parse_qsl(request.content.decode("ascii")))
        if "client_id" in form or "client_secret" not in form:
            return request
        # RFC 6749 section 2.3.1 wants both; mcp 1.x sends the secret alone.
        return type(request)("POST", request.url, data={**form, "client_id": client_id})

    return checked


def _signing(client_id: str, key: str, algorithm: str, key_id: str | None) -> Assertion:
    """Sign assertions that live for a minute and are used once (RFC 7523 section 3)."""

    async def signed(audience: str) -> str:
        import jwt  # noqa: PLC0415 - the SDK brings it; only this needs it

        now = int(time.time())
        claims: dict[str, Any] = {
            "iss": client_id, "sub": client_id, "aud": audience, "iat": now,
            "exp": now + _ASSERTION_LIFE, "jti": str(uuid.uuid4()),
        }  # fmt: skip
        headers = None if key_id is None else {"kid": key_id}
        return jwt.encode(claims, key, algorithm=algorithm, headers=headers)

    return signed


def _broken_proof(
    client_id: object, secret: object, key: object, assertion: object, auth_method: object
) -> Exception | None:
    """Check who the client is and how it proves it, without an echo."""
    if not isinstance(client_id, str) or not client_id:
        return TypeError("client_id: must be a str that is not empty")
    if [secret, key, assertion].count(None) != 2:
        return ValueError("client_secret, private_key, assertion: must be exactly one of them")
    if secret is not None and not (isinstance(secret, str) and secret):
        return TypeError("client_secret: must be a str that is not empty")
    if key is not None and not (isinstance(key, str) and key):
        return TypeError("private_key: must be a str in PEM")
    if assertion is not None and not callable(assertion):
        return TypeError("assertion: must be an async function that takes the audience")
    if auth_method not in {"client_secret_basic", "client_secret_post"}:
        return ValueError('auth_method: must be "client_secret_basic" or "client_secret_post"')
    return None
