"""AWS's own client against the AgentCore stand-in, and the stand-in against AWS's own model.

botocore knows nothing of the stand-in's verifier, and the verifier nothing of botocore.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.hand_clock import HandClock
from surefoot.testing import (
    AGENTCORE_ROWS,
    AgentCoreRow,
    AgentCoreStandIn,
    McpRequest,
    RewritingHop,
    SignatureRefusedError,
    SigV4Keys,
    SigV4Verifier,
    mcp_request,
    tool_call,
)
from surefoot.testing import _agentcore as room
from surefoot.testing._agentcore_identity_rows import OPERATIONS
from surefoot.testing._wire import lines_from

boto3 = pytest.importorskip("boto3", reason="the extra agentcore is not installed")
auth = pytest.importorskip("botocore.auth")
awsrequest = pytest.importorskip("botocore.awsrequest")
config = pytest.importorskip("botocore.config")
credentials = pytest.importorskip("botocore.credentials")
exceptions = pytest.importorskip("botocore.exceptions")

REGION = "us-west-2"
SERVICE = "bedrock-agentcore"
AWS: Any = boto3.session.Session()  # one for all: it reads the service model once


def client_of(stand_in: AgentCoreStandIn, *, attempts: int = 1) -> Any:
    """boto3's client, pointed at the stand-in."""
    keys = stand_in.keys
    return AWS.client(
        SERVICE,
        endpoint_url=stand_in.origin,
        region_name=REGION,
        aws_access_key_id=keys.access_key_id,
        aws_secret_access_key=keys.secret_access_key,
        aws_session_token=keys.session_token,
        config=config.Config(retries={"total_max_attempts": attempts, "mode": "standard"}),
    )


def signed_by_botocore(
    stand_in: AgentCoreStandIn, request: McpRequest | None, url: str, *, method: str = "POST"
) -> httpx.Request:
    """A request of httpx whose small set of headers botocore has signed."""
    keys = stand_in.keys
    body = b"" if request is None else request.body
    headers = {} if request is None else dict(request.headers)
    small = {name: value for name, value in headers.items() if name != "accept"}
    made = awsrequest.AWSRequest(method=method, url=url, data=body, headers=small)
    given = credentials.Credentials(keys.access_key_id, keys.secret_access_key, keys.session_token)
    auth.SigV4Auth(given, SERVICE, REGION).add_auth(made)
    return httpx.Request(method, url, headers={**headers, **dict(made.headers)}, content=body)


@pytest.mark.parametrize("session_token", [True, False], ids=["token", "no-token"])
@pytest.mark.parametrize("hop", [None, RewritingHop()], ids=["direct", "hop"])
def test_what_botocore_signs_is_let_in(hop: RewritingHop | None, session_token: bool) -> None:
    """At both addresses of the runtime and at the gateway; GET and DELETE too."""
    with (
        AgentCoreStandIn(hop=hop, session_token=session_token) as stand_in,
        httpx.Client(trust_env=False) as http,
    ):
        for url, tool in (
            (stand_in.runtime_url, "search"),
            (stand_in.runtime_id_url, "search"),
            (stand_in.gateway_url, "orders___search"),
        ):
            sent = signed_by_botocore(stand_in, tool_call(tool, {"q": 1}), url)
            assert "found 1" in http.send(sent).text
        for method in ("GET", "DELETE"):
            sent = signed_by_botocore(stand_in, None, stand_in.runtime_url, method=method)
            assert http.send(sent).status_code == 405
        assert stand_in.signature_faults == ()
        assert [made.with_token for made in stand_in.signatures] == [session_token] * 5


@given(
    segments=st.lists(st.text(min_size=1, max_size=12), max_size=4),
    pairs=st.lists(st.tuples(st.text(max_size=8), st.text(max_size=8)), max_size=4),
    value=st.text(st.characters(min_codepoint=0x20, max_codepoint=0x7E), max_size=30),
    body=st.binary(max_size=40),
    token=st.none() | st.just("token/+=="),
    changed=st.booleans(),
)
def test_botocore_and_the_verifier_agree_on_whatever_is_sent(
    *,
    segments: list[str],
    pairs: list[tuple[str, str]],
    value: str,
    body: bytes,
    token: str | None,
    changed: bool,
) -> None:
    """And on nothing else: one byte more in the body, and it is refused."""
    keys = SigV4Keys("AKIATEST", "secret", token)
    path = "/".join(quote(segment, safe="") for segment in ["", "runtimes", *segments])
    query = "&".join(f"{quote(name, safe='')}={quote(text, safe='')}" for name, text in pairs)
    target = f"{path}?{query}" if query else path
    headers = {"host": "127.0.0.1", "content-type": "application/json", "mcp-name": value}
    made = awsrequest.AWSRequest(
        method="POST", url=f"http://127.0.0.1{target}", data=body, headers=dict(headers)
    )
    auth.SigV4Auth(
        credentials.Credentials(keys.access_key_id, keys.secret_access_key, token), SERVICE, REGION
    ).add_auth(made)
    lines = [(name.lower().encode(), text.encode()) for name, text in made.headers.items()]
    verifier, now = SigV4Verifier({keys.access_key_id: keys}), datetime.now(UTC)
    if not changed:
        seen = verifier.verify("POST", target, lines, body, now=now)
        assert seen.with_token == (token is not None)
        return
    with pytest.raises(SignatureRefusedError) as caught:
        verifier.verify("POST", target, lines, body + b" ", now=now)
    assert caught.value.fault == "mismatch"


