"""The law of this file: AgentCore Identity keeps its own books: who asked, who consented, to what.

The shapes are those of the service model of `bedrock-agentcore` (`rest-json`); what depends on what
is from the AWS developer guide. One loop alone touches it, but for what a test calls.
"""

from __future__ import annotations

import re
import secrets
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, Literal, cast

from surefoot.testing._agentcore_identity_rows import OPERATIONS, failure
from surefoot.testing._agentcore_rows import AGENTCORE_CANARY, request_id
from surefoot.testing._limits import TokenMint
from surefoot.testing._request import Received, Reply, as_object

__all__ = ["IdentityService"]

Answered = Mapping[str, object] | Reply
"""The members of an answer, or the failure."""

Principal = tuple[Literal["machine", "jwt", "user-id"], str]

_PATTERNS: Final[Mapping[str, re.Pattern[str]]] = {
    "workloadName": re.compile(r"[A-Za-z0-9_.-]{3,255}"),
    "userToken": re.compile(r"[A-Za-z0-9-_=]+.[A-Za-z0-9-_=]+.[A-Za-z0-9-_=]+"),
    "userId": re.compile(r".{1,128}", re.DOTALL),
    "workloadIdentityToken": re.compile(r".{1,131072}", re.DOTALL),
    "resourceCredentialProviderName": re.compile(r"[a-zA-Z0-9\-_]{1,128}"),
    "oauth2Flow": re.compile(r"USER_FEDERATION|M2M|ON_BEHALF_OF_TOKEN_EXCHANGE"),
    "sessionUri": re.compile(r"urn:ietf:params:oauth:request_uri:[a-zA-Z0-9-._~]+"),
    "resourceOauth2ReturnUrl": re.compile(r"\w+:(/?/?)\S+"),
}
_NO_RETURN_URL: Final = "You must provide a ResourceOauth2ReturnUrl to proceed with this flow"


@dataclass(slots=True, kw_only=True)
class _Consent:
    """One question to one user."""

    principal: Principal
    what: tuple[str, tuple[str, ...]]
    ends_at: float
    url: str
    status: Literal["IN_PROGRESS", "FAILED", "DONE"] = "IN_PROGRESS"


