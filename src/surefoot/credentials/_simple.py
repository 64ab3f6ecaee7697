"""The law of this file: a credential that is not configured fails closed, and says what to pass."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import ClassVar, Final, Never

from surefoot.credentials._blind import sealed
from surefoot.credentials._kinds import Bearer
from surefoot.credentials._port import CredentialRequest, Issued
from surefoot.credentials._reading import CredentialOf, checked_kind, read_credential
from surefoot.credentials._unseen import unseen
from surefoot.errors import CredentialError

__all__ = ["EnvironmentCredentials", "MissingCredentials"]

_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,255}")


class MissingCredentials:
    """Stands where a credential belongs and none was configured: every vend fails, nothing is sent.

    Args:
        option: The option that should have been passed; the error names it.
    """

    __slots__ = ("_option",)

    refreshable: ClassVar[bool] = False
    """Asking again cannot help."""

    @unseen
    def __init__(self, *, option: str = "credentials") -> None:
        if not isinstance(option, str) or not _NAME.fullmatch(option):  # pyright: ignore[reportUnnecessaryIsInstance]
            message = "option: must be the name of an option"
            raise TypeError(message)
        self._option = option

    async def vend(self, request: CredentialRequest, /) -> Never:
        """Refuse.

        Raises:
            CredentialError: always; its reason names the option and what it takes.
        """
        reason = (
            f"none was configured; pass {self._option}= a CredentialProvider, "
            "or a Bearer, ApiKey, Basic or Headers"
        )
        raise CredentialError(reason, service=request.service)


class EnvironmentCredentials:
    """Reads a credential from an environment variable at every vend, never before (R110).

    Args:
        variable: The variable's name. It is in no error, in case the secret was put in its place.
        kind: What its text is.
        environ: Where variables are looked up; the process's own by default.

    Raises:
        TypeError: an option has the wrong type.
        ValueError: ``variable`` is no name of a variable.
    """

    __slots__ = ("_environ", "_kind", "variable")

    refreshable: ClassVar[bool] = False
    """A rejected one stays what it is until the program changes its own environment."""

    @unseen
    def __init__(
        self,
        variable: str,
        /,
        *,
        kind: CredentialOf = Bearer,
        environ: Mapping[str, str] | None = None,
    ) -> None:
        wrong: Exception | None = None
        if not isinstance(variable, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            wrong = TypeError("variable: must be the name of an environment variable")
        elif not _NAME.fullmatch(variable):
            wrong = ValueError(
                "variable: must be the name of an environment variable: "
                "letters, digits and _; the value itself belongs into Bearer(value)"
            )
        if wrong is not None:
            del variable
            raise wrong
        self.variable = variable
        """The variable's name."""
        self._kind = checked_kind(kind)
        self._environ = sealed(environ)

    def __repr__(self) -> str:
        return "EnvironmentCredentials(...)"

    async def vend(self, request: CredentialRequest, /) -> Issued:
        """Return what the variable holds now.

        Raises:
            CredentialError: the variable is not set, what it held was rejected, or ``kind`` failed.
            InvalidCredentialError: its value may not stand in a header (B8).
        """
        if request.force:
            reason = "it was rejected, and an environment variable cannot be refreshed"
            raise CredentialError(reason, service=request.service)
        read = self._read(request.service)
        if isinstance(read, CredentialError):
            raise read
        return read

    def _read(self, service: str) -> Issued | CredentialError:
        environ = self._environ()
        text = (os.environ if environ is None else environ).get(self.variable)
        if text is None:
            reason = "the environment variable that EnvironmentCredentials names is not set"
            return CredentialError(reason, service=service)
        return read_credential(text, self._kind, service=service)
