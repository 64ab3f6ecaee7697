"""The law of this file: a rejection is acted upon by what was checked of it, and only if it helps.

A 401 to a credential of ours lets the provider be asked for a fresh one. A 403 says that the
credential is good and not enough: it is acted upon only where its checked challenge says
``insufficient_scope`` and names a scope that was not asked for (RFC 6750 section 3.1, RFC 9470), so
that no 403 can be answered with the same question twice (D4, B10).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from ._note import note_of

if TYPE_CHECKING:
    from ._family import HTTPResponse
    from ._recorder import Record, Sent

__all__ = ["is_rejected"]

_UNAUTHORIZED: Final = 401
_FORBIDDEN: Final = 403
_MOST_SCOPES: Final = 32
_PARAMETER: Final = re.compile(r'(error|scope)="([^"]*)"')
"""Of a challenge as ``wire`` rebuilt it, where no quoted value holds a quote."""


def is_rejected(response: HTTPResponse, sent: Sent, record: Record) -> bool:
    """Whether a forced vend could help, and leave in the record what the provider is to know.

    Args:
        response: The answer. Only one that was read has a challenge that was checked (D23).
        sent: The attempt that it answers.
        record: What is known of the request.
    """
    record.challenge, record.missing = None, ()
    if not sent.refreshable:
        return False
    checked = note_of(response) is not None
    said: str | None = response.headers.get("www-authenticate") if checked else None
    record.challenge = said
    if sent.status == _UNAUTHORIZED:
        return True
    if sent.status != _FORBIDDEN or said is None or not sent.steps_up:
        return False
    record.missing = _missing(said, record.scopes)
    return bool(record.missing)


def _missing(challenge: str, asked: tuple[str, ...]) -> tuple[str, ...]:
    """The scopes that a challenge names, and that were not asked for."""
    found = dict(_PARAMETER.findall(challenge))
    if found.get("error") != "insufficient_scope":
        return ()
    named = dict.fromkeys(found.get("scope", "").split())
    return tuple(scope for scope in named if scope not in asked)[:_MOST_SCOPES]
