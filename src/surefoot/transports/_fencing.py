"""The law of this file: a call is in the fence from its first send until it ends in something sure.

What is fenced: calls of tools that make changes, always and for the whole Gateway; calls of tools
that nobody declared, under ``app-authorized``, within their run. What is not one message is fenced
as it stands, and is refused where it could be a call of a tool that makes changes: which, and
whether for the first time, nobody can say of it. What is never fenced: a call that
may be repeated after a lost answer, on the app's word or on a trusted hint, and one that carries
its idempotency key (B3). A call that meets an open one is answered here, unless the app can find
out what became of that one.
"""

from __future__ import annotations

import logging
from copy import deepcopy
from inspect import isawaitable
from typing import TYPE_CHECKING, Any, Final

import anyio

from surefoot.policy import Blocked, Fence, FenceFull, Replay, ToolRule, fence_key
from surefoot.wire import OUTCOME_KEY, could_name, error, outcome_meta, sentence

from ._giveup import GiveUp

if TYPE_CHECKING:
    from ._clock import Clock
    from ._recorder import Record

__all__ = ["NOT_ONE_MESSAGE", "TOO_LONG", "Fencing", "refusal"]

_logger = logging.getLogger("surefoot")

_SURE_STATUSES: Final = frozenset({400, 401, 403, 404, 405, 406, 413, 415, 422})
"""Statuses that a server answers before it runs anything (B3)."""

_OPEN_CODES: Final = range(-32099, -31999)
_OPEN_ERRORS: Final = frozenset({-32603, -32800})
"""Internal error, and a request that was cancelled: what ran until then is unknown."""

NOT_ONE_MESSAGE: Final = "not-one-message"
TOO_LONG: Final = "body-too-long"
_INVALID_REQUEST: Final = -32600
_TEXTS: Final = {
    NOT_ONE_MESSAGE: (
        "This body was not sent, so nothing ran: it is not exactly one JSON-RPC message, and it "
        "could be a call of a tool that makes changes. Send each call as a message of its own."
    ),
    TOO_LONG: (
        "This body was not sent, so nothing ran: it was streamed, is longer than what is kept of a "
        "request, and could be a call of a tool that makes changes. Send it as a whole, or shorter."
    ),
}

_UNDECLARED: Final = ToolRule()
_CHECK_SECONDS: Final = 10.0
"""How long an app may take to find out what became of an earlier call."""


