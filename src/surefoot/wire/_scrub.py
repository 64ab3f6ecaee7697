"""The law of this file: what an attempt carried as a secret does not come back in its answer (B7).

Searched for is every secret of eight characters or more: as it is, JSON-escaped once and twice,
percent-encoded in either case, in base64 and base64url at all three alignments. A search must cost
next to nothing, because it runs on every answer and hits on hardly any. So each form is looked for
by a *needle*, its longest part that no escaping changes; only where a needle is found is the answer
parsed, and each string in it, keys included, matched exactly. What is replaced is always part of a
string's value, so that the result is JSON again.

JSON lets any character be written as an escape of four hexadecimal digits, so that a text in a text
may hold no needle at all. Where such an escape of a printable character is seen, the needles are
looked for once more in the text with those escapes opened.

The needle is taken from the end of a part: tokens of one kind begin alike, and end by chance.

A ``Scrub`` holds secrets in a closure, shows nothing, and neither pickles nor copies.
"""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, NamedTuple, NoReturn, cast

from surefoot.wire.strict_json import dumps, loads

__all__ = ["MARK", "MIN_SECRET", "Scrub"]

MARK: Final = "[secret removed]"
"""What stands where a secret stood."""

MIN_SECRET: Final = 8
"""Shorter secrets are not searched for: they would be found in words."""

_LONGEST: Final = 64  # a longer needle finds nothing faster
_TAIL: Final = 120  # bytes at the end of a secret that its base64 needles are taken from
_PLAIN: Final = re.compile(rb"[A-Za-z0-9._~-]{4,}")
_ALNUM: Final = re.compile(rb"[A-Za-z0-9]{4,}")
_SCHEME: Final = re.compile(rb"[A-Za-z][A-Za-z0-9-]* +(?=[^ ])")
_UNRESERVED: Final = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._~-")
_BASE64: Final = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/_-")
_ESCAPE: Final = b"\\u00"
_ESCAPED: Final = re.compile(r"(?<!\\)\\++u00([2-7][0-9A-Fa-f])")
"""A printable ASCII character as a JSON escape, however often its backslash was escaped.

A run of backslashes is looked at from its first one alone, and never a second time: a server may
send millions of them.
"""
_ALSO: Final = {"+": "|-", "/": "|_"}
_SHORT: Final = {" ": r"|\+", "\t": "|t"}
_RUNS: Final = re.compile(r"\\+|[^\\]")


class _Form(NamedTuple):
    """One way in which one secret may be written."""

    text: str
    """The secret, or the part of its base64 that depends on it alone."""

    encoded: bool
    """Whether ``text`` is base64, so that its neighbours hold a few more bits of the secret."""


class Scrub:
    """Takes the secrets of one attempt out of its answer; call it with canonical JSON.

    Args:
        secrets: the values, as they were sent. Of ``Bearer x`` and the like, ``x`` is the secret.
    """

    __slots__ = ("_needles", "_secrets", "searched", "too_short")

    searched: int
    """How many secrets are searched for."""

    too_short: int
    """How many are too short to be searched for, which the record must say."""

    def __init__(self, secrets: Iterable[bytes]) -> None:
        found = dict.fromkeys(_without_scheme(secret) for secret in secrets if secret)
        long = [secret for secret in found if len(secret) >= MIN_SECRET]
        self.searched = len(long)
        self.too_short = len(found) - len(long)
        self._secrets = _sealed(long)
        self._needles = _sealed([needle for secret in long for needle in _needles(secret)])

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
            if text.find(_ESCAPE) < 0 or not self._is_in_escapes(text):
                return text, 0
        cleaner = _Cleaner(self._secrets())
        value = cleaner.clean(loads(text))
        return (dumps(value), cleaner.hits) if cleaner.hits else (text, 0)

    def holds(self, text: bytes) -> bool:
        """Tell whether a text that is not JSON, such as a header's value, holds a secret."""
        for needle in self._needles():
            if text.find(needle) >= 0:
                break
        else:
            if text.find(_ESCAPE) < 0 or not self._is_in_escapes(text):
                return False
        cleaner = _Cleaner(self._secrets())
        cleaner.clean(text.decode("latin-1"))
        return cleaner.hits > 0

    def _is_in_escapes(self, text: bytes) -> bool:
        """Tell whether a needle is found once the escapes of printable characters are opened."""
        opened = _ESCAPED.sub(_opened, text.decode("latin-1")).encode("latin-1")
        return any(opened.find(needle) >= 0 for needle in self._needles())


