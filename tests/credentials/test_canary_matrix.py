"""R107, R108, R109, invariant 11. Every kind of credential, every way for a call to end."""

from __future__ import annotations

import json
import sys
from base64 import b64encode
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest

from surefoot import Gateway
from surefoot.credentials import (
    ApiKey,
    AuthorizationRequired,
    Basic,
    Bearer,
    CommandCredentials,
    Credential,
    CredentialRequest,
    EnvironmentCredentials,
    FileCredentials,
    Headers,
    Issued,
    RetryingCredentials,
    SharedCredentials,
    StaticCredentials,
)
from surefoot.sinks import record
from surefoot.testing import (
    FaultyGateway,
    McpRequest,
    Raw,
    Reset,
    SecretAudit,
    SecretLeakError,
    Slow,
    Step,
    tool_call,
)

pytestmark = [
    pytest.mark.unmeasured,
    pytest.mark.anyio,
    # On trio, what is left of an event stream that was refused goes to the garbage collector.
    pytest.mark.filterwarnings("ignore:Async generator .* was garbage collected:ResourceWarning"),
    pytest.mark.filterwarnings("ignore:.*<async_generator:pytest.PytestUnraisableExceptionWarning"),
]

CANARY = "CANARY-5d1f0e77aa"

KINDS: dict[str, Callable[[], Credential]] = {
    "bearer": lambda: Bearer(CANARY),
    "api-key": lambda: ApiKey(CANARY),
    "basic": lambda: Basic("someone", CANARY),
    "headers": lambda: Headers({"x-tenant": "a-tenant-of-ours", "x-token": CANARY}),
}

ECHOES = (
    CANARY,
    json.dumps(json.dumps({"said": f"Authorization: Bearer {CANARY}"}))[1:-1],
    b64encode(f"someone:{CANARY}".encode()).decode(),
    "".join(f"\\u{ord(letter):04x}" for letter in CANARY),
    "".join(f"\\\\u{ord(letter):04x}" for letter in CANARY),
)
"""As they stand between the quotes of a JSON string."""


def raw(status: str, body: str, *lines: str, media: str = "application/json") -> Step:
    """A whole answer, as the wire holds it."""
    head = [f"HTTP/1.1 {status}", f"content-type: {media}", f"content-length: {len(body)}", *lines]
    return Raw("\r\n".join([*head, "", body]).encode())


def echo(status: str, *lines: str) -> list[Step]:
    """One answer for each way of echoing, as JSON-RPC errors and as bare text."""
    steps: list[Step] = []
    for said in ECHOES:
        error = f'{{"code":-32000,"message":"{said}","data":{{"{said}":"{said}"}}}}'
        steps += [
            raw(status, f'{{"jsonrpc":"2.0","id":1,"error":{error}}}', *lines),
            raw(status, said, *lines, media="text/plain"),
        ]
    return steps


RESULT = {"content": [{"type": "text", "text": f"you are {CANARY}"}], "resultType": "complete"}

ENDS: dict[str, list[Step]] = {
    "success": [],
    "a result with an echo": [
        raw("200 OK", json.dumps({"jsonrpc": "2.0", "id": 1, "result": RESULT}))
    ],
    "an event stream with an echo": [
        raw("200 OK", stream, media="text/event-stream")
        for stream in (
            f'data: {{"jsonrpc":"2.0","id":1,\ndata: "result":{json.dumps(RESULT)}}}\n\n',
            f"event: {CANARY}\nid: {CANARY}\n: {CANARY}\ndata: {CANARY}\n\n",
            f'data: {{"said":"{CANARY[:9]}\ndata: {CANARY[9:]}"}}\n\n',
        )
    ],
    "401 with an echo": echo("401 Unauthorized", f'www-authenticate: Bearer realm="{CANARY}"'),
    "403 with an echo": echo("403 Forbidden", f'www-authenticate: Bearer scope="{CANARY}"'),
    "429 with an echo": echo("429 Too Many Requests", "retry-after: 0"),
    "500 with an echo": echo("500 Internal Server Error", f"x-echo: {CANARY}"),
    "an unreadable answer": [
        raw("200 OK", f'{{"jsonrpc":"2.0","id":1,"result":{{"{CANARY}":1,"{CANARY}":2}}}}'),
        raw("200 OK", f"{CANARY}{{"),
        Raw(f"HTTP/1.1 200 {CANARY}\r\nbad line {CANARY}\r\n\r\n".encode()),
    ],
    "reset": [Reset(), Reset(when="in-body")],
    "a redirect": [raw("307 Temporary Redirect", "", f"location: http://{CANARY}.invalid/")],
    "cancelled in flight": [Slow(20.0)],
}


