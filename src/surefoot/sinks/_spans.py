"""The law of this file: an attempt is one CLIENT span under the caller's own, without a secret.

Only the API of OpenTelemetry is used, and only where the program has loaded it and set a provider:
whether that is so is looked at once a second, so that a program without one pays for a comparison.
A span carries the origin and nothing else of a URL (B14). Tracing that fails costs spans, never a
call.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast
from urllib.parse import urlsplit

from ._loud import loud
from ._span_names import (
    ASSUMES,
    CREDENTIAL,
    EFFECT,
    ENDPOINT,
    ERROR_TYPE,
    HTTP_METHOD,
    HTTP_RESEND_COUNT,
    HTTP_STATUS,
    MAY_HAVE_RUN,
    MCP_METHOD,
    OUTCOME,
    PERMITTED_BY,
    REASON,
    REFUSAL,
    RETRY_AFTER,
    RETRY_AFTER_MALFORMED,
    SCOPE,
    SCRUBBED,
    SERVER_ADDRESS,
    SERVER_PORT,
    TOOL_NAME,
    UNSEARCHED,
    WAIT,
)

if TYPE_CHECKING:
    from opentelemetry.context import Context
    from opentelemetry.trace import SpanKind, StatusCode, Tracer, TracerProvider

    from surefoot.evidence import AttemptFacts, AttemptSpan

__all__ = ["OpenTelemetrySpans"]

_LOOK_SECONDS: Final = 1.0
_PORTS: Final = {"http": 80, "https": 443}
_KNOWN_METHODS: Final = frozenset({"POST", "GET", "DELETE", "PUT", "PATCH", "HEAD", "OPTIONS"})
_OTHER: Final = "_OTHER"
_MOST_PLACES: Final = 64
_FAILED: Final = frozenset({"unanswered", "not_sent", "cut"})
_IDLE: Final = ("ProxyTracerProvider", "NoOpTracerProvider")


class _Tools(NamedTuple):
    """What is needed of the API, taken out of it where the program has loaded it anyway."""

    tracer: Tracer
    context: Callable[[], Context]
    client: SpanKind
    error: StatusCode


class OpenTelemetrySpans:
    """Opens the span of each attempt through OpenTelemetry's API (a ``SpanSource``).

    Every Gateway has one of the program's own provider. ``Gateway(evidence=OpenTelemetrySpans(p))``
    takes another; with the API's ``NoOpTracerProvider`` there are no spans.

    Args:
        provider: Whose tracer is used; by default the program's own, once it has set one.
    """

    __slots__ = ("_failed", "_look_at", "_places", "_provider", "_tools")

    def __init__(self, provider: TracerProvider | None = None) -> None:
        self._provider = provider
        self._tools: _Tools | None = None
        self._look_at = 0.0
        self._places: dict[tuple[str, str, str], dict[str, Any]] = {}
        self._failed = False

    def __repr__(self) -> str:
        """Show whether anybody is tracing."""
        return f"<OpenTelemetrySpans, {'tracing' if self._tools else 'idle'}>"

    def tracing(self) -> bool:
        """Whether the program traces; it is looked at once a second."""
        if time.monotonic() >= self._look_at:
            self._look()
        return self._tools is not None

    def current(self) -> object:
        """The context that is current here, under whose span an attempt may be opened later."""
        tools = self._tools
        try:
            return None if tools is None else tools.context()
        except Exception as error:  # noqa: BLE001 - tracing is nobody's call
            self._trouble(error)
            return None

    def open(
        self,
        *,
        number: int,
        endpoint: str,
        origin: str = "",
        http_method: str = "POST",
        method: str | None = None,
        tool: str | None = None,
        parent: object = None,
    ) -> AttemptSpan | None:
        """Open the span of an attempt that begins now; ``None`` where nobody is tracing."""
        if not self.tracing():
            return None
        tools = cast("_Tools", self._tools)
        try:
            key = origin, endpoint, http_method
            attributes = dict(self._places.get(key) or self._place(key))
            if number > 1:
                attributes[HTTP_RESEND_COUNT] = number - 1
            if method is not None:
                attributes[MCP_METHOD] = method
            if tool is not None:
                attributes[TOOL_NAME] = tool
            context = tools.context() if parent is None else cast("Context", parent)
            return _OpenSpan(tools, context, attributes, self._trouble)
        except Exception as error:  # noqa: BLE001 - tracing is nobody's call
            self._trouble(error)
            return None

    def _look(self) -> None:
        """See whether the program has a provider now."""
        self._look_at = time.monotonic() + _LOOK_SECONDS
        try:
            provider = self._provider or _provider_in_use()
            idle = provider is None or type(provider).__name__ in _IDLE
            self._tools = None if idle else _tools_of(cast("TracerProvider", provider))
        except Exception as error:  # noqa: BLE001 - tracing is nobody's call
            self._tools = None
            self._trouble(error)

    def _place(self, key: tuple[str, str, str]) -> dict[str, Any]:
        """What is the same for all attempts of one method at one endpoint, worked out once."""
        origin, endpoint, http_method = key
        known = http_method in _KNOWN_METHODS
        place: dict[str, Any] = {HTTP_METHOD: http_method if known else _OTHER, ENDPOINT: endpoint}
        parts = urlsplit(origin)
        if parts.hostname:
            place[SERVER_ADDRESS] = parts.hostname
            port = parts.port or _PORTS.get(parts.scheme)
            if port is not None:
                place[SERVER_PORT] = port
        if len(self._places) < _MOST_PLACES:
            self._places[key] = place
        return place

    def _trouble(self, error: Exception) -> None:
        if not self._failed:
            self._failed = True
            loud(
                f"spans are incomplete: tracing failed with {type(error).__name__}; calls go on, "
                "and this is said once"
            )


class _OpenSpan:
    """One attempt under way: where it began, in time and under which span.

    The SDK's span is made when all is known: half the cost of one that is amended, and a process
    that dies in between would not have exported it either.
    """

    __slots__ = ("_attributes", "_began", "_context", "_tools", "_trouble")

    def __init__(
        self,
        tools: _Tools,
        context: Context,
        attributes: dict[str, Any],
        trouble: Callable[[Exception], None],
    ) -> None:
        self._tools = tools
        self._attributes = attributes
        self._trouble = trouble
        self._context = context
        self._began = time.time_ns()

    def end(self, attempt: AttemptFacts, *, may_have_run: bool = False) -> None:
        """Say how the attempt ended, and end the span where the attempt ended."""
        attributes, tools = self._attributes, self._tools
        try:
            method: str = attributes[HTTP_METHOD]
            failed = _add_facts(attributes, attempt)
            if may_have_run:
                attributes[MAY_HAVE_RUN] = True
            span = tools.tracer.start_span(
                "HTTP" if method == _OTHER else method,
                context=self._context,
                kind=tools.client,
                attributes=attributes,
                start_time=self._began,
            )
            if failed:
                span.set_status(tools.error)
            span.end(end_time=self._began + round(attempt.duration_seconds * 1e9))
        except Exception as error:  # noqa: BLE001 - tracing is nobody's call
            self._trouble(error)


def _add_facts(attributes: dict[str, Any], attempt: AttemptFacts) -> bool:
    """Add what is known of an attempt at its end, and tell whether it failed.

    Each attribute costs as much as all of this function, so what goes without saying is left out:
    that an attempt is the first, that nothing was found, waited or permitted.
    """
    status, outcome = attempt.status, attempt.outcome
    attributes[OUTCOME] = outcome
    attributes[EFFECT] = attempt.effect
    if status is not None:
        attributes[HTTP_STATUS] = status
    if attempt.credential is not None:
        attributes[CREDENTIAL] = attempt.credential
    if attempt.reason != "first":
        attributes[REASON] = attempt.reason
    if attempt.scrubbed_hits:
        attributes[SCRUBBED] = attempt.scrubbed_hits
    if attempt.unsearched_secrets:
        attributes[UNSEARCHED] = attempt.unsearched_secrets
    if attempt.wait_seconds is not None:
        attributes[WAIT] = attempt.wait_seconds
    if (grant := attempt.permission) is not None:
        attributes[PERMITTED_BY] = grant.by
        if grant.assumes is not None:
            attributes[ASSUMES] = grant.assumes
    if outcome == "refused":
        _add_refusal(attributes, attempt)
    if outcome not in _FAILED and (status is None or status < 400):
        return False
    # The class of what was raised, or the status as HTTP's convention has it, or the outcome.
    attributes[ERROR_TYPE] = attempt.error or (outcome if status is None else str(status))
    return True


def _add_refusal(attributes: dict[str, Any], attempt: AttemptFacts) -> None:
    if attempt.kind is not None:
        attributes[REFUSAL] = attempt.kind
    if attempt.retry_after_seconds is not None:
        attributes[RETRY_AFTER] = attempt.retry_after_seconds
    if attempt.retry_after_malformed:
        attributes[RETRY_AFTER_MALFORMED] = True


def _provider_in_use() -> TracerProvider | None:
    """The provider that the program has set, or ``None``; nothing is imported for it."""
    trace = sys.modules.get("opentelemetry.trace")
    return None if trace is None else trace.get_tracer_provider()


def _tools_of(provider: TracerProvider) -> _Tools:
    from opentelemetry import context, trace  # noqa: PLC0415 - a provider exists, so it is loaded

    return _Tools(
        tracer=provider.get_tracer(SCOPE),
        context=context.get_current,
        client=trace.SpanKind.CLIENT,
        error=trace.StatusCode.ERROR,
    )
