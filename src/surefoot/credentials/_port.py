"""The law of this file: one question, two answers; a credential or a consent, nothing in between.

``vend`` is asked for every attempt (R105, R110), in the task of the request, so that cancelling the
request cancels the wait for it (R121 to R123). What the transport hands in is a
``CredentialRequest``; what it takes is ``Issued`` or ``AuthorizationRequired``. Each is blind.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import inf
from typing import TYPE_CHECKING, Literal, Protocol, final, runtime_checkable

from surefoot.credentials._blind import Blind, Secret, sealed
from surefoot.credentials._kinds import Credential
from surefoot.wire import Scrub, url_parts

if TYPE_CHECKING:
    from collections.abc import Callable

    from surefoot.credentials._kinds import CredentialKind, HeaderLines

__all__ = [
    "AuthorizationRequired",
    "CredentialProvider",
    "CredentialRequest",
    "Generation",
    "Issued",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class CredentialRequest:
    """For what one credential is asked."""

    service: str = "gateway"
    """Which service the credential is for (R111)."""

    scopes: tuple[str, ...] = ()
    """The scopes it should carry; after a 403 for want of scope, with the missing ones added."""

    mode: Literal["machine", "user"] = "machine"
    """On whose behalf: the program's own, or a user's."""

    principal: str | None = field(default=None, repr=False)
    """The user, where ``mode`` is ``"user"``; an id, never a secret."""

    user_token: Secret | None = None
    """The user's own token, where the app handed one over."""

    force: bool = False
    """The last one was rejected: answer with a fresh one, or with an error."""

    rejected: object | None = field(default=None, repr=False)
    """``Issued.generation`` of the one that was rejected, so that its rejection discards no newer
    one (B9); ``None`` where it is not known."""

    challenge: str | None = field(default=None, repr=False)
    """The ``WWW-Authenticate`` value of the 401 or 403 that rejected it, once checked (D23)."""


@final
class Generation:
    """Which credential was vended: a mark that says nothing of it, compared by identity (B9).

    Whoever sent it sets ``accepted`` once a server answered with anything but 401. A provider that
    refreshes tells so a credential that ran out from one that never worked.
    """

    __slots__ = ("accepted",)

    def __init__(self) -> None:
        self.accepted: bool = False


@final
class Issued(Blind):
    """One credential, as vended, with its life where the issuer stated one.

    Raises:
        TypeError: ``credential`` is of no kind, or ``expires_in`` is no number.
        ValueError: ``expires_in`` is negative or NaN.
    """

    __slots__ = ("_scrub", "credential", "expires_in", "generation")

    credential: Credential
    """The credential itself, blind."""

    expires_in: float | None
    """Seconds it lives from now, as its issuer stated; ``None`` when it did not."""

    _scrub: Scrub | None

    generation: Generation
    """Which one it is, without what it is; the same however often this object is handed out."""

    def __init__(self, credential: Credential, /, *, expires_in: float | None = None) -> None:
        wrong = not isinstance(credential, Credential)  # pyright: ignore[reportUnnecessaryIsInstance]
        object.__setattr__(self, "credential", None if wrong else credential)
        object.__setattr__(self, "expires_in", None)  # so that a traceback can print it
        del credential  # it may be a bare token, put in the wrong place
        if wrong:
            message = "credential: must be Bearer, ApiKey, Basic or Headers"
            raise TypeError(message)
        object.__setattr__(self, "expires_in", _life(expires_in))
        object.__setattr__(self, "generation", Generation())
        object.__setattr__(self, "_scrub", None)

    def __repr__(self) -> str:
        """Show the kind and the life."""
        life = "" if self.expires_in is None else f", expires_in={self.expires_in:g}"
        return f"Issued({self.credential!r}{life})"

    @property
    def kind(self) -> CredentialKind:
        """Which kind of credential it is."""
        return self.credential.kind

    def lines(self) -> HeaderLines:
        """Return the header lines, laid out once and kept."""
        return self.credential.lines()

    def secrets(self) -> tuple[bytes, ...]:
        """Return the values that the scrub searches for (B7)."""
        return self.credential.secrets()

    def scrub(self) -> Scrub:
        """Return what takes these values out of an answer, laid out once and kept (B7)."""
        scrub = self._scrub
        if scrub is None:
            scrub = Scrub(self.secrets())
            object.__setattr__(self, "_scrub", scrub)
        return scrub


