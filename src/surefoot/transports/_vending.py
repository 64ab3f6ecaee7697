"""The law of this file: a credential is vended, put on a copy, used once, and dropped (R119).

The request that the client knows is never touched, so nothing that it later hangs on an answer or
an error holds a secret. While a secret is at hand nothing is raised: the inner function catches,
lets go of the copy, and hands a clean fact to the outer one, which then raises outside of any
``except`` block. So no traceback local, cause or context carries what was vended (R107, R108).

Order: static headers, then the vended ones, then the user's signer, which has the last word over
the bytes (R112, R113). What was secret is sealed onto the answer for the scrub, and dies with it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, Literal

from surefoot.credentials import (
    AuthorizationRequired,
    CredentialProvider,
    CredentialRequest,
    Issued,
    as_issued,
)
from surefoot.errors import AuthorizationRequiredError, CredentialError, SurefootError

from ._errors import cleaned
from ._family import Family, copy_request, family_of, lines_of
from ._recorder import Record, mark_of
from ._seal import SEAL, Seal

if TYPE_CHECKING:
    from surefoot.credentials import Secret

    from ._family import AsyncTransport, HTTPRequest, HTTPResponse

__all__ = ["CREDENTIAL_HEADERS", "Signer", "VendingTransport"]

Signer = Callable[[Any], Awaitable[Any]]
"""Takes the request as it would be sent, and returns it as it shall be sent (R113)."""

CREDENTIAL_HEADERS: Final = frozenset(
    {b"authorization", b"cookie", b"proxy-authorization", b"x-amz-security-token", b"x-api-key"}
)
"""Headers whose values are secret wherever they came from; never ``mcp-session-id``."""

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
        self._refreshable = getattr(credentials, "refreshable", True)
        self._signer = signer
        self._static = [
            (name.lower().encode("ascii"), value.encode("ascii"))
            for name, value in (headers or {}).items()
        ]
        self._static_names = frozenset(name for name, _ in self._static)
        self._asks = {
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

    @property
    def proves_not_sent(self) -> bool | None:
        """As the transport below: this layer sends nothing of its own."""
        return getattr(self.wrapped, "proves_not_sent", None)

    def rewrapped(self, wrapped: AsyncTransport) -> VendingTransport:
        """The same vending over another transport."""
        return VendingTransport(wrapped, **self._settings)

    async def aclose(self) -> None:
        """Close the transport below."""
        await self.wrapped.aclose()

    async def handle_async_request(self, request: HTTPRequest) -> HTTPResponse:
        """Vend, apply to a copy, sign, send once, drop."""
        family = family_of(request)
        record = mark_of(request)
        response, error = await self._send(request, family, record)
        if error is not None:
            raise error
        return response

    async def _send(
        self, request: HTTPRequest, family: Family, record: Record | None
    ) -> tuple[HTTPResponse, Exception | None]:
        """All that happens while a secret is at hand; it returns an error and raises none."""
        sent = record.sent[-1] if record is not None and record.sent else None
        if sent is not None:
            sent.effect = "not_sent"
        issued, error = await self._vend(record)
        if error is not None:
            return None, error
        copy = self._apply(request, issued)
        try:
            if self._signer is not None:
                copy, error = await self._sign(copy)
                if error is not None:
                    return None, error
            if sent is not None:
                sent.effect = "unknown"
                sent.credential = None if issued is None else issued.kind
                sent.refreshable = issued is not None and self._refreshable
            try:
                response = await self.wrapped.handle_async_request(copy)
            except Exception as raised:  # noqa: BLE001 - its text or its frames may quote the headers
                return None, cleaned(raised, family, self._seal(request, copy, issued))
            response.extensions[SEAL] = self._seal(request, copy, issued)
        except BaseException as cut:
            # A cancellation passes, but not with the frames below it: their locals hold the copy.
            cut.__traceback__ = None
            raise
        else:
            return response, None
        finally:
            del copy, issued

    async def _vend(self, record: Record | None) -> tuple[Issued | None, Exception | None]:
        """Ask the provider; whatever it raises is told apart, and never quoted."""
        if self._provider is None:
            return None, None
        asks = self._plain
        if record is not None and record.force:
            asks = CredentialRequest(**self._asks, force=True, rejected=record.rejected)
            record.force = False
        try:
            answer = await self._provider.vend(asks)
            issued = as_issued(answer, service=self._service)
        except SurefootError as error:
            return None, _bare(error)
        except Exception as error:  # noqa: BLE001 - a provider's text quotes secrets
            reason = f"the provider raised {type(error).__name__}"
            return None, CredentialError(reason, service=self._service)
        if isinstance(issued, AuthorizationRequired):
            return None, AuthorizationRequiredError(
                service=issued.service,
                authorization_url=issued.authorization_url,
                session_uri=issued.session_uri,
            )
        if record is not None:
            record.rejected = issued.generation
        return issued, None

    def _apply(self, request: HTTPRequest, issued: Issued | None) -> HTTPRequest:
        """A copy of the request: its own lines, the static ones, then what was vended (R112)."""
        if issued is None:
            return copy_request(request, drop=self._static_names, add=self._static)
        vended = issued.lines()
        names = {name for name, _ in vended}
        static = self._static
        if not names.isdisjoint(self._static_names):
            static = [line for line in static if line[0] not in names]
        return copy_request(request, drop=self._static_names | names, add=[*static, *vended])

    async def _sign(self, copy: HTTPRequest) -> tuple[HTTPRequest, Exception | None]:
        signer: Any = self._signer
        try:
            signed = await signer(copy)
        except SurefootError as error:
            return copy, _bare(error)
        except Exception as error:  # noqa: BLE001 - a signer's text may quote what it signs
            reason = f"the signer raised {type(error).__name__}"
            return copy, CredentialError(reason, service=self._service)
        if type(signed) is not type(copy):
            reason = "the signer must return the request that it was given, or one of its kind"
            return copy, CredentialError(reason, service=self._service)
        return signed, None

    def _seal(self, request: HTTPRequest, copy: HTTPRequest, issued: Issued | None) -> Seal:
        """What was secret in this attempt: vended, added by the signer, or already there."""
        there = [value for name, value in lines_of(request) if name in CREDENTIAL_HEADERS]
        if self._signer is not None:
            before = {
                *lines_of(request),
                *self._static,
                *(() if issued is None else issued.lines()),
            }
            there.extend(
                value
                for name, value in lines_of(copy)
                if (name, value) not in before and name not in _PUBLIC
            )
        return Seal(issued, tuple(there))


def _bare(error: SurefootError) -> SurefootError:
    """One of our own errors, without the frames and the causes in which a secret may lie."""
    error.__cause__ = error.__context__ = None
    return error.with_traceback(None)
