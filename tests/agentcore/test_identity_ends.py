"""R107 to R109, B7. What AgentCore Identity vends is shown by no end of the call it was for."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import anyio
import httpx2
import pytest

from support.agentcore_identity import identity
from support.canaries import ENDS
from support.leaks import traced
from surefoot import Gateway, Retry
from surefoot.sinks import record
from surefoot.testing import AgentCoreStandIn, FaultyGateway, SecretAudit, Tool, tool_call

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.unmeasured,
    pytest.mark.parametrize("anyio_backend", ["asyncio"]),
]

VENDED: Final = [f"token-{number}-" for number in range(1, 40)]
"""How the tokens of the stand-in begin."""


async def to_its_end(end: str, made: Gateway, audit: SecretAudit) -> None:
    """One call of the tool that ends so."""
    limit = 0.5 if end == "the client's limit" else 20
    wire = httpx2.AsyncHTTPTransport(verify=False)
    async with made.protect(httpx2.AsyncClient(transport=wire, timeout=limit)) as client:
        asked = tool_call(end, {"q": "W-7712"})
        with anyio.move_on_after(1.0 if end.startswith("cancelled") else 30):
            answer = await client.post(made.url, content=asked.body, headers=dict(asked.headers))
            audit.add(f"{end}: answer", answer)
            audit.add(f"{end}: text", answer.text)


async def test_no_end_of_a_call_shows_what_identity_vended(tmp_path: Path) -> None:
    """R107 to R109. Every token was sent, each of them by one attempt; the keys of AWS by none."""
    events = tmp_path / "events.jsonl"
    with (
        AgentCoreStandIn() as stand_in,
        FaultyGateway(tools=[Tool(end) for end in ENDS]) as gateway,
    ):
        for end, step in ENDS.items():
            gateway.script(end, step, repeat=True)
        keys: Any = stand_in.keys
        secrets = [*VENDED, keys.secret_access_key, keys.session_token]
        provider = identity(stand_in)
        others = ("httpcore", "httpcore2")
        with traced(), SecretAudit(secrets, files=[events], without_loggers=others) as audit:
            with record(events, content="full"):
                async with anyio.create_task_group() as tasks:
                    for end in ENDS:
                        retry = Retry(max_elapsed=1.0 if "deadline" in end else None)
                        made = Gateway(gateway.url, credentials=provider, retry=retry)
                        tasks.start_soon(to_its_end, end, made, audit)
            await anyio.wait_all_tasks_blocked()
        for end in ENDS:
            assert any("token-" in str(entry.headers) for entry in gateway.requests(end)), end
        sent = {line for entry in gateway.journal for line in entry.headers if b"token-" in line[1]}
        assert len(ENDS) < len(sent) < len(VENDED)
        for channel in ("artefacts", "files", "logs", "objects", "spans"):
            assert audit.looked[channel], channel
