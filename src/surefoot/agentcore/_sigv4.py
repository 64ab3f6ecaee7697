"""The law of this file: each attempt is signed over what will arrive, and over nothing else.

Signed is the small set of headers that no proxy rewrites: host, content type, the MCP headers and
AgentCore's own, the date and the session token. The path is signed as it goes over the wire, and
for this service it is encoded once more in the canonical request. Headers of an earlier signature
are removed first: keys without a token would otherwise sign the token of the keys before them.

The cryptography is botocore's ``SigV4Auth``; its ``add_auth`` is left alone, because it prints the
canonical request, session token included, in its log, and reads the machine's clock by itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC
from typing import TYPE_CHECKING, Any, Final

import anyio.to_thread

from surefoot.credentials import sealed, unseen
from surefoot.errors import CredentialError
from surefoot.transports import SystemClock
from surefoot.wire import is_private

from ._address import SERVICE, checked_region
from ._aws_credentials import AwsCredentials
from ._extra import load
from ._options import a_clock, a_signing_name

if TYPE_CHECKING:
    from surefoot.transports import Clock

    from ._aws_credentials import FrozenKeys

__all__ = ["SigV4Signer"]

_SIGNED: Final = (b"content-type", b"host")
_SIGNED_FAMILIES: Final = (b"mcp-", b"x-amzn-bedrock-agentcore-")
_STALE: Final = frozenset(
    {b"authorization", b"date", b"x-amz-content-sha256", b"x-amz-date", b"x-amz-security-token"}
)
_STAMP: Final = "%Y%m%dT%H%M%SZ"
_LONG: Final = 1024 * 1024
"""Bytes of a body from which hashing it takes long enough to be done in a thread."""


class _Signable:
    """What ``SigV4Auth`` reads of a request; botocore's own request costs as much as signing."""

    __slots__ = ("body", "context", "headers", "method", "params", "url")

    def __init__(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes, stamp: str
    ) -> None:
        self.method = method
        self.url = url
        self.headers = headers
        self.body = body
        self.params = None
        self.context = {"timestamp": stamp}


class SigV4Signer:
    """Signs requests with AWS Signature Version 4, for ``Gateway(signer=...)``.

    Args:
        region: The region of the scope.
        aws: A botocore or boto3 session, a botocore credentials object, or ``None`` for the default
            chain (environment, profile, container, instance). Asked for every attempt.
        service: The signing name of the service.
        clock: Time. A signature is accepted for about five minutes around its date.

    Raises:
        ImportError: botocore is not installed.
        TypeError: an option has the wrong type.
        ValueError: an option cannot be one.
    """

    __slots__ = ("_auth", "_clock", "_keys", "_region", "_service")

    @unseen
    def __init__(
        self,
        *,
        region: str,
        aws: object = None,
        service: str = SERVICE,
        clock: Clock | None = None,
    ) -> None:
        a_clock(clock)
        self._region = checked_region(region)
        self._service = a_signing_name(service)
        self._keys = AwsCredentials(aws)
        self._clock: Clock = clock or SystemClock()
        self._auth: Any = load("botocore.auth").SigV4Auth

    def __repr__(self) -> str:
        return f"SigV4Signer(region={self._region!r}, service={self._service!r})"

    async def __call__(self, request: Any) -> Any:
        """Return the request with a signature of its own.

        Raises:
            CredentialError: no keys could be had, the body is not whole, or the request would go
                over plain http beyond loopback. Nothing was sent.
        """
        url = request.url
        if not is_private(url.scheme, url.host):
            raise CredentialError("a signed request goes over https; plain http is for loopback")
        try:
            body: bytes | None = request.content
        except Exception:  # noqa: BLE001 - RequestNotRead of either family
            body = None
        if body is None:
            raise CredentialError("a body that is not whole cannot be signed")
        keys = await self._keys.frozen()
        if len(body) > _LONG:
            # Sealed, because the future of a thread shows its result.
            made = await anyio.to_thread.run_sync(lambda: sealed(self._lines(request, body, keys)))
            lines = made()
        else:
            lines = self._lines(request, body, keys)
        headers = request.headers
        for name in {line[0].lower() for line in headers.raw} & _STALE:
            del headers[name.decode("ascii")]
        headers.update(lines)
        return request

    def _lines(self, request: Any, body: bytes, keys: FrozenKeys) -> dict[str, str]:
        """The headers that sign this request."""
        stamp = self._clock.now().astimezone(UTC).strftime(_STAMP)
        added = {"x-amz-date": stamp}
        if keys.token:
            added["x-amz-security-token"] = keys.token
        headers = {**_signed_headers(request), **added}
        signable = _Signable(request.method, _wire_url(request), headers, body, stamp)
        auth = self._auth(keys, self._service, self._region)
        text = auth.string_to_sign(signable, auth.canonical_request(signable))
        added["authorization"] = (
            f"AWS4-HMAC-SHA256 Credential={auth.scope(signable)}, "
            f"SignedHeaders={';'.join(sorted(headers))}, "
            f"Signature={auth.signature(text, signable)}"
        )
        return added


def _signed_headers(request: Any) -> dict[str, str]:
    """The headers that arrive as they are sent; several lines of one name count as one."""
    kept: dict[str, str] = {}
    for raw, value in request.headers.raw:
        name = raw.lower()
        if name in _SIGNED or name.startswith(_SIGNED_FAMILIES):
            key, text = name.decode("ascii"), value.decode("latin-1")
            kept[key] = f"{kept[key]},{text}" if key in kept else text
    return kept


def _wire_url(request: Any) -> str:
    """The URL with path and query as they go over the wire: ``url.path`` would be decoded."""
    return f"{request.url.scheme}://host{request.url.raw_path.decode('ascii')}"
