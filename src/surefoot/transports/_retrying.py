"""The law of this file: one request, one series; the shell sends, sleeps and writes down, no more.

Whether, when and on whose word is ``policy.Series``; this is where its decisions happen. A series
already under way on this request is joined by standing aside (R20, R30, R31). Nothing is sent after
a cancellation, a deadline or a final decision (R12, R46, B2). What is delivered is what was read
(R26).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final, Self

import anyio

from surefoot.errors import NotSentError
from surefoot.policy import Fact, Replay, Retry, Rule, Series, ThrottleRule, Verdict, Wait

from ._body import MAX_REQUEST_BODY, closed, let_go
from ._challenged import is_rejected
from ._clock import Clock, SystemClock, chance
from ._facts import answered, as_final, conclude, cut, failed
from ._family import (
    AsyncTransport,
    Family,
    copy_request,
    family_of,
    proves_not_sent,
)
from ._notices import Notifier
from ._opening import Opener
from ._overdue import Overdue
from ._recognise import Recogniser, redirect_target
from ._recorder import MARK, Record, Sent, mark_of
from ._seal import SEAL
from ._streams import filed_when_closed

if TYPE_CHECKING:
    from surefoot.evidence import Ledger, Reason

    from ._family import HTTPRequest, HTTPResponse

__all__ = ["RetryingTransport"]

_ABOUT_CREDENTIALS: Final = frozenset({401, 403})
_TELLING: Final = frozenset({307, 308, 401, 403})
"""Statuses that a series may answer by itself, besides what its rules recognise (B11, D4)."""

_AT_ONCE: Final = frozenset({"auth", "redirect"})
"""Causes that nobody waits for, and nobody is told of (D8)."""

_INERT: Final = Retry()


class RetryingTransport:
    """An async HTTP transport of either family that sends a request again as far as it may.

    Args:
        wrapped: The transport below; ``None`` is the family's own, chosen at the first call (R78).
        retry: The call's budget and its hook; ``None`` leaves a series that recognises nothing, for
            a declaration that needs one (R80).
        replay: What the app declared per tool (R4).
        rules: Recognisers; by default HTTP 429 alone. The first holds the budget (R32).
        name: The endpoint's declared label, in notices and evidence (R42, R52).
        caller_timeout: The caller's own patience in seconds (B6).
        redirects: Follow 307 and 308 within the origin, as sends of this series (B11).
        ledger: Where evidence goes outside of any run.
        clock: Time.
        draw: Chance: uniform in [0, 1).
        max_body: Bytes of a request body that are kept for a repeat (D10).
    """

    def __init__(
        self,
        wrapped: AsyncTransport | None = None,
        *,
        retry: Retry | None = _INERT,
        replay: Replay | None = None,
        rules: Sequence[Rule] | None = None,
        name: str | None = None,
        caller_timeout: float | None = None,
        redirects: bool = False,
        ledger: Ledger | None = None,
        clock: Clock | None = None,
        draw: Callable[[], float] = chance,
        max_body: int = MAX_REQUEST_BODY,
    ) -> None:
        self.wrapped = wrapped
        self._wire: AsyncTransport | None = None
        self._budget = retry or _INERT
        self._reconnect = retry is not None and retry.reconnect
        self.replay = replay or Replay()
        if rules is None:
            rules = (
                () if retry is None else (Rule(recognise=ThrottleRule(), on_retry=retry.on_retry),)
            )
        self.rules = tuple(rules)
        self._recogniser = Recogniser(self.rules)
        self._notifier = Notifier(self.rules, self._budget.on_retry, name)
        self._limits = self._budget.limits
        self._name = name
        self._patience = caller_timeout
        self._deadline = self._limits.max_elapsed
        ends = [seconds for seconds in (self._deadline, caller_timeout) if seconds is not None]
        self._end = min(ends, default=None)
        self._redirects = redirects
        self._ledger = ledger
        self._clock: Clock = clock or SystemClock()
        self._draw = draw
        self._opener = Opener(
            replay=self.replay, name=name, ledger=ledger, clock=self._clock, max_body=max_body
        )
        self._settings: dict[str, Any] = {
            "retry": retry, "replay": replay, "rules": self.rules, "name": name,
            "caller_timeout": caller_timeout, "redirects": redirects, "ledger": ledger,
            "clock": clock, "draw": draw, "max_body": max_body,
        }  # fmt: skip

    @property
    def proves_not_sent(self) -> bool | None:
        """Whether errors from below prove what left (D3); ``None`` where the request decides."""
        return None if self.wrapped is None else getattr(self.wrapped, "proves_not_sent", None)

    def rewrapped(self, wrapped: AsyncTransport | None) -> RetryingTransport:
        """The same series over another transport."""
        return RetryingTransport(wrapped, **self._settings)

    def joined(
        self,
        rule: Rule | None = None,
        *,
        ledger: Ledger | None = None,
        replay: Replay | None = None,
    ) -> RetryingTransport:
        """This series with one more rule, or with a ledger and its declaration (R29, R33, R83).

        Raises:
            ValueError: both sides declare, and not the same.
        """
        mine = self._settings["replay"]
        if replay is not None and mine is not None and replay != mine:
            msg = (
                "replay: the transport below declares something else for this server; "
                "declare it once, where the first Gateway is built"
            )
            raise ValueError(msg)
        settings = dict(self._settings)
        settings["rules"] = self.rules if rule is None else (*self.rules, rule)
        settings["replay"] = mine if replay is None else replay
        settings["ledger"] = self._ledger if ledger is None else ledger
        return RetryingTransport(self.wrapped, **settings)

    async def __aenter__(self) -> Self:
        """Enter the transport below, where it can be entered."""
        enter = getattr(self.wrapped, "__aenter__", None)
        if enter is not None:
            await enter()
        return self

    async def __aexit__(self, *exc: object) -> None:
        """Leave the transport below, where it can be left, and close what was made here."""
        leave = getattr(self.wrapped, "__aexit__", None)
        if leave is None:
            await self.aclose()
            return
        try:
            await leave(*exc)
        finally:
            await self._close_wire()

    async def aclose(self) -> None:
        """Close the transport below, or the one that was made at the first call."""
        if self.wrapped is not None:
            await self.wrapped.aclose()
        await self._close_wire()

    async def _close_wire(self) -> None:
        wire, self._wire = self._wire, None
        if wire is not None:
            await wire.aclose()

    async def handle_async_request(self, request: HTTPRequest) -> HTTPResponse:
        """Send the request, and again as far as rules, permission and limits allow.

        Raises:
            MayHaveRunError: a tool call was cut by the deadline while in flight (D26).
            DeadlineExceededError: anything else was, or was not sent in time (R46).
            Exception: what the last attempt raised, unchanged.
        """
        record = mark_of(request)
        family = family_of(request)
        if record is not None:
            if record.running:
                if record.ledger is None:
                    # Whoever hides this series knows of no ledger: what it records is not lost.
                    record.ledger = self._ledger
                    record.begin()
                return await self._inner(family).handle_async_request(request)
            return await self._run(request, record, family)
        record = self._opener.open_whole(request, family) or await self._opener.open(
            request, family
        )
        request.extensions[MARK] = record
        try:
            response = await self._run(request, record, family)
        except BaseException:
            record.file(self._clock.monotonic())
            raise
        finally:
            request.extensions.pop(MARK, None)
        # What no layer above the wire has opened by now is for nobody.
        response.extensions.pop(SEAL, None)
        if record.ledger is None:
            record.unseal()
            return response
        return filed_when_closed(response, family, record, self._clock)

    def _inner(self, family: Family) -> AsyncTransport:
        if self.wrapped is not None:
            return self.wrapped
        if self._wire is None:
            self._wire = family.wire()
        return self._wire

    async def _run(  # noqa: C901, PLR0912, PLR0915 - a further function is a frame in each call that waits
        self, request: HTTPRequest, record: Record, family: Family
    ) -> HTTPResponse:
        """The series of one request: attempt, decide, wait, until nothing is left to decide."""
        record.running = True
        inner = self.wrapped or self._inner(family)
        series: Series | None = None
        reason: Reason = "first"
        target = request
        began = record.started
        if self._patience is not None or record.ends is not None:
            record.late = _left(self._clock, record, self._patience)
        while True:
            if self._end is not None or record.ends is not None:
                self._check_time(record, began)
            sent = Sent(reason, began)
            record.sent.append(sent)
            if record.spans is not None:
                record.trace(sent)
            try:
                if self._deadline is None:
                    response = await inner.handle_async_request(target)
                    found = None
                    if not self._recogniser.idle(response.status_code):
                        found = await self._look(response, family)
                else:
                    response, found = await self._in_time(target, record, family)
            except BaseException as error:
                fact = self._failure(error, sent, record, family)
                if fact is None:
                    raise
                response = None
            else:
                fact = self._answer(response, found, target, sent, record)
                if fact is None:
                    return response
            finally:
                sent.ended = self._clock.monotonic()
            if series is None:
                series = self._series(record)
            decision = series.after(fact, now=self._clock.monotonic())
            if not isinstance(decision, Wait):
                return conclude(decision, fact, response, record)
            if record.abandoned:
                return conclude(as_final(fact), fact, response, record)
            if decision.cause == "redirect":
                target = copy_request(target, url=redirect_target(target, response))
            if response is not None:
                await let_go(response)
            # Thousands of calls may wait at once: what is not needed meanwhile is let go of.
            response = fact = found = None
            if record.seal is not None:
                record.seal.settle()
            sent.permission = decision.permission
            sent.wait_seconds = decision.seconds
            record.traced(sent)
            record.waited += decision.seconds
            reason = decision.cause
            record.force = reason == "auth"
            if reason not in _AT_ONCE:
                left = await self._notifier.announce(decision, record, request, self._clock)
                record.let_go()
                del decision
                if not record.cancellable:
                    await self._clock.sleep(left)
                elif not record.abandoned:
                    with anyio.CancelScope() as record.waiting:
                        await self._clock.sleep(left)
                    record.waiting = None
            if record.abandoned:
                record.end(sent.outcome, "cancelled", sent.status)
                raise NotSentError(cause="cancelled", tool=record.call.tool)
            began = self._clock.monotonic()

    def _check_time(self, record: Record, now: float) -> None:
        """Send nothing at or after the deadline, nor for a caller who has left (R45, B6)."""
        if self._end is not None and now >= record.started + self._end:
            raise cut(record, self._end)
        if record.ends is not None and now >= record.ends:
            raise cut(record, record.ends - record.started)

    def _answer(
        self,
        response: HTTPResponse,
        found: tuple[Verdict, int] | None,
        target: HTTPRequest,
        sent: Sent,
        record: Record,
    ) -> Fact | None:
        """The fact that an attempt was answered; none where there is nothing to decide."""
        status: int = response.status_code
        if sent.status is None:
            sent.status = status
        sent.outcome = "answered"
        if found is None and status not in _TELLING:
            record.end("answered", "final-answer", sent.status)
            return None
        moved = rejected = False
        if found is None:
            if status in _ABOUT_CREDENTIALS:
                rejected = is_rejected(response, sent, record)
            elif self._redirects:
                moved = redirect_target(target, response) is not None
        return answered(sent, found, moved=moved, rejected=rejected)

    def _failure(
        self, error: BaseException, sent: Sent, record: Record, family: Family
    ) -> Fact | None:
        """The fact that an attempt was not; none where a cancellation has to pass.

        Raises:
            MayHaveRunError: the deadline cut a tool call in flight (D26).
            DeadlineExceededError: it cut anything else (R46).
        """
        if isinstance(error, Overdue):
            late = cut(record, error.seconds, sent)
            raise late from late.__cause__
        if isinstance(error, Exception):
            proven = proves_not_sent(self._inner(family), family)
            return failed(error, sent, record, proven=proven)
        record.unanswered = record.unanswered or sent.effect == "unknown"
        record.end("cut", "cancelled")
        return None

    async def _look(self, response: HTTPResponse, family: Family) -> tuple[Verdict, int] | None:
        """Let the rules look at an answer; whatever stops them lets go of it (R62)."""
        try:
            return await self._recogniser.look(response, family, self._clock)
        except BaseException:
            await closed(response)
            raise

    async def _in_time(
        self, request: HTTPRequest, record: Record, family: Family
    ) -> tuple[HTTPResponse, tuple[Verdict, int] | None]:
        """Send once and let the rules look, all of it before the deadline (D26)."""
        left = record.started + (self._deadline or 0.0) - self._clock.monotonic()
        with anyio.move_on_after(left):
            response = await self._inner(family).handle_async_request(request)
            if self._recogniser.idle(response.status_code):
                return response, None
            return response, await self._look(response, family)
        raise Overdue(self._deadline or 0.0)

    def _series(self, record: Record) -> Series:
        return Series(
            record.call,
            self.rules,
            self._limits,
            self.replay,
            draw=self._draw,
            started=record.started,
            reconnect=self._reconnect,
            patience=_sooner(self._patience, record),
        )


def _sooner(patience: float | None, record: Record) -> float | None:
    """The Gateway's own patience with its callers, or that of this one, whichever ends first."""
    if record.ends is None:
        return patience
    own = record.ends - record.started
    return own if patience is None else min(own, patience)


def _left(clock: Clock, record: Record, patience: float | None) -> Callable[[], bool]:
    """Whether its caller has left by now; by the clock alone, so that no record holds itself."""
    leaves = record.started + (_sooner(patience, record) or 0.0)
    return lambda: clock.monotonic() >= leaves
