"""The law of this file: the secrets of an attempt travel upwards sealed, with its answer alone.

A seal is opaque: its repr is blind, it pickles to nothing, and no attribute of it holds a value.
The layer that reads the answer opens it once to search for what was secret (B7); it then dies with
the response. It is never handed downwards, and never kept in a context variable.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final, NoReturn

from surefoot.wire import Scrub

if TYPE_CHECKING:
    from surefoot.credentials import Issued

__all__ = ["SEAL", "Seal"]

SEAL: Final = "surefoot.seal"
"""The name under which a seal hangs on ``response.extensions`` between two layers."""


class Seal:
    """Secret values behind a closure: of the issued credential, and others of this attempt.

    Args:
        found: What was vended, if anything, and the other secrets; looked for when the seal is
            opened, and not before.
    """

    __slots__ = ("_open",)

    def __init__(self, found: Callable[[], tuple[Issued | None, tuple[bytes, ...]]]) -> None:
        self._open = found

    def secrets(self) -> tuple[bytes, ...]:
        """The values themselves."""
        issued, others = self._open()
        return others if issued is None else (*issued.secrets(), *others)

    def scrub(self) -> Scrub | None:
        """What takes them out of an answer; ``None`` where there is nothing to take out."""
        issued, others = self._open()
        if not others:
            # The scrub of a credential is laid out once, and kept by the credential itself.
            return None if issued is None else issued.scrub()
        return Scrub(others if issued is None else (*issued.secrets(), *others))

    def __repr__(self) -> str:
        """Show nothing."""
        return "<Seal>"

    def __reduce__(self) -> NoReturn:
        """Refuse to be pickled or copied: a seal belongs to one answer."""
        msg = "a Seal cannot be pickled or copied"
        raise TypeError(msg)
