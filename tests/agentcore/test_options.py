"""R71, R72: every option of the room that cannot mean anything is refused when it is built.

By its name, with the rule and the way out, as a ``TypeError`` for a wrong type and a ``ValueError``
for a wrong value, and never with what was given: it may be a secret in the wrong place.
"""

from __future__ import annotations

import re
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

import pytest

from support.agentcore import ARN, KEYS
from surefoot import Bearer, Gateway, agentcore
from surefoot.testing import FakeClock

CANARY: Final = "canary-5f1e"
URL: Final = "https://gw-1.gateway.bedrock-agentcore.us-west-2.amazonaws.com/mcp"
SESSION: Final = "X-Amzn-Bedrock-AgentCore-Runtime-Session-Id"


class Deaf:
    """No clock, and no session of AWS; its repr is the canary."""

    def __repr__(self) -> str:
        return CANARY


async def a_coroutine_function() -> str:
    """An async function."""
    return CANARY


def _runtime(**options: Any) -> Gateway:
    given: dict[str, Any] = {"agent": ARN, "aws": KEYS, **options}
    return agentcore.runtime(**given)


def _gateway(**options: Any) -> Gateway:
    given: dict[str, Any] = {"url": URL, "aws": KEYS, **options}
    return agentcore.gateway(**given)


def _signer(**options: Any) -> object:
    given: dict[str, Any] = {"region": "us-west-2", "aws": KEYS, **options}
    return agentcore.SigV4Signer(**given)


def _identity(**options: Any) -> object:
    given: dict[str, Any] = {"region": "us-west-2", "workload_name": "agent", **options}
    return agentcore.AgentCoreIdentity(**given)


OF_BOTH_DOORS: Final[list[tuple[str, Any, type[Exception], str]]] = [
    ("region", Deaf(), TypeError, "must be a str such as us-west-2"),
    ("region", CANARY, ValueError, "must be one such as us-west-2"),
    ("aws", Deaf(), TypeError, "must be a botocore or boto3 session"),
    ("aws", CANARY, TypeError, "must be a botocore or boto3 session"),
    ("name", Deaf(), TypeError, "must be a str of 1 to 128 characters"),
    ("name", "", ValueError, "must have 1 to 128 characters"),
    ("service", Deaf(), TypeError, "must be a non-empty str"),
    ("service", "", ValueError, "must be a non-empty str"),
    ("scopes", CANARY, TypeError, "must be a sequence of str"),
    ("scopes", [Deaf()], TypeError, "must be a sequence of str"),
    ("mode", Deaf(), TypeError, 'must be "machine" or "user"'),
    ("mode", CANARY, ValueError, 'must be "machine" or "user"'),
    ("headers", CANARY, TypeError, "must be a mapping of str to str"),
    ("headers", {"x-trace": Deaf()}, TypeError, "must be a mapping of str to str"),
    ("headers", {SESSION: Deaf()}, TypeError, "must be a mapping of str to str"),
    ("headers", {Deaf(): "x"}, TypeError, "must be a mapping of str to str"),
    ("headers", {"Authorization": CANARY}, ValueError, "authorization is a credential"),
    ("retry", CANARY, TypeError, "must be a Retry, or None"),
    ("replay", CANARY, TypeError, "must be a Replay, or None"),
    ("answers", Deaf(), TypeError, 'must be "checked" or "strict"'),
    ("answers", CANARY, ValueError, 'must be "checked" or "strict"'),
    ("caller_timeout", CANARY, TypeError, "must be seconds, or None"),
    ("caller_timeout", 0, ValueError, "must be above 0"),
    ("on_authorization", CANARY, TypeError, "must be a callable"),
    ("evidence", Deaf(), TypeError, "must be a path, a sink"),
    ("clock", Deaf(), TypeError, "must be a Clock"),
    ("draw", Deaf(), TypeError, "must be a function"),
]

