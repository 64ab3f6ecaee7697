"""The law of this file: which words of a server keep their meaning for the client is one table.

A status or a JSON-RPC error to which the protocol gives a meaning must reach the SDK as such: a
lost session, an unknown method, a header to be mended, a challenge. Everything else would only end
a session or be repeated by a framework, and is answered in our words (DESIGN section 7, B4).
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Final, Literal

if TYPE_CHECKING:
    from ._family import HTTPResponse, Line
    from ._note import Note
    from ._recorder import Record

__all__ = ["Passing", "kept_lines", "passing"]

_KEPT: Final = frozenset({b"mcp-session-id", b"retry-after", b"www-authenticate"})

_AUTH: Final = frozenset({401, 403})
_DISCOVER_STATUSES: Final = frozenset({400, 401, 403, 404})
_DISCOVER_CODES: Final = frozenset({-32601, -32022})
"""Answers to ``server/discover`` that mean "not this protocol", and not "not now" (B4)."""


_OF_THE_REQUEST: Final = (-32601, -32602)
"""Codes that speak of a method or of parameters (an unknown tool), and so of no session."""


class Passing(Enum):
    """What of a server's answer reaches the client."""

    AS_IT_IS = "as-it-is"
    """Status and body: both have a meaning above."""

    STATUS_ALONE = "status-alone"
    """The status has a meaning above; the body is ours."""

    STATUS_BARE = "status-bare"
    """The status has a meaning above, where it is put into words that frameworks look for."""

    WORDS_ALONE = "words-alone"
    """The server's own JSON-RPC error, at a status that ends no session."""

    NOTHING = "nothing"
    """The answer is ours."""


def passing(
    status: int,
    note: Note,
    record: Record,
    *,
    in_session: bool,
    sdk: Literal[1, 2],
    auth_above: bool,
) -> Passing:
    """Decide how an answer to a request, which is no result, reaches its client.

    Args:
        status: The HTTP status.
        note: What reading found in it.
        record: What is known of the request.
        in_session: The request named an MCP session.
        sdk: The SDK's major; 1.x dies of every other status than 2xx, 202 and 404.
        auth_above: Somebody above reads 401 and 403 even on 1.x.
    """
    last = record.sent[-1] if record.sent else None
    given_up = (last is not None and last.kind is not None) or record.may_have_run
    if status in _AUTH:
        # A challenge is for whoever authorizes above; the rest of such an answer is for nobody.
        return Passing.STATUS_ALONE if sdk > 1 or auth_above else Passing.NOTHING
    if given_up:
        return Passing.NOTHING
    method = None if record.outgoing is None else record.outgoing.method
    if method == "server/discover" and not _says_no(status, note):
        return Passing.NOTHING
    if status == 404 and in_session and note.code not in _OF_THE_REQUEST:
        # The session is lost. Frameworks heal it, and know it by the SDK's own words alone.
        return Passing.AS_IT_IS if note.kind == "error" and sdk > 1 else Passing.STATUS_BARE
    if note.kind == "error":
        return Passing.AS_IT_IS if status < 300 or sdk > 1 else Passing.WORDS_ALONE
    if status in (400, 404) and method == "server/discover":
        return Passing.AS_IT_IS
    return Passing.NOTHING


def _says_no(status: int, note: Note) -> bool:
    """Whether an answer to ``server/discover`` is a meaning, and not a passing trouble (B4)."""
    if status < 300:
        return note.code in _DISCOVER_CODES or not _is_trouble(note.code)
    return status in _DISCOVER_STATUSES or note.code in _DISCOVER_CODES


def _is_trouble(code: int | None) -> bool:
    """Codes of a server that is in trouble: internal error, and the range left to servers."""
    return code is not None and (code == -32603 or -32099 <= code <= -32000)


def kept_lines(response: HTTPResponse) -> list[Line]:
    """What of the checked headers keeps its meaning beside words of ours."""
    return [line for line in response.headers.raw if line[0].lower() in _KEPT]
