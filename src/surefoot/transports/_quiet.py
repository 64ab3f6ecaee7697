"""The law of this file: what other libraries print of a call is theirs, and can be switched off.

Below WARNING, httpx and httpx2 print whole URLs, httpcore and httpcore2 the headers that a server
sends (cookies, session ids, what it echoes), hpack with HTTP/2 each header that is sent, and the
SDK session ids, arguments and results. None of it is ours to change, so an app that wants logs at
DEBUG says once that these are to be silent.
"""

from __future__ import annotations

import logging
from typing import Final

__all__ = ["quiet_loggers"]

_ROOTS: Final = (
    *("httpx", "httpx2", "httpcore", "httpcore2", "h11", "h2", "hpack"),
    *("mcp.client", "mcp.shared"),
)
_BELOW: Final = (
    *(
        f"{root}.{part}"
        for root in ("httpcore", "httpcore2")
        for part in ("connection", "http11", "http2", "proxy", "socks")
    ),
    *(
        f"mcp.client.{part}"
        for part in ("auth", "auth.oauth2", "auth.utils", "client", "session", "sse")
    ),
    "hpack.hpack",
    "hpack.table",
    "mcp.client.streamable_http",
    "mcp.shared.jsonrpc_dispatcher",
    "mcp.shared.session",
    "client",  # as the SDK's sessions call theirs
)


class _Quiet(logging.Filter):
    """Lets pass what is said at WARNING or above, whatever the level of the logger."""

    def filter(self, record: logging.LogRecord) -> bool:
        return record.levelno >= logging.WARNING


_QUIET: Final = _Quiet()


def quiet_loggers() -> None:
    """Silence, below WARNING, the loggers of others that print what was sent and answered.

    For httpx, httpx2, httpcore, httpcore2, h11, h2, hpack and the MCP SDK's client. It holds for
    the process, whatever levels are set later, and however often it is called; the ``surefoot``
    logger, which prints no secret, stays as it is. docs/reference/leaks.md says which leak is
    whose.
    """
    known = logging.root.manager.loggerDict
    names = {*_ROOTS, *_BELOW}
    names.update(name for name in list(known) if name.startswith(tuple(f"{r}." for r in _ROOTS)))
    for name in names:
        logger = logging.getLogger(name)
        logger.addFilter(_QUIET)
        if name in _ROOTS and logger.level < logging.WARNING:
            # What is not known here, or made later, takes its level from above.
            logger.setLevel(logging.WARNING)
