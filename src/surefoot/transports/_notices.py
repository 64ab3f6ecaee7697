"""The law of this file: who waits is told why, and whatever a listener does changes nothing.

A notice goes to the hook of the rule whose refusal it is, or else to the call's own (R38, D8). It
carries the origin and the label, never a path, an argument or an answer (R41, R42, R53). A hook
that raises is isolated and counted (R55); an async one is cut when the wait it announces would have
ended.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Sequence
from functools import lru_cache
from inspect import isawaitable
from typing import TYPE_CHECKING, Any

import anyio

from surefoot.evidence import origin
from surefoot.policy import RetryNotice, Rule, Wait

from ._watched import watched

if TYPE_CHECKING:
    from ._clock import Clock
    from ._family import HTTPRequest
    from ._recorder import Record

__all__ = ["Notifier", "origin_of"]

_logger = logging.getLogger("surefoot")

Hook = Callable[[RetryNotice], object]


def origin_of(url: Any) -> str:
    """Scheme, host and port of a URL, for people to read (R41, D13)."""
    return _origin(url.scheme, url.host, url.port)


@lru_cache(maxsize=256)
def _origin(scheme: str, host: str, port: int | None) -> str:
    """The same text for all that go to the same place."""
    return origin(scheme, host, port)


class Notifier:
    """Tells whoever listens that a wait begins."""

    __slots__ = ("_hook", "_name", "_rules")

    def __init__(self, rules: Sequence[Rule], hook: Hook | None, name: str | None) -> None:
        self._rules = rules
        self._hook = hook
        self._name = name

    async def announce(
        self, decision: Wait, record: Record, request: HTTPRequest, clock: Clock
    ) -> float:
        """Tell whoever listens that a wait begins; returns the seconds of it that are left."""
        _logger.info(
            "%s: %s, attempt %d in %.3f s", record.endpoint, decision.cause,
            decision.attempt, decision.seconds,
        )  # fmt: skip
        hook = self._hook_for(decision)
        if hook is None:
            return decision.seconds
        began = clock.monotonic()
        await self._tell(hook, decision, record, request)
        return max(0.0, decision.seconds - (clock.monotonic() - began))

    def _hook_for(self, decision: Wait) -> Hook | None:
        refusal = decision.cause in ("throttle", "session-busy")
        return self._rules[decision.rule].on_retry if refusal else self._hook

    async def _tell(self, hook: Hook, decision: Wait, record: Record, request: HTTPRequest) -> None:
        notice = RetryNotice(
            kind="network" if decision.cause == "reconnect" else decision.cause,  # type: ignore[arg-type]
            attempt=decision.attempt,
            max_attempts=decision.max_attempts,
            wait_seconds=decision.seconds,
            retry_after_seconds=decision.stated,
            url=origin_of(request.url),
            endpoint=self._name,
        )
        try:
            told = hook(notice)
            if isawaitable(told):
                await _bounded(told, decision.seconds)
        except Exception as error:  # noqa: BLE001 - a hook's failure is its own (R55)
            record.hook_failures += 1
            _logger.warning("%s: on_retry raised %s", record.endpoint, type(error).__name__)


async def _bounded(told: Awaitable[object], seconds: float) -> None:
    """Let an async hook run as long as the wait that it announces, and no longer (D8)."""
    with anyio.move_on_after(seconds):
        await watched(told)
