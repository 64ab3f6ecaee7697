"""The law of this file: an error of the HTTP stack goes up as what it is, without what it quotes.

h11 prints header values and server bytes, the frames of the stack hold the signed request, and a
``UnicodeEncodeError`` keeps the whole token. So the error is built anew from its own class, with
its text only where that text quotes nothing secret, and with no cause, context or frame from below.
A cancellation stays the object that it is, and only lets go of what lies below.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

from surefoot.errors import SurefootError

from ._family import error_names

if TYPE_CHECKING:
    from ._family import Family
    from ._seal import Seal

__all__ = ["bared", "cleaned"]

_QUOTING: Final = frozenset(
    {"DecodingError", "InvalidURL", "ProtocolError", "ProxyError", "UnicodeError", "ValueError"}
)
"""Classes whose text quotes headers, or the bytes of a server or a proxy."""

_LONGEST: Final = 200

_Error = TypeVar("_Error", bound=BaseException)


def cleaned(error: Exception, family: Family, seal: Seal) -> Exception:
    """The same class of error, saying no more than its class or a harmless text."""
    seal.settle()  # it holds the request no longer
    if isinstance(error, SurefootError):
        return bared(error)
    names = error_names(error)
    kind = type(error).__name__
    text = str(error)
    if len(text) > _LONGEST or not names.isdisjoint(_QUOTING) or _quotes(text, seal):
        text = kind
    known: Any = getattr(family.module, kind, None)
    if type(error) is known:
        with suppress(TypeError):  # it asks for more than a text
            return known(text)
    if "TransportError" in names:
        return family.module.TransportError(text)
    return family.module.TransportError(f"{kind} below the HTTP client")


def bared(error: _Error) -> _Error:
    """The error itself, without the frames, the causes and the notes in which a secret may lie.

    A cancellation keeps a cancellation before it: by that anyio knows whose it is.
    """
    before = error.__context__
    error.__cause__ = error.__traceback__ = error.__context__ = None
    if before is not None and type(before) is type(error):
        error.__context__ = bared(before)
    error.__dict__.pop("__notes__", None)
    parts: tuple[BaseException, ...] = getattr(error, "exceptions", ())
    if isinstance(error, BaseExceptionGroup):
        for part in parts:
            bared(part)
    return cast("_Error", error)


def _quotes(text: str, seal: Seal) -> bool:
    """Whether a text holds a secret of this attempt: as it is, as a repr writes it, or encoded."""
    if any(
        secret.decode("latin-1") in text or repr(secret)[2:-1] in text
        for secret in seal.secrets()
        if secret
    ):
        return True
    scrub = seal.scrub()
    return scrub is not None and scrub.holds(text.encode("utf-8", "backslashreplace"))
