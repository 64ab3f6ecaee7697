"""The law of this file: of a failure's own words only those known to say nothing private may pass.

A server's error text quotes what it was sent: a signed request, a session token, a refused value
(R89). So a text passes only if it is, letter for letter, one that a specification or an SDK fixes
(R100), and an error type only if it has the form of one (D24). All else is a sentence of ours.
"""

from __future__ import annotations

import re
from types import MappingProxyType
from typing import Any, Final, cast

from surefoot.wire._sentences import ERROR_TYPE, Outcome, sentence

__all__ = [
    "KNOWN_ERROR_MESSAGES",
    "aws_error_type",
    "failure_sentence",
    "is_auth_failure",
    "outcome_of_code",
    "outcome_of_status",
    "outcome_of_words",
]

_JSON_RPC: Final = frozenset(
    {
        "Parse error",
        "Invalid Request",
        "Method not found",
        "Invalid params",
        "Internal error",
    }
)

# What the public MCP SDKs and servers say about a session or a header, word for word.
_STREAMABLE_HTTP: Final = frozenset(
    {
        "Session not found",
        "Session terminated",
        "Session terminated before the request completed",
        "Bad Request: Missing session ID",
        "Not Found",
        "Not Found: Invalid or expired session ID",
        "Not Found: Session has been terminated",
        "Not Acceptable: Client must accept application/json",
        "Not Acceptable: Client must accept both application/json and text/event-stream",
        "Not Acceptable: Client must accept text/event-stream",
        "Unsupported Media Type: Content-Type must be application/json",
        "Method Not Allowed",
        "Method Not Allowed: Session termination not supported",
        "Conflict: Only one SSE stream is allowed per session",
        "Too many open sessions",
        "Internal server error",
        "Invalid request parameters",
        "Unsupported protocol version",
        "Connection closed",
    }
)

# The error mapping of the AgentCore Runtime MCP contract, and the Gateway's one sentence.
_SESSION_BUSY: Final = "Session operation in progress, please retry"
_AGENTCORE: Final = frozenset(
    {
        "Authentication error - Invalid credentials",
        "Authorization error - Insufficient permissions",
        "Rate limit exceeded - Too many requests",
        "Resource not found - Requested resource does not exist",
        "Resource conflict - Resource already exists",
        _SESSION_BUSY,
        "Validation error - Invalid request data",
        "Tool execution error - Please check your CloudWatch logs for more information",
        (
            "Accept Header Error - MCP protocol requires Accept header: "
            "application/json, text/event-stream"
        ),
        "Internal error - Server error",
        "Rate limit exceeded",
    }
)

KNOWN_ERROR_MESSAGES: Final[frozenset[str]] = _JSON_RPC | _STREAMABLE_HTTP | _AGENTCORE
"""The error messages that pass as they are (R100); none that interpolates anything is here."""

_AUTH_TYPES: Final = frozenset(
    {
        "AccessDeniedException",
        "ExpiredTokenException",
        "IncompleteSignatureException",
        "InvalidSignatureException",
        "MissingAuthenticationTokenException",
        "NotAuthorizedException",
        "UnauthorizedException",
        "UnrecognizedClientException",
    }
)

_BY_TYPE: Final[MappingProxyType[str, Outcome]] = MappingProxyType(
    {
        "RetryableConflictException": "session-busy",
        "ThrottlingException": "rate-limited",
        "TooManyRequestsException": "rate-limited",
        "RequestLimitExceededException": "rate-limited",
    }
)

_BY_STATUS: Final[MappingProxyType[int, Outcome]] = MappingProxyType(
    {
        400: "rejected",
        401: "unauthorized",
        403: "forbidden",
        404: "not-found",
        405: "rejected",
        406: "rejected",
        413: "rejected",
        415: "rejected",
        422: "rejected",
        429: "rate-limited",
    }
)

_BY_CODE: Final[MappingProxyType[int, Outcome]] = MappingProxyType(
    {-32700: "rejected", -32600: "rejected", -32601: "not-found", -32602: "rejected"}
)

_TYPE_END: Final = re.compile(r"[:;,\s]")


def is_auth_failure(status: int, error_type: str | None) -> bool:
    """Tell whether a failure says that the credential, or what it permits, is the reason (R101)."""
    return status in (401, 403) or error_type in _AUTH_TYPES


def outcome_of_status(
    status: int, error_type: str | None = None, *, in_session: bool = False
) -> Outcome:
    """Name what an HTTP failure means.

    Args:
        status: its status, of 300 or more.
        error_type: the AWS error type, which says more than the status where it is known.
        in_session: whether the request named an MCP session, so that a 404 means that it is gone.
    """
    if error_type is not None and error_type in _BY_TYPE:
        return _BY_TYPE[error_type]
    if 300 <= status < 400:
        return "redirected"
    if status >= 500:
        return "server-failure"
    if error_type in _AUTH_TYPES:
        return "forbidden" if error_type == "AccessDeniedException" else "unauthorized"
    if status == 404 and in_session:
        return "session-lost"
    return _BY_STATUS.get(status, "server-error")


def outcome_of_words(status: int, body: Any) -> Outcome | None:
    """Name what a failure without a type says in the one text that means "not now" (R60).

    Args:
        status: its status; AgentCore gives this text at 409 alone.
        body: the parsed body, whose ``message`` it is.
    """
    if status != 409 or not isinstance(body, dict):
        return None
    said = cast("dict[str, object]", body).get("message")
    return "session-busy" if said == _SESSION_BUSY else None


def outcome_of_code(code: int) -> Outcome:
    """Name what a JSON-RPC error at status 200 means, where its code alone says it."""
    return _BY_CODE.get(code, "server-error")


def failure_sentence(status: int, error_type: str | None = None) -> str:
    """Word a failure that came without a JSON-RPC reply (R103)."""
    return sentence(outcome_of_status(status, error_type), status=status, error_type=error_type)


def aws_error_type(header: bytes | None, body: Any = None) -> str | None:
    """Read the AWS error type of a failure, if it has the form of one (D24).

    Args:
        header: the value of ``x-amzn-errortype``, which goes first.
        body: the parsed body, whose ``__type`` or ``code`` may name it.
    """
    said: list[object] = [] if header is None else [header.decode("latin-1")]
    if isinstance(body, dict):
        members = cast("dict[str, object]", body)
        said += [members.get("__type"), members.get("code")]
    for value in said:
        if isinstance(value, str):
            name = _TYPE_END.split(value[:512].rpartition("#")[2].strip(), maxsplit=1)[0]
            if ERROR_TYPE.fullmatch(name):
                return name
    return None
