"""The law of this file: text becomes a credential in a frame that is gone when it fails.

A file, a variable and a helper program give text; ``kind`` says what it is. Whatever is wrong with
it is returned as an error that was never raised here: it names the rule and has no frame, cause or
context that holds the text (B8, R108).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

from surefoot.credentials._failures import fresh_copy
from surefoot.credentials._kinds import Bearer, Credential
from surefoot.credentials._port import Issued
from surefoot.errors import CredentialError, InvalidCredentialError

__all__ = ["CredentialOf", "checked_kind", "read_credential"]

CredentialOf = Callable[[str], Credential | Issued]
"""Makes a credential of text: ``Bearer``, ``ApiKey``, or a function of your own, which may also
return ``Issued`` with the life that the text states."""


def checked_kind(kind: object) -> CredentialOf:
    """Hold the option ``kind`` to its type."""
    if not callable(kind) or isinstance(kind, Credential):
        message = "kind: must be a callable that takes the text, such as Bearer or ApiKey"
        raise TypeError(message)
    return cast("CredentialOf", kind)


def read_credential(
    raw: str | bytes, kind: CredentialOf = Bearer, *, service: str | None = None
) -> Issued | CredentialError:
    """Make a credential of text, or say why it is none. One line break at its end is dropped."""
    try:
        text = raw if isinstance(raw, str) else raw.decode("utf-8")
        text = text.removesuffix("\n").removesuffix("\r")
        if not text:
            return InvalidCredentialError("it is empty", service=service)
        made = kind(text)
    except CredentialError as error:
        return _placed(fresh_copy(error), service)
    except UnicodeDecodeError:
        return InvalidCredentialError("must not hold a character outside ASCII", service=service)
    except Exception as error:  # noqa: BLE001 - its text may quote the secret
        reason = f"kind raised {type(error).__name__}"
        return CredentialError(reason, service=service)
    return made if isinstance(made, Issued) else _issued(made, service)


def _issued(made: object, service: str | None) -> Issued | CredentialError:
    """Hold what a function of the user's returned to its type."""
    if isinstance(made, Credential):
        return Issued(made)
    return CredentialError("kind returned no credential", service=service)


def _placed(error: CredentialError, service: str | None) -> CredentialError:
    """Say for which service it was, where the error does not know."""
    if error.service is None and isinstance(error, InvalidCredentialError):
        return InvalidCredentialError(error.reason, service=service)
    return error
