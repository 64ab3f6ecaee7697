"""The law of this file: what is declared about one server is checked when it is declared (R71).

Every refusal names the option, the rule and the way out, and never echoes a text (R72): what is put
in the wrong place is most often a secret.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from math import inf, isfinite
from typing import TYPE_CHECKING, Any, Final, Literal, cast, get_args

from surefoot.credentials import as_provider
from surefoot.evidence import checked_label
from surefoot.policy import Replay, Retry
from surefoot.transports import CREDENTIAL_HEADERS, Endpoint
from surefoot.wire import strict_json

from ._sdk import http_library

if TYPE_CHECKING:
    from surefoot.credentials import CredentialProvider
    from surefoot.transports import Signer

__all__ = ["Answers", "Mode", "Options", "check_options", "refuse_credential_headers"]

Answers = Literal["checked", "strict"]
"""How an answer's own error texts are treated (D20)."""

Mode = Literal["machine", "user"]

_TOKEN: Final = frozenset(
    "!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
)
_SCOPES: Final = 'a sequence of str, for example ("tools.read",)'
_OURS: Final = frozenset({"host", "content-length", "transfer-encoding", "connection"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """The checked options of a Gateway."""

    endpoint: Endpoint
    name: str | None
    credentials: CredentialProvider | None
    signer: Signer | None
    service: str
    scopes: tuple[str, ...]
    mode: Mode
    headers: Mapping[str, str]
    retry: Retry | None
    replay: Replay
    answers: Answers
    caller_timeout: float | None
    on_authorization: Callable[[Any], object] | None


def check_options(
    url: str,
    *,
    name: str | None,
    credentials: object,
    signer: object,
    service: object,
    scopes: object,
    mode: object,
    headers: object,
    retry: object,
    replay: object,
    answers: object,
    caller_timeout: object,
    on_authorization: object,
    clock: object,
    draw: object,
) -> Options:
    """Hold every option to its rule.

    Raises:
        TypeError: a wrong type.
        ValueError: a wrong range, an unknown word, or a contradiction.
    """
    endpoint = _endpoint(url)
    if name is not None:
        checked_label(name, option="name")
    provider = None if credentials is None else as_provider(credentials)
    if signer is not None and not callable(signer):
        raise _wrong("signer", "an async function that takes the request and returns it, or None")
    if isinstance(scopes, str) or not isinstance(scopes, Iterable):
        raise _wrong("scopes", _SCOPES)
    wanted = tuple(_a_word("scopes", scope, _SCOPES) for scope in cast("Iterable[object]", scopes))
    _one_of("mode", mode, get_args(Mode))
    _one_of("answers", answers, get_args(Answers))
    if retry is not None and not isinstance(retry, Retry):
        raise _wrong("retry", "a Retry, or None to switch it off")
    if replay is not None and not isinstance(replay, Replay):
        raise _wrong("replay", "a Replay, or None for the default policy")
    if on_authorization is not None and not callable(on_authorization):
        raise _wrong(
            "on_authorization", "a callable that takes an AuthorizationRequiredError, or None"
        )
    if clock is not None and not all(
        callable(getattr(clock, member, None)) for member in ("monotonic", "now", "sleep")
    ):
        raise _wrong("clock", "a Clock: an object with monotonic, now and sleep, or None")
    if not callable(draw):
        raise _wrong("draw", "a function that returns a number in [0, 1)")
    return Options(
        endpoint=endpoint,
        name=name,
        credentials=provider,
        signer=signer,  # type: ignore[arg-type]
        service=_a_word("service", service, "a non-empty str"),
        scopes=wanted,
        mode=mode,  # type: ignore[arg-type]
        headers=_headers(headers),
        retry=retry,
        replay=replay or Replay(),
        answers=answers,  # type: ignore[arg-type]
        caller_timeout=seconds("caller_timeout", caller_timeout),
        on_authorization=on_authorization,
    )


def _endpoint(url: str) -> Endpoint:
    """The endpoint of a URL that the HTTP library at hand can send to; any other ends here."""
    endpoint = Endpoint(url)
    library = http_library()  # one that is missing is no fault of the URL
    try:
        library.URL(url)
        sendable = True
    except Exception:  # noqa: BLE001 - InvalidURL, UnicodeError: its text quotes the URL
        sendable = False
    if not sendable:
        msg = "url: is not a URL that can be sent to; give one such as https://gateway.example.com/mcp"
        raise ValueError(msg)
    return endpoint


def _headers(headers: object) -> Mapping[str, str]:
    """Static headers: names are tokens, values visible ASCII, and no secret belongs here (R112)."""
    if headers is None:
        return {}
    if not isinstance(headers, Mapping):
        raise _wrong("headers", "a mapping of str to str, or None")
    for name, value in headers.items():  # pyright: ignore[reportUnknownVariableType]
        if not isinstance(name, str) or not isinstance(value, str):
            raise _wrong("headers", "a mapping of str to str")
        if not name or not _TOKEN.issuperset(name):
            msg = "headers: a name must be a token of RFC 9110 section 5.6.2"
            raise ValueError(msg)
        lower = name.lower()
        if lower.encode("ascii") in CREDENTIAL_HEADERS:
            msg = f"headers: {lower} is a credential; pass it as credentials=Headers(...)"
            raise ValueError(msg)
        if lower in _OURS or lower.startswith("mcp-"):
            msg = f"headers: {lower} belongs to the protocol and cannot be set here"
            raise ValueError(msg)
        if value != value.strip(" \t") or not all(
            character in " \t" or "!" <= character <= "~" for character in value
        ):
            msg = f"headers: the value of {lower} must be visible ASCII without outer blanks"
            raise ValueError(msg)
    return dict(headers)  # pyright: ignore[reportUnknownArgumentType]


def refuse_credential_headers(headers: Any) -> None:
    """Refuse the headers of a client that bring a credential beside the ones that are vended.

    It would be sent again long after it was renewed, or beside a fresh one (R112).

    Raises:
        ValueError: one of them is a credential; its value is not shown.
    """
    if not headers:
        return
    names = list(headers) if isinstance(headers, Mapping) else [line[0] for line in headers]  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    for name in names:  # pyright: ignore[reportUnknownVariableType]
        raw = name.encode("utf-8", "replace") if isinstance(name, str) else bytes(name)  # pyright: ignore[reportUnknownArgumentType]
        if raw.lower() in CREDENTIAL_HEADERS:
            msg = (
                f"headers: {raw.decode('ascii').lower()} is a credential, and credentials= vends "
                "another; leave it out"
            )
            raise ValueError(msg)


def seconds(option: str, value: object) -> float | None:
    """A positive, finite duration in seconds, or ``None``."""
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise _wrong(option, "seconds, or None")
    try:
        seconds = float(value)
    except OverflowError:  # a whole number that no float holds
        seconds = inf if value > 0 else -inf
    if not isfinite(seconds) or seconds <= 0:
        msg = f"{option}: must be above 0 and finite, or None, not {seconds!r}"
        raise ValueError(msg)
    return seconds


def _one_of(option: str, value: object, words: tuple[str, ...]) -> None:
    if value not in words:
        rule = " or ".join(f'"{word}"' for word in words)
        kind = ValueError if isinstance(value, str) else TypeError
        msg = f"{option}: must be {rule}"
        raise kind(msg)


def _a_word(option: str, value: object, rule: str) -> str:
    if not isinstance(value, str):
        raise _wrong(option, rule)
    if not value:
        msg = f"{option}: must be {rule}"
        raise ValueError(msg)
    return value


def _wrong(option: str, rule: str) -> TypeError:
    return TypeError(f"{option}: must be {rule}")


def checked_tool(name: object) -> str:
    """The name of a tool that is to be called.

    Raises:
        TypeError: it is no str.
        ValueError: it is empty.
    """
    return _a_word("name", name, "the tool's name, a non-empty str")


def checked_members(option: str, members: object) -> dict[str, Any]:
    """What goes into a tool call, held to what JSON can say, before the SDK's writer trips over it.

    Raises:
        TypeError: they are no mapping, or hold something that JSON has no word for.
    """
    if members is None:
        return {}
    if not isinstance(members, Mapping):
        raise _wrong(option, "a mapping of names to JSON values, or None")
    given: dict[Any, Any] = dict(cast("Mapping[Any, Any]", members))
    try:
        strict_json.dumps(given)
    except Exception:  # noqa: BLE001 - whatever the serialiser says, it quotes the value
        broken = True
    else:
        broken = False
    if broken or not all(isinstance(name, str) for name in given):
        raise _wrong(option, "a mapping of names to JSON values; one of these is not JSON")
    return given
