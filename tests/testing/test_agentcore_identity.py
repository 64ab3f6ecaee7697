"""The identity service of the AgentCore stand-in: tokens, keys, consents, and how each fails.

Raw requests, as another client than boto3 would send them; boto3 has a file of its own.
"""

from __future__ import annotations

import json

import pytest

from support.hand_clock import HandClock
from support.rawhttp import RawAnswer, ask
from support.sigv4 import ask_signed
from surefoot.testing import AGENTCORE_ROWS, AgentCoreRow, AgentCoreStandIn, McpRequest, Reset, Slow
from surefoot.testing._agentcore_identity_rows import IDENTITY_ROWS, OPERATIONS

PROVIDER = {"resourceCredentialProviderName": "calendar"}
USER_FLOW = {
    **PROVIDER,
    "scopes": ["read"],
    "oauth2Flow": "USER_FEDERATION",
    "resourceOauth2ReturnUrl": "https://app.example/back",
}
MACHINE_FLOW = {**PROVIDER, "scopes": ["read"], "oauth2Flow": "M2M"}


class Identity:
    """A client of the service, as thin as can be."""

    def __init__(self, stand_in: AgentCoreStandIn, clock: HandClock | None = None) -> None:
        self._stand_in = stand_in
        self._clock = clock

    def ask(self, operation: str, **members: object) -> RawAnswer:
        """One operation, whatever comes back."""
        url = self._stand_in.origin + OPERATIONS[operation].path
        request = McpRequest(
            headers={"content-type": "application/json"}, body=json.dumps(members).encode()
        )
        at = None if self._clock is None else self._clock.now()
        return ask_signed(self._stand_in, request, url, at=at)

    def get(self, operation: str, **members: object) -> dict[str, object]:
        """One operation, which has to go well."""
        answer = self.ask(operation, **members)
        assert answer.status == 200, answer.body
        return answer.json()

    def machine(self) -> str:
        """A workload token without a user."""
        given = self.get("GetWorkloadAccessToken", workloadName="agent")
        return str(given["workloadAccessToken"])

    def user(self, user_id: str = "u-1") -> str:
        """A workload token for a user."""
        named = {"workloadName": "agent", "userId": user_id}
        given = self.get("GetWorkloadAccessTokenForUserId", **named)
        return str(given["workloadAccessToken"])


def refused(answer: RawAnswer) -> tuple[int, str]:
    """Status and type."""
    (kind,) = answer.values("x-amzn-errortype")
    return answer.status, kind.decode()


def test_a_machine_is_given_tokens_of_its_own_each_time() -> None:
    """A workload token, then access tokens that a bearer runtime lets in, and an API key."""
    with AgentCoreStandIn() as stand_in:
        identity = Identity(stand_in)
        token = identity.machine()
        assert token != identity.machine()
        given = [
            identity.get("GetResourceOauth2Token", workloadIdentityToken=token, **MACHINE_FLOW)
            for _ in range(2)
        ]
        assert [set(one) for one in given] == [{"accessToken"}] * 2
        assert given[0] != given[1]
        assert all(stand_in.tokens.accepts(str(one["accessToken"])) for one in given)
        key = identity.get("GetResourceApiKey", workloadIdentityToken=token, **PROVIDER)
        assert key == {"apiKey": stand_in.api_key}
        names = [entry.method for entry in stand_in.journal]
        assert names[:3] == ["GetWorkloadAccessToken"] * 2 + ["GetResourceOauth2Token"]


def test_a_user_is_asked_once_and_gets_a_token_after_that() -> None:
    """The URL and the session stay the same while it is polled; the app completes it."""
    with AgentCoreStandIn() as stand_in:
        identity = Identity(stand_in)
        token = identity.user()
        flow = {"workloadIdentityToken": token, **USER_FLOW}
        asked = identity.get("GetResourceOauth2Token", **flow)
        assert set(asked) == {"authorizationUrl", "sessionUri", "sessionStatus"}
        assert asked["sessionStatus"] == "IN_PROGRESS"
        uri = asked["sessionUri"]
        for _ in range(2):
            assert identity.get("GetResourceOauth2Token", **flow, sessionUri=uri) == asked

        for wrong in ({"userId": "u-2"}, {"userToken": "a.b.c"}, {}):
            answer = identity.ask("CompleteResourceTokenAuth", userIdentifier=wrong, sessionUri=uri)
            assert refused(answer) == (403, "AccessDeniedException")
        done = identity.get(
            "CompleteResourceTokenAuth", userIdentifier={"userId": "u-1"}, sessionUri=uri
        )
        assert done == {}
        assert set(identity.get("GetResourceOauth2Token", **flow, sessionUri=uri)) == {
            "accessToken"
        }
        again = identity.get("GetResourceOauth2Token", **flow)
        assert set(again) == {"accessToken"}
        other_scope = identity.get("GetResourceOauth2Token", **{**flow, "scopes": ["write"]})
        assert other_scope["sessionStatus"] == "IN_PROGRESS"
        forced = identity.get("GetResourceOauth2Token", **flow, forceAuthentication=True)
        assert forced["authorizationUrl"] != asked["authorizationUrl"]


