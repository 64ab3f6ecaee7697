"""The law of this file: an error of the HTTP stack goes up as what it is, without what it quotes.

h11 prints header values and server bytes, the frames of the stack hold the signed request, and a
``UnicodeEncodeError`` keeps the whole token. So the error is built anew from its own class, with
its text only where that text quotes nothing secret, and with no cause, context or frame from below.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ._family import error_names

if TYPE_CHECKING:
    from ._family import Family
    from ._seal import Seal

__all__ = ["cleaned"]

_QUOTING: Final = frozenset(
    {"DecodingError", "InvalidURL", "ProtocolError", "UnicodeError", "ValueError"}
)
"""Classes whose text quotes headers or server bytes."""

_LONGEST: Final = 200


def cleaned(error: Exception, family: Family, seal: Seal) -> Exception:
    """The same class of error, saying no more than its class or a harmless text."""
    names = error_names(error)
    kind = type(error).__name__
    text = str(error)
    quotes = not names.isdisjoint(_QUOTING) or len(text) > _LONGEST
    if quotes or any(secret.decode("latin-1") in text for secret in seal.secrets() if secret):
        text = kind
    known = getattr(family.module, kind, None)
    if isinstance(known, type) and type(error) is known and issubclass(known, Exception):
        try:
            return known(text)
        except TypeError:
            pass
    if "TransportError" in names:
        return family.module.TransportError(text)
    return family.module.TransportError(f"{kind} below the HTTP client")
