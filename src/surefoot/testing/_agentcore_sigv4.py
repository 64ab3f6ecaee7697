"""The law of this file: a signature is computed from the AWS specification, and from nothing else.

Pure: the parts of a request in, text out; `hashlib` and `hmac` alone, so that it can disagree with
the library under test. Source: AWS IAM User Guide, "Create a signed AWS API request" (Signature
Version 4), for every service but S3: the path as sent is encoded once more.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final
from urllib.parse import quote, unquote_to_bytes

from surefoot.testing._checks import a_text

if TYPE_CHECKING:
    from surefoot.testing._wire import HeaderLine

__all__ = [
    "ALGORITHM",
    "Authorization",
    "Scope",
    "SigV4Keys",
    "canonical_request",
    "header_values",
    "read_authorization",
    "signature",
    "string_to_sign",
]

ALGORITHM: Final = "AWS4-HMAC-SHA256"
_TERMINATOR: Final = "aws4_request"
_UNRESERVED: Final = "-_.~"

_AUTHORIZATION = re.compile(
    rf"{ALGORITHM} +Credential=(?P<credential>[^,\s]+) *, *"
    r"SignedHeaders=(?P<signed>[!-+\--~]+) *, *Signature=(?P<signature>[0-9a-f]{64})"
)


@dataclass(frozen=True, slots=True)
class SigV4Keys:
    """AWS credentials that a stand-in knows. The secret parts are in no repr.

    Raises:
        TypeError: a part has the wrong type.
        ValueError: a part is empty.
    """

    access_key_id: str
    secret_access_key: str = field(repr=False)
    session_token: str | None = field(default=None, repr=False)
    """`None` for keys that live long, which come without a token."""

    def __post_init__(self) -> None:
        a_text("SigV4Keys(access_key_id)", self.access_key_id)
        a_text("SigV4Keys(secret_access_key)", self.secret_access_key)
        if self.session_token is not None:
            a_text("SigV4Keys(session_token)", self.session_token)

    def environ(self) -> dict[str, str]:
        """The environment variables by which AWS libraries find these keys."""
        named = {
            "AWS_ACCESS_KEY_ID": self.access_key_id,
            "AWS_SECRET_ACCESS_KEY": self.secret_access_key,
        }
        if self.session_token is not None:
            named["AWS_SESSION_TOKEN"] = self.session_token
        return named


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """What a signature is good for."""

    date: str
    region: str
    service: str

    def __str__(self) -> str:
        return f"{self.date}/{self.region}/{self.service}/{_TERMINATOR}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Authorization:
    """An Authorization header, taken apart."""

    access_key_id: str
    scope: Scope
    signed_headers: tuple[str, ...]
    signature: str = field(repr=False)


def read_authorization(value: str) -> Authorization | None:
    """Take an Authorization header apart; `None` where it is not one of Signature Version 4."""
    found = _AUTHORIZATION.fullmatch(value.strip())
    if found is None:
        return None
    parts = found["credential"].split("/")
    if len(parts) < 5 or parts[-1] != _TERMINATOR:
        return None
    return Authorization(
        access_key_id="/".join(parts[:-4]),
        scope=Scope(date=parts[-4], region=parts[-3], service=parts[-2]),
        signed_headers=tuple(found["signed"].split(";")),
        signature=found["signature"],
    )


def header_values(headers: Iterable[HeaderLine], name: str) -> list[bytes]:
    """Every value that was sent under a header name, in order; the name without case."""
    wanted = name.lower().encode()
    return [value for line, value in headers if line.lower() == wanted]


def canonical_request(
    method: str,
    target: str,
    headers: Iterable[HeaderLine],
    body: bytes,
    *,
    signed_headers: Iterable[str],
) -> str:
    """The canonical request.

    Args:
        method: the HTTP method.
        target: the request target as it was on the wire, each byte a Latin-1 character.
        headers: the header lines.
        body: the body.
        signed_headers: lower-case names, in the order in which they are signed.

    """
    lines, names = list(headers), list(signed_headers)
    path, _, query = target.partition("?")
    named = "".join(f"{name}:{_canonical_value(lines, name)}\n" for name in names)
    return "\n".join(
        (
            method,
            _canonical_path(path),
            _canonical_query(query),
            named,
            ";".join(names),
            hashlib.sha256(body).hexdigest(),
        )
    )


def string_to_sign(canonical: str, amz_date: str, scope: Scope) -> str:
    """The text that is signed, for a canonical request and its X-Amz-Date."""
    digest = hashlib.sha256(canonical.encode("utf-8", "surrogateescape")).hexdigest()
    return "\n".join((ALGORITHM, amz_date, str(scope), digest))


def signature(secret_access_key: str, to_sign: str, scope: Scope) -> str:
    """The signature, in hexadecimal."""
    key = b"AWS4" + secret_access_key.encode()
    for part in (scope.date, scope.region, scope.service, _TERMINATOR):
        key = hmac.new(key, part.encode(), hashlib.sha256).digest()
    return hmac.new(key, to_sign.encode(), hashlib.sha256).hexdigest()


def _canonical_path(path: str) -> str:
    """The path without dots and double slashes (RFC 3986, 5.2.4), every byte of it encoded."""
    kept: list[str] = []
    for segment in path.split("/"):
        if segment == "..":
            del kept[-1:]
        elif segment not in {"", "."}:
            kept.append(segment)
    ends_in_folder = path.endswith(("/", "/.", "/.."))
    plain = "/" + "/".join(kept) + ("/" if ends_in_folder and kept else "")
    return quote(plain.encode("latin-1"), safe=f"/{_UNRESERVED}")


def _canonical_query(query: str) -> str:
    """The parameters, decoded, encoded in one way, and sorted by name and value."""
    pairs: list[tuple[str, str]] = []
    for piece in query.encode("latin-1").split(b"&"):
        if piece:
            name, _, value = piece.partition(b"=")
            pairs.append((_encoded(name), _encoded(value)))
    return "&".join(f"{name}={value}" for name, value in sorted(pairs))


def _encoded(text: bytes) -> str:
    return quote(unquote_to_bytes(text), safe=_UNRESERVED)


def _canonical_value(headers: Iterable[HeaderLine], name: str) -> str:
    """Every value of a header, trimmed, its inner runs of blanks made one, joined with commas."""
    values = (b" ".join(value.split()) for value in header_values(headers, name))
    return b",".join(values).decode("utf-8", "surrogateescape")
