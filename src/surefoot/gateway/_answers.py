"""The law of this file: the facts that travel as data in an answer become our types of error."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NoReturn, cast

from surefoot.errors import (
    AnswerTooLargeError,
    AuthorizationRequiredError,
    CredentialError,
    MayHaveRunError,
    NotSentError,
    RateLimitedError,
    UnreadableAnswerError,
)
from surefoot.wire import OUTCOME_KEY

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["ToolAnswer", "error_in", "is_the_servers", "raise_for_outcome", "the_one_in"]

Facts = Mapping[str, Any]


class ToolAnswer:
    """What a tool answered."""

    __slots__ = ("result",)

    def __init__(self, result: Any) -> None:
        self.result = result
        """The SDK's own result object."""

    def __repr__(self) -> str:
        """Show the shape, and none of the content."""
        return f"ToolAnswer(is_error={self.is_error}, text_length={len(self.text)})"

    @property
    def text(self) -> str:
        """All text content, in order, joined by line ends; empty where there is none."""
        parts: Iterable[Any] = self.result.content
        return "\n".join(part.text for part in parts if getattr(part, "type", "") == "text")

    @property
    def structured(self) -> Any:
        """The structured content, or ``None``."""
        return _either(self.result, "structured_content", "structuredContent")

    @property
    def is_error(self) -> bool:
        """The tool says that it failed."""
        return bool(_either(self.result, "is_error", "isError"))

    @property
    def outcome(self) -> Facts | None:
        """The facts of a call that was given up on; ``None`` where the server itself answered."""
        meta = getattr(self.result, "meta", None)
        return _facts(meta)


def error_in(error: BaseException) -> Facts | None:
    """The facts in an SDK error, also inside a group; ``None`` where it is the server's own."""
    if isinstance(error, BaseExceptionGroup):
        for inner in cast("BaseExceptionGroup[BaseException]", error).exceptions:
            found = error_in(inner)
            if found is not None:
                return found
        return None
    held: Any = getattr(error, "error", error)
    return _facts(getattr(held, "data", None))


def is_the_servers(error: BaseException) -> bool:
    """Whether an SDK error is a JSON-RPC error, as far as anybody can tell the server's own."""
    return hasattr(getattr(error, "error", None), "code")


def the_one_in(error: Exception) -> Exception:
    """The one error inside a group of one, however deep; any other error as it is."""
    inner: Any = getattr(error, "exceptions", ())
    return the_one_in(inner[0]) if len(inner) == 1 else error


def raise_for_outcome(
    facts: Facts | None, *, tool: str | None, consent: AuthorizationRequiredError | None
) -> None:
    """Raise what the facts say; return where there are none."""
    if facts is None:
        return
    _raise(facts, tool, consent)


def _raise(facts: Facts, tool: str | None, consent: AuthorizationRequiredError | None) -> NoReturn:
    kind = str(facts.get("kind"))
    attempts = int(facts.get("attempts", 0))
    call_id = facts.get("call_id")
    match kind:
        case "rate-limited" | "session-busy":
            raise RateLimitedError(
                attempts=attempts,
                waited=float(facts.get("waited_seconds", 0.0)),
                retry_after=facts.get("retry_after_seconds"),
            ) from None
        case "consent-needed" if consent is not None:
            raise AuthorizationRequiredError(
                service=consent.service,
                authorization_url=consent.authorization_url,
                session_uri=consent.session_uri,
            ) from None
        case "credentials-failed" | "consent-needed" | "unauthorized" | "forbidden":
            raise CredentialError(kind) from None
        case "unreadable" | "too-large":
            error = MayHaveRunError(cause=kind, attempts=attempts, tool=tool, call_id=call_id)
            rule = str(facts.get("rule", kind))
            error.__cause__ = (
                AnswerTooLargeError(rule=rule, limit=0)
                if kind == "too-large"
                else UnreadableAnswerError(rule=rule)
            )
            raise error
        case "in-flight" | "fenced" | "already-ran":
            # Nothing of this call was sent; it is the earlier one, named here, that may have run.
            earlier = facts.get("earlier_call_id")
            raise MayHaveRunError(cause=kind, attempts=0, tool=tool, call_id=earlier) from None
        case _ if facts.get("may_have_run"):
            raise MayHaveRunError(
                cause=kind, attempts=attempts, tool=tool, call_id=call_id
            ) from None
        case _:
            raise NotSentError(cause=kind, tool=tool) from None


def _facts(holder: Any) -> Facts | None:
    facts = holder.get(OUTCOME_KEY) if isinstance(holder, Mapping) else None  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
    return facts if isinstance(facts, Mapping) else None  # pyright: ignore[reportUnknownVariableType]


def _either(holder: Any, first: str, second: str) -> Any:
    """One attribute under either major's name."""
    found = getattr(holder, first, None)
    return getattr(holder, second, None) if found is None else found
