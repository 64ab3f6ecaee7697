"""The law of this file: the secrets of an attempt travel upwards sealed, with its answer alone.

A seal is opaque: its repr is blind, it pickles to nothing, and no attribute of it holds a value.
The layer that reads the answer opens it once to search for what was secret (B7). An answer may echo
what an earlier attempt of its call carried, so a seal knows the seals before it: the last one lies
on the record of the call, wherever that is reached from, until its answer is closed; the
record is emptied of it then.
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
        before: The seal of the attempt before this one, of the same call.
    """

    __slots__ = ("_before", "_issued", "_open")

    def __init__(
        self,
        found: Callable[[], tuple[Issued | None, tuple[bytes, ...]]],
        before: Seal | None = None,
    ) -> None:
        self._open: Callable[[], tuple[Issued | None, tuple[bytes, ...]]] | None = found
        self._issued: Issued | None = None
        self._before = before

    def secrets(self) -> tuple[bytes, ...]:
        """The values themselves."""
        issued, others = self.settle()
        return others if issued is None else (*issued.secrets(), *others)

    def settle(self) -> tuple[Issued | None, tuple[bytes, ...]]:
        """Look for the values now, and let go of the request that they were found in."""
        if self._open is None:
            return self._issued, ()
        issued, others = found = self._open()
        before, self._before = self._before, None
        if before is not None:
            mine = () if issued is None else issued.secrets()
            earlier = [one for one in before.secrets() if one not in mine]
            found = issued, tuple(dict.fromkeys((*others, *earlier)))
        # Thousands of calls may wait at once: what needs no closure of its own has none.
        self._issued = issued
        self._open = (lambda: found) if found[1] else None
        return found

    def scrub(self) -> Scrub | None:
        """What takes them out of an answer; ``None`` where there is nothing to take out."""
        issued, others = self.settle()
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
