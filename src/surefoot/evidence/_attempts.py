"""The law of this file: a record keeps outcome, effect and permission apart, and holds no secret.

An attempt that got an answer is not a success (R23), a grant to repeat says nothing about what ran
(R5, R68), and what is only assumed is named as an assumption (R8, D32). Everything here is a plain
value: no request, no header, no body, and of an error only the name of its class. They are nobody's
to change, and not frozen: that would cost each call as much as all the rest of recording it.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import Any, ClassVar, Final, Literal, Protocol, get_args

from ._text import seconds, short

__all__ = [
    "AnswerForm",
    "Attempt",
    "Effect",
    "Ended",
    "Grant",
    "Outcome",
    "Reason",
    "RefusalKind",
    "RequestAttempts",
    "Why",
]

Outcome = Literal["answered", "refused", "unanswered", "not_sent", "cut"]
"""How one attempt ended."""

Effect = Literal["not_sent", "unknown", "ran"]
"""What an attempt did on the server, as far as it is known."""

RefusalKind = Literal["throttle", "session-busy"]
"""What a refusal was recognised as (R74)."""

Reason = Literal["first", "throttle", "session-busy", "network", "auth", "redirect", "reconnect"]
"""Why an attempt was made."""

Ended = Literal["answered", "refused", "unanswered", "not_sent", "cut", "failed"]
"""How a request ended."""

Why = Literal[
    "final-answer",
    "attempts-spent",
    "waiting-spent",
    "no-time",
    "no-permission",
    "body-not-resendable",
    "reconnect-off",
    "credential-failed",
    "cancelled",
    "deadline",
    "stream-cut",
    "unreadable",
    "fenced",
]
"""Why a request ended where it did."""

AnswerForm = Literal["json", "sse", "empty", "local"]
"""What the client was given: the server's answer in one of three forms, or one of ours."""

_OUTCOMES: Final[frozenset[str]] = frozenset(get_args(Outcome))
_EFFECTS: Final[frozenset[str]] = frozenset(get_args(Effect))
_KINDS: Final[frozenset[str | None]] = frozenset((None, *get_args(RefusalKind)))
_REASONS: Final[frozenset[str]] = frozenset(get_args(Reason))
_ENDED: Final[frozenset[str]] = frozenset(get_args(Ended))
_WHY: Final[frozenset[str]] = frozenset(get_args(Why))
_FORMS: Final[frozenset[str | None]] = frozenset((None, *get_args(AnswerForm)))


class Grant(Protocol):
    """**Protocol**: who permitted a repeat, and what that takes for granted (D32)."""

    @property
    def by(self) -> str:
        """``app``, ``policy``, ``adapter``, ``protocol``, ``hint`` or ``proof``."""
        ...

    @property
    def assumes(self) -> str | None:
        """``refused-before-execution``, ``auth-rejected-before-execution`` or ``None``."""
        ...


@dataclass(slots=True, kw_only=True)
class Attempt:
    """One time that a request was on the wire, or would have been.

    Raises:
        ValueError: a word is outside its closed set, or seconds are negative or not finite.
    """

    number: int
    """1 for the first attempt of its request."""

    outcome: Outcome
    effect: Effect
    reason: Reason
    """Why this attempt was made."""

    started_seconds: float
    """Seconds from the start of the request."""

    duration_seconds: float
    """Seconds that the attempt took."""

    status: int | None = None
    """The HTTP status, where there was an answer."""

    kind: RefusalKind | None = None
    """What a refusal was recognised as."""

    error: str | None = None
    """The name of the class of what was raised; never its text."""

    retry_after_seconds: float | None = None
    """What the server stated (R40)."""

    retry_after_malformed: bool = False
    """It stated something that means nothing (D14)."""

    wait_seconds: float | None = None
    """The wait taken after this attempt and before the next."""

    permission: Grant | None = None
    """Who permitted the repeat that followed, or ``None`` where none did."""

    credential: str | None = None
    """The kind of the credential that it carried; never the credential."""

    scrubbed_hits: int = 0
    """How often a secret was found in the answer, and replaced (B7)."""

    unsearched_secrets: int = 0
    """Of those that the answer might have held: how many are too short to be searched for (B7)."""

    sends_at_least_one: bool = False
    """What lies below may have sent more than once for this one attempt (D3)."""

    def __post_init__(self) -> None:
        """Check the words and the seconds: every attempt pays for this, so in one expression."""
        wait = self.wait_seconds
        if not (
            self.number >= 1
            and self.outcome in _OUTCOMES
            and self.effect in _EFFECTS
            and self.reason in _REASONS
            and self.kind in _KINDS
            and 0.0 <= self.started_seconds < inf
            and 0.0 <= self.duration_seconds < inf
            and (wait is None or 0.0 <= wait < inf)
        ):
            raise _wrong_attempt(self)

    @property
    def may_have_run(self) -> bool:
        """Whether it got no answer and is not proven unsent (R27, D3)."""
        return self.effect == "unknown" and self.outcome in ("unanswered", "cut")

    def body(self) -> dict[str, Any]:
        """The attempt as JSON-able values."""
        grant, wait, stated = self.permission, self.wait_seconds, self.retry_after_seconds
        return {
            "number": self.number,
            "reason": self.reason,
            "outcome": self.outcome,
            "status": self.status,
            "kind": self.kind,
            "effect": self.effect,
            "started_seconds": round(self.started_seconds, 6),
            "duration_seconds": round(self.duration_seconds, 6),
            "error": None if self.error is None else short(self.error),
            "retry_after_seconds": None if stated is None else seconds(stated),
            "retry_after_malformed": self.retry_after_malformed,
            "wait_seconds": None if wait is None else round(wait, 6),
            "permission": None if grant is None else {"by": grant.by, "assumes": grant.assumes},
            "credential": self.credential,
            "scrubbed_hits": self.scrubbed_hits,
            "unsearched_secrets": self.unsearched_secrets,
            "sends_at_least_one": self.sends_at_least_one,
        }


