"""The law of this file: what an attempt carried as a secret does not come back in its answer (B7).

Searched for is every secret of eight characters or more: as it is, in base64 and base64url at all
three alignments, in hexadecimal digits; and each of these as escaping may have left it. A search
must cost next to nothing, because it runs on every answer and hits on hardly any. So each form is
looked for by a *needle*, its longest part that no escaping changes; only where a needle is found is
the answer parsed, and each string in it, keys included, matched exactly. What is replaced is always
part of a string's value, so that the result is JSON again.

Any character may be written as an escape, so that a text may hold a secret and no needle. Where
such an escape is seen of a character that needs none, the needles are looked for once more in the
text with its escapes opened.

A ``Scrub`` holds secrets in a closure, shows nothing, and neither pickles nor copies.
"""

from __future__ import annotations

import re
from binascii import a2b_base64
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, NoReturn, TypeVar, cast

from surefoot.wire._opened import Span, View, hides, views
from surefoot.wire._spellings import Form, forms, with_neighbours
from surefoot.wire.strict_json import dumps, loads

__all__ = ["MARK", "MIN_SECRET", "Scrub"]

MARK: Final = "[secret removed]"
"""What stands where a secret stood."""

MIN_SECRET: Final = 8
"""Shorter secrets are not searched for: they would be found in words."""

_MIN_PART: Final = 16  # a shorter part of a header may be a word
_DIVIDES: Final = b' =;,"'
_BETWEEN: Final = re.compile(rb'[ =;,"]+')
_NAMES: Final = re.compile(rb"(?i)\bsignedheaders=[^, ]*")  # these are names, and in many texts
_SCHEME: Final = re.compile(rb"[A-Za-z][A-Za-z0-9-]* +(?=[^ ])")

_T = TypeVar("_T")
_Search = tuple[str, re.Pattern[str], bool]
"""The needle of a form, what matches it exactly, and whether it is base64."""


class Scrub:
    """Takes the secrets of one attempt out of its answer; call it with canonical JSON.

    Args:
        secrets: the values, as they were sent. Of ``Bearer x`` and the like, ``x`` is the secret.
    """

    __slots__ = ("_forms", "_needles", "_searches", "searched", "too_short")

    searched: int
    """How many secrets are searched for."""

    too_short: int
    """How many are too short to be searched for, which the record must say."""

    def __init__(self, secrets: Iterable[bytes]) -> None:
        found = dict.fromkeys(_without_scheme(secret) for secret in secrets if secret)
        long = [secret for secret in found if len(secret) >= MIN_SECRET]
        self.searched = len(long)
        long = list(dict.fromkeys([*long, *(part for secret in long for part in _parts(secret))]))
        self.too_short = len(found) - self.searched
        made = [form for secret in long for form in forms(secret)]
        # Kept as bare tuples: an object of ours could be found by whoever walks over all objects.
        bare: list[tuple[Any, ...]] = [tuple(form) for form in made]
        self._forms = _sealed(bare)
        self._needles = _sealed(dict.fromkeys(form.needle for form in made))
        self._searches: Callable[[], tuple[_Search, ...]] | None = None

    def __repr__(self) -> str:
        return f"Scrub(searched={self.searched}, too_short={self.too_short})"

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise TypeError("a scrub holds secrets: it is neither pickled nor copied")

    def __call__(self, text: bytes) -> tuple[bytes, int]:
        """Return canonical JSON without the secrets, and how many were found.

        Bytes that hold none come back as they are.

        Raises:
            UnreadableAnswerError: a needle was found, and the text is not JSON.
        """
        for needle in self._needles():
            # (find, because "in" on bytes costs twice as much.)
            if text.find(needle) >= 0:
                break
        else:
            if not hides(text) or not self._is_hidden(text):
                return text, 0
        cleaner = _Cleaner(self._laid_out())
        value = cleaner.clean(loads(text))
        return (dumps(value), cleaner.hits) if cleaner.hits else (text, 0)

    def holds(self, text: bytes) -> bool:
        """Tell whether a text that is not JSON, such as a header's value, holds a secret."""
        for needle in self._needles():
            if text.find(needle) >= 0:
                break
        else:
            if not hides(text) or not self._is_hidden(text):
                return False
        cleaner = _Cleaner(self._laid_out())
        cleaner.clean(text.decode("latin-1"))
        return cleaner.hits > 0

    def _laid_out(self) -> tuple[_Search, ...]:
        """What finds each form exactly: made at the first hit, and gone with the secrets."""
        searches = self._searches
        if searches is None:
            forms_held = (Form(*held) for held in self._forms())
            searches = self._searches = _sealed(
                (form.needle.decode("latin-1"), form.pattern(), form.encoded) for form in forms_held
            )
        return searches()

    def _is_hidden(self, text: bytes) -> bool:
        """Tell whether a needle is found once what hides it is opened."""
        needles = [needle.decode("latin-1") for needle in self._needles()]
        return any(
            needle in view.text for view in views(text.decode("latin-1")) for needle in needles
        )


