"""B10, D4, D23. What a 401 or 403 says reaches the provider once checked; want of scope helps.

The whole stack is at work here: a challenge is acted upon only where it was read.
"""

from __future__ import annotations

from typing import Any

import httpx2
import pytest

from support.oauth_server import oauth_server
from support.sending import URL, filed, ledger_into, message, post
from surefoot import Gateway, Replay, ToolRule
from surefoot.credentials import (
    Bearer,
    ClientCredentials,
    CommandCredentials,
    CredentialRequest,
    Issued,
    RetryingCredentials,
    SharedCredentials,
    StaticCredentials,
    TransientCredentialError,
)
from surefoot.testing import RecordingSink, Replies, ScriptedTransport
from surefoot.transports import RetryingTransport, VendingTransport

pytestmark = pytest.mark.anyio

RESULT = Replies(result={"content": [], "isError": False})


def lacking(scope: str = "write", *, said: str = "insufficient_scope") -> Replies:
    """A 403 with a challenge."""
    return Replies(403, headers={"www-authenticate": f'Bearer error="{said}", scope="{scope}"'})


class Vault:
    """Vends ``t1``, ``t2``, and so on, and remembers what it was asked."""

    def __init__(self) -> None:
        self.asked: list[CredentialRequest] = []

    async def vend(self, request: CredentialRequest, /) -> Issued:
        """One more."""
        self.asked.append(request)
        return Issued(Bearer(f"token-{len(self.asked)}"))


def protected(family: Any, wire: Any, credentials: Any, **settings: Any) -> Any:
    """A client of the family with a whole stack over a scripted wire."""
    gateway = Gateway(URL, credentials=credentials, **settings)
    return gateway.protect(family.AsyncClient(transport=wire))


async def call(client: Any, tool: str = "search") -> Any:
    """One tool call."""
    asked = message(tool=tool)
    return await client.post(URL, content=asked.body, headers=dict(asked.headers))


async def test_a_missing_scope_is_asked_for_and_the_call_sent_once_more(family: Any) -> None:
    """B10. By the permission of a 401, and recorded as that."""
    vault, sink = Vault(), RecordingSink()
    wire = ScriptedTransport(lacking("read write"), RESULT)
    client = protected(family, wire, vault, scopes=("read",), evidence=sink)
    response = await call(client)
    first, forced = vault.asked
    assert response.json()["result"] == {"content": [], "isError": False}
    assert (first.scopes, first.force, first.challenge) == (("read",), False, None)
    assert (forced.scopes, forced.force) == (("read", "write"), True)
    assert forced.challenge == 'Bearer error="insufficient_scope", scope="read write"'
    assert forced.rejected is not None
    attempts: Any = filed(sink)["attempts"]
    assert [one["status"] for one in attempts] == [403, 200]
    assert attempts[0]["permission"] == {
        "by": "policy",
        "assumes": "auth-rejected-before-execution",
    }


async def test_what_was_granted_is_asked_for_from_then_on(family: Any) -> None:
    """B10. The next call is not rejected first, and forces nothing."""
    vault = Vault()
    wire = ScriptedTransport(lacking(), RESULT, RESULT)
    client = protected(family, wire, vault)
    await call(client)
    await call(client)
    assert [asked.scopes for asked in vault.asked] == [(), ("write",), ("write",)]
    assert [asked.force for asked in vault.asked] == [False, True, False]


async def test_what_was_not_granted_is_not_asked_for_again_by_itself(family: Any) -> None:
    """B10. A server that wants more than was granted fails this call, and not the next."""
    vault = Vault()
    wire = ScriptedTransport(lacking(), lacking(), RESULT)
    client = protected(family, wire, vault)
    assert (await call(client)).status_code in (200, 403)
    assert len(wire.requests) == 2, "one forced vend and one re-send, and no third"
    await call(client)
    assert vault.asked[-1].scopes == ()


DELIVERED = {
    "another error": lacking(said="invalid_token"),
    "no scope is named": Replies(
        403, headers={"www-authenticate": 'Bearer error="insufficient_scope"'}
    ),
    "the scope was asked for": lacking("read"),
    "no challenge": Replies(403),
    "a challenge that leads elsewhere": Replies(
        403,
        headers={
            "www-authenticate": 'Bearer error="insufficient_scope", scope="write", '
            'resource_metadata="http://elsewhere.test/about"'
        },
    ),
    "twice": Replies(
        403,
        headers={"www-authenticate": 'Bearer error="insufficient_scope", scope="a", scope="write"'},
    ),
}


@pytest.mark.parametrize("answer", DELIVERED.values(), ids=DELIVERED)
async def test_any_other_403_is_never_sent_again(family: Any, answer: Replies) -> None:
    """D4, D23. Only want of a scope that is named, checked and new helps."""
    vault = Vault()
    wire = ScriptedTransport(answer, RESULT)
    await call(protected(family, wire, vault, scopes=("read",)))
    assert (len(wire.requests), len(vault.asked)) == (1, 1)


CHANGES = {
    "makes changes": (ToolRule(makes_changes=True), 1),
    "makes changes, repeatable without a key": (
        ToolRule(makes_changes=True, idempotency_key="arguments.key", repeat_on={"network"}),
        1,
    ),
    "repeatable": (ToolRule(repeat_on={"throttle"}), 2),
}


