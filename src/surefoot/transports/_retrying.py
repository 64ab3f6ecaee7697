"""The law of this file: one request, one series; the shell sends, sleeps and writes down, no more.

Whether, when and on whose word is ``policy.Series``; this is where its decisions happen. A series
already under way on this request is joined by standing aside (R20, R30, R31). Nothing is sent after
a cancellation, a deadline or a final decision (R12, R46, B2). What is delivered is what was read
(R26).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final, Self

import anyio

from surefoot.errors import (
    AuthorizationRequiredError,
    CredentialError,
    DeadlineExceededError,
    MayHaveRunError,
)
from surefoot.policy import (
    Answered,
    Deliver,
    Fail,
    NotSent,
    Replay,
    Retry,
    Rule,
    Series,
    ThrottleRule,
    Unanswered,
    Verdict,
    Wait,
)

from ._body import MAX_REQUEST_BODY, let_go
from ._clock import Clock, SystemClock, chance
from ._family import AsyncTransport, Family, copy_request, family_of, never_left
from ._notices import Notifier
from ._opening import Opener
from ._recognise import Recogniser, redirect_target
from ._recorder import MARK, Record, Sent, mark_of
from ._streams import filed_when_closed

if TYPE_CHECKING:
    from surefoot.evidence import Ledger

    from ._family import HTTPRequest, HTTPResponse

__all__ = ["RetryingTransport", "proves_not_sent"]

_logger = logging.getLogger("surefoot")

_UNAUTHORIZED: Final = 401
_MOVED: Final = frozenset({307, 308})
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
        self._redirects = redirects
        self._ledger = ledger
        self._clock: Clock = clock or SystemClock()
        self._draw = draw
        self._opener = Opener(
            replay=self.replay, name=name, ledger=ledger, clock=self._clock, max_body=max_body
        )
        self._settings: dict[str, Any] = {
            "retry": retry,
            "replay": replay,
            "rules": self.rules,
            "name": name,
            "caller_timeout": caller_timeout,
            "redirects": redirects,
            "ledger": ledger,
            "clock": clock,
            "draw": draw,
            "max_body": max_body,
        }

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
        """Enter; the transport below was entered by whoever owns it."""
        return self

    async def __aexit__(self, *exc: object) -> None:
        """Close what is below."""
        await self.aclose()

    async def aclose(self) -> None:
        """Close the transport below, or the one that was made at the first call."""
        for transport in (self.wrapped, self._wire):
            if transport is not None:
                await transport.aclose()

    async def handle_async_request(self, request: HTTPRequest) -> HTTPResponse:
        """Send the request, and again as far as rules, permission and limits allow.

        Raises:
            MayHaveRunError: a tool call was cut by the deadline while in flight (D26).
            DeadlineExceededError: anything else was (R46).
            Exception: what the last attempt raised, unchanged.
        """
        record = mark_of(request)
        if record is not None:
            if record.running:
                return await self._inner(family_of(request)).handle_async_request(request)
            return await self._run(request, record, family_of(request))
        family = family_of(request)
        record = await self._opener.open(request, family)
        request.extensions[MARK] = record
        try:
            response = await self._run(request, record, family)
        except BaseException:
            record.file(self._clock.monotonic())
            raise
        finally:
            request.extensions.pop(MARK, None)
        return filed_when_closed(response, family, record, self._clock)

    def _inner(self, family: Family) -> AsyncTransport:
        if self.wrapped is not None:
            return self.wrapped
        if self._wire is None:
            self._wire = family.wire()
        return self._wire

    async def _run(self, request: HTTPRequest, record: Record, family: Family) -> HTTPResponse:
        """The series of one request: attempt, decide, wait, until nothing is left to decide."""
        record.running = True
        series: Series | None = None
        reason = "first"
        target = request
        while True:
            sent = Sent(reason, self._clock.monotonic())
            record.sent.append(sent)
            try:
                response, verdict, index = await self._attempt(target, record, family)
            except _Cut:
                sent.ended = self._clock.monotonic()
                raise self._cut(sent, record) from None
            except Exception as error:  # noqa: BLE001 - whatever it is, it is this attempt's fact
                sent.ended = self._clock.monotonic()
                response, fact = None, self._failed(error, sent, record, family)
            except BaseException:
                sent.ended = self._clock.monotonic()
                record.unanswered = record.unanswered or sent.effect == "unknown"
                record.end("cut", "cancelled")
                raise
            else:
                sent.ended = self._clock.monotonic()
                status: int = response.status_code
                sent.status = status
                sent.outcome = "answered" if verdict is None else "refused"
                moved = status in _MOVED and self._redirects
                target_url = redirect_target(target, response) if moved else None
                rejected = status == _UNAUTHORIZED and sent.refreshable
                if verdict is None and target_url is None and not rejected:
                    record.end("answered", "final-answer", status)
                    return response
                if verdict is not None:
                    sent.kind = verdict.kind
                    sent.retry_after = verdict.retry_after
                    sent.malformed = verdict.malformed
                fact = Answered(
                    status=status,
                    verdict=verdict,
                    rule=index,
                    rejected=rejected,
                    redirect=target_url is not None,
                )
                if target_url is not None:
                    target = copy_request(target, url=target_url)
            if series is None:
                series = self._series(record)
            decision = series.after(fact, now=self._clock.monotonic())
            if not isinstance(decision, Wait):
                return self._conclude(decision, fact, response, record)
            if response is not None:
                await let_go(response)
            sent.permission = decision.permission
            sent.wait = decision.seconds
            record.force = decision.cause == "auth"
            await self._notifier.wait(decision, record, request, self._clock)
            reason = decision.cause

    async def _attempt(
        self, request: HTTPRequest, record: Record, family: Family
    ) -> tuple[HTTPResponse, Verdict | None, int]:
        """Send once, and let the rules look at the answer; all of it before the deadline (D26)."""
        inner = self._inner(family)
        most = self._limits.max_elapsed
        if most is None:
            response = await inner.handle_async_request(request)
            if self._recogniser.idle(response.status_code):
                return response, None, 0
            return response, *await self._recogniser.look(response, family, self._clock)
        left = record.started + most - self._clock.monotonic()
        response = None
        with anyio.move_on_after(left) as scope:
            response = await inner.handle_async_request(request)
            if self._recogniser.idle(response.status_code):
                return response, None, 0
            return response, *await self._recogniser.look(response, family, self._clock)
        if scope.cancelled_caught and response is not None:
            await let_go(response)
        raise _Cut

    def _failed(
        self, error: Exception, sent: Sent, record: Record, family: Family
    ) -> NotSent | Unanswered:
        """An attempt without an answer: proven not to have left, or of unknown effect."""
        sent.error = type(error).__name__
        if isinstance(error, (CredentialError, AuthorizationRequiredError)):
            sent.outcome = sent.effect = "not_sent"
            record.credential_failed = True
            return NotSent(error=error, credential=True)
        sent.proven = proves_not_sent(self._inner(family), family)
        if sent.effect == "not_sent" or never_left(error, proven=sent.proven):
            sent.outcome = sent.effect = "not_sent"
            return NotSent(error=error)
        sent.outcome = "unanswered"
        record.unanswered = True
        return Unanswered(error=error)

    def _cut(self, sent: Sent, record: Record) -> MayHaveRunError | DeadlineExceededError:
        """The deadline passed in flight: an end, and never a reason to repeat (R12, R46, D26)."""
        most = self._limits.max_elapsed or 0.0
        late = DeadlineExceededError(max_elapsed=most)
        record.unanswered = record.unanswered or sent.effect == "unknown"
        record.end("cut", "deadline")
        if not (record.call.is_tool_call and record.may_have_run):
            return late
        error = MayHaveRunError(
            cause="deadline",
            attempts=len(record.sent),
            tool=record.call.tool,
            call_id=record.call_id,
        )
        error.__cause__ = late
        return error

    def _conclude(
        self,
        decision: Deliver | Fail,
        fact: Answered | NotSent | Unanswered,
        response: HTTPResponse | None,
        record: Record,
    ) -> HTTPResponse:
        """Write down how the series ended, and hand on its answer or its failure."""
        if isinstance(decision, Fail):
            record.end("not_sent" if isinstance(fact, NotSent) else "unanswered", decision.why)
            _logger.warning("%s: gave up without an answer: %s", record.endpoint, decision.why)
            raise decision.error
        refused = isinstance(fact, Answered) and fact.verdict is not None
        record.end("refused" if refused else "answered", decision.why, record.sent[-1].status)
        if refused:
            _logger.warning("%s: gave up on a refusal: %s", record.endpoint, decision.why)
        return response

    def _series(self, record: Record) -> Series:
        return Series(
            record.call,
            self.rules,
            self._limits,
            self.replay,
            draw=self._draw,
            started=record.started,
            reconnect=self._reconnect,
            patience=self._patience,
        )


class _Cut(Exception):  # noqa: N818 - a signal between two functions of this file
    """The deadline fell into an attempt."""


def proves_not_sent(transport: AsyncTransport, family: Family) -> bool:
    """Whether the errors of ``transport`` prove what never left (D3).

    The family's own transport is exact about it; any other has to declare ``proves_not_sent``.
    """
    declared = getattr(transport, "proves_not_sent", None)
    return family.is_wire(transport) if declared is None else declared is True
