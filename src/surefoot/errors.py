"""The law of this file: every failure that surefoot raises is drawn here, none with a secret.

```
Exception
└── SurefootError
    ├── RateLimitedError            the server kept refusing; it did not say that the tool ran
    ├── MayHaveRunError             no answer came, and nothing proves that the tool did not run
    ├── NotSentError                it is proven that the call did not run: nothing was sent
    ├── UnreadableAnswerError       an answer came, and cannot be read in exactly one way
    │   └── AnswerTooLargeError     ... because a bound was reached
    ├── AuthorizationRequiredError  a person must consent first; the URL is a field, never text
    ├── CredentialError             no credential could be had for this attempt; nothing was sent
    │   └── InvalidCredentialError  the value cannot go into a header (also a ValueError)
    ├── DeadlineExceededError       the call's own deadline passed (also a TimeoutError)
    ├── SessionLostError            the server no longer knows this MCP session
    └── ToolError                   the tool answered that it failed; ``.result`` holds its answer
```

Facts are keyword-only attributes, the message is made of them alone, and every error pickles. None
of them holds a request, a response or a header: a traceback that is logged whole shows no more.
Cancellation is never turned into one of these.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, ClassVar, Final, Literal

__all__ = [
    "AnswerTooLargeError",
    "AuthorizationRequiredError",
    "CredentialError",
    "DeadlineExceededError",
    "InvalidCredentialError",
    "MayHaveRunError",
    "NotSentError",
    "RateLimitedError",
    "SessionLostError",
    "SurefootError",
    "ToolError",
    "UnreadableAnswerError",
]

_FactDict = dict[str, Any]

_WHY: Final[Mapping[str, str]] = MappingProxyType(
    {
        "not-sent": "the server could not be reached",
        "not-sent-in-time": "the time allowed for it ran out first",
        "not-found": "the server knows no such name, or has no MCP endpoint at this address",
        "rejected": "the server does not accept it, or has no MCP endpoint at this address",
        "redirected": "the server points to another address, which is not followed",
        "server-failure": "the server failed, or has no MCP endpoint at this address",
        "no-answer": "no answer came back",
        "cut-stream": "the connection was cut while the answer was under way",
        "fence-full": "too many earlier calls that may have run are to be settled first",
    }
)
"""What a cause means, for whoever reads a traceback and not the pages."""


def _rebuild(kind: type[SurefootError], message: str, facts: _FactDict) -> SurefootError:
    """Build an unpickled error without running a constructor that would word it anew."""
    error = kind.__new__(kind)
    Exception.__init__(error, message)
    error.__dict__.update(facts)
    return error


def _plain(number: float) -> str:
    """Write a number as people read it: a whole one to its last digit, no 0.30000000000000004."""
    return f"{number:.12g}"


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


class SurefootError(Exception):
    """The root: whatever surefoot raises on purpose is one of these."""

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle as class, message and facts; a cause or a traceback never travels."""
        facts = {name: value for name, value in self.__dict__.items() if name[:2] != "__"}
        return _rebuild, (type(self), str(self), facts)


class RateLimitedError(SurefootError):
    """The server refused with "not now" until the budget for waiting was spent.

    A refusal is an answer: nothing says that the tool ran, and nothing proves that it did not
    (R3, R61).
    """

    retry_after: float | None
    """Seconds the server asked to wait at its last refusal, or ``None`` when it named none."""

    attempts: int
    """How many times the request was sent."""

    waited: float
    """Seconds that were waited between attempts."""

    def __init__(
        self, *, attempts: int, waited: float = 0.0, retry_after: float | None = None
    ) -> None:
        self.retry_after = retry_after
        self.attempts = attempts
        self.waited = waited
        when = "" if retry_after is None else f"; it asked for {_plain(retry_after)} s more"
        super().__init__(f"rate limited: sent {_times(attempts)}, {_plain(waited)} s waited{when}")


class MayHaveRunError(SurefootError):
    """A call ended without an answer and nothing proves that it did not run (R27).

    Sending it again may run it twice. Find out first.
    """

    tool: str | None
    """The tool's name, or ``None`` where the request was no tool call."""

    cause: str
    """Why there is no answer: a short fixed word such as ``"no-response"`` or ``"deadline"``."""

    attempts: int
    """How many times the request was sent."""

    call_id: str | None
    """The id under which evidence and the fence know the call."""

    def __init__(
        self, *, cause: str, attempts: int, tool: str | None = None, call_id: str | None = None
    ) -> None:
        self.tool = tool
        self.cause = cause
        self.attempts = attempts
        self.call_id = call_id
        what = "the request" if tool is None else f"tool {tool!r}"
        if attempts:
            text = f"{what} may have run: {cause}, sent {_times(attempts)}, not sent again"
        else:
            which = "" if call_id is None else f" ({call_id})"
            text = f"{what} was not sent: an identical earlier call{which} may have run ({cause})"
        super().__init__(text)