@final
class AuthorizationRequired(Blind):
    """A person must consent first; there is no credential yet (R117).

    The URL is a capability: whoever has it can continue the flow. It is in no text of this object.

    Raises:
        TypeError: an argument is no ``str``.
        ValueError: ``authorization_url`` is no http or https URL; it is not shown.
    """

    __slots__ = ("_open", "service")

    service: str
    """Which service asks for consent."""

    _open: Callable[[], tuple[str, str | None]]

    def __init__(
        self, service: str, authorization_url: str, session_uri: str | None = None
    ) -> None:
        broken = _broken_consent(service, authorization_url, session_uri)
        if broken is None:
            object.__setattr__(self, "service", service)
            object.__setattr__(self, "_open", sealed((authorization_url, session_uri)))
        del service, authorization_url, session_uri
        if broken is not None:
            raise broken

    def __repr__(self) -> str:
        """Show the service alone."""
        return f"AuthorizationRequired(service={self.service!r}, <hidden>)"

    @property
    def authorization_url(self) -> str:
        """Where the person consents."""
        return self._open()[0]

    @property
    def session_uri(self) -> str | None:
        """What binds the consent to this flow, where the service has such a thing."""
        return self._open()[1]


@runtime_checkable
class CredentialProvider(Protocol):
    """Whoever can answer for a credential. Any async callable is made into one by ``as_provider``.

    It is asked for every attempt, so it keeps what may be kept (R107: the transport keeps nothing).
    Two attributes may say what it cannot do: ``refreshable = False``, that a rejected credential is
    followed by no other, and ``steps_up = False``, that the scopes of a request change nothing. One
    that finds the user elsewhere than in the request has a method ``whose(request)``: a text that
    tells users apart, or ``None``; who keeps credentials then keeps one for each.
    It raises ``CredentialError`` when it has none, whose reason may be read by anybody: a fixed
    phrase. What else it raises, and whatever else an error of a kind of its own holds, is never
    shown, because such texts quote secrets. It must let cancellation pass.
    """

    async def vend(
        self, request: CredentialRequest, /
    ) -> Issued | Credential | AuthorizationRequired:
        """Hand out one credential for one attempt, or say that a person must consent first."""
        ...


def _life(expires_in: object) -> float | None:
    """Check a stated life; one without an end is the same as one that was not stated."""
    if expires_in is None:
        return None
    if isinstance(expires_in, bool) or not isinstance(expires_in, (int, float)):
        message = "expires_in: must be seconds, or None when the issuer stated none"
        raise TypeError(message)
    if not expires_in >= 0:
        message = f"expires_in: must be at least 0, not {expires_in!r}"
        raise ValueError(message)
    return None if expires_in == inf else float(expires_in)


def _broken_consent(service: object, url: object, session_uri: object) -> Exception | None:
    """Check the three parts of a consent without echoing one of them."""
    if not isinstance(service, str):
        return TypeError("service: must be a str")
    if not isinstance(url, str):
        return TypeError("authorization_url: must be a str")
    if session_uri is not None and not isinstance(session_uri, str):
        return TypeError("session_uri: must be a str, or None")
    try:
        parts = url_parts(url)
        usable = parts.scheme in {"http", "https"} and bool(parts.hostname) and url.isprintable()
    except ValueError:
        usable = False
    return None if usable else ValueError("authorization_url: must be an http or https URL")
