"""The law of this file: a request is let in only if it was signed here, now, and for this.

The checks and their order are those of the AWS services; that a signature is good for one request
alone is stricter than AWS, because a repeat that is not signed afresh is what this must find.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final, Literal

from surefoot.testing._agentcore_sigv4 import (
    Authorization,
    SigV4Keys,
    canonical_request,
    header_values,
    read_authorization,
    signature,
    string_to_sign,
)
from surefoot.testing._checks import a_number_of_seconds, a_text

if TYPE_CHECKING:
    from surefoot.testing._wire import HeaderLine

__all__ = ["SigV4Verifier", "SignatureFault", "SignatureRefusedError", "VerifiedSignature"]

SignatureFault = Literal[
    "missing",
    "not-sigv4",
    "malformed",
    "unknown-key",
    "wrong-token",
    "expired-token",
    "wrong-scope",
    "unsigned-header",
    "too-old",
    "too-new",
    "mismatch",
    "reused",
]
"""Why a request was refused.

`missing` no Authorization at all, `not-sigv4` another scheme, `malformed` cannot be read,
`wrong-token` a session token that is absent, or is not that of the key, `unsigned-header` a header
that has to be signed and was not, `too-old` and `too-new` an X-Amz-Date beyond the skew.
"""

_MUST_BE_SIGNED: Final = ("host", "x-amz-date")
_UNREADABLE_DATE: Final = "X-Amz-Date is not of the form 20260131T235959Z"


class SignatureRefusedError(Exception):
    """A request that the verifier does not let in.

    The text is one that a test may print: it holds no header value.
    """

    def __init__(
        self, fault: SignatureFault, message: str, *, canonical: str = "", to_sign: str = ""
    ) -> None:
        super().__init__(message)
        self.fault: SignatureFault = fault
        self.canonical = canonical
        """The canonical request that the verifier computed, where it came so far."""
        self.to_sign = to_sign
        """The string to sign that belongs to it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifiedSignature:
    """A signature that was found good."""

    access_key_id: str
    signed_headers: tuple[str, ...]
    dated: datetime
    """X-Amz-Date."""
    region: str
    service: str
    signature: str = field(repr=False)
    with_token: bool
    """Whether a session token was signed with it."""


