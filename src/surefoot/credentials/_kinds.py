"""The law of this file: a credential is checked and laid out once, when it is built, and is blind.

Four kinds, one face: ``kind``, ``lines()`` for the wire and ``secrets()`` for the scrub. Nothing
else can be asked of one. A value that may not stand in a header raises ``InvalidCredentialError``,
which names the rule and holds neither the value nor a frame of ours that does (B8, R108).
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar, Literal, cast, final

from surefoot.credentials._blind import Blind, sealed
from surefoot.credentials._validation import broken_header_name, broken_token, broken_value
from surefoot.errors import InvalidCredentialError

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["ApiKey", "Basic", "Bearer", "Credential", "CredentialKind", "HeaderLines", "Headers"]

CredentialKind = Literal["bearer", "api-key", "basic", "headers"]
"""The closed set of kinds, as evidence names them."""

HeaderLines = tuple[tuple[bytes, bytes], ...]
"""Header lines as the HTTP stack takes them: lower-case name, value."""


class Credential(Blind):
    """What every kind can be asked: its kind, its header lines, its secrets."""

    __slots__ = ("_open",)

    kind: ClassVar[CredentialKind]
    """Which kind it is; not a secret."""

    _open: Callable[[], tuple[HeaderLines, tuple[bytes, ...]]]

    def lines(self) -> HeaderLines:
        """Return the header lines, laid out once when the credential was built."""
        return self._open()[0]

    def secrets(self) -> tuple[bytes, ...]:
        """Return each value that must not come back in an answer (B7)."""
        return self._open()[1]


@final
class Bearer(Credential):
    """``Authorization: Bearer <token>`` (RFC 6750 section 2.1).

    Raises:
        InvalidCredentialError: the token may not stand in a header (B8), or brings the word
            ``Bearer`` with it; it is not shown.
    """

    __slots__ = ()
    kind: ClassVar[CredentialKind] = "bearer"

    def __init__(self, token: str, /) -> None:
        broken = _first(("token", broken_token(token)))
        if broken is None:
            _lay(self, [("authorization", f"Bearer {token}")], [token])
        del token  # what is raised below carries this frame, and a frame carries its locals
        if broken is not None:
            raise InvalidCredentialError(broken)


@final
class ApiKey(Credential):
    """One header that holds a key, ``x-api-key`` unless named otherwise.

    Raises:
        InvalidCredentialError: the value or the header's name may not stand in a header (B8).
    """

    __slots__ = ()
    kind: ClassVar[CredentialKind] = "api-key"

    def __init__(self, value: str, /, *, header: str = "x-api-key") -> None:
        broken = _first(("value", broken_value(value)), ("header", broken_header_name(header)))
        if broken is None:
            _lay(self, [(header, value)], [value])
        del value, header  # the two are easily swapped, so neither is left to a traceback
        if broken is not None:
            raise InvalidCredentialError(broken)


@final
class Basic(Credential):
    """``Authorization: Basic <base64 of user:password>`` (RFC 7617).

    The password and the encoded pair are secret; where the password is empty the user is the key,
    and is secret instead.

    Raises:
        InvalidCredentialError: a part breaks B8, the user holds a colon, or both are empty.
    """

    __slots__ = ()
    kind: ClassVar[CredentialKind] = "basic"

    def __init__(self, user: str, password: str, /) -> None:
        broken = _first(
            ("user", broken_value(user, may_be_empty=True)),
            ("password", broken_value(password, may_be_empty=True)),
        ) or _broken_pair(user, password)
        if broken is None:
            pair = b64encode(f"{user}:{password}".encode("ascii")).decode("ascii")
            _lay(self, [("authorization", f"Basic {pair}")], [password or user, pair])
            del pair
        del user, password
        if broken is not None:
            raise InvalidCredentialError(broken)


@final
class Headers(Credential):
    """Several headers vended together, each value of them secret.

    Raises:
        InvalidCredentialError: there is none, a name comes twice (case does not count), or a name
            or a value may not stand in a header (B8). Neither is shown.
    """

    __slots__ = ()
    kind: ClassVar[CredentialKind] = "headers"

    def __init__(self, headers: Mapping[str, str], /) -> None:
        broken = _broken_headers(headers)
        if broken is None:
            _lay(self, list(headers.items()), list(headers.values()))
        del headers
        if broken is not None:
            raise InvalidCredentialError(broken)


def _lay(credential: Credential, headers: list[tuple[str, str]], secrets: list[str]) -> None:
    """Encode checked text into the lines of the wire, and seal them into the credential."""
    lines = tuple((name.lower().encode("ascii"), value.encode("ascii")) for name, value in headers)
    values = tuple(secret.encode("ascii") for secret in secrets)
    object.__setattr__(credential, "_open", sealed((lines, values)))


def _first(*checks: tuple[str, str | None]) -> str | None:
    """Name the first option that broke a rule."""
    return next((f"{name}: {broken}" for name, broken in checks if broken is not None), None)


def _broken_pair(user: str, password: str) -> str | None:
    """Check what two good parts can still get wrong together (RFC 7617 section 2)."""
    if ":" in user:
        return "user: must not hold a colon"
    return None if user or password else "user and password: must not both be empty"


def _broken_headers(headers: object) -> str | None:
    """Check a whole mapping; the option is named, a header never."""
    if not isinstance(headers, Mapping):
        return "headers: must be a mapping of name to value"
    if not headers:
        return "headers: must not be empty"
    seen: set[str] = set()
    for name, value in cast("Mapping[object, object]", headers).items():
        broken = _first(
            ("a header's name", broken_header_name(name)), ("a header's value", broken_value(value))
        )
        if broken is not None:
            return broken
        if str(name).lower() in seen:
            return "headers: must not name one header twice"
        seen.add(str(name).lower())
    return None
