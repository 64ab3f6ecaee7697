"""The law of this file: JSON is read in exactly one way, or it is refused by a fixed word.

Refused at every depth: a key that occurs twice (after unescaping), bytes that are not UTF-8, a byte
order mark, anything after the value, NaN and Infinity, a number too large for a float, half of a
surrogate pair, and whatever passes one of the ``JsonLimits``. Integers stay exact.

The parser is jiter: of eleven that were tried it alone refuses duplicates, keeps integers exact and
accepts none of the texts that JSONTestSuite calls invalid. Its cache of *values* stays off, because
a value may be a secret and the cache outlives the answer. The serialiser is pydantic_core's, the
one that the MCP SDK itself brings; both bound their own recursion.

The text of a parser's error quotes its input, so only a fixed word leaves here, and it leaves from
outside the ``except`` block: neither ``__cause__`` nor ``__context__`` nor a local holds the input.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import isfinite
from typing import Any, Final, cast

import jiter
from pydantic_core import to_json

from surefoot.errors import AnswerTooLargeError, UnreadableAnswerError

__all__ = ["PARSER_DEPTH", "PARSER_DIGITS", "JsonLimits", "canonical", "dumps", "loads"]

PARSER_DEPTH: Final = 201
"""Levels of nesting that the parser itself reads; the serialiser writes more."""

PARSER_DIGITS: Final = 4300
"""Digits of one integer that the parser itself reads."""

_BOM: Final = b"\xef\xbb\xbf"
_CHUNK: Final = 1 << 16
_NOT_OPENING: Final = bytes(sorted(set(range(256)) - set(b"[{")))

# What the parser says about a text, as it begins, and the word that stands for it. The beginning is
# the parser's own; the rest may quote the text.
_RULES: Final = (
    ("Detected duplicate key", "duplicate-key"),
    ("recursion limit exceeded", "too-deep"),
    ("number out of range", "too-many-digits"),
    ("trailing characters", "trailing-data"),
    ("lone leading surrogate", "lone-surrogate"),
    ("unexpected end of hex escape", "lone-surrogate"),
)

_LIMIT_OF: Final = {
    "too-many-bytes": "max_bytes",
    "too-many-containers": "max_containers",
    "too-deep": "max_depth",
    "too-many-digits": "max_digits",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class JsonLimits:
    """How much one JSON text may hold (B12). All are whole numbers above zero.

    Raises:
        TypeError: a limit is not a whole number.
        ValueError: a limit is out of its range.
    """

    max_bytes: int = 16 * 1024 * 1024
    """Bytes of the text."""

    max_containers: int = 500_000
    """Arrays and objects, counted before parsing: an empty one costs 30 times its text."""

    max_depth: int = PARSER_DEPTH
    """Levels of nesting; at most what the parser reads."""

    max_digits: int = PARSER_DIGITS
    """Digits of one integer; at most what the parser reads. A lower one costs a walk."""

    quick: int = field(init=False, repr=False, compare=False)
    """Up to how many bytes no limit but the parser's own can be passed; computed."""

    def __post_init__(self) -> None:
        """Check each limit, and see up to which size the parser alone can hold them all."""
        for name, most in (
            ("max_bytes", None),
            ("max_containers", None),
            ("max_depth", PARSER_DEPTH),
            ("max_digits", PARSER_DIGITS),
        ):
            value: object = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int):
                message = f"{name}: must be a whole number"
                raise TypeError(message)
            if value < 1 or (most is not None and value > most):
                up_to = "" if most is None else f" and at most {most}"
                message = f"{name}: must be at least 1{up_to}, not {value}"
                raise ValueError(message)
        walk = self.max_depth < PARSER_DEPTH or self.max_digits < PARSER_DIGITS
        quick = -1 if walk else min(self.max_bytes, 2 * self.max_containers)
        object.__setattr__(self, "quick", quick)


_DEFAULT: Final = JsonLimits()


def loads(data: bytes, *, limits: JsonLimits = _DEFAULT) -> object:
    """Read one JSON text strictly (R94, R95).

    Raises:
        UnreadableAnswerError: the text breaks a rule; ``rule`` is its fixed word.
        AnswerTooLargeError: the text passes one of ``limits``.
    """
    held = [data]
    del data  # so that this frame, in a traceback that is logged whole, holds no input either
    return canonical(held.pop(), limits=limits)[0]


