"""B9. Twenty callers live through tokens of half a second: no call fails, no refresh is wasted."""

from __future__ import annotations

import time
from collections import Counter

import anyio
import mcp.client.auth.oauth2 as sdk
import pytest

from support.oauth_server import OAuthServer, oauth_server
from surefoot.credentials import ClientCredentials, CredentialRequest, Issued

pytestmark = [pytest.mark.anyio, pytest.mark.slow]

http = vars(sdk).get("httpx2") or vars(sdk)["httpx"]


@pytest.mark.unmeasured
@pytest.mark.parametrize(
    ("stated", "seconds"), [(0.5, 8.0), (None, 3.0)], ids=["life stated", "life not stated"]
)
async def test_no_call_fails_while_tokens_rotate(stated: float | None, seconds: float) -> None:
    """B9. Whether the issuer says how long they live, or lets the 401 say it."""
    with oauth_server(life=0.5, expire=True) as server:
        server.states_life = stated is not None
        statuses = await _live(server, callers=20, seconds=seconds)
        answered, issued = statuses[200], len(server.tokens)
        used = {value for value in server.calls if value is not None}
        assert statuses == {200: answered}
        assert answered > 40
        assert issued >= seconds
        assert issued <= seconds / 0.4 + 2, "one for each generation"
        assert {f"Bearer token-{number}" for number in range(1, issued)} <= used, "none was wasted"


async def _live(server: OAuthServer, *, callers: int, seconds: float) -> Counter[int]:
    """How often each status came to a caller in the end."""
    provider = ClientCredentials(
        server.url, issuer=server.origin, client_id="me", client_secret="CANARY-secret"
    )
    ended: Counter[int] = Counter()
    seen: dict[object, float] = {}
    until = time.monotonic() + seconds

    async def sent(issued: Issued) -> int:
        response = await client.post(server.url, headers=list(issued.lines()), content=b"{}")
        issued.generation.accepted = response.status_code != 401
        return int(response.status_code)

    def died_here(issued: Issued) -> bool:
        """Whether the token was as old as its life when it was answered: a machine that stood."""
        return time.monotonic() - seen[issued.generation] > 0.4

    async def one() -> None:
        while time.monotonic() < until:
            issued = await provider.vend(CredentialRequest())
            assert isinstance(issued, Issued)
            seen.setdefault(issued.generation, time.monotonic())
            status = await sent(issued)
            if status == 401:
                forced = CredentialRequest(force=True, rejected=issued.generation)
                issued = await provider.vend(forced)
                assert isinstance(issued, Issued)
                seen.setdefault(issued.generation, time.monotonic())
                status = await sent(issued)
                if status == 401 and not server.states_life and died_here(issued):
                    continue  # nobody could have known it
            ended[status] += 1
            await anyio.sleep(0.25)  # a busy machine must not be what a token dies of

    async with http.AsyncClient(timeout=30) as client:
        with anyio.fail_after(seconds + 20):
            async with anyio.create_task_group() as group:
                for _ in range(callers):
                    group.start_soon(one)
    return ended
