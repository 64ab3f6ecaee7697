"""The law of this file: a caller who cancels by a message causes no later send (B2).

In the handshake era the SDK leaves the request of a cancelled call open and says
``notifications/cancelled`` on another; a wait that went on would run the tool for nobody. The
message names an id of its session, so one that matches several waiting calls ends all their waits:
each is then answered with its refusal, and none is lost.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ._family import HTTPRequest
    from ._recorder import Record

__all__ = ["ActiveCalls"]

Key = tuple[str, type, object]


class ActiveCalls:
    """The requests of the handshake era that are under way, by session and id."""

    __slots__ = ("_records",)

    def __init__(self) -> None:
        self._records: dict[Key, list[Record]] = {}

    def enter(self, request: HTTPRequest, record: Record) -> Key | None:
        """Note a request under way, or act on a cancellation; returns what to leave by."""
        if request.method != "POST":
            return None
        outgoing = record.outgoing
        if outgoing is None or (outgoing.kind == "request" and outgoing.protocol_version):
            # The stateless era closes the request itself, and that cancels its wait.
            return None
        session: str = request.headers.get("mcp-session-id", "")
        if outgoing.kind == "request":
            key = (session, type(outgoing.id), outgoing.id)
            self._records.setdefault(key, []).append(record)
            record.cancellable = True
            return key
        if outgoing.method == "notifications/cancelled":
            named = outgoing.cancelled_id
            for waiting in self._records.get((session, type(named), named), ()):
                waiting.abandoned = True
                if waiting.waiting is not None:
                    waiting.waiting.cancel()
        return None

    def leave(self, key: Key, record: Record) -> None:
        """Forget a request that is over."""
        records = self._records[key]
        records.remove(record)
        if not records:
            del self._records[key]
