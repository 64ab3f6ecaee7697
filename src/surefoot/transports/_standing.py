"""The law of this file: a standing stream that ends at once is not reopened without a pause.

The SDK reopens it as soon as the server lets it; a server that answers ``retry: 0`` and closes got
a thousand GETs in a second and a half (measured). So a GET is let through at most four times a
second per session (D37), which is within the 200 ms of delay that the conformance suite allows. The
resumptions of a cut call are counted by themselves: no call waits for another's.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from ._clock import Clock
    from ._family import HTTPRequest
    from ._resuming import Pending

__all__ = ["StandingStreams"]

_SECONDS_APART: Final = 0.25
_MOST_SESSIONS: Final = 1024


class StandingStreams:
    """When each session last opened a stream; bounded, the oldest out first."""

    __slots__ = ("_clock", "_last")

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._last: OrderedDict[object, float] = OrderedDict()

    async def pace(self, request: HTTPRequest, resumed: Pending | None) -> None:
        """Wait until this session, or the call that is resumed, may open a stream again."""
        session = resumed.turn if resumed else request.headers.get("mcp-session-id", "")
        now = self._clock.monotonic()
        due = max(now, self._last.get(session, now - _SECONDS_APART) + _SECONDS_APART)
        self._last[session] = due
        self._last.move_to_end(session)
        if len(self._last) > _MOST_SESSIONS:
            self._last.popitem(last=False)
        if due > now:
            try:
                await self._clock.sleep(due - now)
            except BaseException:
                # Who leaves in its pause opens nothing, and nobody waits for its turn.
                if self._last.get(session) == due:
                    self._last[session] = due - _SECONDS_APART
                raise
