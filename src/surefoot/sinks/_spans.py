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
from typing import TYPE_CHECKING, Any, Final, NamedTuple
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
    URL_SCHEME,
    WAIT,
)

if TYPE_CHECKING:
    from opentelemetry.context import Context
    from opentelemetry.trace import SpanKind, StatusCode, Tracer, TracerProvider

    from surefoot.evidence import Attempt, AttemptSpan

__all__ = ["OpenTelemetrySpans"]

_LOOK_SECONDS: Final = 1.0
_PORTS: Final = {"http": 80, "https": 443}
_KNOWN_METHODS: Final = frozenset({"POST", "GET", "DELETE", "PUT", "PATCH", "HEAD", "OPTIONS"})
_MOST_ORIGINS: Final = 64
_IDLE: Final = ("ProxyTracerProvider", "NoOpTracerProvider")


class _Tools(NamedTuple):
    """What is needed of the API, taken out of it where the program has loaded it anyway."""

    tracer: Tracer
    context: Callable[[], Context]
    client: SpanKind
    error: StatusCode


class OpenTelemetrySpans:
    """Opens the span of each attempt through OpenTelemetry's API (a ``SpanSource``).

    Args:
        provider: Whose tracer is used; by default the program's own, once it has set one.
    """

    __slots__ = ("_failed", "_look_at", "_origins", "_provider", "_tools")

    def __init__(self, provider: TracerProvider | None = None) -> None:
        self._provider = provider
        self._tools: _Tools | None = None
        self._look_at = 0.0
        self._origins: dict[str, dict[str, Any]] = {}
        self._failed = False

    def open(
        self,
        *,
        number: int,
        endpoint: str,
        origin: str = "",
        http_method: str = "POST",
        method: str | None = None,
        tool: str | None = None,
    ) -> AttemptSpan | None:
        """Open the span of an attempt that begins now; ``None`` where nobody is tracing."""
        now = time.monotonic()
        if now >= self._look_at:
            self._look_at = now + _LOOK_SECONDS
            self._look()
        tools = self._tools
        if tools is None:
            return None
        try:
            name = http_method if http_method in _KNOWN_METHODS else "HTTP"
            attributes = dict(self._place(origin))
            attributes[HTTP_METHOD] = http_method if name == http_method else "_OTHER"
            attributes[ENDPOINT] = endpoint
            if number > 1:
                attributes[HTTP_RESEND_COUNT] = number - 1
            if method is not None:
                attributes[MCP_METHOD] = method
            if tool is not None:
                attributes[TOOL_NAME] = tool
            return _OpenSpan(tools, name, attributes, self._trouble)
        except Exception as error:  # noqa: BLE001 - tracing is nobody's call
            self._trouble(error)
            return None

    def _look(self) -> None:
        """See whether the program has a provider now."""
        try:
            provider = self._provider or _provider_in_use()
            self._tools = None if provider is None else _tools_of(provider)
        except Exception as error:  # noqa: BLE001 - tracing is nobody's call
            self._tools = None
            self._trouble(error)

    def _place(self, origin: str) -> dict[str, Any]:
        """Scheme, address and port of an origin, worked out once for each."""
        known = self._origins.get(origin)
        if known is not None:
            return known
        place: dict[str, Any] = {}
        parts = urlsplit(origin)
        if parts.hostname:
            place = {URL_SCHEME: parts.scheme, SERVER_ADDRESS: parts.hostname}
            port = parts.port or _PORTS.get(parts.scheme)
            if port is not None:
                place[SERVER_PORT] = port
        if len(self._origins) < _MOST_ORIGINS:
            self._origins[origin] = place
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

    __slots__ = ("_attributes", "_began", "_context", "_name", "_tools", "_trouble")

    def __init__(
        self,
        tools: _Tools,
        name: str,
        attributes: dict[str, Any],
        trouble: Callable[[Exception], None],
    ) -> None:
        self._tools = tools
        self._name = name
        self._attributes = attributes
        self._trouble = trouble
        self._context = tools.context()
        self._began = time.time_ns()

    def end(self, attempt: Attempt, *, may_have_run: bool = False) -> None:
        """Say how the attempt ended, and end the span where the attempt ended."""
        try:
            self._attributes.update(_facts(attempt, may_have_run=may_have_run))
            span = self._tools.tracer.start_span(
                self._name,
                context=self._context,
                kind=self._tools.client,
                attributes=self._attributes,
                start_time=self._began,
            )
            if _is_error(attempt):
                span.set_status(self._tools.error)
            span.end(end_time=self._began + round(attempt.duration_seconds * 1e9))
        except Exception as error:  # noqa: BLE001 - tracing is nobody's call
            self._trouble(error)


def _is_error(attempt: Attempt) -> bool:
    return attempt.outcome in ("unanswered", "not_sent", "cut") or (attempt.status or 0) >= 400


def _error_type(attempt: Attempt) -> str:
    """The class of what was raised, or the status as HTTP's convention has it, or the outcome."""
    if attempt.error is not None:
        return attempt.error
    return attempt.outcome if attempt.status is None else str(attempt.status)


def _facts(attempt: Attempt, *, may_have_run: bool) -> dict[str, Any]:
    """What is known of an attempt at its end; what there is nothing to say of is left out."""
    facts: dict[str, Any] = {
        REASON: attempt.reason,
        OUTCOME: attempt.outcome,
        EFFECT: attempt.effect,
        MAY_HAVE_RUN: may_have_run,
    }
    grant = attempt.permission
    optional = (
        (HTTP_STATUS, attempt.status),
        (ERROR_TYPE, _error_type(attempt) if _is_error(attempt) else None),
        (REFUSAL, attempt.kind),
        (RETRY_AFTER, attempt.retry_after_seconds),
        (RETRY_AFTER_MALFORMED, attempt.retry_after_malformed or None),
        (WAIT, attempt.wait_seconds),
        (PERMITTED_BY, None if grant is None else grant.by),
        (ASSUMES, None if grant is None else grant.assumes),
        (CREDENTIAL, attempt.credential),
        (SCRUBBED, attempt.scrubbed_hits or None),
    )
    facts.update((name, value) for name, value in optional if value is not None)
    return facts


def _provider_in_use() -> TracerProvider | None:
    """The provider that the program has set, or ``None``; nothing is imported for it."""
    trace = sys.modules.get("opentelemetry.trace")
    if trace is None:
        return None
    provider: TracerProvider = trace.get_tracer_provider()
    return None if type(provider).__name__ in _IDLE else provider


def _tools_of(provider: TracerProvider) -> _Tools:
    from opentelemetry import context, trace  # noqa: PLC0415 - a provider exists, so it is loaded

    return _Tools(
        tracer=provider.get_tracer(SCOPE),
        context=context.get_current,
        client=trace.SpanKind.CLIENT,
        error=trace.StatusCode.ERROR,
    )
