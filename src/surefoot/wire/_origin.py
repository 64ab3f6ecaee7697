"""The law of this file: where a URL leads is said here, and whether anybody is on the way there.

Plain http is for this machine alone: whatever a request carries, who is on the way reads it. A host
is this machine by the name ``localhost`` or by an address of the loopback networks (127.0.0.0/8,
``::1``); a name that only begins like one is any name, and leads anywhere.
"""

from __future__ import annotations

from ipaddress import IPv6Address, ip_address
from typing import Any, Final
from urllib.parse import SplitResult, urlsplit

__all__ = ["is_private", "origin_of", "url_parts"]

_DEFAULT_PORTS: Final = {"http": 80, "https": 443}
_SPLIT: Final[Any] = getattr(urlsplit, "__wrapped__", urlsplit)


def origin_of(url: str) -> tuple[str, str, int] | None:
    """Name scheme, host and port of an absolute http(s) URL; ``None`` for any other text.

    A URL that carries user information is no such URL here (D13).
    """
    try:
        parts = url_parts(url)
        port = parts.port
    except ValueError:
        return None
    if parts.scheme not in _DEFAULT_PORTS or not parts.hostname or "@" in parts.netloc:
        return None
    return parts.scheme, parts.hostname, port or _DEFAULT_PORTS[parts.scheme]


def url_parts(url: str) -> SplitResult:
    """Split a URL as ``urlsplit`` does, which keeps the last hundred for the process.

    One of them may be a capability (R117), or hold a key in its query.

    Raises:
        ValueError: it is none.
    """
    parts: SplitResult = _SPLIT(url)
    return parts


def is_private(scheme: str, host: str) -> bool:
    """Tell whether nobody on the way can read what is sent: https, or this machine.

    Args:
        scheme: in lower case.
        host: a name or an address, without brackets.
    """
    return scheme == "https" or _is_loopback(host)


def _is_loopback(host: str) -> bool:
    """Tell whether a host is this machine, whatever a resolver says."""
    if host.lower() == "localhost":
        return True
    try:
        address = ip_address(host)
    except ValueError:
        return False
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        return address.ipv4_mapped.is_loopback  # Pythons differ in what they say of the whole
    return address.is_loopback
