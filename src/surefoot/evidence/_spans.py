"""The law of this file: a span is opened where an attempt begins and told how it ended (B14).

The transports know these two protocols and no tracing library. An implementation never raises and
never waits.
"""

from __future__ import annotations

from typing import Protocol

from ._attempts import Attempt

__all__ = ["AttemptSpan", "SpanSource"]


class AttemptSpan(Protocol):
    """**Protocol**: the span of one attempt under way."""

    def end(self, attempt: Attempt, *, may_have_run: bool = False) -> None:
        """Say how it ended, and end it where the attempt ended, not now.

        Called once, when what follows the attempt is decided, so that its wait and permission are
        known.

        Args:
            attempt: The attempt as it is filed.
            may_have_run: The request is a tool call that this attempt may have run.
        """
        ...


class SpanSource(Protocol):
    """**Protocol**: opens spans under the caller's current one."""

    def open(
        self,
        *,
        number: int,
        endpoint: str,
        origin: str,
        http_method: str,
        method: str | None,
        tool: str | None,
    ) -> AttemptSpan | None:
        """Open the span of an attempt that begins now; ``None`` where nobody is tracing.

        Args:
            number: 1 for the first attempt.
            endpoint: The declared label, or else the origin.
            origin: The only part of a URL that a span may carry.
            http_method: The HTTP method.
            method: The JSON-RPC method, where the body is such a message.
            tool: The tool, for a ``tools/call``.
        """
        ...
