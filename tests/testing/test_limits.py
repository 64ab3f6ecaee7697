"""Buckets and tokens, which decide before a request is understood."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from support.rawhttp import RawAnswer, ask
from surefoot.testing import (
    ExpiringTokens,
    FaultyGateway,
    McpRequest,
    Status,
    Throttle,
    TokenBucket,
    mcp_request,
    tool_call,
)

CALL = tool_call("charge", rpc_id=7)


class HandClock:
    """Seconds that a test moves."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def __call__(self) -> float:
        return self.seconds


def _as(principal: str, gateway: FaultyGateway) -> RawAnswer:
    return ask(gateway, CALL, headers={"authorization": f"Bearer {principal}"})


def test_a_bucket_refuses_once_it_is_empty_and_fills_at_its_rate() -> None:
    """Whole seconds, rounded up, at least one; nothing runs for a refusal."""
    clock = HandClock()
    bucket = TokenBucket(0.5, 2)
    with FaultyGateway(limit=bucket, clock=clock) as gateway:
        answers = [_as("a", gateway) for _ in range(3)]
        assert [answer.status for answer in answers] == [200, 200, 429]
        assert answers[-1].values("retry-after") == [b"2"]
        clock.seconds = 1.9
        assert _as("a", gateway).values("retry-after") == [b"1"]
        clock.seconds = 2.0
        assert [_as("a", gateway).status for _ in range(2)] == [200, 429]
        clock.seconds = 1000.0
        assert [_as("a", gateway).status for _ in range(3)] == [200, 200, 429]
        assert gateway.executions("charge") == 5
        refusals = [entry for entry in gateway.journal if entry.status == 429]
        assert [entry.step for entry in refusals] == [bucket] * 4


def test_each_principal_has_a_bucket_of_its_own() -> None:
    """One caller's haste does not refuse another."""
    with FaultyGateway(limit=TokenBucket(0.001, 1)) as gateway:
        statuses = [_as(name, gateway).status for name in ("a", "b", "a", "b")]
        assert statuses == [200, 200, 429, 429]
        assert ask(gateway, CALL).status == 200


def test_only_the_named_methods_count_and_none_names_all() -> None:
    """By default the connection itself is not throttled."""
    prompts, tools = mcp_request("prompts/list"), mcp_request("tools/list")
    with FaultyGateway(limit=TokenBucket(0.001, 1)) as gateway:
        assert [ask(gateway, one).status for one in (tools, prompts, CALL, tools, CALL)] == [
            *(200, 200, 200, 200),
            429,
        ]
    with FaultyGateway(limit=TokenBucket(0.001, 1, methods=None)) as gateway:
        assert [ask(gateway, one).status for one in (prompts, tools, CALL)] == [200, 429, 429]


def test_a_refusal_may_be_json_rpc() -> None:
    """Some gateways say it in both ways."""
    with FaultyGateway(limit=TokenBucket(0.001, 1, rpc_code=-32029)) as gateway:
        ask(gateway, CALL)
        answer = ask(gateway, CALL)
    assert answer.status == 429
    assert answer.json()["error"] == {"code": -32029, "message": "Too many requests"}
    assert answer.json()["id"] == 7


def test_a_refusal_by_the_bucket_uses_up_no_step() -> None:
    """A script says what happens to attempts that got past the limit."""
    clock = HandClock()
    with FaultyGateway(limit=TokenBucket(1, 1), clock=clock) as gateway:
        gateway.script("charge", Status(503), Status(500))
        assert ask(gateway, CALL).status == 503
        assert ask(gateway, CALL).status == 429
        assert gateway.remaining("charge") == 1
        clock.seconds = 1
        assert ask(gateway, CALL).status == 500


def test_a_token_is_good_for_its_lifetime_and_not_longer() -> None:
    """Then 401 with a challenge, and nothing runs."""
    clock = HandClock()
    tokens = ExpiringTokens(60)
    with FaultyGateway(tokens=tokens, clock=clock) as gateway:
        first = gateway.tokens.current()
        assert _as(first, gateway).status == 200
        clock.seconds = 59.9
        assert gateway.tokens.current() == first
        assert _as(first, gateway).status == 200
        clock.seconds = 60
        refused = _as(first, gateway)
        assert refused.status == 401
        assert refused.values("www-authenticate") == [b'Bearer error="invalid_token"']
        second = gateway.tokens.current()
        assert second != first
        assert _as(second, gateway).status == 200
        assert gateway.executions("charge") == 3
        assert gateway.tokens.count == 2
        assert gateway.journal[2].step is tokens