class NotSentError(SurefootError):
    """The call did not run: nothing was sent, or it was refused before anything ran (D3)."""

    tool: str | None
    """The tool's name, or ``None`` where the request was no tool call."""

    cause: str
    """Why: a short fixed word such as ``"not-sent"`` or ``"rejected"``."""

    def __init__(self, *, cause: str, tool: str | None = None) -> None:
        self.tool = tool
        self.cause = cause
        what = "the request" if tool is None else f"tool {tool!r}"
        why = _WHY.get(cause)
        super().__init__(f"{what} did not run: {cause}" + ("" if why is None else f", {why}"))


class UnreadableAnswerError(SurefootError):
    """An answer came that cannot be read in exactly one way (R95, R97, R98)."""

    rule: str
    """The rule it broke: a fixed word such as ``"duplicate-key"``, never text of the answer."""

    def __init__(self, *, rule: str) -> None:
        self.rule = rule
        super().__init__(f"unreadable answer: {rule}")


class AnswerTooLargeError(UnreadableAnswerError):
    """An answer reached one of the bounds of B12."""

    limit: float
    """The bound, in the unit that ``rule`` names (bytes, levels, digits, containers or seconds)."""

    def __init__(self, *, rule: str, limit: float) -> None:
        super().__init__(rule=rule)
        self.limit = limit
        self.args = (f"answer too large: {rule}, the limit is {_plain(limit)}",)


class AuthorizationRequiredError(SurefootError):
    """A person has to consent before there can be a credential (R117).

    The URL is a capability: it is a field, and never part of the message, a log or an event.
    """

    code: ClassVar[Literal["ERR_GATEWAY_AUTHORIZATION_REQUIRED"]] = (
        "ERR_GATEWAY_AUTHORIZATION_REQUIRED"
    )

    service: str
    """Which service asks for consent."""

    authorization_url: str
    """Where the person consents."""

    session_uri: str | None
    """What binds the consent to this flow, where the service has such a thing."""

    def __init__(
        self, *, service: str, authorization_url: str, session_uri: str | None = None
    ) -> None:
        self.service = service
        self.authorization_url = authorization_url
        self.session_uri = session_uri
        super().__init__(f"{self.code}: a person must authorize {service!r} first")


class CredentialError(SurefootError):
    """No credential could be had, so nothing was sent; or the server refused the one it got.

    Either way nothing ran: ``reason`` is ``"unauthorized"`` or ``"forbidden"`` where the server
    said no, and the provider's own fixed phrase where there was nothing to send.
    """

    service: str | None
    """For which service the credential was asked."""

    reason: str
    """A short fixed phrase; never the provider's own text, which may quote the secret."""

    def __init__(self, reason: str, *, service: str | None = None) -> None:
        self.reason = reason
        self.service = service
        where = "" if service is None else f" for {service!r}"
        super().__init__(f"no credential{where}: {reason}")


class InvalidCredentialError(CredentialError, ValueError):
    """A value that must not reach the HTTP stack (B8); ``reason`` names the broken rule."""


class DeadlineExceededError(SurefootError, TimeoutError):
    """The call's own deadline (``Retry.max_elapsed``) passed (R44, R46)."""

    max_elapsed: float
    """The deadline, in seconds from the start of the call."""

    def __init__(self, *, max_elapsed: float) -> None:
        self.max_elapsed = max_elapsed
        super().__init__(f"the call's deadline of {_plain(max_elapsed)} s passed")


class SessionLostError(SurefootError):
    """The MCP session is no more, and the call was not replayed (D35).

    The server no longer knows it, and the next call opens a new one; or the app left it before the
    call was sent.
    """

    def __init__(self, *, tool: str | None = None) -> None:
        self.tool = tool
        super().__init__("the MCP session is lost; nothing was replayed")


class ToolError(SurefootError):
    """The tool answered, and its answer says that it failed (``isError``)."""

    result: object
    """The tool's own result, as the SDK parsed it."""

    def __init__(self, *, result: object, tool: str | None = None) -> None:
        self.result = result
        self.tool = tool
        super().__init__("the tool reported an error" if tool is None else f"tool {tool!r} failed")
