"""R107 to R109, B7, D23. A credential of any kind, through whole sessions of the SDK.

The gateway quotes what it was sent in every way that careless servers do. Searched are what the
caller reads, raises and remembers, what anybody logs, prints, warns of or traces, what is alive of
ours, and the evidence on disk. The control is the same session without surefoot.
"""

from __future__ import annotations

import json
import logging
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, Final

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from support.leaks import traced
from support.sessions import (
    FAMILY,
    KINDS,
    MCP_MAJOR,
    SDK_ON_TRIO,
    Kind,
    Session,
    opened,
    sdk_streams,
)
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

pytestmark = [pytest.mark.unmeasured, pytest.mark.both_majors, pytest.mark.anyio, *SDK_ON_TRIO]

CANARY: Final = "CANARY-91f/+c0de-7"
"""With characters that JSON, a URL and base64 each write in another way."""

CREDENTIALS: Final[dict[str, Callable[[], Any]]] = {
    "bearer": lambda: Bearer(CANARY),
    "api key": lambda: ApiKey(CANARY),
    "basic": lambda: Basic("someone", CANARY),
    "headers": lambda: Headers({"x-tenant-key": CANARY, "authorization": f"Tenant {CANARY}"}),
}


def _json(body: str) -> Raw:
    """A whole answer of 200, with a body that calls itself JSON."""
    head = "HTTP/1.1 200 OK\r\ncontent-type: application/json"
    return Raw(f"{head}\r\ncontent-length: {len(body)}\r\n\r\n{body}".encode(), close=False)


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
    _json(f"{CANARY}{{"),
    _json(f'{{"jsonrpc":"2.0","id":"{CANARY}","result":"{CANARY}"}}'),
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


@pytest.fixture
def spans() -> Iterator[InMemorySpanExporter]:
    """What is traced by us, and by the SDK where it traces."""
    with traced() as exporter:
        yield exporter


