"""The law of this file: a consent under way is remembered for its own user, and for ten minutes.

The page and the session that binds a consent live ten minutes at the service, and whoever asks
again meanwhile is to be told of the same page. What is kept is sealed, bounded, and keyed by a
digest: no token and no name of a user lies here.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from hashlib import blake2b
from threading import Lock
from typing import TYPE_CHECKING, Final

from surefoot.credentials import AuthorizationRequired, sealed

if TYPE_CHECKING:
    from surefoot.credentials import CredentialRequest

__all__ = ["LIFE", "Consents", "consent_key"]

LIFE: Final = 600.0
"""Seconds that an authorization page and its session live."""

_MOST: Final = 10_000


def consent_key(request: CredentialRequest, provider: str, brought: str = "") -> bytes:
    """What tells one consent from another: the user, the provider and the scopes.

    Args:
        request: Who asks, and for which scopes.
        provider: Whose token is wanted.
        brought: The workload access token that stands for a user whom nobody else names.
    """
    token = None if request.user_token is None else request.user_token.reveal()
    digest = blake2b(digest_size=16)
    user = (request.principal or "", token or "", brought)
    for part in (provider, *sorted(request.scopes), *user):
        data = part.encode("utf-8", "surrogatepass")
        digest.update(len(data).to_bytes(8, "big"))
        digest.update(data)
    return digest.digest()


class Consents:
    """The consents that are under way. Safe from any thread."""

    __slots__ = ("_kept", "_lock")

    def __init__(self) -> None:
        self._kept: OrderedDict[bytes, tuple[float, Callable[[], AuthorizationRequired]]] = (
            OrderedDict()
        )
        self._lock = Lock()

    def __repr__(self) -> str:
        return f"Consents({len(self._kept)})"

    def under_way(self, key: bytes, now: float) -> AuthorizationRequired | None:
        """The consent that was asked for, where its page still lives."""
        with self._lock:
            return self._alive(key, now)

    def begun(
        self,
        key: bytes,
        consent: AuthorizationRequired,
        now: float,
        *,
        after: AuthorizationRequired | None = None,
    ) -> AuthorizationRequired:
        """Remember one, the oldest makes room; return the one that the user is to be told of.

        That is another one where somebody else began it meanwhile: of two pages that are shown, the
        one that a person completes could be the one that nobody asks about any more.

        Args:
            key: Whose it is.
            consent: The new one.
            now: The time.
            after: The one that was under way when this one was asked for.
        """
        with self._lock:
            kept = self._alive(key, now)
            if kept is not None and kept is not after:
                return kept
            self._kept[key] = (now + LIFE, sealed(consent))
            self._kept.move_to_end(key)
            if len(self._kept) > _MOST:
                self._kept.popitem(last=False)
        return consent

    def over(self, key: bytes, consent: AuthorizationRequired | None = None) -> None:
        """Forget what there is: a token came. Or, where ``consent`` is given, that one alone."""
        with self._lock:
            found = self._kept.get(key)
            if found is not None and (consent is None or found[1]() is consent):
                del self._kept[key]

    def _alive(self, key: bytes, now: float) -> AuthorizationRequired | None:
        """The one whose page still lives. Under the lock."""
        found = self._kept.get(key)
        if found is None:
            return None
        if now >= found[0]:
            del self._kept[key]
            return None
        return found[1]()
