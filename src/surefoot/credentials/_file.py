"""The law of this file: a credential file is read off the loop, whole, and only if it is private.

A sidecar that writes a new file and renames it over the old one is followed without a gap, because
every look opens the path anew. What is compared is what was read: a time stamp can stand still
while the text changes. Errors say what is wrong with the file and hold neither its path nor its
text.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from math import inf
from typing import ClassVar, Final, Literal, get_args

from anyio import to_thread

from surefoot.credentials._blind import sealed
from surefoot.credentials._failures import TransientCredentialError
from surefoot.credentials._flight import SingleFlight
from surefoot.credentials._kinds import Bearer
from surefoot.credentials._options import count, seconds
from surefoot.credentials._port import CredentialRequest, Generation, Issued
from surefoot.credentials._reading import CredentialOf, checked_kind, read_credential
from surefoot.credentials._time import Clock, MachineClock
from surefoot.credentials._unseen import unseen
from surefoot.errors import CredentialError

__all__ = ["FileCredentials", "FilePermissions"]

FilePermissions = Literal["owner", "group", "anyone"]
"""Who may read the file. Nobody but its owner may ever write it."""

_FORBIDDEN: Final[dict[FilePermissions, int]] = {"owner": 0o077, "group": 0o037, "anyone": 0o022}
_OPEN_FLAGS: Final = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0)
_POSIX: Final = os.name == "posix"


class FileCredentials:
    """Reads a credential from a file, and reads it again when it may have changed.

    One line break at the end of the file is dropped. After a rejection the file is read at once; if
    it still holds what was rejected, ``TransientCredentialError`` says so, and
    ``RetryingCredentials`` around this waits for whoever rewrites it.

    Args:
        path: The file. Links are followed.
        kind: What its text is.
        check_every: Seconds for which a read is good; 0 reads at every vend.
        readable_by: Who may read it besides its owner; ``None`` checks no permissions. It must
            belong to this process's user or to root. POSIX only.
        max_bytes: How long it may be.
        clock: Time.

    Raises:
        TypeError: an option has the wrong type.
        ValueError: an option is out of its range.
    """

    __slots__ = (
        "_begun", "_check_every", "_clock", "_flight", "_issued", "_kind", "_landed", "_looked",
        "_max_bytes", "_readable_by", "_seen", "path",
    )  # fmt: skip

    refreshable: ClassVar[bool] = True
    """Whoever rewrites the file may have put a fresh one there."""

    steps_up: ClassVar[bool] = False
    """It holds one credential, whatever scopes are asked for."""

    @unseen
    def __init__(
        self,
        path: str | os.PathLike[str],
        /,
        *,
        kind: CredentialOf = Bearer,
        check_every: float = 1.0,
        readable_by: FilePermissions | None = "owner",
        max_bytes: int = 64 * 1024,
        clock: Clock | None = None,
    ) -> None:
        if not isinstance(path, (str, os.PathLike)):  # pyright: ignore[reportUnnecessaryIsInstance]
            del path
            message = "path: must be a path"
            raise TypeError(message)
        self.path = os.fspath(path)
        """The file's path."""
        if readable_by is not None and readable_by not in get_args(FilePermissions):
            message = 'readable_by: must be "owner", "group", "anyone", or None to check nothing'
            raise ValueError(message)
        self._readable_by: FilePermissions | None = readable_by
        self._kind = checked_kind(kind)
        self._check_every = seconds("check_every", check_every)
        self._max_bytes = count("max_bytes", max_bytes)
        self._clock: Clock = clock or MachineClock()
        self._looked = -inf
        self._begun = self._landed = 0
        self._issued: Issued | None = None
        self._seen: Callable[[], bytes] = sealed(b"")
        self._flight: SingleFlight[Issued] = SingleFlight()

    def __repr__(self) -> str:
        return "FileCredentials(...)"

    async def vend(self, request: CredentialRequest, /) -> Issued:
        """Return what the file holds; the same object until it changes.

        Raises:
            TransientCredentialError: the file is empty, is being rewritten, or still holds what
                was rejected.
            CredentialError: it cannot be read, others may read or write it, or ``kind`` failed.
            InvalidCredentialError: what it holds may not stand in a header (B8).
        """
        rejected = self._rejected(request)
        asked = self._begun

        def ready() -> Issued | None:
            issued = self._issued
            if issued is None:
                return None
            if issued.generation is rejected:  # only a read that began since can speak for it
                return issued if self._landed > asked else None
            return issued if self._clock.monotonic() < self._looked + self._check_every else None

        async def work() -> Issued | CredentialError:
            return await self._look(request.service)

        issued = ready()
        while issued is None or (issued.generation is rejected and self._landed <= asked):
            issued = await self._flight.run(ready, work)
        if issued.generation is rejected:
            reason = "it was rejected, and the file still holds it"
            raise TransientCredentialError(reason, service=request.service)
        return issued

    def _rejected(self, request: CredentialRequest) -> Generation | object | None:
        """Which generation was rejected; by default the one that is held."""
        if not request.force:
            return None
        if request.rejected is None and self._issued is not None:
            return self._issued.generation
        return request.rejected

    async def _look(self, service: str) -> Issued | CredentialError:
        """Read the file in a thread; keep the object where the text is the same."""
        self._begun += 1
        number, began = self._begun, self._clock.monotonic()
        known = (self._seen, self._issued)
        read = await to_thread.run_sync(self._read, service, known, abandon_on_cancel=True)
        if isinstance(read, CredentialError):
            return read
        with self._flight.lock:
            self._seen, self._issued = read
            self._looked, self._landed = began, number
        return read[1]

    def _read(
        self, service: str, known: tuple[Callable[[], bytes], Issued | None]
    ) -> tuple[Callable[[], bytes], Issued] | CredentialError:
        """What a thread does. What it returns is blind, because a future shows its result."""
        raw = self._bytes(service)
        if isinstance(raw, CredentialError):
            return raw
        seen, issued = known
        if issued is not None and raw == seen():
            return known[0], issued
        if not raw.strip():
            return TransientCredentialError("the file is empty", service=service)
        made = read_credential(raw, self._kind, service=service)
        return made if isinstance(made, CredentialError) else (sealed(raw), made)

    def _bytes(self, service: str) -> bytes | CredentialError:
        """The file's bytes, with one look at it before and one after."""
        try:
            opened = os.open(self.path, _OPEN_FLAGS)
        except FileNotFoundError:
            return TransientCredentialError("the file does not exist", service=service)
        except (OSError, ValueError) as error:
            return CredentialError(f"the file cannot be read: {_cause(error)}", service=service)
        try:
            before = os.fstat(opened)
            broken = self._broken(before)
            if broken is not None:
                return CredentialError(broken, service=service)
            raw = _whole(opened, self._max_bytes + 1)
            after = os.fstat(opened)
        except OSError as error:
            return CredentialError(f"the file cannot be read: {_cause(error)}", service=service)
        finally:
            os.close(opened)
        if len(raw) > self._max_bytes:
            return CredentialError("the file is too long for a credential", service=service)
        if (before.st_size, before.st_mtime_ns) != (after.st_size, after.st_mtime_ns):
            return TransientCredentialError("the file is being rewritten", service=service)
        return raw

    def _broken(self, status: os.stat_result) -> str | None:
        """The rule that the file itself breaks, whoever its path leads to."""
        if not stat.S_ISREG(status.st_mode):
            return "the path leads to no regular file"
        if self._readable_by is None or not _POSIX:
            return None
        if status.st_uid not in {0, os.geteuid()}:
            return "the file belongs to another user"
        if status.st_mode & 0o022:
            return "others may write the file; chmod it to 600"
        if status.st_mode & _FORBIDDEN[self._readable_by]:
            return (
                "others may read the file; chmod it to 600, or say with "
                'readable_by="group" or "anyone" that they may'
            )
        return None


def _whole(opened: int, limit: int) -> bytes:
    """Read to the end, or to the limit."""
    parts: list[bytes] = []
    left = limit
    while left > 0:
        part = os.read(opened, left)
        if not part:
            break
        parts.append(part)
        left -= len(part)
    return b"".join(parts)


def _cause(error: Exception) -> str:
    """The kind of an error alone: its text names the path."""
    return type(error).__name__
