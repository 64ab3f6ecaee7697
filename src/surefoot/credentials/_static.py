"""The law of this file: what is passed as ``credentials`` becomes a provider, or is refused now.

A wrong thing is refused when the Gateway is built, by the option's name and without its value,
because the wrong thing is most often the bare token (R71, R72).
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, ClassVar, cast

from surefoot.credentials._kinds import Credential
from surefoot.credentials._port import (
    AuthorizationRequired,
    CredentialProvider,
    CredentialRequest,
    Issued,
)
from surefoot.errors import CredentialError

__all__ = ["StaticCredentials", "as_issued", "as_provider"]

Vended = Issued | Credential | AuthorizationRequired


class StaticCredentials:
    """The same credential for every attempt, or one for each service.

    A rejection changes nothing here: a request with ``force`` is refused with ``CredentialError``,
    because the same value again is not a fresh one.

    Raises:
        TypeError: neither a credential nor a mapping of service to credential.
        ValueError: the mapping is empty.
    """

    __slots__ = ("_by_service", "_everywhere")

    refreshable: ClassVar[bool] = False
    """A rejected one cannot be followed by another, so nothing is re-sent after a 401."""

    def __init__(self, credentials: Credential | Mapping[str, Credential], /) -> None:
        self._everywhere: Issued | None = None
        self._by_service: dict[str, Issued] = {}
        if isinstance(credentials, Credential):
            self._everywhere = Issued(credentials)
            return
        broken = _broken_services(credentials)
        if broken is None:
            self._by_service = {name: Issued(held) for name, held in credentials.items()}
        del credentials
        if broken is not None:
            raise broken

    def __repr__(self) -> str:
        """Show for which services it answers."""
        return f"StaticCredentials({'any' if self._everywhere else sorted(self._by_service)})"

    async def vend(self, request: CredentialRequest, /) -> Issued:
        """Return the one credential.

        Raises:
            CredentialError: none is kept for this service, or the one that is was rejected.
        """
        if request.force:
            raise CredentialError(
                "it was rejected, and a static credential cannot be refreshed",
                service=request.service,
            )
        issued = self._everywhere or self._by_service.get(request.service)
        if issued is None:
            raise CredentialError("none is kept for this service", service=request.service)
        return issued


class _Callable:
    """An async callable as a provider."""

    __slots__ = ("_vend",)

    def __init__(self, vend: Callable[[CredentialRequest], Awaitable[Vended]]) -> None:
        self._vend = vend

    async def vend(self, request: CredentialRequest, /) -> Vended:
        return await self._vend(request)


def as_provider(credentials: object, *, option: str = "credentials") -> CredentialProvider:
    """Make a provider of what was passed as ``option``.

    A provider stays as it is; a ``Bearer``, ``ApiKey``, ``Basic`` or ``Headers`` becomes
    ``StaticCredentials``; an ``async def f(request)`` is asked for every attempt.

    Raises:
        TypeError: it is none of these; the message names the option and does not show the value.
    """
    if isinstance(credentials, Credential):
        return StaticCredentials(credentials)
    vend = None if isinstance(credentials, type) else getattr(credentials, "vend", None)
    if callable(vend):
        return cast("CredentialProvider", credentials)
    if _is_async(credentials):
        return _Callable(cast("Callable[[CredentialRequest], Awaitable[Vended]]", credentials))
    bare = isinstance(credentials, (str, bytes))
    del credentials, vend
    hint = "; a token alone is Bearer(token)" if bare else ""
    message = (
        f"{option}: must be a CredentialProvider, a Bearer, ApiKey, Basic or Headers, "
        f"or an async function that takes a CredentialRequest{hint}"
    )
    raise TypeError(message)


def as_issued(vended: object, *, service: str | None = None) -> Issued | AuthorizationRequired:
    """Hold what a provider returned to the port; a bare kind is ``Issued`` without a stated life.

    Raises:
        CredentialError: the provider returned something else; it is not shown.
    """
    if isinstance(vended, (Issued, AuthorizationRequired)):
        return vended
    if isinstance(vended, Credential):
        return Issued(vended)
    del vended
    raise CredentialError("the provider returned no credential", service=service)


def _is_async(value: object) -> bool:
    """Tell an async function, or an object whose call is one, from everything else."""
    call: Any = value
    return callable(call) and (
        inspect.iscoroutinefunction(call)
        or (not isinstance(call, type) and inspect.iscoroutinefunction(type(call).__call__))
    )


def _broken_services(credentials: object) -> Exception | None:
    """Check a mapping of service to credential without echoing a part of it."""
    if not isinstance(credentials, Mapping):
        return TypeError("credentials: must be a credential, or a mapping of service to credential")
    if not credentials:
        return ValueError("credentials: must not be empty")
    parts = cast("Mapping[object, object]", credentials)
    if all(isinstance(name, str) and isinstance(held, Credential) for name, held in parts.items()):
        return None
    return TypeError("credentials: each must be Bearer, ApiKey, Basic or Headers, by service name")
