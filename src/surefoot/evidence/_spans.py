"""The law of this file: a span is opened where an attempt begins and told how it ended (B14).

The transports know these two protocols and no tracing library. An implementation never raises and
never waits.
"""

from __future__ import annotations

from typing import Protocol

from ._attempts import Effect, Grant, Outcome, Reason, RefusalKind

__all__ = ["AttemptFacts", "AttemptSpan", "SpanSource"]


class AttemptFacts(Protocol):
    """**Protocol**: what a span says of an attempt: an ``Attempt``, or one that is to become one.

    What each means stands at ``Attempt``.
    """

    @property
    def outcome(self) -> Outcome: ...
    @property
    def effect(self) -> Effect: ...
    @property
    def reason(self) -> Reason: ...
    @property
    def duration_seconds(self) -> float: ...
    @property
    def status(self) -> int | None: ...
    @property
    def kind(self) -> RefusalKind | None: ...
    @property
    def error(self) -> str | None: ...
    @property
    def retry_after_seconds(self) -> float | None: ...
    @property
    def retry_after_malformed(self) -> bool: ...
    @property
    def wait_seconds(self) -> float | None: ...
    @property
    def permission(self) -> Grant | None: ...
    @property
    def credential(self) -> str | None: ...
    @property
    def scrubbed_hits(self) -> int: ...
    @property
    def unsearched_secrets(self) -> int: ...


class AttemptSpan(Protocol):
    """**Protocol**: the span of one attempt under way."""

    def end(self, attempt: AttemptFacts, *, may_have_run: bool = False) -> None:
        """Say how it ended, and end it where the attempt ended, not now.

        Called once, when what follows the attempt is decided, so that its wait and permission are
        known.

        Args:
            attempt: What is known of it.
            may_have_run: The request is a tool call that this attempt may have run.
        """
        ...


class SpanSource(Protocol):
    """**Protocol**: opens spans, each under the span that was current where its call was made."""

    def tracing(self) -> bool:
        """Whether anybody is; every request asks, so the answer costs next to nothing."""
        ...

    def current(self) -> object:
        """The place in the trace where the caller is: opaque, and what ``open`` takes."""
        ...

    def open(
        self,
        *,
        number: int,
        endpoint: str,
        origin: str,
        http_method: str,
        method: str | None,
        tool: str | None,
        parent: object = None,
    ) -> AttemptSpan | None:
        """Open the span of an attempt that begins now; ``None`` where nobody is tracing.

        Args:
            number: 1 for the first attempt.
            endpoint: The declared label, or else the origin.
            origin: The only part of a URL that a span may carry.
            http_method: The HTTP method.
            method: The JSON-RPC method, where the body is such a message.
            tool: The tool, for a ``tools/call``.
            parent: Where the call was made, as ``current()`` told there; ``None`` stands for here.
        """
        ...
