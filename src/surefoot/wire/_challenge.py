"""The law of this file: a challenge passes only where it leads back to the endpoint's own origin.

An OAuth client follows the URLs of a ``WWW-Authenticate`` header, so that a foreign one would send
it, and what it carries, elsewhere. A ``Bearer`` challenge is rebuilt from the parameters that the
flow reads (RFC 6750 section 3, RFC 9728 section 5.1); free text in it, which quotes what was sent,
is left out. One URL off the origin, and nothing of the challenge passes (D23).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from surefoot.wire._origin import origin_of

__all__ = ["safe_challenge"]

_MOST_BYTES: Final = 4096
_WORD: Final = r"[A-Za-z0-9!#$%&'*+.^_`|~-]+"
_PART: Final = re.compile(
    rf"""[ \t,]*(?:
        (?P<name>{_WORD})[ \t]*=[ \t]*(?:"(?P<quoted>(?:[^"\\]|\\.)*)"|(?P<plain>{_WORD}))
        (?=[ \t]*(?:,|$))
      | (?P<scheme>{_WORD})(?=[ \t]|,|$)
    )""",
    re.VERBOSE,
)
_ERROR: Final = re.compile(r"[a-z_]{1,64}")
_SCOPE: Final = re.compile(r"[\x21\x23-\x5b\x5d-\x7e]+(?: [\x21\x23-\x5b\x5d-\x7e]+)*")
_URL: Final = re.compile(r"[\x21\x23-\x5b\x5d-\x7e]{1,2048}")


def safe_challenge(values: Sequence[bytes], origin: tuple[str, str, int] | None) -> bytes | None:
    """Rebuild the first ``Bearer`` challenge of these header values, or ``None``.

    Args:
        values: the values of the ``WWW-Authenticate`` lines.
        origin: the endpoint's origin; without one no URL passes.
    """
    text = ", ".join(value.decode("latin-1") for value in values)
    if len(text) > _MOST_BYTES:
        return None
    found = _bearer(text)
    if found is None:
        return None
    kept: list[str] = []
    for name, value in found.items():
        # A scope is a name, though it may look like a URL; a client never follows it.
        if name == "resource_metadata" or ("://" in value and name != "scope"):
            if origin is None or not _URL.fullmatch(value) or origin_of(value) != origin:
                return None
            if name != "resource_metadata":
                continue
        elif not (
            (name == "error" and _ERROR.fullmatch(value))
            or (name == "scope" and _SCOPE.fullmatch(value))
        ):
            continue
        kept.append(f'{name}="{value}"')
    return f"Bearer {', '.join(kept)}".rstrip().encode("latin-1")


def _bearer(text: str) -> dict[str, str] | None:
    """Read the parameters of the first ``Bearer`` challenge; ``None`` if the text is none.

    A parameter that occurs twice makes the challenge unreadable, as RFC 9110 section 11.2 has it.
    """
    found: dict[str, str] | None = None
    inside = False
    at = 0
    while at < len(text):
        part = _PART.match(text, at)
        if part is None:
            return None if text[at:].strip(" \t,") else found
        at = part.end()
        if part["scheme"] is not None:
            inside = found is None and part["scheme"].lower() == "bearer"
            if inside:
                found = {}
        elif inside and found is not None:
            name = part["name"].lower()
            if name in found:
                return None
            quoted = part["quoted"]
            found[name] = part["plain"] if quoted is None else re.sub(r"\\(.)", r"\1", quoted)
    return found
