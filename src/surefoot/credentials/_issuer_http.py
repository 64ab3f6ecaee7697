"""The law of this file: what an authorization server says is bounded, checked, and quoted nowhere.

The SDK puts the text of an answer that it cannot use into its errors, and those into its log. So it
is only ever given answers that it can use: a token answer is read here first and written anew from
its known parts, and of a refusal nothing remains but the error code of the standard. Nothing in
this file follows a redirect, keeps a cookie, or belongs to an event loop.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from contextlib import aclosing
from functools import lru_cache
from math import isfinite
from types import ModuleType
from typing import Any, Final, cast

import anyio
from anyio import to_thread

from surefoot.credentials._failures import TransientCredentialError
from surefoot.credentials._time import Clock
from surefoot.credentials._validation import broken_value
from surefoot.errors import CredentialError, UnreadableAnswerError
from surefoot.policy import parse_retry_after
from surefoot.wire import strict_json

__all__ = ["IssuerHTTP", "client_of", "module_of"]

HTTPRequest = Any
HTTPResponse = Any
Guard = Callable[[HTTPRequest], HTTPRequest | str]
"""Is shown each request, and returns what is sent, or the reason for which nothing must be."""

_MAX_BODY: Final = 256 * 1024
_OK: Final = frozenset({200, 201})
_REFUSED_FROM: Final = 400
_TOO_MANY: Final = 429
_BROKEN_FROM: Final = 500
_ERROR: Final = re.compile(rb'"error"\s*:\s*"([a-z_]{1,40})"')

_CODES: Final = frozenset(
    {
        "access_denied", "consent_required", "interaction_required", "invalid_client",
        "invalid_client_metadata", "invalid_dpop_proof", "invalid_grant", "invalid_redirect_uri",
        "invalid_request", "invalid_scope", "invalid_software_statement", "invalid_target",
        "invalid_token", "login_required", "server_error", "slow_down", "temporarily_unavailable",
        "unapproved_software_statement", "unauthorized_client", "unsupported_grant_type",
        "use_dpop_nonce",
    }
)  # fmt: skip
"""The error codes of RFC 6749 5.2, RFC 7591 3.2.2, RFC 8707 2, RFC 9449 and OpenID Connect."""

_PASSING: Final = frozenset({"server_error", "slow_down", "temporarily_unavailable"})


class IssuerHTTP:
    """One flow's own conversation: metadata, registration, token.

    Args:
        client: An ``AsyncClient`` of the flow's HTTP family.
        module: That family.
        service: For the errors.
        clock: Time.
        timeout: Seconds for one exchange, its body included.
        guard: May change or forbid a request.
    """

    def __init__(
        self,
        client: Any,
        module: ModuleType,
        *,
        service: str,
        clock: Clock,
        timeout: float,
        guard: Guard | None = None,
    ) -> None:
        self._client = client
        self._module = module
        self._service = service
        self._clock = clock
        self._timeout = timeout
        self._guard = guard
        self.life: float | None = None
        """Seconds that the token lives which came last, as its issuer stated."""
        self.came = False
        """A token came in this conversation."""
        self._trouble: CredentialError | None = None

    def failure(self, error: Exception) -> CredentialError:
        """What to report when the flow itself gave up: the last thing that went wrong outside."""
        reason = f"the OAuth flow ended with {type(error).__name__}"
        return self._trouble or CredentialError(reason, service=self._service)

    async def send(self, request: HTTPRequest) -> HTTPResponse:
        """Send one request of the flow, and return an answer that it can use.

        Raises:
            TransientCredentialError: the issuer could not be reached, or is busy or broken.
            CredentialError: it refused, answered unreadably, or must not be asked.
        """
        if self._guard is not None:
            request = self._guard(request)
            if isinstance(request, str):
                raise CredentialError(request, service=self._service)
        status, headers, body, next_request = await self._exchange(request)
        retry_after = headers.get("retry-after")
        if status == _TOO_MANY or status >= _BROKEN_FROM:
            self._busy(status, retry_after, final=request.method == "POST")
        if status >= _REFUSED_FROM:
            body = self._refusal(request, status, body)
        elif request.method == "POST":
            if status not in _OK:  # a redirect would carry the client's secret elsewhere
                raise self._unreadable(f"status {status}")
            body = self._answer(body)
        answer = self._module.Response(
            status, headers={"content-type": "application/json"}, content=body, request=request
        )
        answer.next_request = next_request
        return answer

    async def challenge(self, url: str) -> str | None:
        """Ask the resource itself without a credential, and return what it challenges with."""
        request = self._module.Request("GET", url, headers={"accept": "text/event-stream"})
        status, headers, _, _ = await self._exchange(request, body=False)
        return headers.get("www-authenticate") if status == 401 else None

    async def _exchange(
        self, request: HTTPRequest, *, body: bool = True
    ) -> tuple[int, Any, bytes, HTTPRequest | None]:
        """Send once and read the body, both bounded; whatever goes wrong is named by its type."""
        wrong = "TimeoutError"
        try:
            with anyio.fail_after(self._timeout):
                response = await self._client.send(request, stream=True, follow_redirects=False)
                try:
                    read = await _bounded(response) if body else b""
                finally:
                    await response.aclose()
                if read is not None:
                    next_request = response.next_request
                    return response.status_code, response.headers, read, next_request
                wrong = ""
        except Exception as error:  # noqa: BLE001 - its request holds the client's secret
            wrong = type(error).__name__
        del request
        if not wrong:
            raise CredentialError("an OAuth answer was too large", service=self._service)
        reason = f"the authorization server could not be asked: {wrong}"
        raise TransientCredentialError(reason, service=self._service)

    def _busy(self, status: int, retry_after: str | None, *, final: bool) -> None:
        """Note that the issuer is busy or broken; a flow may go on without optional metadata."""
        stated = parse_retry_after(retry_after, now=self._clock.now())
        reason = f"the authorization server answered {status}"
        self._trouble = TransientCredentialError(reason, service=self._service, retry_after=stated)
        if final:
            raise self._trouble

    def _refusal(self, request: HTTPRequest, status: int, body: bytes) -> bytes:
        """Keep the code of a refusal alone; only a refused refresh is the flow's to go on from."""
        found = _ERROR.search(body)
        code = found[1].decode() if found else ""
        code = code if code in _CODES else ""
        if request.method == "POST":
            kind = TransientCredentialError if code in _PASSING else CredentialError
            said = f": {code}" if code else f" with status {status}"
            self._trouble = kind(f"the authorization server refused{said}", service=self._service)
            if (
                kind is TransientCredentialError
                or b"grant_type=refresh_token" not in request.content
            ):
                raise self._trouble
        return strict_json.dumps({"error": code or "invalid_request"})

    def _answer(self, body: bytes) -> bytes:
        """Read the answer to a token or registration request, and write it anew."""
        try:
            read: object = strict_json.loads(body)
        except UnreadableAnswerError as error:
            rule = error.rule
        else:
            if isinstance(read, dict):
                return self._rewritten(cast("dict[str, object]", read))
            rule = "not-an-object"
        raise self._unreadable(rule)

    def _rewritten(self, read: dict[str, object]) -> bytes:
        """The known parts of a token answer (RFC 6749 section 5.1); a registration as it is."""
        if "access_token" not in read and "client_id" in read:
            return strict_json.dumps(read)
        token, kind = read.get("access_token"), read.get("token_type", "Bearer")
        if broken_value(token) is not None:
            raise self._unreadable("access_token")
        if not isinstance(kind, str) or kind.lower() != "bearer":
            raise self._unreadable("token_type")
        known: dict[str, object] = {"access_token": token, "token_type": "Bearer"}
        for name in ("scope", "refresh_token", "id_token"):
            part = read.get(name)
            if isinstance(part, str) and part:
                known[name] = part
        self.life = _life(read.get("expires_in"))
        if self.life is not None:
            known["expires_in"] = max(1, int(self.life))
        self.came, self._trouble = True, None
        return strict_json.dumps(known)

    def _unreadable(self, rule: str) -> CredentialError:
        """An answer is given up by a fixed word."""
        reason = f"the authorization server's answer cannot be used: {rule}"
        return CredentialError(reason, service=self._service)


