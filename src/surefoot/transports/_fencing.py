"""The law of this file: a call is in the fence from its first send until it ends in something sure.

What is fenced: calls of tools that make changes, always and for the whole Gateway; calls of tools
that nobody declared, under ``app-authorized``, within their run. What is never fenced: a tool that
may be repeated after a lost answer, and a call that carries its idempotency key (B3). Rounds of one
call that carry a ``requestState`` are rounds, and not repeats.
"""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING, Any, Final

from surefoot.policy import Blocked, Fence, FenceFull, Replay, ToolRule, fence_key

from ._giveup import GiveUp

if TYPE_CHECKING:
    from collections.abc import Callable

    from ._recorder import Record

__all__ = ["Fencing"]

_SURE_STATUSES: Final = frozenset({400, 401, 403, 404, 405, 406, 413, 415, 422})
"""Statuses that a server answers before it runs anything (B3)."""

_OPEN_CODES: Final = range(-32099, -31999)
_INTERNAL_ERROR: Final = -32603
_UNDECLARED: Final = ToolRule()


class Fencing:
    """Asks the fence before a call is sent, and tells it how the call ended.

    Args:
        fence: What is remembered; shared by every stack of a Gateway.
        replay: What the app declared.
        principal: On whose behalf; ``None`` for the app itself.
        fresh_id: Makes the id of a call.
    """

    __slots__ = ("_fence", "_fresh_id", "_principal", "_replay")

    def __init__(
        self,
        fence: Fence,
        replay: Replay,
        *,
        principal: str | None = None,
        fresh_id: Callable[[], str] = lambda: secrets.token_hex(8),
    ) -> None:
        self._fence = fence
        self._replay = replay
        self._principal = principal
        self._fresh_id = fresh_id

    def admit(self, record: Record, now: float) -> GiveUp | None:
        """Let the call pass and remember it, or say why it must not be sent."""
        call = record.call
        if not call.is_tool_call or call.tool is None or call.key_carried:
            return None
        rule = self._replay.tools.get(call.tool, _UNDECLARED)
        if "network" in rule.repeat_on:
            return None
        if not rule.makes_changes and (
            rule is not _UNDECLARED or self._replay.policy != "app-authorized"
        ):
            return None
        outgoing: Any = record.outgoing
        run = None if rule.makes_changes or record.ledger is None else record.ledger.run
        key = fence_key(
            scope=run or "",
            principal=self._principal,
            tool=call.tool,
            arguments=outgoing.canonical_arguments() or b"",
            state=outgoing.request_state,
        )
        if record.call_id is None:
            record.call_id = self._fresh_id()
        answer = self._fence.enter(key, record.call_id, now=now, changing=rule.makes_changes)
        match answer:
            case Blocked(call_id=earlier, in_flight=in_flight):
                return GiveUp(outcome="in-flight" if in_flight else "fenced", earlier=earlier)
            case FenceFull():
                return GiveUp(outcome="fence-full")
            case _:
                record.fenced = True
                return None

    def release(self, record: Record) -> None:
        """Say how a remembered call ended; once it is filed, nothing more happens to it."""
        if not record.fenced:
            return
        record.fenced = False
        assert record.call_id is not None  # noqa: S101 - it was given one when it was admitted
        self._fence.leave(record.call_id, "settled" if _is_settled(record) else "may-have-run")


def _is_settled(record: Record) -> bool:
    """Whether the call ended in something sure (B3)."""
    if record.completed or all(sent.effect == "not_sent" for sent in record.sent):
        return True
    if record.may_have_run or record.ended == "cut":
        return False
    last = record.sent[-1]
    if record.ended == "refused" and last.kind is not None:
        return True
    if record.code is not None and (last.status or 0) < 300:
        return record.code != _INTERNAL_ERROR and record.code not in _OPEN_CODES
    return last.status in _SURE_STATUSES
