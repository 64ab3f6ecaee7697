"""The law of this file: an MCP endpoint and its authorization server, on loopback, that count."""

from __future__ import annotations

import base64
import json
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote

__all__ = ["OAuthServer", "TokenRequest", "oauth_server"]


@dataclass
class TokenRequest:
    """What came to the token endpoint."""

    form: dict[str, str]
    client: tuple[str, str] | None
    """User and password of Basic, where they were sent."""


@dataclass
class OAuthServer:
    """What it is told, and what it saw."""

    origin: str = ""
    slow: float = 0.0
    """Seconds that a call takes."""
    life: float | str | None = 3600
    refresh: bool = False
    """Hand out refresh tokens."""
    metadata_elsewhere: bool = False
    """Only the challenge says where the resource's metadata is."""
    issuer: str | None = None
    """What the resource names as its authorization server; itself by default."""
    states_life: bool = True
    expire: bool = False
    """Tokens really end when their life does."""
    valid: set[str] = field(default_factory=set[str])
    """Tokens that are accepted."""
    needs_scope: str | None = None
    """Calls with a token that lacks it are answered 403."""
    same_token: bool = False
    """Answer with the last token as long as it is valid."""
    answer: Callable[[TokenRequest], tuple[int, dict[str, str], bytes]] | None = None
    """Answers token requests instead."""
    paths: list[str] = field(default_factory=list[str])
    tokens: list[TokenRequest] = field(default_factory=list[TokenRequest])
    calls: list[str | None] = field(default_factory=list[str | None])
    """The ``Authorization`` of each call."""
    scopes: dict[str, str] = field(default_factory=dict[str, str])
    lock: threading.Lock = field(default_factory=threading.Lock)
    stopped: threading.Event = field(default_factory=threading.Event)

    @property
    def url(self) -> str:
        """The MCP endpoint."""
        return f"{self.origin}/mcp"

    def issue(self, request: TokenRequest) -> tuple[int, dict[str, str], bytes]:
        """A numbered token, with the scopes that were asked for."""
        token = f"token-{len(self.tokens)}"
        if self.same_token and self.valid:
            token = max(self.valid)
        self.valid.add(token)
        if self.expire and isinstance(self.life, (int, float)):
            timer = threading.Timer(self.life, self.valid.discard, (token,))
            timer.daemon = True
            timer.start()
        granted = request.form.get("scope", "")
        self.scopes[token] = granted
        said: dict[str, Any] = {"access_token": token, "token_type": "bearer"}
        if granted:
            said["scope"] = granted
        if self.life is not None and self.states_life:
            said["expires_in"] = self.life
        if self.refresh:
            said["refresh_token"] = f"refresh-{len(self.tokens)}"
        return 200, {}, json.dumps(said).encode()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    state: OAuthServer

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Say nothing."""

    def send(self, status: int, headers: dict[str, str], body: bytes = b"") -> None:
        self.send_response(status)
        for name, value in {"content-length": str(len(body)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def metadata(self, **said: object) -> None:
        self.send(200, {"content-type": "application/json"}, json.dumps(said).encode())

    def do_GET(self) -> None:
        state = self.state
        state.paths.append(f"GET {self.path}")
        well_known = "/.well-known/oauth-protected-resource"
        here = "/about" if state.metadata_elsewhere else f"{well_known}/mcp"
        if self.path == here:
            self.metadata(resource=state.url, authorization_servers=[state.issuer or state.origin])
        elif self.path == "/.well-known/oauth-authorization-server":
            self.metadata(
                issuer=state.origin,
                authorization_endpoint=f"{state.origin}/authorize",
                token_endpoint=f"{state.origin}/token",
                response_types_supported=["code"],
            )
        elif self.path == "/mcp":
            self.unauthorized()
        else:
            self.send(404, {})

    def unauthorized(self) -> None:
        where = "/about" if self.state.metadata_elsewhere else ""
        extra = f' resource_metadata="{self.state.origin}{where}"' if where else ""
        self.send(401, {"www-authenticate": f"Bearer{extra}"})

    def do_POST(self) -> None:
        state = self.state
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        state.paths.append(f"POST {self.path}")
        if self.path == "/token":
            form = {name: values[0] for name, values in parse_qs(body.decode()).items()}
            request = TokenRequest(form, _basic(self.headers.get("authorization")))
            with state.lock:
                state.tokens.append(request)
                status, headers, said = (state.answer or state.issue)(request)
            self.send(status, {"content-type": "application/json", **headers}, said)
            return
        credential = self.headers.get("authorization")
        state.calls.append(credential)
        token = (credential or "").removeprefix("Bearer ")
        if token not in state.valid:
            self.unauthorized()
        elif state.needs_scope and state.needs_scope not in state.scopes[token].split():
            challenge = f'Bearer error="insufficient_scope", scope="{state.needs_scope}"'
            self.send(403, {"www-authenticate": challenge})
        else:
            state.stopped.wait(state.slow)
            self.send(200, {"content-type": "application/json"}, b"{}")


def _basic(value: str | None) -> tuple[str, str] | None:
    if value is None or not value.startswith("Basic "):
        return None
    user, _, password = base64.b64decode(value[6:]).decode().partition(":")
    return unquote(user), unquote(password)


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128  # a shorter queue makes callers wait for a second


@contextmanager
def oauth_server(**settings: Any) -> Generator[OAuthServer]:
    """Serve in threads, until the block ends."""
    state = OAuthServer(**settings)
    handler = type("Handler", (_Handler,), {"state": state})
    server = _Server(("127.0.0.1", 0), handler)
    state.origin = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield state
    finally:
        state.stopped.set()
        server.shutdown()
        thread.join()
        server.server_close()