def module_of(value: object) -> ModuleType | None:
    """The HTTP family that an object of its own belongs to: httpx, httpx2 or none."""
    for base in type(value).__mro__:
        root = base.__module__.partition(".")[0]
        if root in {"httpx", "httpx2"} and root in sys.modules:
            return sys.modules[root]
    return None


async def _bounded(response: HTTPResponse) -> bytes | None:
    """The decoded body, or ``None`` when it is too large."""
    parts: list[bytes] = []
    size = 0
    async with aclosing(response.aiter_bytes(65536)) as body:
        async for part in body:
            size += len(part)
            if size > _MAX_BODY:
                return None
            parts.append(part)
    return b"".join(parts)


@lru_cache(maxsize=2)
def _tls(module: ModuleType) -> Any:
    """One TLS context for each family: to make one takes a tenth of a second."""
    return module.create_ssl_context()


async def client_of(module: ModuleType) -> Any:
    """A client of the family, made off the loop."""
    return await to_thread.run_sync(lambda: module.AsyncClient(verify=_tls(module)))


def _life(stated: object) -> float | None:
    """Seconds, also from servers that state them as text; nonsense is as if nothing was said."""
    if isinstance(stated, str) and stated.isascii() and stated.isdigit() and len(stated) < 12:
        stated = int(stated)
    if isinstance(stated, bool) or not isinstance(stated, (int, float)):
        return None
    return float(stated) if isfinite(stated) and stated >= 0 else None