OF_RUNTIME: Final[list[tuple[str, Any, type[Exception], str]]] = [
    ("agent", Deaf(), TypeError, "must be a str: a runtime's ARN, or its id"),
    ("agent", "", ValueError, "must be a runtime's ARN, or its id such as orders-Ab12"),
    ("account_id", Deaf(), TypeError, "must be a str of 12 digits, or None"),
    ("account_id", [CANARY], TypeError, "must be a str of 12 digits, or None"),
    ("account_id", CANARY, ValueError, "contradicts the ARN; leave it out"),
    ("qualifier", Deaf(), TypeError, "must be the name of a runtime's endpoint"),
    ("qualifier", None, TypeError, "must be the name of a runtime's endpoint"),
    ("qualifier", f"{CANARY}&", ValueError, "must be the name of a runtime's endpoint"),
    ("endpoint", Deaf(), TypeError, "must be a str such as https://vpce-1.example.com, or None"),
    ("endpoint", "", ValueError, "must be an origin such as https://vpce-1.example.com"),
    ("headers", {SESSION: CANARY}, ValueError, "must have 33 to 256 characters"),
    ("headers", {SESSION.lower(): "x" * 32}, ValueError, "must have 33 to 256 characters"),
    ("headers", {SESSION.upper(): "x" * 257}, ValueError, "must have 33 to 256 characters"),
]

OF_GATEWAY: Final[list[tuple[str, Any, type[Exception], str]]] = [
    ("url", Deaf(), TypeError, "must be a str such as https://gateway.example.com/mcp"),
    ("url", "", ValueError, "must be http or https"),
]

OF_SIGNER: Final[list[tuple[str, Any, type[Exception], str]]] = [
    ("region", None, TypeError, "must be a str such as us-west-2"),
    ("region", CANARY, ValueError, "must be one such as us-west-2"),
    ("service", Deaf(), TypeError, "must be a str: a signing name such as bedrock-agentcore"),
    ("service", "", ValueError, "must be a signing name such as bedrock-agentcore"),
    ("service", f"{CANARY}\n", ValueError, "must be a signing name such as bedrock-agentcore"),
    ("aws", CANARY, TypeError, "must be a botocore or boto3 session"),
    ("clock", Deaf(), TypeError, "must be a Clock"),
]

OF_IDENTITY: Final[list[tuple[str, Any, type[Exception], str]]] = [
    ("region", Deaf(), TypeError, "must be a str such as us-west-2"),
    ("region", CANARY, ValueError, "must be one such as us-west-2"),
    ("workload_name", Deaf(), TypeError, "must be a str, or None"),
    ("workload_name", "", ValueError, "must not be empty; leave it out"),
    ("workload_name", None, ValueError, "is needed, unless workload_token= is given"),
    ("provider", Deaf(), TypeError, "must be a str, or None"),
    ("provider", "", ValueError, "must not be empty; leave it out"),
    ("kind", Deaf(), TypeError, "must be one of oauth2, api-key"),
    ("kind", [CANARY], TypeError, "must be one of oauth2, api-key"),
    ("kind", CANARY, ValueError, "must be one of oauth2, api-key"),
    ("flow", Deaf(), TypeError, "must be one of M2M, USER_FEDERATION"),
    ("flow", CANARY, ValueError, "must be one of M2M, USER_FEDERATION"),
    ("return_url", Deaf(), TypeError, "must be a str such as https://app.example.com/done"),
    ("return_url", "", ValueError, "must be a whole URL such as https://app.example.com/done"),
    ("return_url", f"/{CANARY}", ValueError, "must be a whole URL such as"),
    ("return_url", f"https://a.example/{CANARY}\n", ValueError, "must be a whole URL such as"),
    ("api_key_header", Deaf(), TypeError, "must be a str such as x-api-key"),
    ("api_key_header", "", ValueError, "must be an HTTP token"),
    ("api_key_header", f"{CANARY} x", ValueError, "must be an HTTP token"),
    ("workload_token", CANARY, TypeError, "must be a function that returns the token"),
    ("workload_token", a_coroutine_function, TypeError, "must be a plain function"),
    ("parameters", CANARY, TypeError, "must be a mapping of str to str such as"),
    ("parameters", [("prompt", CANARY)], TypeError, "must be a mapping of str to str such as"),
    ("parameters", {"prompt": Deaf()}, TypeError, "must be a mapping of str to str such as"),
    ("parameters", {Deaf(): "login"}, TypeError, "must be a mapping of str to str such as"),
    ("aws", CANARY, TypeError, "must be a boto3 session, or None"),
    ("endpoint", Deaf(), TypeError, "must be a str such as https://vpce-1.example.com, or None"),
    ("endpoint", CANARY, ValueError, "must be an origin such as https://vpce-1.example.com"),
    ("endpoint", f"http://{CANARY}.example", ValueError, "must be https"),
    ("timeout", CANARY, TypeError, "must be a number of seconds"),
    ("timeout", True, TypeError, "must be a number of seconds"),
    ("timeout", 0, ValueError, "must be above 0 and finite"),
    ("timeout", float("nan"), ValueError, "must be above 0 and finite"),
    ("timeout", 10**400, ValueError, "must be above 0 and finite"),
    ("clock", Deaf(), TypeError, "must be a Clock"),
]

