"""The law of this file: a secret is searched for in whole artefacts, in every form it may have.

The forms are those of the scrub (B7): verbatim, JSON-escaped once and twice, percent-encoded in
either case, base64 and base64url at all three alignments; and some in which programs print: hex,
UTF-16, a Python literal. It is written apart from the scrub on purpose: an auditor that shares code
with what it audits shares its mistakes.
"""

from __future__ import annotations

import re
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Callable, Iterable, Iterator
from typing import Final, cast
from urllib.parse import unquote_to_bytes

from surefoot.credentials import Blind, Secret

__all__ = ["MIN_SECRET", "SecretForms"]

MIN_SECRET: Final = 8
"""Bytes: a shorter secret occurs by chance, so nothing could be said about it (B7)."""

_ESCAPE: Final = re.compile(rb"\\(?:u([0-9a-fA-F]{4})|x([0-9a-fA-F]{2})|(.))", re.DOTALL)
_SHORT: Final = {b"n": b"\n", b"t": b"\t", b"r": b"\r", b"b": b"\b", b"f": b"\f"}


class SecretForms(Blind):
    """What is searched for; blind itself, so that the audit is not the leak.

    Raises:
        TypeError: a secret is neither text nor bytes, or there is none.
        ValueError: a secret is too short to be searched for.
    """

    __slots__ = ("_open",)

    _open: Callable[[], tuple[list[bytes], list[tuple[str, bytes]]]]

    def __init__(self, secret: object, /) -> None:
        broken, values = _values(secret)
        del secret
        if broken is not None:
            values.clear()
            raise broken
        needles = [form for value in values for form in _forms(value)]

        def opened() -> tuple[list[bytes], list[tuple[str, bytes]]]:
            return values, needles

        object.__setattr__(self, "_open", opened)

    def find(self, artefact: str | bytes) -> str | None:
        """Name the form in which a secret occurs in the artefact, or ``None``."""
        text = artefact if isinstance(artefact, bytes) else _encoded(artefact)
        secrets, needles = self._open()
        for form, needle in needles:
            if needle in text:
                return form
        for form, view in _decoded(text):
            if any(secret in view for secret in secrets):
                return form
        return None


def _values(secret: object) -> tuple[Exception | None, list[bytes]]:
    """Read one secret or several, without an echo of any."""
    if isinstance(secret, (str, bytes, Secret)):
        several: list[object] = [secret]
    elif isinstance(secret, Iterable):
        several = list(cast("Iterable[object]", secret))
    else:
        several = [None]
    values: list[bytes] = []
    for one in several:
        value = one.reveal() if isinstance(one, Secret) else one
        if not isinstance(value, (str, bytes)):
            return TypeError("secret: must be text or bytes, or several of them"), values
        values.append(value if isinstance(value, bytes) else _encoded(value))
    if not values:
        return TypeError("secret: must not be empty"), values
    if min(map(len, values)) < MIN_SECRET:
        return ValueError(f"secret: must be {MIN_SECRET} bytes or more to be searched for"), values
    return None, values


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _forms(secret: bytes) -> Iterator[tuple[str, bytes]]:
    """Each form that can be searched for as it is."""
    yield "verbatim", secret
    for pad in range(3):
        bits = (pad + len(secret)) * 8
        core = slice((0, 2, 3)[pad], bits // 6)  # what neither neighbour can change
        yield "base64", b64encode(b"\0" * pad + secret)[core]
        yield "base64url", urlsafe_b64encode(b"\0" * pad + secret)[core]
    yield "hex", secret.hex().encode()
    yield "hex", secret.hex().upper().encode()
    text = secret.decode("utf-8", "replace")
    yield "utf-16", text.encode("utf-16-le", "replace")
    yield "utf-16", text.encode("utf-16-be", "replace")
    yield "a literal", _encoded(repr(text)[1:-1])
    yield "a literal", repr(secret)[2:-1].encode()


def _decoded(text: bytes) -> Iterator[tuple[str, bytes]]:
    """What the artefact says to somebody who decodes it."""
    if b"%" in text:
        once = unquote_to_bytes(text)
        yield "percent-encoded", once
        if b"%" in once:
            yield "percent-encoded twice", unquote_to_bytes(once)
    view = text
    for form in ("escaped", "escaped twice", "escaped three times"):
        if b"\\" not in view:
            return
        view = _ESCAPE.sub(_unescaped, view)
        yield form, view


def _unescaped(found: re.Match[bytes]) -> bytes:
    """One escape, as JSON and Python both mean it."""
    code = found[1] or found[2]
    if code is not None:
        return _encoded(chr(int(code, 16)))
    return _SHORT.get(found[3], found[3])