class Fencing:
    """Asks the fence before a call is sent, and tells it how the call ended.

    Args:
        fence: What is remembered; shared by every stack of a Gateway.
        replay: What the app declared.
        principal: On whose behalf; ``None`` for the app itself.
        check_seconds: How long ``check_effect`` may take; then the earlier call stays open.
    """

    __slots__ = ("_changing", "_check_seconds", "_fence", "_replay", "principal")

    def __init__(
        self,
        fence: Fence,
        replay: Replay,
        *,
        principal: str | None = None,
        check_seconds: float = _CHECK_SECONDS,
    ) -> None:
        self._fence = fence
        self._replay = replay
        self._changing = frozenset(
            name for name, rule in replay.tools.items() if rule.makes_changes
        )
        self.principal = principal
        self._check_seconds = check_seconds

    def followed_by(self, fence: Fence | None) -> None:
        """Let another Gateway, which calls through this fence, settle what it remembers."""
        if fence is not None:
            fence.follow(self._fence)

    def admit(self, record: Record, now: float) -> GiveUp | None:
        """Let the call pass and remember it, or say why it must not be sent."""
        call = record.call
        if not call.is_tool_call or call.key_carried:
            return None
        tool = call.tool
        if tool is None:
            return self._admit_unnamed(record, now)
        rule = self._replay.tools.get(tool, _UNDECLARED)
        if not rule.makes_changes and (
            rule is not _UNDECLARED
            or self._replay.policy != "app-authorized"
            or (call.hinted and self._replay.trust_hints)
        ):
            return None
        outgoing: Any = record.outgoing
        return self._ask(
            record, tool, outgoing.compared_arguments(), now, changing=rule.makes_changes
        )

    def _admit_unnamed(self, record: Record, now: float) -> GiveUp | None:
        """Let what names no tool pass, unless it could be a call that must not be made twice."""
        outgoing, body = record.outgoing, record.body
        if body == b"":
            return None
        if outgoing is None or body is None or outgoing.kind == "unreadable":
            # A body that was never whole could say anything.
            if body is None and self._changing:
                return GiveUp(outcome="not-sent", rule=TOO_LONG)
            if body is not None and could_name(body, self._changing):
                return GiveUp(outcome="not-sent", rule=NOT_ONE_MESSAGE)
        if body is None or self._replay.policy != "app-authorized":
            return None
        return self._ask(record, "", body, now, changing=False)

    def _ask(
        self, record: Record, tool: str, arguments: bytes, now: float, *, changing: bool
    ) -> GiveUp | None:
        """Ask the fence, and remember that it was asked."""
        run = None if changing or record.ledger is None else record.ledger.run
        key = fence_key(scope=run or "", principal=self.principal, tool=tool, arguments=arguments)
        call_id: Any = record.call_id
        match self._fence.enter(key, call_id, now=now, changing=changing):
            case Blocked(call_id=earlier, in_flight=in_flight):
                return GiveUp(outcome="in-flight" if in_flight else "fenced", earlier=earlier)
            case FenceFull():
                return GiveUp(outcome="fence-full")
            case _:
                record.fence = self
                return None

    async def find_out(self, record: Record, stopped: GiveUp, clock: Clock) -> GiveUp | None:
        """Ask the app what became of the earlier call, where it declared how to find out.

        It ran: the call is answered locally and says so. It did not: the call passes, unless
        somebody else was quicker. Anything else, and a check that raises or takes too long, leaves
        the earlier call open. One that is in flight is never asked about.
        """
        if stopped.outcome != "fenced" or stopped.earlier is None:
            return stopped
        tool = record.call.tool
        check = None if tool is None else self._replay.tools.get(tool, _UNDECLARED).check_effect
        if tool is None or check is None:
            return stopped
        outgoing: Any = record.outgoing
        ran: object = None
        with anyio.move_on_after(self._check_seconds):
            try:
                told: Any = check(tool, deepcopy(outgoing.arguments or {}))
                ran = await told if isawaitable(told) else told
            except Exception as raised:  # noqa: BLE001 - a check that fails has found out nothing
                _logger.warning("check_effect of a tool raised %s", type(raised).__name__)
        # Whoever settled it meanwhile knew more than this answer, which is then out of date.
        if not isinstance(ran, bool) or not self._fence.settle(stopped.earlier, ran=ran):
            return stopped
        if ran:
            return GiveUp(outcome="already-ran", earlier=stopped.earlier)
        return self.admit(record, clock.monotonic())

    def left_open(self, record: Record) -> None:
        """Say that a call's answer may never come, though it still can: its client may resume it.

        Until it does, an identical call is told that this one may have run, and ``check_effect`` is
        asked; an answer that comes after all settles it as any other does.
        """
        call_id: Any = record.call_id
        self._fence.leave(call_id, "may-have-run")

    def release(self, record: Record) -> None:
        """Say how a remembered call ended; once it is told, nothing more happens to it."""
        if record.fence is not self:
            return
        record.fence = None
        call_id: Any = record.call_id
        self._fence.leave(call_id, "settled" if _is_settled(record) else "may-have-run")


def refusal(stopped: GiveUp) -> bytes:
    """The answer to what was not sent and is no request of one id: for whoever wrote its client."""
    meta = outcome_meta(
        stopped.outcome,
        may_have_run=False,
        effect="not_sent",
        rule=stopped.rule,
        attempts=0,
        earlier=stopped.earlier,
    )
    rule = None if stopped.rule is None else _TEXTS.get(stopped.rule)
    text = rule or sentence(stopped.outcome)
    return error(None, _INVALID_REQUEST, text, {OUTCOME_KEY: meta})


def _is_settled(record: Record) -> bool:
    """Whether the request ended in something sure (B3).

    What counts is what came of its last attempt: each one before it was followed by another, which
    needed a permission, and one without an answer is never forgotten.
    """
    if record.completed:
        # An answer that nobody was there to hear tells nobody; mcp 1.x does not say who has left.
        return not (record.abandoned or (record.late is not None and record.late()))
    if not record.sent:
        return True
    if record.may_have_run:
        return False
    last = record.sent[-1]
    if last.effect == "not_sent" or last.kind is not None:
        return True
    if record.code is not None and (last.status or 0) < 300:
        return record.code not in _OPEN_ERRORS and record.code not in _OPEN_CODES
    return last.status in _SURE_STATUSES