@pytest.mark.parametrize(("rule", "sends"), CHANGES.values(), ids=CHANGES)
async def test_the_permission_is_that_of_a_401(family: Any, rule: ToolRule, sends: int) -> None:
    """D4. Never for a tool that makes changes and may not be repeated."""
    wire = ScriptedTransport(lacking(), RESULT)
    await call(protected(family, wire, Vault(), replay=Replay(tools={"search": rule})))
    assert len(wire.requests) == sends


async def _token(request: CredentialRequest) -> Bearer:
    del request
    return Bearer("token-of-a-function")


PROVIDERS = {
    "static": (lambda: StaticCredentials(Bearer("token-static")), 1),
    "a program": (lambda: CommandCredentials(["printf", "token-printed"]), 1),
    "a program, shared": (
        lambda: SharedCredentials(CommandCredentials(["printf", "token-printed"])),
        1,
    ),
    "a program, asked again": (
        lambda: RetryingCredentials(CommandCredentials(["printf", "token-printed"])),
        1,
    ),
    "a function": (lambda: _token, 2),
    "shared": (lambda: SharedCredentials(Vault()), 2),
}


@pytest.mark.parametrize(("made", "sends"), PROVIDERS.values(), ids=PROVIDERS)
async def test_only_who_can_hand_out_more_is_asked(family: Any, made: Any, sends: int) -> None:
    """B10. Who holds one credential, whatever is asked for, is not asked in vain."""
    wire = ScriptedTransport(lacking(), RESULT)
    await call(protected(family, wire, made()))
    assert len(wire.requests) == sends


async def test_the_challenge_of_a_401_reaches_the_provider_once_checked(family: Any) -> None:
    """B10, D23. As it was rebuilt, without the free text of the server."""
    vault = Vault()
    said = 'Bearer realm="a realm", error="invalid_token", error_description="token-1 is old"'
    wire = ScriptedTransport(Replies(401, headers={"www-authenticate": said}), RESULT)
    await call(protected(family, wire, vault))
    assert [asked.challenge for asked in vault.asked] == [None, 'Bearer error="invalid_token"']


async def test_a_challenge_that_leads_off_the_origin_reaches_nobody(family: Any) -> None:
    """D23. The provider is asked all the same, as the 401 alone asks for it."""
    vault = Vault()
    said = 'Bearer resource_metadata="http://elsewhere.test/about"'
    wire = ScriptedTransport(Replies(401, headers={"www-authenticate": said}), RESULT)
    await call(protected(family, wire, vault))
    assert [asked.challenge for asked in vault.asked] == [None, None]
    assert vault.asked[1].force


async def test_an_unread_answer_has_no_challenge(family: Any) -> None:
    """D23. A series without the layer that reads acts on the status of a 401 alone."""
    for answer, sends in ((lacking(), 1), (Replies(401, headers=lacking().headers), 2)):
        vault = Vault()
        wire = ScriptedTransport(answer, RESULT)
        below = VendingTransport(wire, credentials=vault)
        await post(family, RetryingTransport(below, ledger=ledger_into(RecordingSink())))
        assert len(vault.asked) == sends
        assert vault.asked[-1].challenge is None


async def test_a_failing_issuer_fails_the_call_and_not_the_session(family: Any) -> None:
    """B10. The one call is told that no credential could be had; the next one works."""

    class Failing(Vault):
        async def vend(self, request: CredentialRequest, /) -> Issued:
            if request.scopes:
                reason = "the token endpoint is busy"
                raise TransientCredentialError(reason, service=request.service)
            return await super().vend(request)

    wire = ScriptedTransport(lacking(), RESULT)
    client = protected(family, wire, Failing())
    failed = (await call(client)).json()["result"]
    assert failed["_meta"]["surefoot/outcome"]["kind"] == "credentials-failed"
    assert (await call(client)).json()["result"]["isError"] is False


async def test_client_credentials_step_up_over_the_wire() -> None:
    """B10. The SDK's own grant, a real issuer and a server that wants a scope."""
    with oauth_server(needs_scope="write") as server:
        provider = ClientCredentials(
            server.url, issuer=server.origin, client_id="me", client_secret="the-secret"
        )
        gateway = Gateway(server.url, credentials=provider)
        asked = message()
        async with gateway.protect(httpx2.AsyncClient(trust_env=False)) as client:
            for _ in range(2):
                await client.post(server.url, content=asked.body, headers=dict(asked.headers))
    assert [one.form.get("scope") for one in server.tokens] == [None, "write"]
    assert server.calls == ["Bearer token-1", "Bearer token-2", "Bearer token-2"]


async def test_a_server_that_names_new_scopes_for_every_call_makes_no_vend_grow(
    family: Any,
) -> None:
    """B10, B12. The app's own and the last ones that let a call in are kept, each of them once."""
    vault = Vault()
    steps = [
        step
        for number in range(20)
        for step in (
            lacking(" ".join([f"s{number}-{one}" for one in range(9)] + ["often"])),
            RESULT,
        )
    ]
    client = protected(family, ScriptedTransport(*steps), vault, scopes=("read", "s3-1"))
    for number in range(20):
        assert (await call(client)).json()["result"]["isError"] is False
        # What it lacks it asks for, however much it knows already.
        assert {f"s{number}-{one}" for one in range(9)} <= set(vault.asked[-1].scopes)
    last = vault.asked[-2].scopes  # the first of the last call: what was kept
    assert last[:2] == ("read", "s3-1")
    assert len(last) == len(set(last)) == 2 + 64
    assert {"often", "s18-0", "s18-8"} <= set(last)
    assert "s0-0" not in last