class _Cleaner:
    """Replaces the forms of the secrets in the strings of one value, and counts."""

    def __init__(self, secrets: Iterable[bytes]) -> None:
        self._patterns = [
            (_pattern(form), form.encoded) for secret in secrets for form in _forms(secret)
        ]
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
        """Replace each form of each secret in one string."""
        for pattern, encoded in self._patterns:
            kept: list[str] = []
            end = 0
            for match in pattern.finditer(text):
                start, stop = match.span()
                if encoded:
                    start, stop = _with_neighbours(text, start, stop)
                kept.append(text[end : max(start, end)])
                end = stop
            if kept:
                self.hits += len(kept)
                text = MARK.join([*kept, text[end:]])
        return self._clean_escaped(text) if _ESCAPED.search(text) else text

    def _clean_escaped(self, text: str) -> str:
        """Replace what is found only once escapes are opened, at the place where it stands."""
        opened: list[str] = []
        places: list[int] = []
        end = 0
        for escape in _ESCAPED.finditer(text):
            opened += [text[end : escape.start()], _opened(escape)]
            places += range(end, escape.start() + 1)
            end = escape.end()
        places += range(end, len(text) + 1)
        plain = "".join([*opened, text[end:]])
        spans: list[tuple[int, int]] = []
        for pattern, encoded in self._patterns:
            for match in pattern.finditer(plain):
                start, stop = match.span()
                spans.append(_with_neighbours(plain, start, stop) if encoded else (start, stop))
        kept: list[str] = []
        end = 0
        for start, stop in sorted(spans):
            kept.append(text[end : max(places[start], end)])
            end = max(places[stop], end)
        self.hits += len(kept)
        return MARK.join([*kept, text[end:]])


def _another(key: str, taken: dict[str, Any], numbers: dict[str, int]) -> str:
    """A key for a member whose own is taken: two that become the same stay two.

    Where the last number was found the next is looked for, since a server may send any number.
    """
    number = numbers.get(key, 2)
    while (free := f"{key} ({number})") in taken:
        number += 1
    numbers[key] = number + 1
    return free


def _opened(escape: re.Match[str]) -> str:
    """The character that an escape stands for."""
    return chr(int(escape[1], 16))


def _sealed(items: Iterable[bytes]) -> Callable[[], tuple[bytes, ...]]:
    """Hide items in a closure, which no repr, ``vars`` or pickle looks into."""
    held = tuple(items)
    return lambda: held


def _without_scheme(secret: bytes) -> bytes:
    """Leave the scheme out: who quotes a token does not always quote what stood before it."""
    scheme = _SCHEME.match(secret)
    return secret[scheme.end() :] if scheme else secret


def _base64(secret: bytes, lead: int) -> bytes:
    """Encode a secret that stands ``lead`` bytes into its group of three.

    Only the characters whose bits are all the secret's own are returned.
    """
    first = -(-8 * lead // 6)
    return b64encode(bytes(lead) + secret)[first : 8 * (lead + len(secret)) // 6]


def _forms(secret: bytes) -> Iterator[_Form]:
    """List what is matched exactly once a needle was found."""
    yield _Form(secret.decode("latin-1"), encoded=False)
    for lead in range(3):
        yield _Form(_base64(secret, lead).decode(), encoded=True)


def _needles(secret: bytes) -> Iterator[bytes]:
    """List what every answer is searched for: in each form, a run that no escaping changes.

    A form without such a run has the empty needle, which is found in everything: then each answer
    is matched exactly. It takes a secret of punctuation alone.
    """
    yield max(_PLAIN.findall(secret), key=len, default=b"")[-_LONGEST:]
    # Whole groups of three are left out in front, so that the rest is aligned as the whole is.
    end = secret[max(0, len(secret) - _TAIL) // 3 * 3 :]
    for lead in range(3):
        yield max(_ALNUM.findall(_base64(end, lead)), key=len, default=b"")[-_LONGEST:]


def _pattern(form: _Form) -> re.Pattern[str]:
    """Match every spelling of one form; what no escaping changes stands for itself.

    What may begin with backslashes begins with all of them, and gives none back: so the time that
    a search takes grows as the text does, whatever a server sends.
    """
    spelled = "".join(
        _spelled(run[0], len(run), encoded=form.encoded) for run in _RUNS.findall(form.text)
    )
    return re.compile(spelled if form.text[0] in _UNRESERVED else rf"(?<!\\){spelled}")


def _spelled(char: str, times: int, *, encoded: bool) -> str:
    """Match a character as it is, after backslashes, percent-encoded or as a JSON escape.

    Of backslashes a whole run is matched at once, since nobody can tell theirs from those that an
    escaping added. Where it takes the one that begins an escape, the escape is known without it.
    """
    if char in _UNRESERVED:
        return re.escape(char)
    code = f"{ord(char):02x}"
    any_case = "".join(f"[{digit}{digit.upper()}]" if digit.isalpha() else digit for digit in code)
    escaped = rf"%(?:25)?{any_case}|u00{any_case}"
    if char == "\\":
        return rf"(?:(?:\\*+(?:{escaped})){{{times}}}|\\{{{times},}}+)"
    also = _ALSO.get(char, "") if encoded else _SHORT.get(char, "")
    return rf"\\*+(?:{re.escape(char)}|{escaped}{also})"


def _with_neighbours(text: str, start: int, stop: int) -> tuple[int, int]:
    """Take in the characters that hold the secret's first and last bits, and the padding."""
    for _ in range(2):
        if start and text[start - 1] in _BASE64:
            start -= 1
        if stop < len(text) and text[stop] in _BASE64:
            stop += 1
    while stop < len(text) and text[stop] == "=":
        stop += 1
    return start, stop