@pytest.mark.parametrize("user_token", ["head.body.sign"])
def test_a_users_own_token_names_the_user_too(user_token: str) -> None:
    """The very token that began the session ends it; another one for the same user does not."""
    with AgentCoreStandIn() as stand_in:
        identity = Identity(stand_in)
        named = {"workloadName": "agent", "userToken": user_token}
        token = identity.get("GetWorkloadAccessTokenForJWT", **named)["workloadAccessToken"]
        flow = {"workloadIdentityToken": token, **USER_FLOW}
        uri = identity.get("GetResourceOauth2Token", **flow)["sessionUri"]
        fresh = {"userToken": user_token + "2"}
        answer = identity.ask("CompleteResourceTokenAuth", userIdentifier=fresh, sessionUri=uri)
        assert answer.status == 403
        own = {"userToken": user_token}
        assert identity.get("CompleteResourceTokenAuth", userIdentifier=own, sessionUri=uri) == {}
        exchanged = {**flow, "oauth2Flow": "ON_BEHALF_OF_TOKEN_EXCHANGE"}
        assert set(identity.get("GetResourceOauth2Token", **exchanged)) == {"accessToken"}


def test_consents_are_settled_by_hand_or_run_out() -> None:
    """Refused and overdue ones are FAILED, in an answer that has nothing else to say."""
    clock = HandClock()
    with AgentCoreStandIn(consent_seconds=600, clock=clock) as stand_in:
        identity = Identity(stand_in, clock)
        flow = {"workloadIdentityToken": identity.user(), **USER_FLOW}

        def ask() -> object:
            return identity.get("GetResourceOauth2Token", **flow)["sessionUri"]

        def poll(uri: object) -> dict[str, object]:
            return identity.get("GetResourceOauth2Token", **flow, sessionUri=uri)

        first = ask()
        assert stand_in.settle_consents(granted=False) == 1
        assert poll(first) == {"sessionUri": first, "sessionStatus": "FAILED"}

        second = ask()
        clock.move(599)
        assert poll(second)["sessionStatus"] == "IN_PROGRESS"
        clock.move(1)
        assert poll(second)["sessionStatus"] == "FAILED"
        late = {"userIdentifier": {"userId": "u-1"}, "sessionUri": second}
        assert refused(identity.ask("CompleteResourceTokenAuth", **late))[0] == 404

        third = ask()
        assert stand_in.settle_consents() == 1
        assert set(poll(third)) == {"accessToken"}
        assert stand_in.settle_consents() == 0


BAD: list[tuple[str, dict[str, object], int, str]] = [
    ("GetWorkloadAccessToken", {}, 400, "ValidationException"),
    ("GetWorkloadAccessToken", {"workloadName": "a"}, 400, "ValidationException"),
    ("GetWorkloadAccessTokenForJWT", {"workloadName": "agent"}, 400, "ValidationException"),
    (
        "GetWorkloadAccessTokenForJWT",
        {"workloadName": "agent", "userToken": "jwt"},
        400,
        "ValidationException",
    ),
    ("GetResourceApiKey", {**PROVIDER}, 400, "ValidationException"),
    (
        "GetResourceApiKey",
        {**PROVIDER, "workloadIdentityToken": "bogus"},
        401,
        "UnauthorizedException",
    ),
    (
        "GetResourceOauth2Token",
        {**MACHINE_FLOW, "workloadIdentityToken": "bogus"},
        401,
        "UnauthorizedException",
    ),
    (
        "CompleteResourceTokenAuth",
        {
            "userIdentifier": {"userId": "u-1"},
            "sessionUri": "urn:ietf:params:oauth:request_uri:unknown",
        },
        404,
        "ResourceNotFoundException",
    ),
]


@pytest.mark.parametrize(("operation", "members", "status", "kind"), BAD)
def test_a_request_that_cannot_be_is_refused_as_aws_does(
    operation: str, members: dict[str, object], status: int, kind: str
) -> None:
    """By type and status."""
    with AgentCoreStandIn() as stand_in:
        assert refused(Identity(stand_in).ask(operation, **members)) == (status, kind)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"resourceOauth2ReturnUrl": None}, "You must provide a ResourceOauth2ReturnUrl"),
        ({"scopes": None}, "'scopes' failed to satisfy"),
        ({"scopes": "read"}, "'scopes' failed to satisfy"),
        ({"oauth2Flow": "CODE"}, "'CODE' at 'oauth2Flow'"),
        ({"sessionUri": "urn:x"}, "'urn:x' at 'sessionUri'"),
        ({"resourceCredentialProviderName": "a b"}, "'a b' at"),
        ({"forceAuthentication": False}, ""),
    ],
)
def test_a_users_flow_needs_all_its_members_on_every_call(
    changes: dict[str, object], says: str
) -> None:
    """The return URL too, also where it polls; what is refused is quoted."""
    with AgentCoreStandIn() as stand_in:
        identity = Identity(stand_in)
        flow = {"workloadIdentityToken": identity.user(), **USER_FLOW, **changes}
        members = {name: value for name, value in flow.items() if value is not None}
        answer = identity.ask("GetResourceOauth2Token", **members)
        assert answer.status == (400 if says else 200)
        assert says in str(answer.json().get("message", ""))


