"""Who the AgentCore stand-in lets in: keys and tokens that are good, now, once, and here."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from urllib.parse import quote

import pytest

from support.rawhttp import ask
from support.sigv4 import ask_signed
from surefoot.testing import AgentCoreStandIn, tool_call

CALL = tool_call("charge", {"amount": 5}, rpc_id=7)


def test_keys_may_come_without_a_token_and_may_expire() -> None:
    """`expired-token` for the old ones, the new ones serve."""
    with AgentCoreStandIn(session_token=False) as stand_in:
        assert stand_in.keys.session_token is None
        assert ask_signed(stand_in, CALL).status == 200
        other = stand_in.issue_keys(session_token=True)
        assert other.session_token is not None
        assert ask_signed(stand_in, CALL, keys=other).status == 200
        stand_in.expire_keys(other)
        refused = ask_signed(stand_in, CALL, keys=other)
        assert refused.values("x-amzn-errortype") == [b"ExpiredTokenException"]
        assert ask_signed(stand_in, CALL).status == 200
        assert stand_in.signature_faults == ("expired-token",)


@pytest.mark.parametrize(
    ("away", "begins"),
    [(-400, "Signature expired: "), (400, "Signature not yet current: ")],
)
def test_a_date_that_is_off_is_refused_in_awss_words(away: int, begins: str) -> None:
    """403; within five minutes it is let in."""
    with AgentCoreStandIn() as stand_in:
        at = datetime.now(UTC) + timedelta(seconds=away)
        answer = ask_signed(stand_in, CALL, at=at)
        assert answer.status == 403
        assert str(answer.json()["message"]).startswith(begins)
        near = datetime.now(UTC) + timedelta(seconds=away / 2)
        assert ask_signed(stand_in, CALL, at=near).status == 200


def test_a_signature_that_comes_twice_is_refused() -> None:
    """With `reuse_after=0` at once; what was refused has run once."""
    at = datetime.now(UTC)
    with AgentCoreStandIn(reuse_after=0) as stand_in:
        assert ask_signed(stand_in, CALL, at=at).status == 200
        again = ask_signed(stand_in, CALL, at=at)
        assert again.values("x-amzn-errortype") == [b"InvalidSignatureException"]
        assert stand_in.signature_faults == ("reused",)
        assert stand_in.executions("charge") == 1
        assert ask_signed(stand_in, CALL, at=at + timedelta(seconds=1)).status == 200


def test_a_bearer_runtime_takes_its_own_tokens_and_no_signature() -> None:
    """401 with a challenge that names the metadata, which is served; 403 for the other kind."""
    with AgentCoreStandIn(auth="bearer") as stand_in:
        path = stand_in.runtime_url.removeprefix(stand_in.origin)
        for token in (None, "bogus"):
            headers = {} if token is None else {"authorization": f"Bearer {token}"}
            answer = ask(stand_in, CALL, path=path, headers=headers)
            assert answer.status == 401
            (challenge,) = answer.values("www-authenticate")
            named = re.fullmatch(rb'Bearer resource_metadata="http://127.0.0.1(.*)"', challenge)
            assert named is not None
            known = ask(stand_in, None, method="GET", path=named[1].decode())
            assert known.status == 200
            assert quote(stand_in.runtime_arn, safe="") in str(known.json()["resource"])
        signed = ask_signed(stand_in, CALL)
        assert (signed.status, b"Authorization method mismatch" in signed.body) == (403, True)
        good = {"authorization": f"Bearer {stand_in.tokens.mint()}"}
        assert ask(stand_in, CALL, path=path, headers=good).status == 200
        at_gateway = tool_call("orders___search")
        refused = ask(stand_in, at_gateway, path="/mcp")
        assert refused.status == 401
        assert b"scope=" in refused.values("www-authenticate")[0]
        metadata = ask(stand_in, None, method="GET", path="/.well-known/oauth-protected-resource")
        assert metadata.json()["resource"] == stand_in.gateway_url
        assert ask(stand_in, at_gateway, path="/mcp", headers=good).status == 200
        assert stand_in.executions("charge") == 1


def test_a_signed_runtime_refuses_a_bearer_token_and_an_open_one_takes_all() -> None:
    """403 with AWS's words; `auth="none"` looks at nothing."""
    headers = {"authorization": "Bearer abc"}
    with AgentCoreStandIn() as stand_in:
        path = stand_in.runtime_url.removeprefix(stand_in.origin)
        refused = ask(stand_in, CALL, path=path, headers=headers)
        assert refused.status == 403
        assert b"Authorization method mismatch" in refused.body
        assert refused.values("www-authenticate") == []
    with AgentCoreStandIn(auth="none") as stand_in:
        path = stand_in.runtime_url.removeprefix(stand_in.origin)
        assert ask(stand_in, CALL, path=path, headers=headers).status == 200
        assert ask(stand_in, CALL, path=path).status == 200
