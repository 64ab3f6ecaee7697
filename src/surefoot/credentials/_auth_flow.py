"""The law of this file: an HTTP client's auth flow is driven to its signature, and stopped there.

The SDK's OAuth providers hold a lock for as long as the request that they sign is under way, so one
slow call holds up all others (measured: three of one second take three). Here the flow is given a
request that is never sent. As soon as it is signed the signature is taken, the flow is closed and
its lock is free (B10). Whatever else the flow wants to send goes to the issuer, in one task.
"""

from __future__ import annotations

import re
import time
from collections.abc import AsyncGenerator, Callable
from types import ModuleType
from typing import Any, Final

import anyio

from surefoot.credentials._blind import sealed
from surefoot.credentials._failures import fresh_copy
from surefoot.credentials._flight import SingleFlight
from surefoot.credentials._hushed import hushed
from surefoot.credentials._issuer_http import Guard, IssuerHTTP, client_of, module_of
from surefoot.credentials._kinds import Bearer, Credential, HeaderLines, Headers
from surefoot.credentials._port import CredentialRequest, Issued
from surefoot.credentials._time import Clock
from surefoot.errors import CredentialError
from surefoot.wire import origin_of

__all__ = ["AuthFlow"]

_PROTOCOL: Final = (b"mcp-protocol-version", b"2025-06-18")
"""Since this version the resource is named to the issuer (RFC 8707)."""

_PARAMETER: Final = re.compile(r'(?<![\w-])(resource_metadata|scope)="([^"\\]{1,2048})"')
_SCOPE: Final = re.compile(r"[\x21\x23-\x5b\x5d-\x7e]+")
_UNAUTHORIZED: Final = 401
_FORBIDDEN: Final = 403
_LONG_AGO: Final = 1.0
"""A moment, in seconds of the epoch, at which every token has run out."""