@dataclass(slots=True, kw_only=True)
class RequestAttempts:
    """Every attempt of one request, and how it ended (R22, R51); filed once per request (D33).

    Raises:
        ValueError: a word is outside its closed set, or seconds are negative or not finite.
    """

    type: ClassVar[str] = "tool.request_attempts"

    method: str
    """The JSON-RPC method, or the HTTP one where the body is no JSON-RPC message."""

    endpoint: str
    """The declared label, or else the origin (R41, R52)."""

    attempts: tuple[Attempt, ...]
    ended: Ended
    why: Why

    tool: str | None = None
    status: int | None = None
    """The HTTP status that the series delivered (R28)."""

    waited_seconds: float = 0.0
    """Planned waiting, all attempts together (D6)."""

    duration_seconds: float = 0.0
    """Seconds from the start of the request until its answer's body was closed."""

    may_have_run: bool = False
    """No answer settled it and nothing proves that it did not run (REQUIREMENTS 4)."""

    answer_form: AnswerForm | None = None
    answer_length: int | None = None
    """Bytes of exactly what the client was given."""

    answer_sha256: str | None = None
    request_length: int | None = None
    """Bytes of the canonical arguments."""

    request_sha256: str | None = None
    family: str | None = None
    """``httpx`` or ``httpx2``."""

    hook_failures: int = 0
    """How often a hook raised, and was isolated (R55)."""

    call_id: str | None = None
    """The call that it belongs to; ours, and unlike the id on the wire unique (D33)."""

    def __post_init__(self) -> None:
        """Check the words and the seconds."""
        if not (
            self.ended in _ENDED
            and self.why in _WHY
            and self.answer_form in _FORMS
            and 0.0 <= self.waited_seconds < inf
            and 0.0 <= self.duration_seconds < inf
        ):
            raise _wrong_request(self)

    def body(self) -> dict[str, Any]:
        """The record as JSON-able values; ``null`` says that there was none."""
        return {
            "call": self.call_id,
            "method": short(self.method),
            "tool": None if self.tool is None else short(self.tool),
            "endpoint": self.endpoint,
            "family": self.family,
            "ended": self.ended,
            "why": self.why,
            "status": self.status,
            "may_have_run": self.may_have_run,
            "waited_seconds": round(self.waited_seconds, 6),
            "duration_seconds": round(self.duration_seconds, 6),
            "attempts": [attempt.body() for attempt in self.attempts],
            "request": {"length": self.request_length, "sha256": self.request_sha256},
            "answer": {
                "form": self.answer_form,
                "length": self.answer_length,
                "sha256": self.answer_sha256,
            },
            "hook_failures": self.hook_failures,
        }


def _wrong_attempt(attempt: Attempt) -> ValueError:
    if attempt.number < 1:
        return ValueError("number: the first attempt is 1")
    wait = attempt.wait_seconds
    return (
        _not_among("outcome", attempt.outcome, _OUTCOMES)
        or _not_among("effect", attempt.effect, _EFFECTS)
        or _not_among("reason", attempt.reason, _REASONS)
        or _not_among("kind", attempt.kind, _KINDS)
        or _no_seconds("started_seconds", attempt.started_seconds)
        or _no_seconds("duration_seconds", attempt.duration_seconds)
        or _no_seconds("wait_seconds", 0.0 if wait is None else wait)
        or ValueError("the attempt is wrong")
    )


def _wrong_request(request: RequestAttempts) -> ValueError:
    return (
        _not_among("ended", request.ended, _ENDED)
        or _not_among("why", request.why, _WHY)
        or _not_among("answer_form", request.answer_form, _FORMS)
        or _no_seconds("waited_seconds", request.waited_seconds)
        or _no_seconds("duration_seconds", request.duration_seconds)
        or ValueError("the request is wrong")
    )


def _not_among(option: str, value: object, words: frozenset[Any]) -> ValueError | None:
    if value in words:
        return None
    known = ", ".join(sorted(str(word) for word in words if word is not None))
    return ValueError(f"{option}: must be one of {known}")


def _no_seconds(option: str, value: float) -> ValueError | None:
    if 0.0 <= value < inf:
        return None
    return ValueError(f"{option}: must be finite seconds, zero or more")