class IdentityService:
    """Workload tokens, resource tokens, API keys, consents."""

    def __init__(
        self,
        mint: TokenMint,
        *,
        api_key: str,
        monotonic: Callable[[], float],
        consent_seconds: float,
    ) -> None:
        self._mint = mint
        self._api_key = api_key
        self._monotonic = monotonic
        self._consent_seconds = consent_seconds
        self._lock = threading.Lock()
        self._workloads: dict[str, Principal] = {}
        self._consents: dict[str, _Consent] = {}
        self._vault: set[tuple[Principal, tuple[str, tuple[str, ...]]]] = set()

    def answer(self, received: Received) -> Reply:
        """Answer one operation, which `received.method` names."""
        operation = OPERATIONS[received.method or ""]
        asked = received.message or {}
        if (fault := _invalid(asked, operation.required)) is not None:
            return fault
        with self._lock:
            given = self._answer(operation.name, asked)
        if isinstance(given, Reply):
            return given
        return Reply(message=given, lines=(request_id(),))

    def settle(self, *, granted: bool) -> int:
        """End every consent that is open, as the users would; returns how many there were."""
        with self._lock:
            waiting = [one for one in self._consents.values() if one.status == "IN_PROGRESS"]
            for one in waiting:
                self._end(one, granted=granted)
        return len(waiting)

    def _answer(self, operation: str, asked: Mapping[str, object]) -> Answered:
        match operation:
            case "GetWorkloadAccessToken":
                return self._workload(("machine", ""))
            case "GetWorkloadAccessTokenForJWT":
                return self._workload(("jwt", str(asked["userToken"])))
            case "GetWorkloadAccessTokenForUserId":
                return self._workload(("user-id", str(asked["userId"])))
            case "CompleteResourceTokenAuth":
                return self._complete(asked)
            case _:
                pass
        principal = self._workloads.get(str(asked["workloadIdentityToken"]))
        if principal is None:
            return failure("UnauthorizedException", 401, "The workload access token is not valid")
        if operation == "GetResourceApiKey":
            return {"apiKey": self._api_key}
        return self._resource_token(principal, asked)

    def _workload(self, principal: Principal) -> Answered:
        token = f"workload-{secrets.token_hex(16)}"
        self._workloads[token] = principal
        return {"workloadAccessToken": token}

    def _resource_token(self, principal: Principal, asked: Mapping[str, object]) -> Answered:
        flow = asked["oauth2Flow"]
        if flow == "M2M":
            return {"accessToken": self._mint.mint()}
        if principal[0] == "machine":
            return failure(
                "ValidationException", 400, "The workload access token must be for a user"
            )
        if flow == "ON_BEHALF_OF_TOKEN_EXCHANGE":
            return {"accessToken": self._mint.mint()}
        if "resourceOauth2ReturnUrl" not in asked:
            return failure("ValidationException", 400, _NO_RETURN_URL)
        what = (str(asked["resourceCredentialProviderName"]), _scopes(asked))
        name = asked.get("sessionUri")
        if isinstance(name, str):
            return self._poll(principal, name)
        if (principal, what) in self._vault and asked.get("forceAuthentication") is not True:
            return {"accessToken": self._mint.mint()}
        return self._ask(principal, what)

    def _ask(self, principal: Principal, what: tuple[str, tuple[str, ...]]) -> Answered:
        name = f"urn:ietf:params:oauth:request_uri:{secrets.token_hex(16)}"
        query = f"request_uri={name.rpartition(':')[2]}&state={AGENTCORE_CANARY}"
        url = f"https://identity.example/oauth2/authorize?{query}"
        ends_at = self._monotonic() + self._consent_seconds
        self._consents[name] = _Consent(principal=principal, what=what, ends_at=ends_at, url=url)
        return {"authorizationUrl": url, "sessionUri": name, "sessionStatus": "IN_PROGRESS"}

    def _poll(self, principal: Principal, name: str) -> Answered:
        consent = self._consents.get(name)
        if consent is None or consent.principal != principal:
            return failure("ResourceNotFoundException", 404, "The session does not exist")
        if consent.status == "IN_PROGRESS" and self._monotonic() >= consent.ends_at:
            consent.status = "FAILED"
        match consent.status:
            case "DONE":
                return {"accessToken": self._mint.mint()}
            case "FAILED":
                return {"sessionUri": name, "sessionStatus": "FAILED"}
            case _:
                return {
                    "authorizationUrl": consent.url,
                    "sessionUri": name,
                    "sessionStatus": "IN_PROGRESS",
                }

    def _complete(self, asked: Mapping[str, object]) -> Answered:
        user = as_object(asked["userIdentifier"]) or {}
        consent = self._consents.get(str(asked["sessionUri"]))
        if consent is None or self._monotonic() >= consent.ends_at:
            return failure("ResourceNotFoundException", 404, "The session does not exist")
        named = {"jwt": user.get("userToken"), "user-id": user.get("userId")}
        kind, value = consent.principal
        if len(user) != 1 or named.get(kind) != value:
            return failure(
                "AccessDeniedException", 403, "The user is not the one who began the session"
            )
        self._end(consent, granted=consent.status != "FAILED")
        return {}

    def _end(self, consent: _Consent, *, granted: bool) -> None:
        consent.status = "DONE" if granted else "FAILED"
        if granted:
            self._vault.add((consent.principal, consent.what))


def _scopes(asked: Mapping[str, object]) -> tuple[str, ...]:
    return tuple(sorted(str(scope) for scope in cast("list[object]", asked["scopes"])))


def _invalid(asked: Mapping[str, object], required: tuple[str, ...]) -> Reply | None:
    """The failure of a request that lacks a member, or has one that cannot be; it quotes it."""
    for name in required:
        if name not in asked:
            return failure("ValidationException", 400, f"'{name}' failed to satisfy: not null")
    if "scopes" in required and not isinstance(asked["scopes"], list):
        return failure("ValidationException", 400, "'scopes' failed to satisfy: a list")
    for name, pattern in _PATTERNS.items():
        value = asked.get(name)
        if name in asked and not (isinstance(value, str) and pattern.fullmatch(value)):
            text = f"Value '{value}' at '{name}' failed to satisfy constraint: {pattern.pattern}"
            return failure("ValidationException", 400, f"1 validation error detected: {text}")
    return None