CASES: Final = [*((name, False) for name in CREDENTIALS), ("bearer", True)]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("credential", "sse"), CASES)
async def test_no_session_shows_a_credential_however_the_server_quotes_it(
    credential: str,
    sse: bool,
    kind: Kind,
    *,
    tmp_path: Path,
    spans: InMemorySpanExporter,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """R107 to R109, B7. What the client reads is part of it; the server itself has seen it."""
    evidence, sink, raised = tmp_path / "run.jsonl", RecordingSink(), 0
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
                    raised += isinstance(told.raw, Exception)
                assert (await session.call("search", {"q": "it"})).text == "found it"
            audit.add("events", sink.events)
        for channel in ("artefacts", "exceptions", "files", "logs", "objects", "spans"):
            assert audit.looked[channel], channel
        assert all(_carries(entry.headers) for entry in faulty.requests("POST"))
    assert raised, "the SDK's own error was searched"
    _assert_traced(spans, raised)
    assert not [one for one in caplog.records if _of_the_client(one)]
    hits = sum(
        attempt["scrubbed_hits"]
        for event in _events(evidence)
        for attempt in event.get("attempts", ())
    )
    # A failure is written anew and needs no search; results and JSON-RPC errors are searched.
    assert hits >= 8, "the quotes were not there to be found"


def _assert_traced(spans: InMemorySpanExporter, raised: int) -> None:
    """Spans of ours, and those of the SDK with the texts of its errors."""
    finished = spans.get_finished_spans()
    scopes = [one.instrumentation_scope.name for one in finished if one.instrumentation_scope]
    assert scopes.count("surefoot") >= len(QUOTING)
    if MCP_MAJOR > 1:
        assert scopes.count("mcp-python-sdk") >= len(QUOTING)
        assert sum(bool(one.status.description) for one in finished) >= raised


def _of_the_client(said: logging.LogRecord) -> bool:
    """What the SDK's client says of an answer that it could not read."""
    return said.name.startswith("mcp.client") and said.levelno >= logging.ERROR


def _carries(lines: Any) -> bool:
    """Whether a request carried the credential, in the clear or as Basic writes it."""
    pair = {value for _, value in Issued(Basic("someone", CANARY)).lines()}
    return any(CANARY.encode() in value or value in pair for _, value in lines)


def _events(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


REFUSED: Final = RpcError(-32050, f"bad token {CANARY}", status=200)

SHOWN: Final[dict[str, tuple[Step, str]]] = {
    "artefacts: result": (Answer(echo="plain"), "the text of a result"),
    "exceptions: raw": (REFUSED, "the text of an error"),
    "logs: ERROR of mcp.client": (_json(f"{CANARY}{{"), "what could not be read"),
    "spans: span MCP send": (REFUSED, "the span of a request"),
}
"""Where a hit is, the answer that leads there, and what is seen."""


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("place", SHOWN)
async def test_the_same_session_without_surefoot_shows_it(
    place: str, kind: Kind, spans: InMemorySpanExporter
) -> None:
    """R109. The control, for each channel of the SDK that the page of leaks names."""
    if place.startswith("spans") and MCP_MAJOR == 1:
        pytest.skip("mcp 1.x traces nothing by itself")
    step, seen = SHOWN[place]

    async def bare(audit: SecretAudit, faulty: FaultyGateway) -> None:
        client = FAMILY.AsyncClient(headers={"authorization": f"Bearer {CANARY}"}, timeout=5)
        async with client, opened(sdk_streams(faulty.url, client), kind) as session:
            faulty.script("charge", step)
            told = await session.call("charge", {"amount": 1}, patience=0.5)
            audit.add("result", told)
            audit.add("raw", told.raw)

    with (
        FaultyGateway() as faulty,
        pytest.raises(SecretLeakError) as caught,
        SecretAudit(CANARY) as audit,
    ):
        await bare(audit, faulty)
    assert any(str(leak).startswith(place) for leak in caught.value.leaks), seen
    assert CANARY not in str(caught.value)
    assert spans.get_finished_spans() or MCP_MAJOR == 1


def _capturing(send: Callable[..., Any]) -> Callable[..., Any]:
    """Sends as before, in a span with every header, as an instrumentation may be told to."""

    async def sent(*arguments: Any) -> Any:
        with trace.get_tracer("an instrumentation").start_as_current_span("POST") as span:
            for name, value in arguments[-1].headers.items():
                span.set_attribute(f"http.request.header.{name}", [value])
            return await send(*arguments)

    return sent


async def _instrumented(
    where: str, faulty: FaultyGateway, kind: Kind, patch: pytest.MonkeyPatch
) -> None:
    transports = FAMILY.AsyncHTTPTransport
    if where == "every transport":
        patch.setattr(
            transports, "handle_async_request", _capturing(transports.handle_async_request)
        )
    client = FAMILY.AsyncClient(timeout=5)
    Gateway(faulty.url, credentials=Bearer(CANARY)).protect(client)
    if where == "the protected client":
        above = client._transport
        patch.setattr(above, "handle_async_request", _capturing(above.handle_async_request))
    async with client, opened(sdk_streams(faulty.url, client), kind) as session:
        assert (await session.call("search", {"q": "it"})).text == "found it"


@pytest.mark.parametrize("kind", KINDS)
async def test_tracing_of_headers_above_us_shows_no_vended_one(
    kind: Kind, spans: InMemorySpanExporter, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R107, R109. What wraps a protected client is above us; what wraps every transport is below.

    The second is the control: it is told what is sent, and no library above it can help that.
    """
    audited: dict[str, tuple[set[str], int]] = {}
    with FaultyGateway() as faulty:
        for where in ("the protected client", "every transport"):
            audit = SecretAudit(CANARY, without_loggers=("httpcore", "httpcore2"))
            with monkeypatch.context() as patch, suppress(SecretLeakError), audit:
                await _instrumented(where, faulty, kind, patch)
            audited[where] = {str(leak)[:16] for leak in audit.leaks}, audit.looked["spans"]
        assert all(_carries(entry.headers) for entry in faulty.requests("POST"))
    assert audited["the protected client"][0] == set()
    assert audited["the protected client"][1]
    assert "spans: span POST" in audited["every transport"][0]
    names = [span.name for span in spans.get_finished_spans()]
    assert names.count("POST") >= 4, "both stood where spans are made"


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