EVERY: Final = [
    *((_runtime, *row) for row in (*OF_BOTH_DOORS, *OF_RUNTIME)),
    *((_gateway, *row) for row in (*OF_BOTH_DOORS, *OF_GATEWAY)),
    *((_signer, *row) for row in OF_SIGNER),
    *((_identity, *row) for row in OF_IDENTITY),
]


@pytest.mark.parametrize(
    ("builds", "option", "value", "kind", "says"),
    EVERY,
    ids=[f"{row[0].__name__[1:]}-{row[1]}-{number}" for number, row in enumerate(EVERY)],
)
def test_an_option_that_means_nothing_is_refused_by_its_name(
    builds: Any, option: str, value: object, *, kind: type[Exception], says: str
) -> None:
    """R71, R72."""
    with pytest.raises(kind, match=f"^{option}: .*{re.escape(says)}") as caught:
        builds(**{option: value})
    assert type(caught.value) is kind
    assert CANARY not in str(caught.value)


@pytest.mark.parametrize("builds", [_runtime, _gateway])
def test_keys_that_would_sign_nothing_are_refused(builds: Any) -> None:
    """R71. What vends and what signs are two ways in: one would be left out in silence."""
    with pytest.raises(ValueError, match=r"^aws: with credentials= nothing is signed"):
        builds(credentials=Bearer(CANARY))
    builds(credentials=Bearer(CANARY), aws=None)


def test_what_means_something_is_taken() -> None:
    """The control: each option of the tables with a value that it may have."""
    clock = FakeClock()
    shared = {"name": "tools", "service": "s", "scopes": ["a"], "mode": "user", "retry": None}
    more = {
        "answers": "checked",
        "caller_timeout": 3,
        "clock": clock,
        "headers": {SESSION: "x" * 33},
    }
    of_the_region = _runtime(
        account_id="123456789012", qualifier="v_2", region="us-west-2", **shared, **more
    )
    assert urlsplit(of_the_region.url).hostname == "bedrock-agentcore.us-west-2.amazonaws.com"
    assert parse_qs(urlsplit(of_the_region.url).query)["qualifier"] == ["v_2"]
    named = _runtime(headers={SESSION: "x" * 256})
    assert urlsplit(named.url).hostname == urlsplit(of_the_region.url).hostname
    private = _runtime(endpoint="https://vpce-1.example.com:8443/")
    assert private.url.startswith("https://vpce-1.example.com:8443/runtimes/")
    assert _gateway(region="us-west-2", **shared, **more).url == URL
    _signer(service="execute-api", clock=clock)
    for return_url in (None, "https://app.example.com/done", "com.example.app:/done"):
        _identity(return_url=return_url, parameters={"prompt": "login"}, clock=clock)
    _identity(workload_name=None, workload_token=lambda: None, kind="api-key", provider="p")
    _identity(flow="M2M", timeout=3, api_key_header="X-Key", endpoint="http://127.0.0.1:1")


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("given", "kind", "says"),
    [
        ({"session_uri": Deaf(), "user_id": CANARY}, TypeError, "session_uri: must be a str"),
        ({"session_uri": "", "user_id": CANARY}, ValueError, "session_uri: must not be empty"),
        ({"session_uri": "urn:x", "user_id": Deaf()}, TypeError, "user_id: must be a str"),
        ({"session_uri": "urn:x", "user_id": ""}, ValueError, "user_id: must not be empty"),
        ({"session_uri": "urn:x", "user_token": Deaf()}, TypeError, "user_token: must be a str"),
        ({"session_uri": "urn:x", "user_token": ""}, ValueError, "user_token: must not be empty"),
        ({"session_uri": "urn:x"}, TypeError, "takes exactly one of user_token and user_id"),
    ],
    ids=range(7),
)
async def test_a_consent_is_completed_with_texts_alone(
    given: dict[str, Any], kind: type[Exception], says: str
) -> None:
    """R71, R72. At once, and not in the words of the SDK after a thread was asked."""
    identity: Any = _identity()
    with pytest.raises(kind, match=re.escape(says)) as caught:
        await identity.complete(**given)
    assert CANARY not in str(caught.value)
