"""The law of this file: of an answer's head only what is listed here is handed on, each checked.

Content type and length are ours. ``mcp-session-id`` and ``mcp-protocol-version`` pass if they are
visible ASCII, ``retry-after`` if it has the shape of seconds or of a date, ``x-amzn-requestid`` if
it is a UUID, a challenge only on 401 and 403 (D23). A line that occurs twice and may not, or that
holds a secret, does not pass. What the body may be read as is decided here too, once (R93, D25).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final, Literal, NamedTuple, TypeAlias

from surefoot.wire._challenge import safe_challenge
from surefoot.wire._scrub import Scrub

__all__ = ["AnswerPolicy", "Head", "HeaderLine", "Media", "read_head"]

AnswerPolicy = Literal["strict", "checked"]
"""How far a failure's own words pass (D20): ``strict`` is R90 to the letter."""

HeaderLine: TypeAlias = tuple[bytes, bytes]
"""One header line: its name and its value."""

Media = Literal["json", "events", "none", "other"]
"""What a body may be read as; ``none`` where the answer names no content type."""

_MEDIA: Final[dict[bytes, Media]] = {
    b"application/json": "json",
    b"text/event-stream": "events",
}
_AWS_JSON: Final = (b"application/x-amz-json-1.0", b"application/x-amz-json-1.1")

_VISIBLE: Final = re.compile(rb"[\x21-\x7e]{1,1024}")
_UUID: Final = re.compile(rb"[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}")
# The shape alone: what it means, and whether it is a real date, the policy room decides (D14).
_RETRY_AFTER: Final = re.compile(
    rb"[0-9]{1,32}"
    rb"|[A-Z][a-z]{2}, [0-9]{2} [A-Z][a-z]{2} [0-9]{4} [0-9]{2}(?::[0-9]{2}){2} GMT"
    rb"|[A-Z][a-z]{5,8}, [0-9]{2}-[A-Z][a-z]{2}-[0-9]{2} [0-9]{2}(?::[0-9]{2}){2} GMT"
    rb"|[A-Z][a-z]{2} [A-Z][a-z]{2} [ 0-9][0-9] [0-9]{2}(?::[0-9]{2}){2} [0-9]{4}"
)
_KEPT: Final[dict[bytes, re.Pattern[bytes]]] = {
    b"mcp-session-id": _VISIBLE,
    b"mcp-protocol-version": _VISIBLE,
    b"retry-after": _RETRY_AFTER,
    b"x-amzn-requestid": _UUID,
}
_CHARSET: Final = re.compile(rb'charset=(?:utf-8|"utf-8")', re.IGNORECASE)
_OWS: Final = b" \t"


class Head(NamedTuple):
    """The head of one answer, checked."""

    status: int
    """The HTTP status as it came."""

    media: Media
    """What the body may be read as."""

    rule: str | None
    """Why it may not be read, as a fixed word, where ``media`` is ``other``."""

    headers: tuple[HeaderLine, ...]
    """What is handed on, names in lower case; content type and length are for the reader to add."""

    error_type: bytes | None
    """The value of ``x-amzn-errortype``, unchecked: ``aws_error_type`` reads it."""

    aws_json: bool
    """Whether the body is JSON in one of AWS's own types, which only names an error type."""


def read_head(
    status: int,
    lines: Iterable[HeaderLine],
    *,
    policy: AnswerPolicy = "checked",
    origin: tuple[str, str, int] | None = None,
    scrub: Scrub | None = None,
) -> Head:
    """Check the head of an answer (R93, D23, D25).

    Args:
        status: the HTTP status.
        lines: the header lines as they came, names in any case.
        policy: ``strict`` refuses any parameter of the content type but ``charset=utf-8``.
        origin: the endpoint's, as ``origin_of`` names it.
        scrub: what must not pass.
    """
    content_type: bytes | None = None
    rule: str | None = None
    error_type: bytes | None = None
    challenges: list[bytes] = []
    kept: dict[bytes, bytes] = {}
    for raw, value in lines:
        name = raw.lower()
        if name == b"content-type":
            if content_type is not None:
                rule = "two-content-types"
            content_type = value
        elif name in _KEPT:
            # What may occur once and occurs twice says nothing; no pattern takes an empty value.
            kept[name] = b"" if name in kept else value.strip(_OWS)
        elif name == b"x-amzn-errortype":
            error_type = value
        elif name == b"www-authenticate" and status in (401, 403):
            challenges.append(value)
    headers = [line for line in kept.items() if _passes(line, scrub)] if kept else []
    if challenges:
        challenge = safe_challenge(challenges, origin)
        if challenge is not None and not (scrub and scrub.holds(challenge)):
            headers.append((b"www-authenticate", challenge))
    media: Media = "none"
    aws_json = False
    if content_type is not None and rule is None:
        media = _MEDIA.get(content_type, "other")
        if media == "other":
            media, rule, aws_json = _parsed(content_type, policy)
    elif rule is not None:
        media = "other"
    return Head(status, media, rule, tuple(headers), error_type, aws_json)


def _passes(line: HeaderLine, scrub: Scrub | None) -> bool:
    """Tell whether a line has the form of its kind, and holds no secret."""
    name, value = line
    return _KEPT[name].fullmatch(value) is not None and not (scrub and scrub.holds(value))


def _parsed(content_type: bytes, policy: AnswerPolicy) -> tuple[Media, str | None, bool]:
    """Read a content type that is not written in the plainest way."""
    kind, *parameters = content_type.split(b";")
    name = kind.strip(_OWS).lower()
    media = _MEDIA.get(name)
    if media is None:
        return "other", "content-type", name in _AWS_JSON
    if policy == "strict":
        for parameter in parameters:
            if parameter.strip(_OWS) and not _CHARSET.fullmatch(parameter.strip(_OWS)):
                return "other", "content-type-parameter", False
    return media, None, False
