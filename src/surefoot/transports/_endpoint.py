"""The law of this file: only requests to the Gateway's own endpoint are ours (D31).

A protected client also fetches metadata, tokens and other servers; those pass untouched, without
credentials, repeats, evidence or rewriting. The endpoint is an origin and a path; a query may
differ, because services put a qualifier there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from surefoot.evidence import origin
from surefoot.wire import url_parts

if TYPE_CHECKING:
    from ._family import HTTPRequest

__all__ = ["Endpoint"]

_PORTS: Final = {"http": 80, "https": 443}


class Endpoint:
    """Origin and path of one MCP server.

    Raises:
        TypeError: the URL is no ``str``.
        ValueError: it is not http or https, has no host, carries userinfo, or is no URL at all. The
            URL is not echoed: it may hold a secret where none belongs.
    """

    __slots__ = ("_keys", "_last", "origin", "parts", "url")

    def __init__(self, url: str) -> None:
        if not isinstance(url, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            msg = "url: must be a str such as https://gateway.example.com/mcp"
            raise TypeError(msg)
        broken = _broken(url)
        if broken is not None:
            raise ValueError(broken)
        self.url = url
        parts = url_parts(url)
        self.origin = origin(parts.scheme, parts.hostname or "", parts.port)
        """Scheme, host and port, for people to read (D13)."""
        scheme = parts.scheme.lower()
        self.parts = (scheme, (parts.hostname or "").lower(), parts.port or _PORTS[scheme])
        """Scheme, host and port, for comparing."""
        self._keys: dict[type, tuple[object, ...]] = {}
        self._last: object = None

    def owns(self, request: HTTPRequest) -> bool:
        """Whether the request goes to this endpoint."""
        url: Any = request.url
        # Nearly every request goes where the last one went. Private, and compared as a whole.
        parsed = getattr(url, "_uri_reference", None)
        if parsed is not None and parsed == self._last:
            return True
        kind: Any = url.__class__
        key = self._keys.get(kind)
        if key is None:
            # The family's own parser normalises case, ports, dots and escapes as the request's did.
            key = self._keys[kind] = _key(kind(self.url))
        if _key(url) != key:
            return False
        self._last = parsed
        return True


def _key(url: Any) -> tuple[object, ...]:
    return (url.raw_scheme, url.raw_host, url.port, url.raw_path.partition(b"?")[0])


def _broken(url: str) -> str | None:
    """The rule that a URL breaks, with the way out, or ``None``."""
    try:
        parts = url_parts(url)
        host, _ = parts.hostname, parts.port
    except ValueError:
        return "url: is not a URL; give one such as https://gateway.example.com/mcp"
    if parts.scheme.lower() not in _PORTS:
        return "url: must be http or https; a Gateway speaks MCP over HTTP and no other transport"
    if not host:
        return "url: has no host; give one such as https://gateway.example.com/mcp"
    if parts.username is not None or parts.password is not None:
        return "url: must hold no user name or password; pass them as credentials=Basic(...)"
    if parts.fragment or not url.isprintable() or " " in url:
        return "url: must hold no fragment, blank or control character"
    return None