@pytest.mark.parametrize(
    "value", [None, "", "Bearer", "Bearer x", "Basic {token}", "{token}", "Bearer {token}x"]
)
def test_whatever_is_no_good_token_is_refused_everywhere(value: str | None) -> None:
    """POST, GET and DELETE alike; the control carries the token."""
    with FaultyGateway(tokens=ExpiringTokens(60)) as gateway:
        gateway.script("charge", Throttle(1))
        token = gateway.tokens.current()
        headers = {} if value is None else {"authorization": value.format(token=token)}
        for method in ("POST", "GET", "DELETE"):
            assert ask(gateway, CALL, method=method, headers=headers).status == 401
        assert gateway.remaining("charge") == 1
        assert ask(gateway, CALL, headers={"authorization": f"bearer {token}"}).status == 429


def test_all_tokens_may_be_revoked_at_once() -> None:
    """Every holder of a good token finds it rejected in the same moment."""
    with FaultyGateway(tokens=ExpiringTokens(60)) as gateway:
        tokens = [gateway.tokens.mint() for _ in range(3)]
        assert all(gateway.tokens.accepts(token) for token in tokens)
        gateway.tokens.revoke_all()
        assert [_as(token, gateway).status for token in tokens] == [401] * 3
        assert _as(gateway.tokens.current(), gateway).status == 200


def test_a_token_endpoint_gives_out_tokens_and_can_fail() -> None:
    """Client credentials in, a bearer token out; the journal has its request too."""
    with FaultyGateway(tokens=ExpiringTokens(59.5, endpoint="/token")) as gateway:
        gateway.script("token", Throttle(1))
        basic = "Basic " + base64.b64encode(b"id:canary").decode()
        form = McpRequest(
            headers={
                "content-type": "application/x-www-form-urlencoded",
                "authorization": basic,
            },
            body=b"grant_type=client_credentials",
        )
        assert ask(gateway, form, path="/token").status == 429
        grant = ask(gateway, form, path="/token").json()
        assert (grant["token_type"], grant["expires_in"]) == ("Bearer", 60)
        assert _as(str(grant["access_token"]), gateway).status == 200
        refused = _as("old", gateway)
        assert gateway.received(basic)
        assert not gateway.received("canary")
        known = ask(gateway, method="GET", path="/.well-known/oauth-protected-resource/mcp").json()
        assert known["resource"] == gateway.url
        assert known["token_endpoint"] == gateway.origin + "/token"
        (challenge,) = refused.values("www-authenticate")
        assert f'resource_metadata="{gateway.origin}/.well-known'.encode() in challenge


def test_without_tokens_there_is_nothing_to_ask_for() -> None:
    """The error says how to get what was asked for."""
    with FaultyGateway() as gateway:
        with pytest.raises(RuntimeError, match="tokens=ExpiringTokens"):
            _ = gateway.tokens
        assert (
            ask(gateway, method="GET", path="/.well-known/oauth-protected-resource").status == 404
        )


def test_a_mint_does_not_show_its_tokens() -> None:
    """Its repr counts them."""
    with FaultyGateway(tokens=ExpiringTokens(60)) as gateway:
        token = gateway.tokens.current()
        assert token not in repr(gateway.tokens)
        assert token not in repr(vars(gateway))
        assert repr(gateway.tokens) == "<TokenMint, 1 minted>"


@pytest.mark.parametrize(
    ("kind", "args", "options", "error", "names"),
    [
        (TokenBucket, (0, 1), {}, ValueError, "rate"),
        (TokenBucket, (True, 1), {}, TypeError, "rate"),
        (TokenBucket, (1, 0), {}, ValueError, "burst"),
        (TokenBucket, (1, 1.5), {}, TypeError, "burst"),
        (ExpiringTokens, (0,), {}, ValueError, "lifetime"),
        (ExpiringTokens, (float("nan"),), {}, ValueError, "lifetime"),
        (ExpiringTokens, (1,), {"endpoint": "token"}, ValueError, "endpoint"),
    ],
)
def test_a_limit_that_cannot_mean_anything_is_refused(
    kind: Any, args: Any, options: dict[str, Any], error: type[Exception], names: str
) -> None:
    """The error names the option."""
    with pytest.raises(error, match=names):
        kind(*args, **options)