def test_what_botocore_signs_of_a_line_that_the_hop_rewrites_is_not_let_in() -> None:
    """boto3 signs Accept; the control is the same call without the hop."""
    call = tool_call("search")
    members = {
        "contentType": "application/json",
        "accept": "application/json, text/event-stream",
        "mcpProtocolVersion": "2026-07-28",
        "mcpMethod": "tools/call",
        "mcpName": "search",
        "payload": call.body,
    }
    with AgentCoreStandIn() as stand_in:
        given = client_of(stand_in).invoke_agent_runtime(
            agentRuntimeArn=stand_in.runtime_arn, qualifier="DEFAULT", **members
        )
        assert json.loads(given["response"].read())["result"]["isError"] is False
        assert given["mcpSessionId"]
    with AgentCoreStandIn(hop=RewritingHop()) as stand_in:
        with pytest.raises(exceptions.ClientError, match="request signature we calculated"):
            client_of(stand_in).invoke_agent_runtime(
                agentRuntimeArn=stand_in.runtime_arn, qualifier="DEFAULT", **members
            )
        assert stand_in.signature_faults == ("mismatch",)


def test_boto3_gets_a_machines_token_and_key() -> None:
    """GetWorkloadAccessToken, GetResourceOauth2Token (M2M), GetResourceApiKey."""
    with AgentCoreStandIn() as stand_in:
        client = client_of(stand_in)
        token = client.get_workload_access_token(workloadName="agent")["workloadAccessToken"]
        given = client.get_resource_oauth2_token(
            workloadIdentityToken=token,
            resourceCredentialProviderName="calendar",
            scopes=[],
            oauth2Flow="M2M",
        )
        assert stand_in.tokens.accepts(given["accessToken"])
        key = client.get_resource_api_key(
            workloadIdentityToken=token, resourceCredentialProviderName="calendar"
        )
        assert key["apiKey"] == stand_in.api_key


@pytest.mark.parametrize("granted", [True, False])
def test_boto3_goes_through_a_users_consent(granted: bool) -> None:
    """IN_PROGRESS while it is open, then a token or FAILED."""
    with AgentCoreStandIn() as stand_in:
        client = client_of(stand_in)
        token = client.get_workload_access_token_for_user_id(workloadName="agent", userId="u-1")
        flow = {
            "workloadIdentityToken": token["workloadAccessToken"],
            "resourceCredentialProviderName": "calendar",
            "scopes": ["read"],
            "oauth2Flow": "USER_FEDERATION",
            "resourceOauth2ReturnUrl": "https://app.example/back",
        }
        asked = client.get_resource_oauth2_token(**flow)
        assert asked["sessionStatus"] == "IN_PROGRESS"
        assert asked["authorizationUrl"].startswith("https://")
        if granted:
            client.complete_resource_token_auth(
                userIdentifier={"userId": "u-1"}, sessionUri=asked["sessionUri"]
            )
        else:
            stand_in.settle_consents(granted=False)
        ended = client.get_resource_oauth2_token(**flow, sessionUri=asked["sessionUri"])
        assert ("accessToken" in ended) == granted
        assert ended.get("sessionStatus") == (None if granted else "FAILED")


def test_boto3s_own_repeats_are_signed_afresh_and_counted() -> None:
    """Its failures are typed, and its error text quotes what the row quotes."""
    with AgentCoreStandIn() as stand_in:
        stand_in.script("GetWorkloadAccessToken", "identity-throttle", "identity-throttle")
        given = client_of(stand_in, attempts=3).get_workload_access_token(workloadName="agent")
        assert given["workloadAccessToken"]
        assert [entry.status for entry in stand_in.journal] == [429, 429, 200]
        stand_in.script("GetWorkloadAccessToken", "identity-denied")
        client = client_of(stand_in)
        with pytest.raises(client.exceptions.AccessDeniedException) as caught:
            client.get_workload_access_token(workloadName="agent")
        assert str(stand_in.keys.session_token) in str(caught.value)
        assert stand_in.signature_faults == ()


