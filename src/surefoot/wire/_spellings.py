"""The law of this file: a secret is known in every form in which servers are seen to echo it (B7).

Each form has a *needle*, its longest part that no escaping changes, and a *pattern*, which matches
the form exactly as escaping may have left it. Needles are looked for in every answer; patterns only
where a needle was found. Neither takes longer than its text is long, whatever a server sends.

The needle is taken from the end of a part: tokens of one kind begin alike, and end by chance.
"""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Iterator
from typing import Any, Final, Literal, NamedTuple

__all__ = ["Form", "forms", "with_neighbours"]

_LONGEST: Final = 64  # a longer needle finds nothing faster
_TAIL: Final = 120  # bytes at the end of a secret that its base64 needles are taken from
_SHORTEST: Final = 4  # a shorter one is found in every text
_ALNUM: Final = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
_UNRESERVED: Final = frozenset(f"{_ALNUM}._~-")
_BASE64: Final = frozenset(f"{_ALNUM}+/_-")
_BY_ALNUM, _BY_UNRESERVED = (
    bytes(byte if chr(byte) in kept else 0x20 for byte in range(256))
    for kept in (frozenset(_ALNUM), _UNRESERVED)
)
"""Tables that make a blank of everything else, so that the runs of what is kept stand apart."""
_ALSO: Final = {"+": "|-", "/": "|_"}
_SHORT: Final = {" ": r"|\+", "\t": "|t"}
_RUNS: Final = re.compile(r"\\+|[^\\]")
_COMPILER: Final[Any] = getattr(re, "_compiler", re)
"""``re.compile`` keeps whatever it compiles in a cache of the process, and these are secrets."""


class Form(NamedTuple):
    """One way in which one secret may be written. Its repr shows nothing."""

    needle: bytes
    """What every answer is searched for; empty where no part survives escaping, and then each
    answer is matched exactly. It takes a secret of punctuation alone."""

    secret: bytes

    written: Literal["plain", "base64", "hex", "HEX"] = "plain"

    lead: int = 0
    """How many bytes into a group of three of base64 the secret begins."""

    def __repr__(self) -> str:
        return "Form(<hidden>)"

    @property
    def encoded(self) -> bool:
        """Whether it is base64, so that its neighbours hold a few more bits of the secret."""
        return self.written == "base64"

    def pattern(self) -> re.Pattern[str]:
        """Match every spelling of it; what no escaping changes stands for itself.

        What may begin with backslashes begins with all of them, and gives none back: so the time
        that a search takes grows as the text does.
        """
        if self.written in ("hex", "HEX"):
            digits = self.secret.hex()
            return _compiled(digits if self.written == "hex" else digits.upper())
        text = (_base64(self.secret, self.lead) if self.encoded else self.secret).decode("latin-1")
        spelled = "".join(
            _spelled(run[0], len(run), encoded=self.encoded) for run in _RUNS.findall(text)
        )
        return _compiled(spelled if text[0] in _UNRESERVED else rf"(?<!\\){spelled}")


def forms(secret: bytes) -> Iterator[Form]:
    """List the forms of one secret: as it is, base64 at three alignments, hexadecimal digits."""
    yield Form(_needle(_BY_UNRESERVED, secret), secret)
    # Whole groups of three are left out in front, so that the rest is aligned as the whole is.
    end = secret[max(0, len(secret) - _TAIL) // 3 * 3 :]
    for lead in range(3):
        yield Form(_needle(_BY_ALNUM, _base64(end, lead)), secret, "base64", lead)
    digits = secret[-_LONGEST // 2 :].hex().encode()
    yield Form(digits, secret, "hex")
    if digits != digits.upper():
        yield Form(digits.upper(), secret, "HEX")


def with_neighbours(text: str, start: int, stop: int) -> tuple[int, int]:
    """Take in the characters that hold the secret's first and last bits, and the padding."""
    for _ in range(2):
        if start and text[start - 1] in _BASE64:
            start -= 1
        if stop < len(text) and text[stop] in _BASE64:
            stop += 1
    while stop < len(text) and text[stop] == "=":
        stop += 1
    return start, stop


def _compiled(pattern: str) -> re.Pattern[str]:
    """Compile a pattern that nobody keeps but who asked for it."""
    made: re.Pattern[str] = _COMPILER.compile(pattern)
    return made


def _needle(runs: bytes, text: bytes) -> bytes:
    """The end of the longest run; a table and ``split`` take a quarter of the time of a pattern."""
    longest = max(text.translate(runs).split(), key=len, default=b"")
    return longest[-_LONGEST:] if len(longest) >= _SHORTEST else b""


def _base64(secret: bytes, lead: int) -> bytes:
    """Encode a secret that stands ``lead`` bytes into its group of three.

    Only the characters whose bits are all the secret's own are returned.
    """
    first = -(-8 * lead // 6)
    return b64encode(bytes(lead) + secret)[first : 8 * (lead + len(secret)) // 6]


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
