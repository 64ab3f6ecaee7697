"""The law of this file: the OAuth provider that an app already has is kept, and its lock is not.

Whatever the SDK's provider knows (its storage, its consent handlers, its refresh token) stays with
it. It is asked once for each token instead of once for each request (B9, B10).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from surefoot.credentials._auth_flow import AuthFlow
from surefoot.credentials._kinds import Credential
from surefoot.credentials._options import seconds
from surefoot.credentials._port import (
    AuthorizationRequired,
    CredentialProvider,
    CredentialRequest,
    Issued,
)
from surefoot.credentials._shared import SharedCredentials
from surefoot.credentials._time import Clock, MachineClock
from surefoot.credentials._unseen import unseen
from surefoot.errors import CredentialError
from surefoot.wire import origin_of

__all__ = ["AdoptedCredentials", "acts_for_a_user", "adopt", "broken_url"]


class AdoptedCredentials:
    """What ``adopt`` makes of an OAuth provider."""

    __slots__ = ("_inner", "refreshable")

    def __init__(self, inner: CredentialProvider) -> None:
        self._inner = inner
        self.refreshable: bool = True

    def __repr__(self) -> str:
        return "AdoptedCredentials(...)"

    async def vend(
        self, request: CredentialRequest, /
    ) -> Issued | Credential | AuthorizationRequired:
        """Return the provider's token, refreshed where it has to be.

        Raises:
            TransientCredentialError: the authorization server could not be reached, or is busy.
            CredentialError: it refused, or the request is for a user of its own: the provider has
                one identity, and hands it to nobody else.
        """
        if acts_for_a_user(request):
            reason = "an adopted provider has one identity of its own and acts for no other user"
            raise CredentialError(reason, service=request.service)
        return await self._inner.vend(request)


@unseen
def adopt(
    provider: Any,
    /,
    *,
    url: str | None = None,
    http_client: Callable[[], Any] | None = None,
    timeout: float = 30.0,
    skew: float = 30.0,
    clock: Clock | None = None,
) -> AdoptedCredentials:
    """Make a credential provider of one of the SDK's OAuth providers, without its long lock (B10).

    Its own requests (metadata, registration, token) go through a client that lives as long as one
    refresh. Do not also pass the provider as ``auth=``. An auth that signs the body or the URL
    cannot be adopted; it belongs into ``Gateway(signer=…)``.

    Args:
        provider: An ``httpx.Auth`` or ``httpx2.Auth``.
        url: The endpoint that it signs for; by default what the provider itself was given.
        http_client: Makes the ``AsyncClient`` for its own requests, of its HTTP family: for a
            proxy, a certificate, other timeouts.
        timeout: Seconds for each of its own requests.
        skew: Seconds before its end at which a token is refreshed.
        clock: Time.

    Raises:
        TypeError: ``provider`` is no such auth, or an option has the wrong type.
        ValueError: the URL is none, or an option is out of its range.
    """
    own = getattr(getattr(provider, "context", None), "server_url", None)
    used = url if url is not None else own
    if used is None:
        message = "url: must be given where the provider does not know its server"
        raise TypeError(message)
    time = clock or MachineClock()
    flow = AuthFlow(
        provider,
        url=checked_url("url", used),
        scopes=(),
        http_client=http_client,
        timeout=seconds("timeout", timeout),
        clock=time,
    )
    shared = SharedCredentials(flow, skew=skew, clock=time)
    return AdoptedCredentials(shared if flow.remembers else flow)


def acts_for_a_user(request: CredentialRequest) -> bool:
    """The request names a user of its own."""
    return request.principal is not None or request.user_token is not None


def checked_url(name: str, url: object) -> str:
    """Hold an option to an http or https URL without user information; it is not echoed (D13)."""
    broken = broken_url(name, url)
    if broken is None:
        return str(url)
    del url
    raise broken


def broken_url(name: str, url: object) -> Exception | None:
    """What is wrong with it, if anything."""
    if not isinstance(url, str):
        return TypeError(f"{name}: must be a str")
    if origin_of(url) is None:
        return ValueError(f"{name}: must be an http or https URL without user information")
    return None