class AuthFlow:
    """Makes credentials of an ``httpx.Auth`` or ``httpx2.Auth``.

    One that remembers a token is driven by one caller at a time, because its lock belongs to one
    event loop: whoever waited for it on another would not be woken.

    Args:
        auth: The auth; sealed away.
        url: The endpoint that it signs for.
        scopes: The scopes to ask for.
        http_client: Makes the client that the flow's own requests go through.
        timeout: Seconds for each of them.
        clock: Time.
        guard: May change or forbid one of them.
    """

    __slots__ = (
        "_auth", "_clock", "_guard", "_http_client", "_last", "_module", "_resource_metadata",
        "_scopes", "_timeout", "_turns", "_under_way", "_url", "remembers",
    )  # fmt: skip

    def __init__(
        self,
        auth: Any,
        *,
        url: str,
        scopes: tuple[str, ...],
        http_client: Callable[[], Any] | None,
        timeout: float,
        clock: Clock,
        guard: Guard | None = None,
    ) -> None:
        module = module_of(auth)
        if module is None:
            message = "provider: must be an httpx.Auth or an httpx2.Auth"
            raise TypeError(message)
        self._module: ModuleType = module
        self._auth = sealed(auth)
        self._url = url
        self._scopes = scopes
        self._http_client = http_client
        self._timeout = timeout
        self._clock = clock
        self._guard = guard
        self._last: dict[tuple[str, tuple[str, ...]], Issued] = {}
        self._resource_metadata: str | None = None
        self._turns: SingleFlight[Issued | CredentialError] = SingleFlight()
        self._under_way = False
        self.remembers: bool = hasattr(getattr(auth, "context", None), "current_tokens")
        """It keeps a token between requests, as the SDK's providers do, so it is asked seldom."""

    def unbind(self) -> None:
        """Give the flow a lock that no event loop has used; only where nobody else drives it."""
        context = getattr(self._auth(), "context", None)
        if context is not None and hasattr(context, "lock"):
            context.lock = anyio.Lock()

    async def vend(self, request: CredentialRequest, /) -> Issued:
        """Drive the flow to a credential; one that remembers, to a newer one than the last.

        Raises:
            CredentialError: there is none; nothing that was said is quoted.
        """
        ended = await (self._in_turn(request) if self.remembers else self._drive(request))
        if isinstance(ended, CredentialError):
            raise ended
        self._last[request.service, request.scopes] = ended
        return ended

    async def _in_turn(self, request: CredentialRequest) -> Issued | CredentialError:
        """Drive the flow when nobody else does; what it brings is for this request alone."""
        ended: list[Issued | CredentialError] = []

        async def work() -> None:
            if self._under_way:  # on an event loop that was stopped, and never let go of the lock
                self.unbind()
            self._under_way = True
            try:
                ended.append(await self._drive(request))
            finally:
                self._under_way = False

        return await self._turns.run(lambda: ended[0] if ended else None, work)

    async def _drive(self, request: CredentialRequest) -> Issued | CredentialError:
        """Everything that happens while secrets are at hand; returns an error, raises none."""
        http: IssuerHTTP | None = None
        try:
            made = (
                await client_of(self._module) if self._http_client is None else self._http_client()
            )
            async with made as client:
                http = IssuerHTTP(
                    client,
                    self._module,
                    service=request.service,
                    clock=self._clock,
                    timeout=self._timeout,
                    guard=self._guard,
                )
                with hushed():
                    return await self._signed(http, request)
        except CredentialError as error:
            return fresh_copy(error)
        except Exception as error:  # noqa: BLE001 - the SDK's texts quote answers
            if http is not None:
                return fresh_copy(http.failure(error))
            reason = f"the client for the OAuth flow failed: {type(error).__name__}"
            return CredentialError(reason, service=request.service)
        except BaseException as cut:  # noqa: BLE001 - a cancellation passes
            # ... but not with the frames of the flow: their locals hold secrets.
            raise cut.with_traceback(None)  # noqa: B904 - it is the same one

    async def _signed(self, http: IssuerHTTP, request: CredentialRequest) -> Issued:
        """Advance the flow until the request that is never sent carries what we want."""
        last = self._last.get((request.service, request.scopes))
        if request.force or (self.remembers and last is not None):
            self._expire(last)
        probe = self._module.Request("POST", self._url, headers=[_PROTOCOL])
        plain = _lines(probe)
        flow: AsyncGenerator[Any, Any] = self._auth().async_auth_flow(probe)
        heard: set[int] = set()
        try:
            current = await anext(flow)
            while True:
                while current is not probe:
                    current = await flow.asend(await http.send(current))
                lines = tuple(line for line in _lines(probe) if line not in plain)
                same = last is not None and lines == last.lines()
                if not lines or (same and self._is_stale(http, request)):
                    status = _UNAUTHORIZED
                else:
                    status = _FORBIDDEN if self._lacks_scope(request) else None
                if status is None or (status == _FORBIDDEN and status in heard):
                    return Issued(_credential(lines), expires_in=self._life(http))
                if status in heard:
                    break
                heard.add(status)
                current = await flow.asend(await self._challenge(http, request, status))
        except StopAsyncIteration:
            pass
        finally:
            with anyio.CancelScope(shield=True):
                await flow.aclose()
        reason = "the OAuth flow brought no new credential"
        raise CredentialError(reason, service=request.service)

    def _is_stale(self, http: IssuerHTTP, request: CredentialRequest) -> bool:
        """The flow came back with what was vended before, and a newer one is wanted.

        An issuer may answer with the same token as long as it lives; that is as good, unless it
        was rejected.
        """
        return request.force or (self.remembers and not http.came)

    def _lacks_scope(self, request: CredentialRequest) -> bool:
        """The token that is held is known to lack a scope that is asked for."""
        granted = self._granted()
        return granted is not None and not set(request.scopes) <= set(granted)

    def _granted(self) -> list[str] | None:
        """The scopes of the token that is held, where they are known."""
        held = getattr(getattr(self._auth(), "context", None), "current_tokens", None)
        scope = getattr(held, "scope", None)
        return scope.split() if isinstance(scope, str) else None

    async def _challenge(self, http: IssuerHTTP, request: CredentialRequest, status: int) -> Any:
        """The answer that makes the flow authorize: the server's own words where there are any."""
        said = request.challenge
        if said is None and self._resource_metadata is None:
            said = await http.challenge(self._url)
        found = dict(_PARAMETER.findall(said or ""))
        where = found.get("resource_metadata", "")
        if where and origin_of(where) is not None and origin_of(where) == origin_of(self._url):
            self._resource_metadata = where
        parts: list[str] = []
        before: list[str] = []
        if status == _FORBIDDEN:
            parts.append('error="insufficient_scope"')
            before = self._granted() or []  # mcp 1.x does not join them by itself
        scopes = tuple(dict.fromkeys((*before, *self._scopes, *request.scopes)))
        scope = " ".join(scopes) or found.get("scope", "")
        if scope and all(map(_SCOPE.fullmatch, scope.split(" "))):
            parts.append(f'scope="{scope}"')
        if self._resource_metadata is not None:
            parts.append(f'resource_metadata="{self._resource_metadata}"')
        return self._module.Response(
            status,
            headers={"www-authenticate": f"Bearer {', '.join(parts)}".rstrip()},
            content=b"",
            request=self._module.Request("POST", self._url),
        )

    def _expire(self, last: Issued | None) -> None:
        """Let the flow believe that its token ran out, so that it refreshes instead of asking anew.

        Left alone where the flow already holds another one than the last that we vended.
        """
        context: Any = getattr(self._auth(), "context", None)
        held = getattr(getattr(context, "current_tokens", None), "access_token", None)
        if not isinstance(held, str) or not hasattr(context, "token_expiry_time"):
            return
        if last is None or last.secrets() == (held.encode("utf-8", "replace"),):
            context.token_expiry_time = _LONG_AGO

    def _life(self, http: IssuerHTTP) -> float | None:
        """Seconds that the token lives: as just stated, else as the flow remembers."""
        if http.life is not None:
            return http.life
        ends = getattr(getattr(self._auth(), "context", None), "token_expiry_time", None)
        if isinstance(ends, (int, float)) and ends > 0:
            return max(0.0, ends - time.time())
        return None


def _lines(request: Any) -> HeaderLines:
    return tuple((bytes(name).lower(), bytes(value)) for name, value in request.headers.raw)


def _credential(lines: HeaderLines) -> Credential:
    """What was added to the request, as the kind that it is."""
    texts = {name.decode("ascii"): value.decode("latin-1") for name, value in lines}
    value = texts.get("authorization", "")
    if len(texts) == 1 and value[:7] == "Bearer ":
        return Bearer(value[7:])
    return Headers(texts)