def test_boto3s_expired_and_unknown_keys_are_told_apart() -> None:
    """As types of AWS."""
    with AgentCoreStandIn() as stand_in, AgentCoreStandIn() as other:
        stand_in.expire_keys(stand_in.keys)
        with pytest.raises(exceptions.ClientError, match="ExpiredTokenException"):
            client_of(stand_in).get_workload_access_token(workloadName="agent")
        stranger = AWS.client(
            SERVICE,
            endpoint_url=stand_in.origin,
            region_name=REGION,
            aws_access_key_id=other.keys.access_key_id,
            aws_secret_access_key=other.keys.secret_access_key,
        )
        with pytest.raises(exceptions.ClientError, match="UnrecognizedClientException"):
            stranger.get_workload_access_token(workloadName="agent")
        assert stand_in.signature_faults == ("expired-token", "unknown-key")


@pytest.fixture(scope="module")
def model() -> Any:
    """The service model that botocore carries."""
    session = pytest.importorskip("botocore.session").get_session()
    return session.get_service_model(SERVICE)


@pytest.mark.parametrize("name", sorted(OPERATIONS))
def test_each_operation_has_the_path_and_the_members_of_awss_model(name: str, model: Any) -> None:
    """And no member is asked for that AWS does not ask for."""
    mine, theirs = OPERATIONS[name], model.operation_model(name)
    assert (theirs.http["method"], theirs.http["requestUri"]) == ("POST", mine.path)
    assert set(theirs.input_shape.required_members) == set(mine.required)


OUTPUTS: list[tuple[str, Callable[[Any], set[str]]]] = [
    ("GetWorkloadAccessToken", lambda _: {"workloadAccessToken"}),
    ("GetResourceApiKey", lambda _: {"apiKey"}),
    (
        "GetResourceOauth2Token",
        lambda _: {"accessToken", "authorizationUrl", "sessionUri", "sessionStatus"},
    ),
    ("CompleteResourceTokenAuth", lambda _: set()),
]


@pytest.mark.parametrize(("name", "members"), OUTPUTS)
def test_each_answer_has_the_members_of_awss_model(
    name: str, members: Callable[[Any], set[str]], model: Any
) -> None:
    """All that the stand-in ever sends, and AWS has no other."""
    assert set(model.operation_model(name).output_shape.members) == members(model)


NOT_IN_MODEL = {
    "InvalidSignatureException",
    "IncompleteSignatureException",
    "MissingAuthenticationTokenException",
    "ExpiredTokenException",
    "UnrecognizedClientException",
    "ToolExecutionError",
}
"""Types of the AWS front end, and one of a gateway's targets."""


@pytest.mark.parametrize("surface", ["runtime", "identity"])
def test_each_typed_row_has_the_status_that_awss_model_gives_the_type(
    surface: str, model: Any
) -> None:
    """On the operation that the row answers."""
    names = (
        sorted(OPERATIONS)
        if surface == "identity"
        else ["InvokeAgentRuntime", "StopRuntimeSession"]
    )
    known = {
        shape.name: shape.metadata["error"]["httpStatusCode"]
        for name in names
        for shape in model.operation_model(name).error_shapes
    }
    seen = 0
    for row in AGENTCORE_ROWS.values():
        if not isinstance(row, AgentCoreRow) or callable(row.headers):
            continue
        if row.name.startswith("identity-") != (surface == "identity"):
            continue
        for line, value in lines_from(row.headers):
            kind = value.decode().partition(":")[0]
            if line == b"x-amzn-errortype" and kind not in NOT_IN_MODEL:
                assert known[kind] == row.status, row.name
                seen += 1
    assert seen >= 6


def test_a_request_that_names_a_wrong_time_is_refused_though_botocore_signed_it() -> None:
    """The verifier goes by its own clock."""
    with AgentCoreStandIn(clock=HandClock(datetime(2031, 1, 1, tzinfo=UTC))) as stand_in:
        sent = signed_by_botocore(stand_in, mcp_request("ping"), stand_in.runtime_url)
        with httpx.Client(trust_env=False) as http:
            assert http.send(sent).json()["message"].startswith("Signature expired")


def test_nothing_of_the_stand_in_imports_botocore() -> None:
    """The verifier is of its own mind, and the double works without the extra."""
    folder = Path(str(room.__file__)).parent
    files = sorted(folder.glob("_agentcore*.py"))
    assert len(files) >= 12
    for file in files:
        lines = file.read_text("utf-8").splitlines()
        imports = [line for line in lines if line.strip().startswith(("import ", "from "))]
        assert imports
        assert not [line for line in imports if "boto" in line], file.name
