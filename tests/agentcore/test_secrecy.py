"""R107 to R109, R119, B7: however a signed call ends, its keys and its session token are nowhere.

Neither what the client reads nor a log, an error, an event, a task or an object shows them.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import anyio
import pytest

from support.agentcore import aws_of, gateway_of, runtime_of
from support.sessions import FAMILY, KINDS, SDK_ON_TRIO, opened
from surefoot.errors import CredentialError
from surefoot.sinks import record
from surefoot.testing import AgentCoreStandIn, FakeClock, SecretAudit, Slow, Step

pytestmark = [pytest.mark.unmeasured, pytest.mark.both_majors, pytest.mark.anyio, *SDK_ON_TRIO]

ENDS: Final[dict[str, tuple[Step | str, ...]]] = {
    "a result": ("busy", "throttle-429"),
    "a refusal that lasts": ("busy",) * 10,
    "a refused signature": ("incomplete-signature",),
    "a failure that quotes the request": ("internal-500",),
    "a page that quotes the request": ("bad-gateway-502",),
    "an error that quotes the request": ("error-data",),
    "a text that quotes the request": ("unknown-message",),
    "no answer": ("reset-after",),
    "half an event": ("sse-dropped",),
    "an answer that cannot be read": ("duplicate-keys",),
}


def secrets_of(stand_in: AgentCoreStandIn) -> list[str]:
    """The two that nobody may see."""
    token = stand_in.keys.session_token
    assert token is not None
    return [token, stand_in.keys.secret_access_key]


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
@pytest.mark.parametrize("steps", ENDS.values(), ids=ENDS)
async def test_no_end_of_a_call_shows_a_key(steps: tuple[Step | str, ...], tmp_path: Path) -> None:
    """R107 to R109, B7. Invariant 11, for a signer."""
    evidence, clock = tmp_path / "run.jsonl", FakeClock()
    with AgentCoreStandIn(clock=clock) as stand_in:
        with SecretAudit(secrets_of(stand_in), files=[evidence]) as audit:
            with record(evidence):
                made = runtime_of(stand_in, clock=clock)
                async with opened(made.transport(), KINDS[0]) as session:
                    stand_in.script("search", *steps)
                    told = await session.call("search", {"q": "it"})
            audit.add("model", told.text)
            audit.add("client", told.raw)
            audit.add("gateway", made)
        assert audit.looked["files"] > 0
        assert audit.looked["objects"] > 0


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_a_call_that_is_cut_shows_none_either(tmp_path: Path) -> None:
    """R108, R121. A cancellation passes without the frames that hold the signed request."""
    evidence = tmp_path / "run.jsonl"
    with AgentCoreStandIn() as stand_in:
        with SecretAudit(secrets_of(stand_in), files=[evidence]) as audit:
            with record(evidence):
                async with opened(gateway_of(stand_in).transport(), KINDS[0]) as session:
                    stand_in.script("orders___search", Slow(5.0))
                    with anyio.move_on_after(0.2) as scope:
                        await session.call("orders___search", {"q": "it"})
                    assert scope.cancelled_caught
            audit.add("events", evidence.read_text("utf-8"))
        assert audit.looked["files"] > 0


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_the_audit_would_see_it() -> None:
    """The control: a signer that prints what it signs is found out."""
    with AgentCoreStandIn() as stand_in:
        signed = runtime_of(stand_in)._options.signer
        assert signed is not None
        request = await signed(FAMILY.Request("POST", stand_in.runtime_url, content=b"{}"))
        audit = SecretAudit(secrets_of(stand_in)[0], skip=("requests",))
        audit.add("a log", str(request.headers["x-amz-security-token"]))
        assert audit.leaks


async def test_keys_that_are_gone_end_a_call_before_it_is_sent() -> None:
    """R105, R108, D3. Told as what it is, and never dressed as the server's 401."""
    with AgentCoreStandIn() as stand_in:
        held = aws_of(stand_in)

        class Vault:
            """Keys that an app looks after itself."""

            gone = False

            def get_frozen_credentials(self) -> Any:
                """Freeze them, as long as they are there."""
                if self.gone:
                    raise RuntimeError("canary-in-the-text")
                return held.get_frozen_credentials()

        vault = Vault()
        made = runtime_of(stand_in, aws=vault)
        async with opened(made.transport(), KINDS[0]) as session:
            await session.call("search", {"q": "it"})
            vault.gone = True
            told = await session.call("search", {"q": "again"})
            assert (told.kind, told.is_error) == ("credentials-failed", True)
            assert told.facts["effect"] == "not_sent"
            assert "canary" not in repr(told.raw)
            assert len(stand_in.requests("search")) == 1
            with pytest.raises(CredentialError) as caught:
                async with made.session() as ours:
                    await ours.call("search", {"q": "it"})
            assert caught.value.reason == "AWS credentials could not be had: RuntimeError"
            assert "canary" not in str(caught.value)
