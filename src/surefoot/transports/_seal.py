"""The law of this file: the secrets of an attempt travel upwards sealed, with its answer alone.

A seal is opaque: its repr is blind, it pickles to nothing, and no attribute of it holds a value.
The layer that reads the answer opens it once to search for what was secret (B7); it then dies with
the response. It is never handed downwards, and never kept in a context variable.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NoReturn

from surefoot.wire import Scrub

if TYPE_CHECKING:
    from surefoot.credentials import Issued

__all__ = ["SEAL", "Seal"]

SEAL: Final = "surefoot.seal"
"""The name under which a seal hangs on ``response.extensions`` between two layers."""


class Seal:
    """Secret values behind a closure: of the issued credential, and others of this attempt."""

    __slots__ = ("scrub", "secrets")

    def __init__(self, issued: Issued | None, others: tuple[bytes, ...]) -> None:
        def secrets() -> tuple[bytes, ...]:
            return (*(() if issued is None else issued.secrets()), *others)

        def scrub() -> Scrub | None:
            # The scrub of a credential is laid out once, and kept by the credential itself.
            if not others:
                return None if issued is None else issued.scrub()
            return Scrub(secrets())

        self.secrets = secrets
        """The values themselves."""
        self.scrub = scrub
        """What takes them out of an answer; ``None`` where there is nothing to take out."""

    def __repr__(self) -> str:
        """Show nothing."""
        return "<Seal>"

    def __reduce__(self) -> NoReturn:
        """Refuse to be pickled or copied: a seal belongs to one answer."""
        msg = "a Seal cannot be pickled or copied"
        raise TypeError(msg)
