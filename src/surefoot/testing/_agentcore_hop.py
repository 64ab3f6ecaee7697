"""The law of this file: a hop changes what hops may change, and nothing that has to stay signed.

Pure. What it does was seen of proxies, gateways and load balancers between clients and AWS.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Final

from surefoot.testing._checks import a_bool
from surefoot.testing._wire import Headers, lines_from

if TYPE_CHECKING:
    from collections.abc import Iterable

    from surefoot.testing._wire import HeaderLine

__all__ = ["RewritingHop"]

_DROPPED: Final = frozenset(
    {
        b"connection",
        b"keep-alive",
        b"proxy-connection",
        b"te",
        b"trailer",
        b"transfer-encoding",
        b"upgrade",
        b"content-length",
        b"expect",
    }
)
"""Lines that belong to one hop (RFC 9110, 7.6.1), and the length, which HTTP/2 need not have."""

_REPLACED: Final[dict[bytes, bytes]] = {
    b"accept": b"application/json,text/event-stream",
    b"accept-encoding": b"gzip, br",
    b"user-agent": b"hop/1.0",
    b"cache-control": b"no-cache",
}

_ADDED: Final[tuple[HeaderLine, ...]] = (
    (b"Via", b"1.1 hop"),
    (b"X-Forwarded-For", b"203.0.113.7"),
    (b"X-Forwarded-Proto", b"https"),
    (b"X-Forwarded-Port", b"443"),
    (b"X-Amzn-Trace-Id", b"Root=1-6571e2f1-0123456789abcdef01234567"),
    (b"traceparent", b"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"),
    (b"tracestate", b"hop=1"),
    (b"baggage", b"hop=1"),
)


@dataclass(frozen=True, slots=True)
class RewritingHop:
    """A proxy between the client and the service, which rewrites the header lines of a request.

    It drops what belongs to one hop (Connection, TE, Transfer-Encoding, Content-Length, ...),
    writes Accept, Accept-Encoding and User-Agent anew, adds Via, X-Forwarded-*, X-Amzn-Trace-Id,
    traceparent, tracestate and baggage, writes the names in capitals, and sorts them the other way
    round. A
    signature that is good after it signs none of these.

    The journal shows the lines as the client sent them.
    """

    _: KW_ONLY
    adds: Headers = ()
    """Header lines that it adds beside its own; one that is there already is written anew."""
    reorders: bool = True

    def __post_init__(self) -> None:
        a_bool("RewritingHop(reorders)", self.reorders)
        lines_from(self.adds)

    def rewrite(self, lines: Iterable[HeaderLine]) -> tuple[HeaderLine, ...]:
        """The header lines as the service gets them."""
        more = (*_ADDED, *lines_from(self.adds))
        again = {name.lower() for name, _ in more}
        kept = [
            (_capitals(name), _REPLACED.get(name.lower(), value))
            for name, value in lines
            if name.lower() not in _DROPPED and name.lower() not in again
        ]
        if self.reorders:  # lines of one name keep their order, as HTTP asks of a hop
            kept.sort(key=_name, reverse=True)
        return (*kept, *more)


def _name(line: HeaderLine) -> bytes:
    return line[0]


def _capitals(name: bytes) -> bytes:
    return b"-".join(part.capitalize() for part in name.split(b"-"))
