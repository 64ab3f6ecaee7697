"""R107 to R109, B7, D23. A credential of any kind, through whole sessions of the SDK.

The gateway quotes what it was sent in every way that careless servers do. Searched are what the
caller reads, raises and remembers, what anybody logs, prints or warns of, what is alive of ours,
and the evidence on disk. The control is the same session without surefoot.
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import pytest

from support.sessions import FAMILY, KINDS, SDK_ON_TRIO, Kind, Session, opened, sdk_streams
from surefoot import ApiKey, Basic, Bearer, Gateway, Headers, Retry, record
from surefoot.credentials import AuthorizationRequired, CredentialRequest, Issued
from surefoot.testing import (
    Answer,
    CutJson,
    FaultyGateway,
    Raw,
    RecordingSink,
    Redirect,
    Reset,
    RpcError,
    SecretAudit,
    SecretLeakError,
    Status,
    Step,
    Throttle,
)

pytestmark = [pytest.mark.both_majors, pytest.mark.anyio, *SDK_ON_TRIO]

CANARY: Final = "CANARY-91f/+c0de-7"
"""With characters that JSON, a URL and base64 each write in another way."""

CREDENTIALS: Final[dict[str, Callable[[], Any]]] = {
    "bearer": lambda: Bearer(CANARY),
    "api key": lambda: ApiKey(CANARY),
    "basic": lambda: Basic("someone", CANARY),
    "headers": lambda: Headers({"x-tenant-key": CANARY, "authorization": f"Tenant {CANARY}"}),
}

QUOTING: Final[list[Step]] = [
    *(Status(status, echo=how) for status in (401, 403) for how in ("plain", "json-escaped")),
    *(Status(500, echo=how) for how in ("plain", "percent", "base64")),
    *(Status(400, echo=how, rpc_code=-32000) for how in ("plain", "percent", "base64")),
    Status(403, echo=True, content_type="application/json"),
    Status(502, echo=True, content_type="text/html"),
    Throttle(60, headers={"x-seen": CANARY}, body=CANARY),
    *(Answer(echo=how) for how in ("plain", "json-escaped", "percent", "base64")),
    RpcError(-32050, f"bad token {CANARY}", data={CANARY: [CANARY]}, status=200),
    Redirect(to=f"http://elsewhere.invalid/?t={CANARY.encode().hex()}"),
    Raw(f"HTTP/1.1 200 OK\r\nbroken {CANARY}\r\n\r\n".encode()),
    Reset(),
    CutJson(),
]
"""Each is one answer; the gateway puts the header lines that it received into most of them."""


@asynccontextmanager
async def _protected(
    faulty: FaultyGateway, kind: Kind, credentials: Any, sink: RecordingSink | None = None
) -> AsyncGenerator[Session]:
    gateway = Gateway(
        faulty.url,
        credentials=credentials,
        retry=Retry(max_attempts=2, base_delay=0.01),
        evidence=sink,
    )
    async with opened(gateway.transport(), kind) as session:
        yield session


CASES: Final = [*((name, False) for name in CREDENTIALS), ("bearer", True)]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("credential", "sse"), CASES)
async def test_no_session_shows_a_credential_however_the_server_quotes_it(
    credential: str, sse: bool, kind: Kind, tmp_path: Path
) -> None:
    """R107 to R109, B7. What the client reads is part of it; the server itself has seen it."""
    evidence, sink = tmp_path / "run.jsonl", RecordingSink()
    with FaultyGateway(sse=sse) as faulty:
        with (
            SecretAudit(
                CANARY, files=[tmp_path], without_loggers=("httpcore", "httpcore2")
            ) as audit,
            record(evidence),
        ):
            async with _protected(faulty, kind, CREDENTIALS[credential](), sink) as session:
                for step in QUOTING:
                    faulty.script("charge", step)
                    told = await session.call("charge", {"amount": 1})
                    audit.add(repr(step), told)
                    audit.add(f"{step!r}: raw", told.raw)
                assert (await session.call("search", {"q": "it"})).text == "found it"
            audit.add("events", sink.events)
        for channel in ("artefacts", "files", "logs", "objects"):
            assert audit.looked[channel], channel
        assert all(_carries(entry.headers) for entry in faulty.requests("POST"))
    hits = sum(
        attempt["scrubbed_hits"]
        for event in _events(evidence)
        for attempt in event.get("attempts", ())
    )
    # A failure is written anew and needs no search; results and JSON-RPC errors are searched.
    assert hits >= 8, "the quotes were not there to be found"


def _carries(lines: Any) -> bool:
    """Whether a request carried the credential, in the clear or as Basic writes it."""
    pair = {value for _, value in Issued(Basic("someone", CANARY)).lines()}
    return any(CANARY.encode() in value or value in pair for _, value in lines)


def _events(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


@pytest.mark.parametrize("kind", KINDS)
async def test_the_same_session_without_surefoot_shows_it(kind: Kind) -> None:
    """R109. The control, for what the caller reads and what is logged."""

    async def bare(audit: SecretAudit, faulty: FaultyGateway) -> None:
        client = FAMILY.AsyncClient(headers={"authorization": f"Bearer {CANARY}"}, timeout=5)
        async with client, opened(sdk_streams(faulty.url, client), kind) as session:
            faulty.script("charge", Answer(echo="plain"))
            audit.add("told", await session.call("charge", {"amount": 1}))

    with (
        FaultyGateway() as faulty,
        pytest.raises(SecretLeakError) as caught,
        SecretAudit(CANARY) as audit,
    ):
        await bare(audit, faulty)
    assert "artefacts" in {leak.channel for leak in caught.value.leaks}
    assert CANARY not in str(caught.value)


@pytest.mark.parametrize("kind", KINDS)
async def test_a_provider_that_fails_in_a_session_shows_nothing(kind: Kind) -> None:
    """R108, R117. Neither its error, nor the page where a person must consent, in any channel."""
    turn = 0

    async def vend(request: CredentialRequest) -> Any:
        nonlocal turn
        if turn == 0:
            return Issued(Bearer("an-ordinary-token"))
        if turn == 1:
            message = f"the vault said {CANARY}"
            raise RuntimeError(message)
        return AuthorizationRequired(
            service=request.service, authorization_url=f"https://consent.example/?t={CANARY}"
        )

    with FaultyGateway() as faulty, SecretAudit(CANARY) as audit:
        async with _protected(faulty, kind, vend) as session:
            await session.call("search")
            for turn in (1, 2):
                told = await session.call("charge", {"amount": 1})
                audit.add(f"turn {turn}", told)
                assert told.facts["effect"] == "not_sent"
            turn = 0
            assert (await session.call("search", {"q": "it"})).text == "found it"
    assert faulty.executions("charge") == 0