def test_a_machines_workload_token_is_for_no_user() -> None:
    """400; and a session is its user's alone."""
    with AgentCoreStandIn() as stand_in:
        identity = Identity(stand_in)
        machine = {"workloadIdentityToken": identity.machine(), **USER_FLOW}
        assert refused(identity.ask("GetResourceOauth2Token", **machine))[0] == 400
        own = {"workloadIdentityToken": identity.user("u-1"), **USER_FLOW}
        uri = identity.get("GetResourceOauth2Token", **own)["sessionUri"]
        other = {"workloadIdentityToken": identity.user("u-2"), **USER_FLOW, "sessionUri": uri}
        assert refused(identity.ask("GetResourceOauth2Token", **other))[0] == 404


ROWS = [
    ("identity-validation", 400, "ValidationException"),
    ("identity-unauthorized", 401, "UnauthorizedException"),
    ("identity-denied", 403, "AccessDeniedException"),
    ("identity-linked", 403, "AccessDeniedException"),
    ("identity-not-found", 404, "ResourceNotFoundException"),
    ("identity-throttle", 429, "ThrottlingException"),
    ("identity-internal", 500, "InternalServerException"),
]


@pytest.mark.parametrize("operation", sorted(OPERATIONS))
@pytest.mark.parametrize(("name", "status", "kind"), ROWS)
def test_a_row_fails_every_operation_and_quotes_what_it_was_sent(
    name: str, status: int, kind: str, operation: str
) -> None:
    """One attempt long. Only the text about linked identities quotes nothing."""
    with AgentCoreStandIn() as stand_in:
        identity = Identity(stand_in)
        sent = {"workloadIdentityToken": "workload-secret", "userToken": "user-secret"}
        stand_in.script(operation, name)
        answer = identity.ask(operation, **sent)
        assert refused(answer) == (status, kind)
        message = str(answer.json()["message"])
        quotes = name != "identity-linked"
        assert (stand_in.canary in message) == quotes
        assert ("workload-secret" in message) == quotes
        assert ("user-secret" in message) == quotes
        assert stand_in.remaining(operation) == 0
        assert stand_in.journal[0].step is AGENTCORE_ROWS[name]


def test_rows_that_answer_well_say_what_they_say() -> None:
    """Pending, failed, and nothing at all."""
    with AgentCoreStandIn() as stand_in:
        identity = Identity(stand_in)
        stand_in.script(
            "GetResourceOauth2Token",
            "identity-consent-pending",
            "identity-consent-failed",
            "identity-nothing",
        )
        said = [identity.get("GetResourceOauth2Token", sessionUri="urn:mine") for _ in range(3)]
        assert [one.get("sessionStatus") for one in said] == ["IN_PROGRESS", "FAILED", None]
        assert [one.get("sessionUri") for one in said] == ["urn:mine", "urn:mine", None]
        assert stand_in.canary in str(said[0]["authorizationUrl"])
        tested = {row[0] for row in ROWS}
        tested |= {"identity-consent-pending", "identity-consent-failed", "identity-nothing"}
        assert tested == set(IDENTITY_ROWS)
        assert all(isinstance(row, AgentCoreRow) for row in IDENTITY_ROWS.values())


def test_other_steps_serve_the_identity_service_too() -> None:
    """A connection that dies, an answer that takes its time."""
    with AgentCoreStandIn() as stand_in:
        identity = Identity(stand_in)
        stand_in.script("GetWorkloadAccessToken", Reset("before-headers"), Slow(0.01))
        assert identity.ask("GetWorkloadAccessToken", workloadName="agent").data == b""
        assert identity.machine().startswith("workload-")


def test_identity_asks_for_a_signature_also_where_the_runtime_asks_for_a_bearer() -> None:
    """403 without one; GET is no operation."""
    with AgentCoreStandIn(auth="bearer") as stand_in:
        path = OPERATIONS["GetWorkloadAccessToken"].path
        request = McpRequest(headers={}, body=b'{"workloadName":"agent"}')
        assert ask(stand_in, request, path=path).status == 403
        assert Identity(stand_in).machine().startswith("workload-")
        assert ask_signed(stand_in, None, stand_in.origin + path, method="GET").status == 404
