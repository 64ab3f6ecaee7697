"""The law of this file: what failed for a moment is marked so by who failed, and by nobody else.

A layer above never guesses from a text or a status whether asking again may help:
``RetryingCredentials`` repeats after this one error alone. No error of this room carries the words
of a provider, a file or a helper program, because such words quote secrets (R108).
"""

from __future__ import annotations

from typing import Any, cast

from surefoot.credentials._port import (
    AuthorizationRequired,
    CredentialProvider,
    CredentialRequest,
    Issued,
)
from surefoot.credentials._static import as_issued
from surefoot.errors import CredentialError

__all__ = ["TransientCredentialError", "ask", "fresh_copy"]


class TransientCredentialError(CredentialError):
    """No credential could be had just now; asking again may help. Nothing was sent."""

    retry_after: float | None
    """Seconds after which the issuer said to ask again, or ``None`` where it said nothing."""

    def __init__(
        self, reason: str, *, service: str | None = None, retry_after: float | None = None
    ) -> None:
        self.retry_after = retry_after
        super().__init__(reason, service=service)


def fresh_copy(error: CredentialError) -> CredentialError:
    """The same facts without the frames, the cause and the context, in which a secret may lie."""
    rebuild, parts = cast("tuple[Any, tuple[Any, ...]]", error.__reduce__())
    return rebuild(*parts)


async def ask(
    provider: CredentialProvider, request: CredentialRequest
) -> Issued | AuthorizationRequired | CredentialError:
    """Ask a provider once; its failure is returned as an error that quotes nothing it said.

    Cancellation passes, and so does whatever is no ``Exception``.
    """
    try:
        return as_issued(await provider.vend(request), service=request.service)
    except CredentialError as error:
        return fresh_copy(error)
    except Exception as error:  # noqa: BLE001 - a provider's text quotes secrets
        reason = f"the provider raised {type(error).__name__}"
    return CredentialError(reason, service=request.service)