def dumps(value: object) -> bytes:
    """Write the canonical form of a value such as ``loads`` returns: compact, and in UTF-8.

    Reading it gives the value back, and writing that gives the same bytes.

    Raises:
        UnreadableAnswerError: the value has no JSON form (``not-finite``, ``lone-surrogate``,
            ``not-serialisable``).
    """
    text = b""
    try:
        text = to_json(value)
    except ValueError as error:
        rule = "lone-surrogate" if "UnicodeEncodeError" in str(error) else "not-serialisable"
    else:
        if not ((b"Infinity" in text or b"NaN" in text) and _has_non_finite(value)):
            return text
        rule = "not-finite"
    del value, text
    raise UnreadableAnswerError(rule=rule)


def canonical(data: bytes, *, limits: JsonLimits = _DEFAULT) -> tuple[Any, bytes]:
    """Read one JSON text strictly, and return its value together with its canonical form (R96).

    This is what reading an answer costs: ``loads`` and ``dumps`` in one pass, because a number that
    overflowed to infinity shows only in what is written.

    Raises:
        UnreadableAnswerError: the text breaks a rule; ``rule`` is its fixed word.
        AnswerTooLargeError: the text passes one of ``limits``.
    """
    quick = limits.quick  # one look decides for nearly every text
    rule = _too_much(data, limits) if len(data) > quick else None
    value: Any = None
    text = b""
    if rule is None:
        try:
            value = jiter.from_json(
                data, allow_inf_nan=False, catch_duplicate_keys=True, cache_mode="keys"
            )
            text = to_json(value)
        except ValueError as error:
            rule = _word(data, str(error))
        else:
            # "Infinity" may be a word in a string: only then is the value looked through.
            # (find, because "in" on bytes costs twice as much.)
            if text.find(b"Infinity") >= 0 and _has_non_finite(value):
                rule = "not-finite"
            elif quick >= 0 or (rule := _beyond(value, limits)) is None:
                return value, text
    del data, value, text
    if rule in _LIMIT_OF:
        raise AnswerTooLargeError(rule=rule, limit=getattr(limits, _LIMIT_OF[rule]))
    raise UnreadableAnswerError(rule=rule)


def _too_much(data: bytes, limits: JsonLimits) -> str | None:
    """Name the limit that a text passes before it is parsed, or ``None``."""
    if len(data) > limits.max_bytes:
        return "too-many-bytes"
    most = limits.max_containers
    # A container takes two bytes at least, so that a short text needs no counting.
    return "too-many-containers" if len(data) > 2 * most and _counts(data, most) else None


def _word(data: bytes, said: str) -> str:
    """Put a fixed word in place of what a parser said; the text itself decides where it can."""
    if data.startswith(_BOM):
        return "byte-order-mark"
    try:
        data.decode()
    except UnicodeDecodeError:
        return "not-utf8"
    for beginning, word in _RULES:
        if said.startswith(beginning):
            return word
    return "not-json"


def _counts(data: bytes, limit: int) -> bool:
    """Tell whether more than ``limit`` arrays and objects open outside strings; exact.

    First an upper bound, strings included, in one pass; only a text that passes it is cut, piece
    by piece, into its strings and what is between them. A cut never falls between a backslash and
    what it escapes.
    """
    if len(data.translate(None, _NOT_OPENING)) <= limit:
        return False
    found, start, in_string = 0, 0, False
    while start < len(data):
        piece = data[start : start + _CHUNK]
        if (len(piece) - len(piece.rstrip(b"\\"))) % 2:
            piece = data[start : start + _CHUNK + 1]
        start += len(piece)
        parts = piece.replace(b"\\\\", b"").replace(b'\\"', b"").split(b'"')
        found += len(b"".join(parts[in_string::2]).translate(None, _NOT_OPENING))
        if found > limit:
            return True
        in_string ^= len(parts) % 2 == 0
    return False


def _has_non_finite(value: object) -> bool:
    """Tell whether a float in the value is infinite or not a number, without recursion."""
    pending = [value]
    while pending:
        item = pending.pop()
        if isinstance(item, float):
            if not isfinite(item):
                return True
        elif isinstance(item, dict):
            pending.extend(cast("dict[str, object]", item).values())
        elif isinstance(item, list):
            pending.extend(cast("list[object]", item))
    return False


def _beyond(value: object, limits: JsonLimits) -> str | None:
    """Name the limit below the parser's own that the value passes, or ``None``."""
    largest = 10**limits.max_digits
    pending: list[tuple[object, int]] = [(value, 0)]
    while pending:
        item, depth = pending.pop()
        if isinstance(item, int):
            if not -largest < item < largest:
                return "too-many-digits"
            continue
        if isinstance(item, dict):
            inner = list(cast("dict[str, object]", item).values())
        elif isinstance(item, list):
            inner = cast("list[object]", item)
        else:
            continue
        if depth == limits.max_depth:
            return "too-deep"
        pending.extend((element, depth + 1) for element in inner)
    return None