class Failing:
    """A provider whose errors quote what it holds."""

    async def vend(self, request: CredentialRequest, /) -> Issued:
        del request
        raise RuntimeError(f"the vault said {CANARY}")


class Malformed:
    """A provider that hands out what no header can hold."""

    async def vend(self, request: CredentialRequest, /) -> Credential:
        del request
        return Bearer(f"{CANARY}\n")


class Stuck:
    """A provider that never answers."""

    async def vend(self, request: CredentialRequest, /) -> Issued:
        del request
        token = CANARY
        await anyio.sleep_forever()
        return Issued(Bearer(token))


class Consent:
    """A provider that asks a person; the URL is the secret."""

    async def vend(self, request: CredentialRequest, /) -> AuthorizationRequired:
        return AuthorizationRequired(request.service, f"https://issuer.example/?s={CANARY}")


PROVIDERS: dict[str, Callable[[], Any]] = {
    "raises": Failing,
    "malformed": Malformed,
    "cancelled in vend": Stuck,
    "consent": Consent,
}


async def calls(
    audit: SecretAudit, credentials: Any, url: str, number: int, patience: float
) -> None:
    """So many calls, one after another; whatever comes of each is searched."""
    gateway = Gateway(url, name="billing", credentials=credentials)
    asked: McpRequest = tool_call("search", {"q": "W-7712"})
    async with gateway.http_client() as client:
        for _ in range(number):
            with anyio.move_on_after(patience):
                response = await client.post(url, headers=dict(asked.headers), content=asked.body)
                audit.add("client", response)
                audit.add("client text", response.text)
    audit.add("gateway", gateway)
    await gateway.aclose()


@pytest.mark.parametrize("end", ENDS)
async def test_no_way_for_a_call_to_end_shows_a_credential(end: str, tmp_path: Path) -> None:
    """R107 to R109. Each kind, in every channel: nothing but the server has seen it."""
    steps = ENDS[end]
    evidence = tmp_path / "run.jsonl"
    patience = 0.5 if end == "cancelled in flight" else 5.0
    with FaultyGateway() as server:
        with _audit(evidence) as audit, record(evidence):
            for kind in KINDS.values():
                if steps:
                    server.script("search", *steps)
                credentials = SharedCredentials(_vendor(kind))
                await calls(audit, credentials, server.url, max(1, len(steps)), patience)
            await anyio.wait_all_tasks_blocked()
        received = [_as_seen(entry.headers) for entry in server.journal]
        told = [f"Bearer {CANARY}", "x-api-key", "Basic", "x-token"]
        for kind in told:
            assert any(kind in seen and CANARY in seen for seen in received), kind
        for channel in ("objects", "artefacts", "files"):
            assert audit.looked[channel], channel


def _audit(evidence: Path) -> SecretAudit:
    """Everything but what httpcore prints of the answers: the server's words, and not ours."""
    return SecretAudit(CANARY, files=[evidence], without_loggers=("httpcore", "httpcore2"))


def _vendor(kind: Callable[[], Credential]) -> Callable[[CredentialRequest], Any]:
    async def vend(request: CredentialRequest) -> Credential:
        del request
        return kind()

    return vend


def _as_seen(headers: Any) -> str:
    """The headers as the server saw them, with the pair of Basic opened."""
    pair = b64encode(f"someone:{CANARY}".encode()).decode()
    return str(headers).replace(pair, CANARY)