class _Cleaner:
    """Replaces the forms of the secrets in the strings of one value, and counts."""

    def __init__(self, searches: tuple[_Search, ...]) -> None:
        self._searches = searches
        self.hits = 0

    def clean(self, value: Any) -> Any:
        """Return the value with every string in it cleaned; depth is bounded by the parser."""
        if isinstance(value, str):
            return self._clean_string(value)
        if isinstance(value, list):
            return list(map(self.clean, cast("list[Any]", value)))
        if isinstance(value, dict):
            members: dict[str, Any] = {}
            numbers: dict[str, int] = {}
            for name, member in cast("dict[str, Any]", value).items():
                key = self._clean_string(name)
                if key in members:
                    key = _another(key, members, numbers)
                members[key] = self.clean(member)
            return members
        if type(value) is int or type(value) is float:
            # A secret of digits can come back as a number; what is left of it then is the mark.
            written = str(value)
            clean = self._clean_string(written)
            return value if clean == written else clean
        return value

    def _clean_string(self, text: str) -> str:
        """Replace each form of each secret in one string, however it is hidden there."""
        spans: list[Span] = []
        for view in views(text):
            spans += view.places(self._found(view))
        if not spans:
            return text
        kept: list[str] = []
        end = 0
        for start, stop in _joined(spans):
            kept.append(text[end:start])
            end = stop
        self.hits += len(kept)
        return MARK.join([*kept, text[end:]])

    def _found(self, view: View) -> list[Span]:
        """Where a secret stands in one view of a string, in order."""
        text = view.text
        spans: list[Span] = []
        for needle, pattern, encoded in self._searches:
            if needle in text:
                found = (match.span() for match in pattern.finditer(text))
                spans += (with_neighbours(text, *span) for span in found) if encoded else found
        return _joined(spans)


def _joined(spans: list[Span]) -> list[Span]:
    """The same places in order, each of them once: two that overlap are one."""
    joined: list[Span] = []
    for start, stop in sorted(spans):
        if joined and start < joined[-1][1]:
            joined[-1] = (joined[-1][0], max(stop, joined[-1][1]))
        else:
            joined.append((start, stop))
    return joined


def _another(key: str, taken: dict[str, Any], numbers: dict[str, int]) -> str:
    """A key for a member whose own is taken: two that become the same stay two.

    Where the last number was found the next is looked for, since a server may send any number.
    """
    number = numbers.get(key, 2)
    while (free := f"{key} ({number})") in taken:
        number += 1
    numbers[key] = number + 1
    return free


def _sealed(items: Iterable[_T]) -> Callable[[], tuple[_T, ...]]:
    """Hide items in a closure, which no repr, ``vars`` or pickle looks into."""
    held = tuple(items)
    return lambda: held


def _parts(secret: bytes) -> Iterator[bytes]:
    """List what is a secret by itself in one of several parts: a signature, a cookie's value.

    And of what ``Basic`` wrote in base64, both together and the password.
    """
    whole = secret.rstrip(b"=")
    if len(whole.translate(None, _DIVIDES)) < len(whole):
        for part in _BETWEEN.split(_NAMES.sub(b"", whole)):
            if len(part) >= _MIN_PART:
                yield part
    elif len(secret) % 4 == 0:
        try:
            pair = a2b_base64(secret, strict_mode=True)
        except ValueError:
            return
        if b":" in pair and pair.isascii() and pair.decode("ascii").isprintable():
            yield from (one for one in (pair, pair.partition(b":")[2]) if len(one) >= MIN_SECRET)


def _without_scheme(secret: bytes) -> bytes:
    """Leave the scheme out: who quotes a token does not always quote what stood before it."""
    if b" " not in secret:
        return secret
    scheme = _SCHEME.match(secret)
    return secret[scheme.end() :] if scheme else secret
