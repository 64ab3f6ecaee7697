"""The law of this file: of an attempt under way stands here what its layers know, and no more."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from surefoot.evidence import AttemptSpan, Effect, Outcome, Reason, RefusalKind
    from surefoot.policy import Permission

    from ._seal import Seal

__all__ = ["Sent"]


class Sent:
    """One attempt while it is being made; becomes an ``Attempt`` when the record is filed.

    What an attempt usually is stands on the class, so that an uneventful one costs two fields.
    What its span asks for has the names that it has on an ``Attempt``.
    """

    reason: Reason
    outcome: Outcome = "cut"
    effect: Effect = "unknown"
    status: int | None = None
    kind: RefusalKind | None = None
    error: str | None = None
    retry_after_seconds: float | None = None
    retry_after_malformed: bool = False
    wait_seconds: float | None = None
    permission: Permission | None = None
    credential: str | None = None
    scrubbed_hits: int = 0
    unsearched_secrets: int = 0
    proven: bool = False
    """Errors from below prove what left."""
    refreshable: bool = False
    """A forced vend could hand out another credential than the one that this attempt carried."""
    steps_up: bool = False
    """It could hand out one with more scopes."""
    span: AttemptSpan | None = None
    """Its span, until what follows it is decided (B14)."""

    seal: Seal | None = None
    """What was secret in it and in those before it, until the call's answer is closed (B7, R19)."""

    def __init__(self, reason: Reason, started: float) -> None:
        self.reason = reason
        self.started = self.ended = started

    @property
    def duration_seconds(self) -> float:
        """Seconds that it took."""
        return max(0.0, self.ended - self.started)
