"""The law of this file: what cannot stand in a header is refused by its rule, never shown (B8).

The bytes are those that every HTTP stack below us sends without a complaint: visible ASCII, with
blanks and tabs inside only (RFC 9110 section 5.5, without its obs-text). Anything else makes h11
raise an error that quotes the whole value, or passes and breaks at the server (DEL, 8-bit bytes).
A check returns a fixed phrase and raises nothing: the frame that held the value is gone before the
error is built.
"""

from __future__ import annotations

import re
from typing import Final

__all__ = ["broken_header_name", "broken_token", "broken_value"]

_VALUE: Final = re.compile(r"[\x21-\x7e](?:[\x20-\x7e\t]*[\x21-\x7e])?")
_TOKEN: Final = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")

_NOT_A_CREDENTIAL: Final = frozenset(
    {
        "connection",
        "content-length",
        "content-type",
        "expect",
        "host",
        "keep-alive",
        "mcp-session-id",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    }
)
"""Header fields that frame or address the message. Vending one of them would move its borders."""


def broken_value(value: object, *, may_be_empty: bool = False) -> str | None:
    """Return the rule that a header value breaks, or ``None`` when it may be sent (B8)."""
    if not isinstance(value, str):
        return "must be a str"
    if not value:
        return None if may_be_empty else "must not be empty"
    if _VALUE.fullmatch(value):
        return None
    return _broken_character(value)


def broken_token(token: object) -> str | None:
    """Return the rule that a bearer token breaks, or ``None`` (RFC 6750 section 2.1).

    A token that brings the word with it would be sent as ``Bearer Bearer ...``, and refused.
    """
    broken = broken_value(token)
    if broken is None and isinstance(token, str) and token[:7].lower() == "bearer ":
        return "must be the token alone; the word Bearer is put before it"
    return broken


def _broken_character(value: str) -> str:
    """Find which rule about characters it was."""
    if not value.isascii():
        return "must not hold a character outside ASCII"
    if value[0] in " \t" or value[-1] in " \t":
        return "must not begin or end with a blank or a tab"
    if value[-1] in "\r\n":
        return "must not end with a line break; a file or a secret store often adds one"
    return "must not hold a control character or a line break"


def broken_header_name(name: object) -> str | None:
    """Return the rule that a header name breaks, or ``None`` (RFC 9110 sections 5.1, 5.6.2)."""
    if not isinstance(name, str):
        return "must be a str"
    if not _TOKEN.fullmatch(name):
        return "must be an HTTP token: letters, digits and !#$%&'*+-.^_`|~"
    if name.lower() in _NOT_A_CREDENTIAL:
        return "must not be a field that frames or addresses the message"
    return None