@pytest.mark.parametrize("provider", PROVIDERS)
async def test_no_failure_of_a_provider_shows_what_it_holds(provider: str, tmp_path: Path) -> None:
    """R108, R117, R123. Raised, malformed, cancelled in vend, or a consent that is needed."""
    evidence = tmp_path / "run.jsonl"
    with FaultyGateway() as server:
        with _audit(evidence) as audit, record(evidence):
            await calls(audit, PROVIDERS[provider](), server.url, 2, 0.5)
            await anyio.wait_all_tasks_blocked()
        assert server.executions("search") == 0
        assert audit.looked["objects"]


def _no_such_host() -> str:
    return "http://gateway.invalid/mcp"


def _no_tls(server: FaultyGateway) -> str:
    """The endpoint as if it spoke TLS, which it does not."""
    return server.url.replace("http://", "https://")


@pytest.mark.parametrize("failure", ["DNS", "TLS"])
async def test_no_failure_to_connect_shows_a_credential(failure: str, tmp_path: Path) -> None:
    """R107, R108, D3. No such host, and no TLS: vended, never sent, and nothing shows it."""
    evidence = tmp_path / "run.jsonl"
    vended: list[str] = []
    with FaultyGateway() as server:
        url = _no_such_host() if failure == "DNS" else _no_tls(server)
        with _audit(evidence) as audit, record(evidence):
            for name, kind in KINDS.items():
                await calls(audit, _counted(name, kind, vended), url, 1, 5.0)
            await anyio.wait_all_tasks_blocked()
        assert not server.journal
    assert set(vended) == set(KINDS)
    assert "not_sent" in evidence.read_text("utf-8")


def _counted(
    name: str, kind: Callable[[], Credential], vended: list[str]
) -> Callable[[CredentialRequest], Any]:
    async def vend(request: CredentialRequest) -> Credential:
        del request
        vended.append(name)
        return kind()

    return vend


def _built_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Each provider that hands out what somebody else keeps, and those that wrap one."""
    kept = tmp_path / "token"
    kept.write_text(CANARY)
    kept.chmod(0o600)
    monkeypatch.setenv("THE_TOKEN", CANARY)
    file = FileCredentials(kept)
    program = CommandCredentials([sys.executable, "-c", f"print(open({str(kept)!r}).read())"])
    return {
        "static": StaticCredentials(Bearer(CANARY)),
        "environment": EnvironmentCredentials("THE_TOKEN"),
        "file": file,
        "command": program,
        "shared": SharedCredentials(file),
        "retrying": RetryingCredentials(file),
    }


@pytest.mark.parametrize("name", ["static", "environment", "file", "command", "shared", "retrying"])
async def test_no_provider_of_ours_shows_what_it_keeps(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R107, R108. Accepted, rejected with an echo, and refused with one."""
    evidence = tmp_path / "run.jsonl"
    credentials = _built_in(tmp_path, monkeypatch)[name]
    steps = [
        *echo("401 Unauthorized", f'www-authenticate: Bearer realm="{CANARY}"')[:1],
        *echo("403 Forbidden", f'www-authenticate: Bearer scope="{CANARY}"')[:1],
        *echo("500 Internal Server Error")[:2],
    ]
    with FaultyGateway() as server:
        server.script("search", *steps)
        with _audit(evidence) as audit, record(evidence):
            await calls(audit, credentials, server.url, 5, 5.0)
            await anyio.wait_all_tasks_blocked()
        assert any(CANARY in _as_seen(entry.headers) for entry in server.journal)
        assert audit.looked["objects"]


async def _bare(url: str, asked: McpRequest) -> httpx2.Response:
    async with httpx2.AsyncClient() as client:
        headers = {**asked.headers, "authorization": f"Bearer {CANARY}"}
        return await client.post(url, headers=headers, content=asked.body)


async def _bare_and_audited(url: str, asked: McpRequest) -> None:
    with SecretAudit(CANARY) as audit:
        audit.add("client", await _bare(url, asked))


async def test_the_matrix_would_see_a_leak() -> None:
    """R109. The control: a client without us is handed the echo, and the audit says so."""
    with FaultyGateway() as server:
        server.script("search", *ENDS["500 with an echo"])
        with pytest.raises(SecretLeakError) as failed:
            await _bare_and_audited(server.url, tool_call("search", {"q": "W-7712"}))
    channels = {leak.channel for leak in failed.value.leaks}
    assert {"logs", "artefacts"} <= channels
