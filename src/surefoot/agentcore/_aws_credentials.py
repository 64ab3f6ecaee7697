"""The law of this file: AWS keys are frozen for one attempt, and no event loop waits for them.

Keys that lie in memory and are fresh are taken where they lie. Whatever may ask a metadata service,
a file, a program or STS is asked in a thread, and a caller who leaves does not wait for it. What
such a library says when it fails is never passed on: it quotes paths, profiles and answers. What it
prints meanwhile is dropped: it prints the keys that it was given, and the token it gave for them.
"""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock
from typing import Any, Protocol, cast

import anyio.to_thread

from surefoot.credentials import TransientCredentialError, sealed
from surefoot.errors import CredentialError

from ._extra import load
from ._silence import silence

__all__ = ["AwsCredentials", "FrozenKeys"]

_NO_KEYS = "no AWS credentials were found"


class FrozenKeys(Protocol):
    """**Protocol**: one set of AWS keys that does not change any more."""

    @property
    def access_key(self) -> str:
        """The access key's id."""
        ...

    @property
    def secret_key(self) -> str:
        """The secret key."""
        ...

    @property
    def token(self) -> str | None:
        """The session token of temporary keys."""
        ...


class AwsCredentials:
    """Where the keys come from.

    Args:
        aws: A botocore or boto3 session, a botocore credentials object, or ``None`` for the default
            chain (environment, profile, container, instance).

    Raises:
        ImportError: the extra is not installed.
        TypeError: it is none of these; it is not shown.
    """

    __slots__ = ("_found", "_lock", "_refreshable_kind", "_session", "_static_kind")

    def __init__(self, aws: object = None) -> None:
        library = load("botocore.credentials")
        self._static_kind: type = library.Credentials
        self._refreshable_kind: type = library.RefreshableCredentials
        self._lock = Lock()
        self._session: Callable[[], Any] = sealed(None)
        self._found: Callable[[], Any] = sealed(None)
        if aws is None:
            self._session = sealed(load("botocore.session").Session())
        elif callable(getattr(aws, "get_frozen_credentials", None)) or _are_keys(aws):
            self._found = sealed(aws)
        elif callable(getattr(aws, "get_credentials", None)):
            self._session = sealed(aws)
        else:
            del aws
            raise TypeError(
                "aws: must be a botocore or boto3 session, botocore credentials, or None for the "
                "default chain"
            )

    def __repr__(self) -> str:
        return "AwsCredentials(...)"

    async def frozen(self) -> FrozenKeys:
        """Return one set of keys.

        Raises:
            TransientCredentialError: they could not be had just now.
            CredentialError: there are none.
        """
        keys = self._at_hand()
        if keys is None:
            fetched = await anyio.to_thread.run_sync(self._fetched, abandon_on_cancel=True)
            keys = fetched()
        if isinstance(keys, CredentialError):
            raise keys
        return cast("FrozenKeys", keys)

    def _at_hand(self) -> object:
        """Keys that are in memory and fresh, or ``None``."""
        found = self._found()
        if found is None:
            return None
        if _are_keys(found):
            return found
        if type(found) is self._static_kind:
            return found.get_frozen_credentials()
        if isinstance(found, self._refreshable_kind) and not found.refresh_needed():
            return found.get_frozen_credentials()
        return None

    def _fetched(self) -> Callable[[], object]:
        """Keys by whatever way it takes, or why there are none; runs in a thread.

        They are sealed, because the future of a thread shows its result.
        """
        with silence():
            try:
                found = self._found() or self._loaded()
                keys = None if found is None else found.get_frozen_credentials()
                usable = keys is not None and bool(keys.access_key)
            except Exception as error:  # noqa: BLE001 - it quotes paths, profiles and answers
                reason = f"AWS credentials could not be had: {type(error).__name__}"
                return sealed(TransientCredentialError(reason))
        return sealed(keys if usable else CredentialError(_NO_KEYS))

    def _loaded(self) -> Any:
        """The credentials object of the session, found once."""
        with self._lock:
            found = self._found()
            if found is None:
                found = self._session().get_credentials()
                self._found = sealed(found)
        return found


def _are_keys(value: Any) -> bool:
    """Whether it has keys itself: frozen ones, as botocore hands them out."""
    frozen = not callable(getattr(value, "get_frozen_credentials", None))
    return frozen and all(hasattr(value, name) for name in ("access_key", "secret_key", "token"))
