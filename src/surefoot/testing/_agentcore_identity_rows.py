"""The law of this file: every answer of AgentCore Identity that a provider has to understand.

Sources: the service model of `bedrock-agentcore` (paths, members, types, statuses). The messages of
failures quote what the request carried, as those of AWS do.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from surefoot.testing._agentcore_rows import (
    AGENTCORE_CANARY,
    IdentityRow,
    api,
    error_type,
    given,
    request_id,
)
from surefoot.testing._request import Received, Reply
from surefoot.testing._wire import compact_json, lines_from

__all__ = ["IDENTITY_ROWS", "OPERATIONS", "Operation", "failure"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """One operation of the service."""

    name: str
    path: str
    required: tuple[str, ...]


_TOKEN = ("workloadIdentityToken", "resourceCredentialProviderName")

OPERATIONS: Final[Mapping[str, Operation]] = {
    operation.name: operation
    for operation in (
        Operation(
            name="GetWorkloadAccessToken",
            path="/identities/GetWorkloadAccessToken",
            required=("workloadName",),
        ),
        Operation(
            name="GetWorkloadAccessTokenForJWT",
            path="/identities/GetWorkloadAccessTokenForJWT",
            required=("workloadName", "userToken"),
        ),
        Operation(
            name="GetWorkloadAccessTokenForUserId",
            path="/identities/GetWorkloadAccessTokenForUserId",
            required=("workloadName", "userId"),
        ),
        Operation(
            name="GetResourceOauth2Token",
            path="/identities/oauth2/token",
            required=(*_TOKEN, "scopes", "oauth2Flow"),
        ),
        Operation(name="GetResourceApiKey", path="/identities/api-key", required=_TOKEN),
        Operation(
            name="CompleteResourceTokenAuth",
            path="/identities/CompleteResourceTokenAuth",
            required=("userIdentifier", "sessionUri"),
        ),
    )
}
"""The operations, by name."""

_SESSION: Final = "urn:ietf:params:oauth:request_uri:4f1d2c6b9a"
_LINKED: Final = (
    "WorkloadIdentity is linked to a service and cannot retrieve an access token by the caller"
)


def failure(kind: str, status: int, message: str) -> Reply:
    """A failure of an operation."""
    lines = (*lines_from(error_type(kind)), request_id())
    return Reply(status=status, message={"message": message}, lines=lines)


def _named(received: Received) -> object:
    """The session that a request polls, or a fixed one."""
    return (received.message or {}).get("sessionUri") or _SESSION


def _pending(received: Received) -> bytes:
    return compact_json(
        {
            "authorizationUrl": f"https://identity.example/oauth2/authorize?{AGENTCORE_CANARY}",
            "sessionUri": _named(received),
            "sessionStatus": "IN_PROGRESS",
        }
    )


def _failed(received: Received) -> bytes:
    return compact_json({"sessionUri": _named(received), "sessionStatus": "FAILED"})


def _validation(received: Received) -> bytes:
    refused = f"Value '{given(received)}' at 'workloadIdentityToken' failed to satisfy constraint"
    return compact_json(
        {
            "message": f"1 validation error detected: {refused}",
            "reason": "FieldValidationFailed",
            "fieldList": [{"name": "workloadIdentityToken", "message": refused}],
        }
    )


def _error(name: str, says: str, kind: str, status: int, text: str) -> IdentityRow:
    return IdentityRow(
        name,
        says,
        status=status,
        headers=error_type(kind),
        body=api(lambda received: f"{text} {given(received)}"),
    )


_ROWS: tuple[IdentityRow, ...] = (
    IdentityRow("identity-consent-pending", "the user has to consent, and has not", body=_pending),
    IdentityRow("identity-consent-failed", "the user refused", body=_failed),
    IdentityRow("identity-nothing", "an answer without any of its members", body=lambda _: b"{}"),
    IdentityRow(
        "identity-validation",
        "the request is not valid, in an answer that quotes its token",
        status=400,
        headers=error_type("ValidationException"),
        body=_validation,
    ),
    IdentityRow(
        "identity-linked",
        "the workload identity belongs to a runtime or a gateway",
        status=403,
        headers=error_type("AccessDeniedException"),
        body=api(_LINKED),
    ),
    _error(
        "identity-unauthorized",
        "the workload token is not valid",
        "UnauthorizedException",
        401,
        "Invalid workload access token:",
    ),
    _error(
        "identity-denied",
        "not allowed",
        "AccessDeniedException",
        403,
        "The caller is not authorized:",
    ),
    _error(
        "identity-not-found",
        "there is no such workload or provider",
        "ResourceNotFoundException",
        404,
        "Resource not found:",
    ),
    _error(
        "identity-throttle",
        "too many requests",
        "ThrottlingException",
        429,
        "Rate exceeded:",
    ),
    _error(
        "identity-internal",
        "something failed",
        "InternalServerException",
        500,
        "Internal failure:",
    ),
)

IDENTITY_ROWS: Final[Mapping[str, IdentityRow]] = {row.name: row for row in _ROWS}
"""What AgentCore Identity answers beside its sound answers, by name."""
