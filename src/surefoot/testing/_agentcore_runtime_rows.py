"""The law of this file: every answer of AgentCore Runtime that a client has to tell from another.

Sources: the AWS developer guide's page on the MCP protocol contract of AgentCore Runtime (codes,
messages and statuses, word for word), and the service model of `bedrock-agentcore` (the statuses
and members of the same exceptions on the API surface).
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Final

from surefoot.testing._agentcore_rows import (
    AGENTCORE_CANARY,
    AgentCoreRow,
    api,
    canonical_quote,
    error_type,
    given,
    page,
    rpc,
)
from surefoot.testing._request import Received
from surefoot.testing._wire import Headers, compact_json, http_date

__all__ = ["BUSY", "RUNTIME_ROWS", "validation_body"]

BUSY: Final = "Session operation in progress, please retry"
_THROTTLED: Final = "Rate limit exceeded - Too many requests"
_CONFLICT: Final = "Resource conflict - Resource already exists"
_UNAUTHORIZED: Final = "Authentication error - Invalid credentials"
_DENIED: Final = "Authorization error - Insufficient permissions"
_NOT_FOUND: Final = "Resource not found - Requested resource does not exist"
_INVALID: Final = "Validation error - Invalid request data"
_TOOL_FAILED: Final = (
    "Tool execution error - Please check your CloudWatch logs for more information"
)
_NOT_ACCEPTABLE: Final = (
    "Accept Header Error - MCP protocol requires Accept header: application/json, text/event-stream"
)
_INTERNAL: Final = "Internal error - Server error"
_FROM_RUNTIME: Final = (
    "Received error (500) from runtime. Please check your CloudWatch logs for more information"
)
_INITIALIZATION: Final = (
    "Runtime initialization time exceeded. Please make sure that initialization completes in 30s."
)
_OTHER_AUTH: Final = (
    "Authorization method mismatch. The agent is configured for a different authorization method "
    "than what was used in your request. Check the agent's authorization configuration and ensure "
    "your request uses the matching method (OAuth or SigV4)"
)
_PRINCIPAL: Final = f"arn:aws:sts::123456789012:assumed-role/orders/{AGENTCORE_CANARY}"
_CORAL: Final = ":http://internal.amazon.com/coral/com.amazonaws.bedrockagentcore/"
_METADATA: Final = "/.well-known/oauth-protected-resource?qualifier=DEFAULT"


def validation_body(received: Received) -> bytes:
    """A ValidationException that quotes what it refused, twice."""
    refused = (
        f"Value '{given(received)}' at 'runtimeUserId' failed to satisfy constraint: "
        "Member must have length less than or equal to 1024"
    )
    return compact_json(
        {
            "message": f"1 validation error detected: {refused}",
            "reason": "FieldValidationFailed",
            "fieldList": [{"name": "runtimeUserId", "message": refused}],
        }
    )


def challenge(received: Received) -> Headers:
    """The challenge of an OAuth runtime, which names the metadata below the endpoint."""
    host = received.header("host") or "127.0.0.1"
    where = f"http://{host}{received.path}{_METADATA}"
    return (("www-authenticate", f'Bearer resource_metadata="{where}"'),)


def _dates(received: Received) -> str:
    dated = received.header("x-amz-date")
    return f"{dated} is not within 5 min. of {datetime.now(UTC):%Y%m%dT%H%M%SZ}"


def _in_two_seconds(_: Received) -> Headers:
    now = datetime.now(UTC)
    return (
        *error_type("ThrottlingException"),
        ("date", http_date(now)),
        ("retry-after", http_date(now + timedelta(seconds=2))),
    )


_BUSY_MEANS: Final = "the session is being provisioned or torn down"
_THROTTLED_MEANS: Final = "too many requests"

_BUSY_ROWS = (
    AgentCoreRow("busy", _BUSY_MEANS, body=rpc(-32005, BUSY)),
    AgentCoreRow("busy-json", _BUSY_MEANS, body=rpc(-32005, BUSY), framing="json"),
    AgentCoreRow("busy-sse", _BUSY_MEANS, body=rpc(-32005, BUSY), framing="sse"),
    AgentCoreRow(
        "busy-409",
        _BUSY_MEANS,
        status=409,
        headers=error_type("RetryableConflictException" + _CORAL),
        body=api(BUSY),
    ),
    AgentCoreRow(
        "busy-409-type-in-body",
        _BUSY_MEANS,
        status=409,
        body=api(BUSY, {"__type": "com.amazonaws.bedrockagentcore#RetryableConflictException"}),
    ),
    AgentCoreRow("conflict", "not busy: it exists already", body=rpc(-32005, _CONFLICT)),
    AgentCoreRow(
        "conflict-409",
        "not busy: it exists already",
        status=409,
        headers=error_type("ConflictException"),
        body=api(_CONFLICT),
    ),
)

_THROTTLE_ROWS = (
    AgentCoreRow("throttle", _THROTTLED_MEANS, body=rpc(-32003, _THROTTLED)),
    AgentCoreRow("throttle-sse", _THROTTLED_MEANS, body=rpc(-32003, _THROTTLED), framing="sse"),
    AgentCoreRow(
        "throttle-429",
        _THROTTLED_MEANS,
        status=429,
        headers=error_type("ThrottlingException"),
        body=api("Rate exceeded"),
    ),
    AgentCoreRow(
        "throttle-429-seconds",
        "too many requests; ask again in 2 s",
        status=429,
        headers=(*error_type("ThrottlingException"), ("retry-after", "2")),
        body=api("Rate exceeded"),
    ),
    AgentCoreRow(
        "throttle-429-date",
        "too many requests; ask again at a moment 2 s after the answer's own Date",
        status=429,
        headers=_in_two_seconds,
        body=api("Rate exceeded"),
    ),
    AgentCoreRow(
        "throttle-429-garbage",
        "too many requests; the wait cannot be read",
        status=429,
        headers=(*error_type("ThrottlingException"), ("retry-after", "2 seconds")),
        body=api("Rate exceeded"),
    ),
    AgentCoreRow(
        "quota-402",
        "a quota is used up, which no waiting mends",
        status=402,
        headers=error_type("ServiceQuotaExceededException"),
        body=api("Service quota exceeded"),
    ),
)

_AUTH_ROWS = (
    AgentCoreRow(
        "bad-signature",
        "the signature is refused, in an answer that quotes the signed request, token and all",
        status=403,
        headers=error_type("InvalidSignatureException"),
        body=api(canonical_quote),
    ),
    AgentCoreRow(
        "signature-expired",
        "X-Amz-Date is too long ago",
        status=403,
        headers=error_type("InvalidSignatureException"),
        body=api(lambda received: f"Signature expired: {_dates(received)}"),
    ),
    AgentCoreRow(
        "signature-not-yet",
        "X-Amz-Date is in the future",
        status=403,
        headers=error_type("InvalidSignatureException"),
        body=api(lambda received: f"Signature not yet current: {_dates(received)}"),
    ),
    AgentCoreRow(
        "incomplete-signature",
        "the Authorization header cannot be read, in an answer that quotes it",
        status=403,
        headers=error_type("IncompleteSignatureException"),
        body=api(lambda received: f"Authorization header is not complete: {given(received)}"),
    ),
    AgentCoreRow(
        "missing-token",
        "the request is not signed",
        status=403,
        headers=error_type("MissingAuthenticationTokenException"),
        body=api("Missing Authentication Token"),
    ),
    AgentCoreRow(
        "expired-token",
        "the session token has expired",
        status=403,
        headers=error_type("ExpiredTokenException"),
        body=api("The security token included in the request is expired"),
    ),
    AgentCoreRow(
        "unrecognized-client",
        "the key or the session token is not known",
        status=403,
        headers=error_type("UnrecognizedClientException"),
        body=api("The security token included in the request is invalid."),
    ),
    AgentCoreRow(
        "no-bearer",
        "an OAuth runtime wants a bearer token, and says where its metadata is",
        status=401,
        headers=challenge,
        body=rpc(-32001, _UNAUTHORIZED),
    ),
    AgentCoreRow(
        "other-auth",
        "the runtime takes the other kind of authorization",
        status=403,
        headers=error_type("AccessDeniedException"),
        body=api(_OTHER_AUTH),
    ),
    AgentCoreRow("denied", "not allowed", status=403, body=rpc(-32002, _DENIED)),
    AgentCoreRow(
        "denied-api",
        "not allowed, in an answer that quotes the caller",
        status=403,
        headers=error_type("AccessDeniedException"),
        body=api(
            lambda received: (
                f"User: {_PRINCIPAL} is not authorized to perform: "
                f"bedrock-agentcore:InvokeAgentRuntime on resource: {received.path}"
            )
        ),
    ),
)

_REQUEST_ROWS = (
    AgentCoreRow("validation", "the request is not valid", body=rpc(-32006, _INVALID)),
    AgentCoreRow(
        "validation-api",
        "the request is not valid, in an answer that quotes what it refused",
        status=400,
        headers=error_type("ValidationException"),
        body=validation_body,
    ),
    AgentCoreRow("not-found", "there is no such runtime", body=rpc(-32004, _NOT_FOUND)),
    AgentCoreRow(
        "not-found-api",
        "there is no such runtime",
        status=404,
        headers=error_type("ResourceNotFoundException"),
        body=api(lambda received: f"No endpoint or agent found: {received.path}"),
    ),
    AgentCoreRow(
        "session-not-found",
        "the server behind a stateful runtime has forgotten the session",
        status=404,
        body=rpc(-32001, "Session not found"),
    ),
    AgentCoreRow(
        "not-acceptable",
        "Accept lacks one of the two types",
        status=406,
        body=rpc(-32011, _NOT_ACCEPTABLE),
    ),
    AgentCoreRow(
        "method-not-allowed",
        "GET and DELETE are not spoken",
        status=405,
        body=lambda _: compact_json(
            {
                "jsonrpc": "2.0",
                "id": "",
                "result": None,
                "error": {"code": -32600, "message": "HTTP method not supported."},
            }
        ),
    ),
)

_SERVER_ROWS = (
    AgentCoreRow(
        "runtime-error", "the server behind the runtime failed", body=rpc(-32010, _TOOL_FAILED)
    ),
    AgentCoreRow(
        "runtime-error-424",
        "the server behind the runtime failed, perhaps after it ran",
        status=424,
        headers=error_type("RuntimeClientError"),
        body=api(_FROM_RUNTIME),
        ran=True,
    ),
    AgentCoreRow(
        "runtime-start-424",
        "the server behind the runtime did not start",
        status=424,
        headers=error_type("RuntimeClientError"),
        body=api(_INITIALIZATION),
    ),
    AgentCoreRow("internal", "something failed", body=rpc(-32603, _INTERNAL)),
    AgentCoreRow(
        "internal-500",
        "something failed, perhaps after the tool ran",
        status=500,
        headers=error_type("InternalServerException"),
        body=api(lambda received: f"Internal failure {given(received)}"),
        ran=True,
    ),
    *(
        AgentCoreRow(
            f"{name}-{status}",
            "a page of a proxy, which quotes the request; the tool may have run",
            status=status,
            body=page(title),
            content_type="text/html",
            ran=True,
        )
        for name, status, title in (
            ("bad-gateway", 502, "502 Bad Gateway"),
            ("unavailable", 503, "503 Service Temporarily Unavailable"),
            ("gateway-timeout", 504, "504 Gateway Time-out"),
        )
    ),
)

RUNTIME_ROWS: Final[Mapping[str, AgentCoreRow]] = {
    row.name: row
    for row in (*_BUSY_ROWS, *_THROTTLE_ROWS, *_AUTH_ROWS, *_REQUEST_ROWS, *_SERVER_ROWS)
}
"""What AgentCore Runtime answers, by name."""
