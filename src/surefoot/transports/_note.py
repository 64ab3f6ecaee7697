"""The law of this file: what reading found out about an answer is handed up once, as plain words.

The layer that reads leaves a ``Note`` on the response; the layers above decide by it and never look
into the body again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final, Literal

if TYPE_CHECKING:
    from surefoot.wire import Outcome

    from ._family import HTTPResponse, Line

__all__ = ["NOTE", "EventState", "Note", "note_of", "state_of"]

NOTE: Final = "surefoot.note"
"""The name under which a note hangs on ``response.extensions``."""


Kind = Literal["result", "error", "failure", "empty", "stream", "unreadable"]


class Note:
    """What one answer is, after it was read.

    What an answer usually is stands on the class, so that a result costs two fields.

    Args:
        kind: A JSON-RPC result or error, a failure without either, nothing, an event stream, or
            what could not be read in exactly one way.
        seen: The header lines as they came, without those that hold a secret: what rules may look
            at.
    """

    rule: str | None = None
    """The rule that an unreadable answer broke."""

    too_large: bool = False
    """That rule was a bound (B12)."""

    error_type: str | None = None
    """The AWS error type, where it is a plain name (D24)."""

    code: int | None = None
    """The code of a JSON-RPC error."""

    outcome: Outcome | None = None
    """What to call an answer that is no result."""

    retry_after: float | None = None
    """The wait that its body states, in seconds (D17)."""

    events: EventState | None = None
    """What is known of an event stream, as it goes by."""

    shown: bytes | None = None
    """What rules may look at in the place of a body that nobody above is handed."""

    def __init__(self, kind: Kind, seen: Callable[[], list[Line]] | None = None) -> None:
        self.kind = kind
        self.seen = seen

    def __repr__(self) -> str:
        """Show the kind alone."""
        return f"Note(kind={self.kind!r}, rule={self.rule!r})"


class EventState:
    """What has gone by on one event stream: written by Reading, read by Answering."""

    __slots__ = ("asked", "failed", "last_id", "looked_at", "replied", "rule", "too_large")

    def __init__(self) -> None:
        self.asked = False
        """It answers a request; a standing stream does not."""
        self.looked_at = False
        """A rule looks at it now, and nobody above has read of it yet."""
        self.replied = False
        """The answer to the request has gone by."""
        self.failed = False
        """It was an error, and no result."""
        self.last_id: str | None = None
        """The last event id, from which a client could resume."""
        self.rule: str | None = None
        """The rule that an event broke; the stream ends there (D22)."""
        self.too_large = False
        """That rule was a bound."""


def note_of(response: HTTPResponse) -> Note | None:
    """The note on a response, or ``None`` where no layer below read it."""
    note = response.extensions.get(NOTE)
    return note if isinstance(note, Note) else None


def state_of(response: HTTPResponse) -> EventState:
    """The state of a response's event stream; a fresh one where no layer below reads it."""
    note = note_of(response)
    return note.events if note is not None and note.events is not None else EventState()
