"""The law of this file: a credential is vended, put on a copy, used once, and dropped (R119).

The request that the client knows is never touched, so nothing that it later hangs on an answer or
an error holds a secret. While a secret is at hand nothing is raised: an error is noted, the copy is
let go of, and then it is raised outside of any ``except`` block. So no traceback local, cause or
context carries what was vended (R107, R108).

Order: static headers, then the vended ones, then the user's signer, which has the last word over
the bytes (R112, R113). What was secret is sealed onto the answer for the scrub, and dies with it.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, Literal, Self, cast
from urllib.parse import unquote_to_bytes

from surefoot.credentials import (
    AuthorizationRequired,
    CredentialProvider,
    CredentialRequest,
    Issued,
    as_issued,
)
from surefoot.errors import AuthorizationRequiredError, CredentialError, NotSentError

from ._errors import bared, cleaned
from ._family import copy_request, family_of, lines_of, values_of
from ._recorder import Record, Sent, mark_of
from ._seal import SEAL, Seal
from ._streams import saying_nothing
from ._watched import watched

if TYPE_CHECKING:
    from surefoot.credentials import Secret

    from ._family import AsyncTransport, HTTPRequest, HTTPResponse

__all__ = ["CREDENTIAL_HEADERS", "Signer", "VendingTransport"]

Signer = Callable[[Any], Awaitable[Any]]
"""Takes the request as it would be sent, and returns it as it shall be sent (R113)."""

CREDENTIAL_HEADERS: Final = frozenset(
    [
        *(b"api-key", b"authorization", b"cookie", b"ocp-apim-subscription-key", b"private-token"),
        *(b"proxy-authorization", b"x-amz-security-token", b"x-api-key", b"x-auth-token"),
        b"x-goog-api-key",
    ]
)
"""Headers whose values are secret wherever they came from; never ``mcp-session-id``."""

_UNAUTHORIZED: Final = 401
_REDIRECTS: Final = 300
_MOST_LEARNED: Final = 64
"""Scopes kept from challenges besides the app's own: a server may name new ones for every call, and
each vend from then on would ask for all of them. The oldest go first; a call that lacks one is told
so, and steps up again."""

_MIN_VALUE: Final = 16  # a shorter one may be a word
_OPEN_NAME: Final = re.compile(rb"(?i)x-amz-(?:algorithm|credential|date|expires|signedheaders)")
_SECRET_NAME: Final = re.compile(rb"(?i)key|token|secret|sig|auth|pass|code|cred|jwt|session")

_PUBLIC: Final = frozenset({b"content-length", b"date", b"host", b"mcp-session-id", b"x-amz-date"})
"""What a signer may add or change without making a secret of it."""


class VendingTransport:
    """Asks a provider for every attempt, and sends a copy that carries what it vended.

    Args:
        wrapped: The transport below.
        credentials: Who is asked; ``None`` adds no credential.
        signer: Awaited with the finished request; returns the request that is sent.
        service: What the provider is asked for (R111).
        scopes: The scopes it is asked for.
        mode: ``machine`` or ``user``.
        headers: Static headers; a vended one always wins (R112). No secrets belong here.
        principal: The user, in user mode.
        user_token: The user's own token, sealed.

    Raises (from ``handle_async_request``):
        AuthorizationRequiredError: a person must consent first.
        CredentialError: no credential could be had, or the signer failed; nothing was sent.
        Exception: what the transport below raised, without anything that it said about headers.
    """

    def __init__(
        self,
        wrapped: AsyncTransport,
        *,
        credentials: CredentialProvider | None = None,
        signer: Signer | None = None,
        service: str = "gateway",
        scopes: tuple[str, ...] = (),
        mode: Literal["machine", "user"] = "machine",
        headers: Mapping[str, str] | None = None,
        principal: str | None = None,
        user_token: Secret | None = None,
    ) -> None:
        self.wrapped = wrapped
        self._provider = credentials
        self._refreshable = bool(getattr(credentials, "refreshable", True))
        self._steps_up = bool(getattr(credentials, "steps_up", self._refreshable))
        self._signer = signer
        self._static = {
            name.lower().encode("ascii"): value.encode("ascii")
            for name, value in (headers or {}).items()
        }
        self._asks: dict[str, Any] = {
            "service": service,
            "scopes": tuple(scopes),
            "mode": mode,
            "principal": principal,
            "user_token": user_token,
        }
        self._plain = CredentialRequest(**self._asks)
        self._service = service
        self._settings: dict[str, Any] = {
            **self._asks, "credentials": credentials, "signer": signer, "headers": headers,
        }  # fmt: skip

    def uses(self, option: Literal["credentials", "signer"]) -> object:
        """The provider, or the signer, that this layer was built with."""
        return self._settings[option]

    @property
    def proves_not_sent(self) -> bool | None:
        """As the transport below: this layer sends nothing of its own."""
        return getattr(self.wrapped, "proves_not_sent", None)

    def rewrapped(self, wrapped: AsyncTransport) -> VendingTransport:
        """The same vending over another transport."""
        return VendingTransport(wrapped, **self._settings)

    async def __aenter__(self) -> Self:
        """Enter the transport below, where it can be entered."""
        enter = getattr(self.wrapped, "__aenter__", None)
        if enter is not None:
            await enter()
        return self

    async def __aexit__(self, *exc: object) -> None:
        """Leave the transport below, where it can be left, or close it."""
        leave = getattr(self.wrapped, "__aexit__", None)
        await (self.aclose() if leave is None else leave(*exc))

    async def aclose(self) -> None:
        """Close the transport below."""
        await self.wrapped.aclose()

    async def handle_async_request(self, request: HTTPRequest) -> HTTPResponse:
        """Vend, apply to a copy, sign, send once, drop."""
        record = mark_of(request)
        sent = record.sent[-1] if record is not None and record.sent else None
        if sent is not None:
            sent.effect = "not_sent"
        issued = copy = put = seal = None
        response: HTTPResponse = None
        error: Exception | None = None
        # In here a secret is at hand: an error is noted, and raised where nothing of it is left.
        try:
            if self._provider is not None:
                issued, error = await self._vend(self._provider, record)
            if error is None:
                put = self._static if issued is None else {**self._static, **dict(issued.lines())}
                copy = copy_request(request, put=put)
                if self._signer is not None:
                    copy, error = await self._sign(copy)
            if error is None:
                error = self._leaves(sent, record, issued)
            if error is None:
                seal = self._seal(request, copy, issued, record)
                try:
                    response = await self.wrapped.handle_async_request(copy)
                except Exception as raised:  # noqa: BLE001 - its text or frames may quote the headers
                    error = cleaned(raised, family_of(request), seal)
                    seal = None
                else:
                    if issued is not None:
                        self._heard(response.status_code, issued, record)
                    response.extensions[SEAL] = seal
        except BaseException as cut:
            # A cancellation passes, but not with the frames below it: their locals hold the copy.
            bared(cut)
            seal = None
            raise
        finally:
            del issued, copy, put
        if error is not None:
            raise error
        return response if seal is None else saying_nothing(response, family_of(request), seal)

    def _leaves(
        self, sent: Sent | None, record: Record | None, issued: Issued | None
    ) -> NotSentError | None:
        """Note that an attempt leaves now; unless its caller has left, too."""
        if record is not None:
            if record.abandoned:
                record.end("not_sent", "cancelled")
                return NotSentError(cause="cancelled", tool=record.call.tool)
            if record.late is not None and record.late():
                return NotSentError(cause="deadline", tool=record.call.tool)
        if sent is not None:
            sent.effect = "unknown"
            if issued is not None:
                sent.credential = issued.kind
                sent.refreshable = self._refreshable
                sent.steps_up = self._steps_up
        return None

    async def _vend(
        self, provider: CredentialProvider, record: Record | None
    ) -> tuple[Issued | None, Exception | None]:
        """Ask the provider; whatever it raises is told apart, and never quoted."""
        asks = self._plain
        if record is not None:
            if record.force:
                asks = replace(
                    asks,
                    scopes=tuple(dict.fromkeys((*asks.scopes, *record.missing))),
                    force=True,
                    rejected=record.rejected,
                    challenge=record.challenge,
                )
                record.force = False
            record.scopes = asks.scopes
        try:
            issued = as_issued(await watched(provider.vend(asks)), service=self._service)
        except Exception as error:  # noqa: BLE001 - a provider's text quotes secrets
            return None, self._failure("the provider", error)
        if isinstance(issued, AuthorizationRequired):
            return None, AuthorizationRequiredError(
                service=issued.service,
                authorization_url=issued.authorization_url,
                session_uri=issued.session_uri,
            )
        if record is not None:
            record.rejected = issued.generation
            record.vended(self._service, issued.kind)
        return issued, None

    def _heard(self, status: int, issued: Issued, record: Record | None) -> None:
        """Note that a server accepted it, and that scopes were missing which let a call in now."""
        if status != _UNAUTHORIZED:
            issued.generation.accepted = True
        if record is None or not record.missing or status >= _REDIRECTS:
            return
        own: tuple[str, ...] = self._asks["scopes"]
        let_in = dict.fromkeys(record.missing)
        learned = [name for name in self._plain.scopes if name not in own and name not in let_in]
        learned += [name for name in let_in if name not in own]
        self._plain = replace(self._plain, scopes=(*own, *learned[-_MOST_LEARNED:]))
        record.missing = ()

    async def _sign(self, copy: HTTPRequest) -> tuple[HTTPRequest, Exception | None]:
        signer: Any = self._signer
        try:
            signed = await watched(signer(copy))
        except Exception as error:  # noqa: BLE001 - a signer's text may quote what it signs
            return copy, self._failure("the signer", error)
        if type(signed) is not type(copy):
            reason = "the signer must return the request that it was given, or one of its kind"
            return copy, CredentialError(reason, service=self._service)
        return signed, None

    def _failure(self, whose: str, error: Exception) -> Exception:
        """What went wrong before anything was sent, in words of our own."""
        if isinstance(error, (AuthorizationRequiredError, CredentialError)):
            return _plain(error)
        return CredentialError(f"{whose} raised {type(error).__name__}", service=self._service)

    def _seal(
        self,
        request: HTTPRequest,
        copy: HTTPRequest,
        issued: Issued | None,
        record: Record | None,
    ) -> Seal:
        """What was secret in this attempt: vended, added by the signer, or already there."""
        before = None if record is None else record.seal
        seal = Seal(lambda: (issued, self._others(request, copy, issued)), before)
        if record is not None and record.sent:
            record.sent[-1].seal = seal
        return seal

    def _others(
        self, request: HTTPRequest, copy: HTTPRequest, issued: Issued | None
    ) -> tuple[bytes, ...]:
        """All that was secret besides what was vended."""
        there = values_of(request, CREDENTIAL_HEADERS)
        there += [value for name, value in self._static.items() if name in CREDENTIAL_HEADERS]
        if self._signer is not None:
            before = {
                *lines_of(request),
                *self._static.items(),
                *(() if issued is None else issued.lines()),
            }
            there += [
                value
                for name, value in lines_of(copy)
                if (name, value) not in before and name not in _PUBLIC
            ]
        there += _in_query(request.url.query, copy.url.query)
        return tuple(there)


def _plain(error: AuthorizationRequiredError | CredentialError) -> Exception:
    """The same facts, as an error of ours: what another kind of it holds besides is its own."""
    kind = next(base for base in type(error).__mro__ if base.__module__.startswith("surefoot."))
    if kind is type(error):
        return bared(error)
    if isinstance(error, AuthorizationRequiredError):
        return AuthorizationRequiredError(
            service=error.service,
            authorization_url=error.authorization_url,
            session_uri=error.session_uri,
        )
    made: CredentialError = cast("Any", kind)(error.reason, service=error.service)
    return made


def _in_query(before: bytes, after: bytes) -> list[bytes]:
    """The values of a query that a signer put there, or whose names say that they are secret."""
    if not after:
        return []
    known = before.split(b"&")
    found: list[bytes] = []
    for pair in after.split(b"&"):
        name, _, value = pair.partition(b"=")
        if len(value) < _MIN_VALUE or _OPEN_NAME.fullmatch(name):
            continue
        if pair not in known or _SECRET_NAME.search(name):
            found.append(unquote_to_bytes(value))
    return found