class SigV4Verifier:
    """Checks AWS signatures (Signature Version 4, in the Authorization header) on its own.

    Written from the specification, without botocore.

    Args:
        keys: the keys that are known, by access key id; looked at for each request.
        service: the service that a signature must be for.
        region: the region that it must be for.
        skew: seconds that X-Amz-Date may be away from the verifier's time; AWS allows 300.
        reuse_after: seconds after X-Amz-Date from which a signature that was seen before is
            refused. X-Amz-Date has whole seconds, so the same request signed twice within one of
            them has one signature: below 1, an honest repeat may be refused. `None` never refuses.
        expired: access key ids whose session token has expired; looked at for each request.

    Raises:
        TypeError: an option has the wrong type.
        ValueError: an option cannot mean anything.

    """

    def __init__(
        self,
        keys: Mapping[str, SigV4Keys],
        *,
        service: str = "bedrock-agentcore",
        region: str = "us-west-2",
        skew: float = 300.0,
        reuse_after: float | None = 1.5,
        expired: Collection[str] = (),
    ) -> None:
        self._keys = keys
        self._expired = expired
        self._service = a_text("SigV4Verifier(service)", service)
        self._region = a_text("SigV4Verifier(region)", region)
        self._skew = a_number_of_seconds("SigV4Verifier(skew)", skew)
        self._reuse_after = (
            None
            if reuse_after is None
            else a_number_of_seconds("SigV4Verifier(reuse_after)", reuse_after)
        )
        self._seen: set[str] = set()

    def verify(
        self,
        method: str,
        target: str,
        headers: Iterable[tuple[bytes, bytes]],
        body: bytes,
        *,
        now: datetime,
    ) -> VerifiedSignature:
        """Check one request.

        Args:
            method: the HTTP method.
            target: path and query as they were on the wire.
            headers: the header lines as they arrived.
            body: the body.
            now: the verifier's time of day, aware.

        Raises:
            SignatureRefusedError: the request is not let in.

        """
        lines = list(headers)
        asked = self._authorization(lines)
        keys = self._known(asked, lines)
        dated, amz_date = self._dated(lines, now)
        self._check_scope(asked, amz_date)
        self._check_signed(asked, lines)
        canonical = canonical_request(
            method, target, lines, body, signed_headers=asked.signed_headers
        )
        to_sign = string_to_sign(canonical, amz_date, asked.scope)
        wanted = signature(keys.secret_access_key, to_sign, asked.scope)
        claimed = header_values(lines, "x-amz-content-sha256")
        whole = claimed in ([], [hashlib.sha256(body).hexdigest().encode()])
        if not whole or not hmac.compare_digest(wanted, asked.signature):
            raise SignatureRefusedError(
                "mismatch",
                "the signature is not that of this request",
                canonical=canonical,
                to_sign=to_sign,
            )
        self._check_reuse(asked.signature, dated, now)
        return VerifiedSignature(
            access_key_id=asked.access_key_id,
            signed_headers=asked.signed_headers,
            dated=dated,
            region=asked.scope.region,
            service=asked.scope.service,
            signature=asked.signature,
            with_token=keys.session_token is not None,
        )

    def _authorization(self, lines: list[HeaderLine]) -> Authorization:
        values = header_values(lines, "authorization")
        if not values:
            raise SignatureRefusedError("missing", "the request has no Authorization header")
        if len(values) > 1:
            raise SignatureRefusedError("malformed", "the request has several Authorization lines")
        text = values[0].decode("latin-1").strip()
        if not text.startswith("AWS4-HMAC-SHA256"):
            raise SignatureRefusedError("not-sigv4", "the Authorization header is of another kind")
        asked = read_authorization(text)
        if asked is None:
            raise SignatureRefusedError("malformed", "the Authorization header cannot be read")
        return asked

    def _known(self, asked: Authorization, lines: list[HeaderLine]) -> SigV4Keys:
        keys = self._keys.get(asked.access_key_id)
        if keys is None:
            raise SignatureRefusedError("unknown-key", "the access key id is not known")
        sent = [value.strip() for value in header_values(lines, "x-amz-security-token")]
        wanted = [] if keys.session_token is None else [keys.session_token.encode()]
        if sent != wanted:
            what = "is not that of the key" if sent else "is missing"
            raise SignatureRefusedError("wrong-token", f"the session token {what}")
        if keys.access_key_id in self._expired:
            raise SignatureRefusedError("expired-token", "the session token has expired")
        return keys

    def _dated(self, lines: list[HeaderLine], now: datetime) -> tuple[datetime, str]:
        values = header_values(lines, "x-amz-date")
        if len(values) != 1:
            raise SignatureRefusedError("malformed", "the request has not one X-Amz-Date")
        text = values[0].decode("latin-1").strip()
        try:
            dated = datetime.strptime(text, "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)
        except ValueError:
            raise SignatureRefusedError("malformed", _UNREADABLE_DATE) from None
        age = (now - dated).total_seconds()
        if age > self._skew:
            raise SignatureRefusedError("too-old", f"X-Amz-Date is {age:.0f} s ago")
        if -age > self._skew:
            raise SignatureRefusedError("too-new", f"X-Amz-Date is {-age:.0f} s ahead")
        return dated, text

    def _check_scope(self, asked: Authorization, amz_date: str) -> None:
        scope = asked.scope
        for what, sent, wanted in (
            ("date", scope.date, amz_date[:8]),
            ("region", scope.region, self._region),
            ("service", scope.service, self._service),
        ):
            if sent != wanted:
                raise SignatureRefusedError("wrong-scope", f"the scope's {what} is not {wanted}")

    def _check_signed(self, asked: Authorization, lines: list[HeaderLine]) -> None:
        names = asked.signed_headers
        if list(names) != sorted({name.lower() for name in names}):
            raise SignatureRefusedError(
                "malformed", "SignedHeaders is not in order, in lower case, each name once"
            )
        ours = {name.decode("latin-1").lower() for name, _ in lines}
        needed = [*_MUST_BE_SIGNED, *sorted(n for n in ours if n.startswith("x-amz-"))]
        for name in needed:
            if name not in names:
                raise SignatureRefusedError("unsigned-header", f"{name} is not signed")

    def _check_reuse(self, made: str, dated: datetime, now: datetime) -> None:
        seen = made in self._seen
        self._seen.add(made)
        if seen and self._reuse_after is not None:
            age = (now - dated).total_seconds()
            if age >= self._reuse_after:
                raise SignatureRefusedError("reused", "the signature was used before")
