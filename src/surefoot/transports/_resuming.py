"""The law of this file: a call whose stream was cut is answered once, by its resumption or by us.

Where the era has sessions, a client comes back for the answer with the last event id that it saw.
It tries twice before it gives up, so its first failure may pass; at the next the call is answered
in words. A GET with an event id that nobody here waits for is either a standing stream that is
opened again, which nobody's answer depends on, or a call that an app resumes by a token it kept:
that one too must end in words, because a bare failure of it ends the session (measured). All that
is kept is bounded.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Final

from surefoot.wire import Outcome

from ._giveup import GiveUp, written, written_orphan
from ._recorder import mark_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from surefoot.evidence import Why

    from ._family import Family, HTTPRequest
    from ._recorder import Record

    File = Callable[[Record], None]

__all__ = ["Pending", "Resumptions", "closing_event"]

_MOST_PENDING: Final = 256
_MOST_STANDING: Final = 1024
_MOST_RESUMPTIONS: Final = 10
"""Resumptions of one call; a server that closes each at once must not be asked for ever."""

Key = tuple[str, str]


class Pending:
    """A call whose answer a stream owes.

    Args:
        record: The record of the call; of the GET itself, where an app resumes a call by a token.
        orphan: The call is not known here, and with it neither its id nor its method.
        family: The HTTP library.
    """

    __slots__ = ("_failed", "_tries", "family", "orphan", "record", "turn")

    def __init__(self, record: Record, family: Family, *, orphan: bool = False) -> None:
        self.record = record
        self.family = family
        self.orphan = orphan
        self.turn = object()
        """Stands for the call where the call itself, with its arguments, must not be kept."""
        self._failed = False
        self._tries = 0

    def may_resume(self) -> bool:
        """Whether one more resumption is allowed, after a stream that ended without the answer."""
        self._failed = False
        self._tries += 1
        return self._tries <= _MOST_RESUMPTIONS and not self.orphan

    def may_fail(self) -> bool:
        """Whether a resumption may fail in the client's sight: it then tries once more."""
        first, self._failed = not self._failed, True
        return first and not self.orphan

    def give_up(self, file: File, why: Why = "stream-cut") -> None:
        """File a call whose resumption will never come: it stays without an answer."""
        self.record.unanswered = True
        self.record.ended = None
        self.record.end("cut", why, 200)
        file(self.record)


class Resumptions:
    """Which calls wait for a resumption, by session and last event id; bounded."""

    __slots__ = ("_pending", "_standing")

    def __init__(self) -> None:
        self._pending: OrderedDict[Key, Pending] = OrderedDict()
        self._standing: OrderedDict[Key, None] = OrderedDict()

    def wait_for(self, key: Key, pending: Pending, file: File) -> bool:
        """Remember a cut call; ``False`` where another waits for the very same event."""
        if self._pending.setdefault(key, pending) is not pending:
            return False
        if len(self._pending) > _MOST_PENDING:
            self._pending.popitem(last=False)[1].give_up(file)
        return True

    def stood(self, key: Key) -> None:
        """Remember where a standing stream ended: a GET that goes on from there is nobody's."""
        self._standing[key] = None
        self._standing.move_to_end(key)
        if len(self._standing) > _MOST_STANDING:
            self._standing.popitem(last=False)

    def waiting(self, request: HTTPRequest) -> Pending | None:
        """The call that this GET would resume, if it waits here; its record is told of it.

        What reads the answer then holds it to the call's own id and bounds (D18, B12). And it is
        filed in the run of that call: on mcp 1.x a client comes back from outside of it (R22).
        """
        key = _key(request)
        found = None if key is None else self._pending.get(key)
        record = None if found is None else mark_of(request)
        if found is not None and record is not None:
            record.resumes = found.record
            run = found.record.ledger
            if run is not None and not run.closed:
                record.ledger = run
        return found

    def left(self, request: HTTPRequest, file: File) -> None:
        """Give up the call that this GET was to resume: its caller has left meanwhile."""
        key = _key(request)
        found = None if key is None else self._pending.pop(key, None)
        if found is not None:
            found.give_up(file, "cancelled")

    def take(self, request: HTTPRequest, record: Record, family: Family) -> Pending | None:
        """The call that this GET resumes; ``None`` where it resumes none."""
        key = _key(request)
        if key is None:
            return None
        found = self._pending.pop(key, None)
        if found is not None and found.record.sent and record.seal is not None:
            # By now it knows what this GET carried, and all that came before (B7).
            found.record.sent[-1].seal = record.seal
        if found is None and key not in self._standing:
            return Pending(record, family, orphan=True)
        return found

    def put_back(self, request: HTTPRequest, pending: Pending) -> None:
        """Let the call wait on, for the next try."""
        key = _key(request)
        if key is not None:
            self._pending[key] = pending

    def all(self) -> list[Pending]:
        """Empty the memory, at the end."""
        pending = list(self._pending.values())
        self._pending.clear()
        return pending


def _key(request: HTTPRequest) -> Key | None:
    """Session and event id of a GET that goes on from an event; ``None`` for any other request."""
    event_id = request.headers.get("last-event-id")
    if event_id is None or request.method != "GET":
        return None
    return request.headers.get("mcp-session-id", ""), event_id


def closing_event(outcome: Outcome, pending: Pending, rule: str | None = None) -> bytes:
    """The last event of a stream that has no answer: ours, in the form for its method."""
    record = pending.record
    record.unanswered = record.told_failed = True
    record.ended = None
    record.end("cut", "unreadable" if rule is not None else "stream-cut", 200)
    given_up = GiveUp(outcome=outcome, rule=rule)
    if pending.orphan:
        body = written_orphan(given_up, record, sdk=pending.family.major)
    else:
        body = written(given_up, record)
    return b"event: message\ndata: " + body + b"\n\n"
