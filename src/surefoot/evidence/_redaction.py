"""The law of this file: evidence names an endpoint by its label or its origin, and by nothing more.

An origin is scheme, host and port (R41, D13); path, user, query and fragment may hold secrets and
are never even looked at. What is no plain host is shown as nothing rather than in part.
"""

from __future__ import annotations

import re
from typing import Final

__all__ = ["checked_label", "origin"]

_DEFAULT_PORTS: Final = {"http": 80, "https": 443, "ws": 80, "wss": 443}
_SCHEME: Final = re.compile(r"[a-z][a-z0-9+.-]*\Z")
_NAME: Final = re.compile(r"[a-z0-9._~!$&'()*+,;=%-]+\Z")
_IPV6: Final = re.compile(r"[0-9a-f:.]+(?:%[a-z0-9._~%-]+)?\Z")
_MAX_LABEL: Final = 128
_DEL: Final = 0x7F


def origin(scheme: str | bytes, host: str | bytes, port: int | None = None) -> str:
    """Scheme, host and port for people to read, or ``""`` where there is no origin (R41, D13).

    Args:
        scheme: Of any case.
        host: A name, in Unicode or already in ASCII, or an address; brackets are optional.
        port: ``None``, and the scheme's default port, are left out.
    """
    scheme = _text(scheme).lower()
    name = _ascii_host(_text(host))
    if not name or _SCHEME.match(scheme) is None:
        return ""
    if port is None or port == _DEFAULT_PORTS.get(scheme):
        return f"{scheme}://{name}"
    return f"{scheme}://{name}:{port}"


def _text(part: str | bytes) -> str:
    return part.decode("ascii", "replace") if isinstance(part, bytes) else part


def _ascii_host(host: str) -> str:
    """The host in lower-case ASCII, an IPv6 address in brackets; ``""`` if it is neither."""
    if ":" in host:
        bare = host[1:-1].lower() if host[:1] == "[" and host[-1:] == "]" else host.lower()
        return f"[{bare}]" if _IPV6.match(bare) else ""
    if not host.isascii():
        try:
            host = host.encode("idna").decode("ascii")
        except UnicodeError:
            return ""
    host = host.lower()
    return host if _NAME.match(host) else ""


def checked_label(value: object, *, option: str = "name") -> str:
    """Return ``value`` if it can be a label: 1 to 128 code points, none a control character (D12).

    Raises:
        TypeError: it is no ``str``.
        ValueError: it is empty, too long, or holds a control character (C0, DEL, C1) or half of a
            surrogate pair. The message names ``option`` and the rule, never the value (R72).
    """
    if not isinstance(value, str):
        msg = f"{option}: must be a str of 1 to {_MAX_LABEL} characters"
        raise TypeError(msg)
    if not 1 <= len(value) <= _MAX_LABEL:
        msg = f"{option}: must have 1 to {_MAX_LABEL} characters"
        raise ValueError(msg)
    for character in value:
        code = ord(character)
        if code < 0x20 or _DEL <= code < 0xA0:
            msg = f"{option}: must hold no control character"
            raise ValueError(msg)
        if 0xD800 <= code < 0xE000:
            msg = f"{option}: must be text that UTF-8 can carry"
            raise ValueError(msg)
    return value
