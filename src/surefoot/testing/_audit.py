"""The law of this file: an audit says where a secret was seen, and never becomes the place itself.

It searches whole artefacts: what was logged, warned, printed, raised, spanned, filed and handed to
the client, what our objects show, and what finished tasks remember (R107 to R109, invariant 11). A
hit is reported by channel and place. ``looked`` counts what was searched, because an audit that
looked at nothing finds nothing.

```python
with SecretAudit(token, files=[evidence]) as audit:
    result = await client.call_tool("search", {"q": "W-7712"})
    audit.add("client", result)
```
"""

from __future__ import annotations

import inspect
import os
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from contextlib import ExitStack
from types import TracebackType
from typing import Self

from surefoot.testing._audit_capture import (
    hear_hooks,
    hear_logs,
    hear_spans,
    hear_streams,
    hear_warnings,
)
from surefoot.testing._audit_forms import SecretForms
from surefoot.testing._audit_search import AuditChannel, Leak, Search

__all__ = ["AuditChannel", "Leak", "SecretAudit", "SecretLeakError", "assert_no_secret"]


class SecretLeakError(AssertionError):
    """A secret was seen. The message names the places, and shows nothing of it."""

    leaks: tuple[Leak, ...]
    """Each place, in the order in which it was found."""

    def __init__(self, leaks: tuple[Leak, ...]) -> None:
        self.leaks = leaks
        told = "".join(f"\n  {leak}" for leak in leaks)
        super().__init__(f"a secret was seen in {len(leaks)} place(s):{told}")


class SecretAudit:
    """Hears everything that the process says in its ``with`` block, and searches it for a secret.

    At the end of the block the search is completed, and ``SecretLeakError`` is raised where the
    secret was seen. An exception that leaves the block is searched too.

    Args:
        secret: The secret, or several; text or bytes of at least 8 bytes.
        files: Files and folders that are read at the end, such as evidence.
        skip: Channels that are not searched.
        trusted: Files whose frames may hold the secret, besides the one that builds the audit: a
            provider keeps what it vends.
        without_loggers: Loggers, with those below them, that are not searched. httpcore and
            httpcore2 print at DEBUG every header that a server sends, also one that echoes.

    Raises:
        TypeError: an option has the wrong type.
        ValueError: a secret is too short to be searched for, or a channel is unknown.
    """

    def __init__(
        self,
        secret: object,
        *,
        files: Iterable[str | os.PathLike[str]] = (),
        skip: Collection[AuditChannel] = (),
        trusted: Iterable[str | os.PathLike[str]] = (),
        without_loggers: Collection[str] = (),
    ) -> None:
        forms = SecretForms(secret)
        del secret
        if isinstance(without_loggers, str):
            message = "without_loggers: must hold names, not be one"
            raise TypeError(message)
        self._without_loggers = frozenset(without_loggers)
        self._search = Search(forms, files=files, skip=skip, trusted=_trusted(trusted))
        self._stack = ExitStack()

    @property
    def leaks(self) -> tuple[Leak, ...]:
        """What was found so far."""
        return self._search.leaks

    @property
    def looked(self) -> Counter[AuditChannel]:
        """How many artefacts each channel was searched in."""
        return self._search.looked

    def __enter__(self) -> Self:
        """Begin to listen."""
        search = self._search
        if search.covers("streams"):
            self._stack.enter_context(hear_streams(search.ear("streams")))
        if search.covers("warnings"):
            self._stack.enter_context(hear_warnings(search.ear("warnings")))
        if search.covers("hooks"):
            self._stack.enter_context(hear_hooks(search.ear("hooks")))
        if search.covers("logs"):
            self._stack.enter_context(hear_logs(search.ear("logs"), self._without_loggers))
        if search.covers("spans"):
            self._stack.enter_context(hear_spans(search.ear("spans")))
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        tb: TracebackType | None,
    ) -> None:
        """Search what was heard, what is alive and what was raised.

        Raises:
            SecretLeakError: the secret was seen; it replaces an exception that holds it.
        """
        __tracebackhide__ = True
        if error is not None:
            self.add("left the block", error)
        try:
            self._stack.__exit__(kind, error, tb)
        finally:
            self._search.complete()
            if self.leaks:
                del error, tb
                raise SecretLeakError(self.leaks) from None

    def add(self, place: str, artefact: object) -> None:
        """Search one more thing now: an exception, a result, a response, an event, any object."""
        _add(self._search, place, artefact)

    def check(self) -> None:
        """Search what is alive and filed, now, and raise where the secret was seen.

        Raises:
            SecretLeakError: see above.
        """
        __tracebackhide__ = True
        self._search.complete()
        if self.leaks:
            raise SecretLeakError(self.leaks)


def assert_no_secret(
    secret: object,
    /,
    *artefacts: object,
    files: Iterable[str | os.PathLike[str]] = (),
    named: Mapping[str, object] | None = None,
    skip: Collection[AuditChannel] = (),
    trusted: Iterable[str | os.PathLike[str]] = (),
) -> None:
    """Search artefacts, files and everything of ours that is alive; nothing is listened to.

    Args:
        secret: As for ``SecretAudit``.
        artefacts: Exceptions, texts, responses, results, events, any objects.
        files: Files and folders.
        named: More artefacts, each with the place that a hit is reported by.
        skip: Channels that are not searched.
        trusted: As for ``SecretAudit``.

    Raises:
        SecretLeakError: the secret was seen.
        TypeError: an option has the wrong type.
        ValueError: a secret is too short to be searched for, or a channel is unknown.
    """
    __tracebackhide__ = True
    forms = SecretForms(secret)
    del secret
    search = Search(forms, files=files, skip=skip, trusted=_trusted(trusted))
    for number, artefact in enumerate(artefacts):
        _add(search, f"artefact {number}", artefact)
    for place, artefact in (named or {}).items():
        _add(search, place, artefact)
    search.complete()
    if search.leaks:
        artefacts, named, artefact = (), None, None
        raise SecretLeakError(search.leaks)


def _add(search: Search, place: str, artefact: object) -> None:
    search.ear("exceptions" if isinstance(artefact, BaseException) else "artefacts")(
        place, artefact
    )


def _trusted(files: Iterable[str | os.PathLike[str]]) -> set[str]:
    """The named files, and the one that called into this one: it planted the secret."""
    frame = inspect.currentframe()
    while frame is not None and frame.f_code.co_filename == __file__:
        frame = frame.f_back
    caller = set[str]() if frame is None else {frame.f_code.co_filename}
    return caller | {os.fspath(file) for file in files}
