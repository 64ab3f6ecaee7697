"""R89 to R91, R107 to R109: what a refused signature shows, here and in AWS's own client library.

AWS answers a signature that does not match with the whole canonical request, session token and all.
Both clients make the same call to the same stand-in in one test run.
"""

from __future__ import annotations

import json
import logging
import subprocess
from pathlib import Path
from typing import Any, Final

import pytest

from support.agentcore import runtime_of
from support.sessions import KINDS, SDK_ON_TRIO, opened
from surefoot.sinks import record
from surefoot.testing import AgentCoreStandIn, SecretAudit

pytestmark = [pytest.mark.both_majors, pytest.mark.anyio, *SDK_ON_TRIO]

ROOT: Final = Path(__file__).resolve().parents[2]
PEER: Final = ROOT / ".venv-peer" / "bin" / "python"
PROGRAM: Final = ROOT / "tests" / "support" / "agentcore_peer.py"


def by_the_peer(stand_in: AgentCoreStandIn) -> dict[str, Any]:
    """What the other library's caller is told, and what it logs."""
    keys = stand_in.keys
    assert keys.session_token is not None
    done = subprocess.run(
        [str(PEER), str(PROGRAM), stand_in.runtime_url, keys.access_key_id,
         keys.secret_access_key, keys.session_token],
        capture_output=True,
        text=True,
        check=False,
        timeout=50,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    told: dict[str, Any] = json.loads(done.stdout)
    return told


@pytest.mark.skipif(not PEER.exists(), reason="mcp-proxy-for-aws is not installed: make peer")
def test_the_peer_shows_the_session_token_in_its_error_and_in_its_log() -> None:
    """The control: a text that the model reads, at the level that every program logs at."""
    with AgentCoreStandIn() as stand_in:
        stand_in.script("search", "bad-signature")
        peer = by_the_peer(stand_in)
        token = stand_in.keys.session_token
        assert token is not None
        assert peer["version"].startswith("1.7.")
        assert "The request signature we calculated does not match" in peer["told"]
        assert token in peer["told"]
        assert token in peer["logged"]


@pytest.mark.parametrize("kind", KINDS)
async def test_ours_shows_it_nowhere(
    kind: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """R89 to R91, R107 to R109. Not to the model, not in a log at DEBUG, not in the evidence."""
    caplog.set_level(logging.DEBUG)
    evidence = tmp_path / "run.jsonl"
    with AgentCoreStandIn() as stand_in:
        token = stand_in.keys.session_token
        assert token is not None
        secrets = [token, stand_in.keys.secret_access_key]
        with SecretAudit(secrets, files=[evidence]) as audit:
            with record(evidence):
                async with opened(runtime_of(stand_in).transport(), kind) as session:
                    stand_in.script("search", "bad-signature")
                    told = await session.call("search", {"q": "it"})
            audit.add("model", told.text)
            audit.add("client", repr(told.raw))
        assert told.kind == "unauthorized"
        assert stand_in.canary not in told.text + repr(told.raw) + evidence.read_text("utf-8")
        assert "it did not accept the credential" in told.text
        assert audit.looked["files"] > 0
        assert audit.looked["logs"] > 0
        for secret in secrets:
            assert secret not in caplog.text
