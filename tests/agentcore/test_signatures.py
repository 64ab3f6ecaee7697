"""R18, R19, R113, B11: what is signed here verifies there, by a verifier that shares no code.

By ARN and by id, through a proxy that rewrites what proxies may, on each attempt of a series, with
and without a session token. Beside each trap stands what falls into it.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from dataclasses import replace
from typing import Any, Final

import pytest

from support.agentcore import aws_of, gateway_of, keys, library, runtime_of
from support.sessions import FAMILY, KINDS, SDK_ON_TRIO, Kind, opened
from surefoot import Retry
from surefoot.agentcore import DEFAULT_RETRY, SigV4Signer
from surefoot.testing import AgentCoreStandIn, FakeClock, RewritingHop, Throttle, tool_call
from surefoot.transports import RetryingTransport

pytestmark = [pytest.mark.both_majors, pytest.mark.anyio, *SDK_ON_TRIO]

UNHURRIED: Final = replace(DEFAULT_RETRY, base_delay=2.0, jitter="none")
"""X-Amz-Date has whole seconds: waits of two make every signature another one."""

HOPS: Final = {"no hop": None, "a rewriting hop": RewritingHop()}


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
@pytest.mark.parametrize("hop", HOPS.values(), ids=HOPS)
@pytest.mark.parametrize("token", [True, False], ids=["with a token", "without"])
@pytest.mark.parametrize("where", ["by ARN", "by id", "gateway"])
@pytest.mark.parametrize("kind", KINDS)
async def test_every_attempt_of_a_series_verifies(
    kind: Kind, where: str, token: bool, hop: RewritingHop | None
) -> None:
    """R18. Each has a signature of its own; GET and DELETE of a session are signed, too."""
    clock = FakeClock()
    tool = "orders___search" if where == "gateway" else "search"
    with AgentCoreStandIn(clock=clock, session_token=token, hop=hop, reuse_after=0.0) as stand_in:
        if where == "gateway":
            made = gateway_of(stand_in, clock=clock, retry=UNHURRIED)
        else:
            made = runtime_of(stand_in, by_id=where == "by id", clock=clock, retry=UNHURRIED)
        async with opened(made.transport(), kind) as session:
            stand_in.script(tool, "busy", "throttle-429", "throttle")
            told = await session.call(tool, {"q": "it"})
            assert told.text == "found it"
        await stand_in.until(lambda: not any(entry.in_flight for entry in stand_in.journal))
        sent = {entry.http_method for entry in stand_in.journal}
        in_session = kind != "modern" and where != "gateway"
        assert sent == ({"POST", "GET", "DELETE"} if in_session else {"POST"})
        assert stand_in.signature_faults == ()
        calls = {entry.header("authorization") for entry in stand_in.requests(tool)}
        assert len(calls) == 4
        assert len(stand_in.signatures) == len(stand_in.journal)
        for made_signature in stand_in.signatures:
            assert made_signature.with_token is token
            assert set(made_signature.signed_headers) <= {
                "content-type", "host", "x-amz-date", "x-amz-security-token", "mcp-method",
                "mcp-name", "mcp-protocol-version", "mcp-session-id",
            }  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
async def test_keys_that_change_under_a_session_are_used_at_once(kind: Kind) -> None:
    """R18. From keys with a token to keys without one: no stale token is sent, or signed."""
    with AgentCoreStandIn() as stand_in:
        plain = stand_in.issue_keys(session_token=False)
        held = [aws_of(stand_in), keys(plain.access_key_id, plain.secret_access_key)]

        class Rotating:
            """Keys as an app hands them out, others each time they are asked for."""

            def get_frozen_credentials(self) -> Any:
                """The next ones; the last ones stay."""
                found = held.pop(0) if len(held) > 1 else held[0]
                return found.get_frozen_credentials()

        async with opened(runtime_of(stand_in, aws=Rotating()).transport(), kind) as session:
            assert (await session.call("search", {"q": "it"})).text == "found it"
        assert stand_in.signature_faults == ()
        assert {one.with_token for one in stand_in.signatures} == {True, False}


async def _posted(stand_in: AgentCoreStandIn, *, auth: Any = None, transport: Any = None) -> int:
    """Post one call with a client of its own."""
    asked = tool_call("search", {"q": "it"})
    async with FAMILY.AsyncClient(auth=auth, transport=transport) as client:
        answer = await client.post(
            stand_in.runtime_url, headers=dict(asked.headers), content=asked.body
        )
    status: int = answer.status_code
    return status


def _flow(sign: Any) -> Any:
    """A signer as an auth flow of a client, where most people put one."""

    class Flow(FAMILY.Auth):
        async def async_auth_flow(self, request: Any) -> AsyncGenerator[Any, Any]:
            await request.aread()
            yield await sign(request)

    return Flow()


async def test_a_signer_above_a_retry_sends_one_signature_again_and_again() -> None:
    """R18. The control of the first test: the trap is real, and the stand-in sees it."""
    clock = FakeClock()
    with AgentCoreStandIn(clock=clock, reuse_after=0.0) as stand_in:
        sign = SigV4Signer(region="us-west-2", aws=aws_of(stand_in), clock=clock)
        stand_in.script("search", Throttle(0))
        retry = Retry(max_attempts=2, base_delay=2.0, jitter="none")
        below = RetryingTransport(retry=retry, clock=clock)
        assert await _posted(stand_in, auth=_flow(sign), transport=below) == 403
        assert stand_in.signature_faults == ("reused",)


async def test_a_signer_that_decodes_the_path_is_not_let_in() -> None:
    """The double-encoding trap: the path of an ARN, as HTTP libraries show it, is another one."""
    with AgentCoreStandIn() as stand_in:

        async def sign(request: Any) -> Any:
            where = f"{request.url.scheme}://{request.headers['host']}{request.url.path}"
            twin = library("botocore.awsrequest").AWSRequest(
                request.method,
                f"{where}?{request.url.query.decode()}",
                {"host": request.headers["host"]},
                data=request.content,
            )
            library("botocore.auth").SigV4Auth(
                aws_of(stand_in), "bedrock-agentcore", "us-west-2"
            ).add_auth(twin)
            for name in ("Authorization", "X-Amz-Date", "X-Amz-Security-Token"):
                request.headers[name] = twin.headers[name]
            return request

        assert await _posted(stand_in, auth=_flow(sign)) == 403
        assert stand_in.signature_faults == ("mismatch",)
        ours = SigV4Signer(region="us-west-2", aws=aws_of(stand_in))
        assert await _posted(stand_in, auth=_flow(ours)) == 200


async def test_a_signature_over_what_proxies_rewrite_does_not_survive_one() -> None:
    """The control of the hop: botocore signs Accept-Encoding and Content-Length if it sees them."""
    with AgentCoreStandIn(hop=RewritingHop()) as stand_in:

        async def sign(request: Any) -> Any:
            twin = library("botocore.awsrequest").AWSRequest(
                request.method, str(request.url), dict(request.headers), data=request.content
            )
            library("botocore.auth").SigV4Auth(
                aws_of(stand_in), "bedrock-agentcore", "us-west-2"
            ).add_auth(twin)
            for name in ("Authorization", "X-Amz-Date", "X-Amz-Security-Token"):
                request.headers[name] = twin.headers[name]
            return request

        assert await _posted(stand_in, auth=_flow(sign)) == 403
        assert stand_in.signature_faults == ("mismatch",)
        ours = SigV4Signer(region="us-west-2", aws=aws_of(stand_in))
        assert await _posted(stand_in, auth=_flow(ours)) == 200
