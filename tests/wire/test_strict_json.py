"""R94, R95, R96, B12. JSON is read in exactly one way, or refused by a fixed word."""

from __future__ import annotations

import json
import math
import pickle
import traceback
from pathlib import Path
from typing import Any

import pytest

from support.corpora import ABSENT, corpus
from surefoot.errors import AnswerTooLargeError, UnreadableAnswerError
from surefoot.wire import JsonLimits, strict_json
from surefoot.wire.strict_json import PARSER_DEPTH, PARSER_DIGITS, canonical, dumps, loads

CANARY = "CANARY-5a1e"

SUITE = corpus("JSONTestSuite")
CASES = [] if SUITE is None else sorted((SUITE / "test_parsing").glob("*.json"))
needs_suite = pytest.mark.skipif(SUITE is None, reason=ABSENT)

REFUSED_BY_DESIGN = {"y_object_duplicated_key.json", "y_object_duplicated_key_and_value.json"}


def refusal(data: bytes, **limits: int) -> UnreadableAnswerError:
    """The error that a text is refused with."""
    with pytest.raises(UnreadableAnswerError) as caught:
        loads(data, limits=JsonLimits(**limits))
    return caught.value


@needs_suite
def test_the_suite_is_whole() -> None:
    """R95."""
    kinds = [case.name[0] for case in CASES]
    assert (kinds.count("y"), kinds.count("n"), kinds.count("i")) == (95, 188, 35)


@needs_suite
@pytest.mark.parametrize("case", [c for c in CASES if c.name[0] == "n"], ids=lambda c: c.name)
def test_every_text_that_the_suite_calls_invalid_is_refused(case: Path) -> None:
    """R95. For a rule that has a name."""
    assert refusal(case.read_bytes()).rule


@needs_suite
@pytest.mark.parametrize("case", [c for c in CASES if c.name[0] == "y"], ids=lambda c: c.name)
def test_every_valid_text_is_read_except_those_with_a_key_twice(case: Path) -> None:
    """R95."""
    data = case.read_bytes()
    if case.name in REFUSED_BY_DESIGN:
        assert refusal(data).rule == "duplicate-key"
    else:
        assert loads(data) == json.loads(data)


@needs_suite
@pytest.mark.parametrize("case", [c for c in CASES if c.name[0] == "i"], ids=lambda c: c.name)
def test_what_the_standard_leaves_open_is_read_as_a_strict_reader_does_or_refused(
    case: Path,
) -> None:
    """R95."""
    data = case.read_bytes()
    try:
        value = loads(data)
    except UnreadableAnswerError:
        return
    assert value == json.loads(data.decode("utf-8"))


RULES: list[tuple[str, bytes, str]] = [
    ("a key twice", b'{"a":1,"a":1}', "duplicate-key"),
    ("a key twice, once escaped", b'{"id":7,"\\u0069d":8}', "duplicate-key"),
    ("a key twice, an escaped slash", b'{"a/b":1,"a\\/b":2}', "duplicate-key"),
    (
        "a key twice, a pair of surrogates",
        '{"\U0001f600":1,"\\ud83d\\ude00":2}'.encode(),
        "duplicate-key",
    ),
    ("a key twice, deep inside", b'[{"x":[{"k":null,"k":null}]}]', "duplicate-key"),
    ("an empty key twice", b'{"":1,"":2}', "duplicate-key"),
    ("byte order mark", b"\xef\xbb\xbf{}", "byte-order-mark"),
    ("UTF-16 with its mark", '{"a":1}'.encode("utf-16"), "not-utf8"),
    ("UTF-16 without", '{"a":1}'.encode("utf-16-le"), "not-json"),
    ("a byte that is not UTF-8", b'"\xff"', "not-utf8"),
    ("an overlong form", b'"\xc0\xaf"', "not-utf8"),
    ("a surrogate in UTF-8", b'"\xed\xa0\x80"', "not-utf8"),
    ("half a character at the end", b'"\xe2\x82"', "not-utf8"),
    ("first half of a pair alone", b'"\\ud800"', "lone-surrogate"),
    ("second half of a pair alone", b'"\\udc00"', "lone-surrogate"),
    ("first half twice", b'"\\ud800\\ud800"', "lone-surrogate"),
    ("half of a pair in a key", b'{"\\ud800":1}', "lone-surrogate"),
    ("NaN", b"NaN", "not-json"),
    ("Infinity", b"[Infinity]", "not-json"),
    ("minus Infinity", b'{"a":-Infinity}', "not-json"),
    ("overflow", b"1e400", "not-finite"),
    ("overflow below zero", b'{"a":[-1e999]}', "not-finite"),
    ("overflow without an exponent", b"1" * 400 + b".0", "not-finite"),
    ("something after the value", b"{} {}", "trailing-data"),
    ("two values", b"1 2", "trailing-data"),
    ("a NUL after the value", b"{}\x00", "trailing-data"),
    ("nothing", b"", "not-json"),
    ("blanks alone", b" \n", "not-json"),
    ("a comment", b"{}/**/", "trailing-data"),
    ("single quotes", b"{'a':1}", "not-json"),
    ("a comma too many", b"[1,]", "not-json"),
    ("HTML", b"<html></html>", "not-json"),
    ("a cut text", b'{"a":', "not-json"),
    ("a raw line end in a string", b'"a\nb"', "not-json"),
    ("leading zero", b"01", "not-json"),
    ("plus sign", b"+1", "not-json"),
]


@pytest.mark.parametrize(("data", "rule"), [r[1:] for r in RULES], ids=[r[0] for r in RULES])
def test_a_text_that_could_be_read_in_two_ways_is_refused_by_name(data: bytes, rule: str) -> None:
    """R95, R98. The table's positive control is the table of texts that are read."""
    assert refusal(data).rule == rule


READ: list[tuple[str, bytes, Any]] = [
    ("a number beyond 64 bits", b"18446744073709551617", 2**64 + 1),
    ("the longest integer", b"9" * PARSER_DIGITS, 10**PARSER_DIGITS - 1),
    ("the largest float", b"1.7976931348623157e308", 1.7976931348623157e308),
    ("the smallest float", b"5e-324", 5e-324),
    ("underflow", b"1e-999", 0.0),
    ("the word Infinity in a string", b'{"Infinity":"Infinity"}', {"Infinity": "Infinity"}),
    ("the word NaN in a string", b'["NaN"]', ["NaN"]),
    ("a pair of surrogates", b'"\\ud83d\\ude00"', "\U0001f600"),
    ("a line separator", '"\u2028"'.encode(), "\u2028"),
    ("an escaped NUL", b'"\\u0000"', "\0"),
    ("a byte order mark inside a string", '"\ufeff"'.encode(), "\ufeff"),
    ("blanks around", b" \r\n\t[ ] ", []),
    ("equal keys in different objects", b'[{"a":1},{"a":2}]', [{"a": 1}, {"a": 2}]),
    ("keys that differ in case", b'{"a":1,"A":2}', {"a": 1, "A": 2}),
    ("a deep text", b"[" * PARSER_DEPTH + b"]" * PARSER_DEPTH, ...),
]


@pytest.mark.parametrize(("data", "value"), [r[1:] for r in READ], ids=[r[0] for r in READ])
def test_a_text_with_one_meaning_is_read(data: bytes, value: Any) -> None:
    """R95, R96."""
    found = loads(data)
    if value is not ...:
        assert found == value
        assert type(found) is type(value)


def test_an_integer_stays_an_integer_and_a_float_a_float() -> None:
    """R96."""
    found: Any = loads(b"[1,1.0,-0.0,1e2,true]")
    assert [type(item) for item in found] == [int, float, float, float, bool]
    assert dumps(found) == b"[1,1.0,-0.0,100.0,true]"


LIMITS: list[tuple[str, bytes, bytes, dict[str, int], str]] = [
    ("bytes", b'"123456"', b'"1234567"', {"max_bytes": 8}, "too-many-bytes"),
    ("depth", b'[{"a":[]}]', b'[{"a":[[]]}]', {"max_depth": 3}, "too-deep"),
    ("the parser's depth", b"[" * 201 + b"]" * 201, b"[" * 202 + b"]" * 202, {}, "too-deep"),
    ("digits", b"[-12345]", b"[-123456]", {"max_digits": 5}, "too-many-digits"),
    ("the parser's digits", b"1" * 4300, b"1" * 4301, {}, "too-many-digits"),
    ("containers", b"[[],{},[]]", b"[[],{},[],{}]", {"max_containers": 4}, "too-many-containers"),
    (
        "a whole float has no digits to count",
        b"123456.0",
        b"1234567",
        {"max_digits": 6},
        "too-many-digits",
    ),
]


@pytest.mark.parametrize(
    ("within", "beyond", "limits", "rule"), [r[1:] for r in LIMITS], ids=[r[0] for r in LIMITS]
)
def test_a_limit_is_held_at_its_edge_and_named(
    within: bytes, beyond: bytes, limits: dict[str, int], rule: str
) -> None:
    """B12."""
    loads(within, limits=JsonLimits(**limits))
    error = refusal(beyond, **limits)
    assert isinstance(error, AnswerTooLargeError)
    assert error.rule == rule
    assert error.limit in {*limits.values(), PARSER_DEPTH, PARSER_DIGITS}


@pytest.mark.parametrize("brackets", ["[[[[{{", '[\\"[[', "\\\\[[", "\\", ""])
def test_brackets_inside_strings_are_not_counted_as_containers(brackets: str) -> None:
    """B12. A text of many brackets is still read; cuts of the count fall on every byte of it."""
    element = json.dumps(f"{brackets}{CANARY}")
    many = f"[{','.join([element] * 7_000)},[]]".encode()
    assert len(many) > 1 << 16
    limits = JsonLimits(max_containers=2)
    assert loads(many, limits=limits)
    with pytest.raises(AnswerTooLargeError):
        loads(many[:-2] + b",{}]]", limits=limits)


@pytest.mark.parametrize("shift", range(9))
def test_the_count_does_not_depend_on_where_the_text_is_cut(shift: int) -> None:
    """B12. Escapes that straddle the pieces of the count change nothing."""
    filler = '\\\\\\"[' * 20_000
    text = f'["{"x" * shift}{filler}",[],[]]'.encode()
    assert loads(text, limits=JsonLimits(max_containers=3))
    with pytest.raises(AnswerTooLargeError):
        loads(text, limits=JsonLimits(max_containers=2))


@pytest.mark.parametrize("name", ["max_bytes", "max_containers", "max_depth", "max_digits"])
@pytest.mark.parametrize("value", [0, -1, True, 1.5, "1", None, 10**9])
def test_a_limit_that_cannot_mean_anything_is_refused_when_it_is_built(
    name: str, value: Any
) -> None:
    """R71, R72."""
    options = {name: value}
    if value == 10**9 and name in {"max_bytes", "max_containers"}:
        assert getattr(JsonLimits(**options), name) == value
        return
    with pytest.raises((TypeError, ValueError), match=name) as caught:
        JsonLimits(**options)
    assert isinstance(caught.value, ValueError) == (type(value) is int)


@pytest.mark.parametrize(
    "data",
    [
        f'{{"{CANARY}":1,"{CANARY}":2}}'.encode(),
        f'["{CANARY}'.encode(),
        b'"' + CANARY.encode() + b'\xff"',
        f'["{CANARY}",1e999]'.encode(),
        f'["{CANARY}"]x'.encode(),
        f'{"[" * 300}"{CANARY}"'.encode(),
        f'["{CANARY}{" " * 10_000}"]'.encode(),
    ],
)
def test_no_word_of_the_input_is_in_the_error_its_chain_or_its_frames(data: bytes) -> None:
    """R89, R98."""
    with pytest.raises(UnreadableAnswerError) as caught:
        loads(data, limits=JsonLimits(max_bytes=10_000))
    error = caught.value
    # The frame of this test holds the text by design; the frames below it must not.
    below = error.__traceback__.tb_next if error.__traceback__ else None
    shown = traceback.TracebackException(type(error), error, below, capture_locals=True)
    assert CANARY not in "".join(shown.format())
    assert CANARY not in repr(pickle.dumps(error))
    assert error.__cause__ is None
    assert error.__context__ is None


def test_an_error_of_the_parser_itself_would_have_shown_the_input() -> None:
    """R89. The positive control: what is kept back is really there to be shown."""
    import jiter

    with pytest.raises(ValueError, match=CANARY):
        jiter.from_json(f'{{"{CANARY}":1,"{CANARY}":2}}'.encode(), catch_duplicate_keys=True)


def test_values_are_not_kept_in_the_parsers_cache() -> None:
    """R107. A value may be a secret, and the cache lives as long as the process."""
    import jiter

    jiter.cache_clear()
    loads(f'["{CANARY}"]'.encode())
    assert jiter.cache_usage() == 0
    jiter.from_json(f'["{CANARY}"]'.encode())  # the positive control: its default keeps them
    assert jiter.cache_usage() == 1
    jiter.cache_clear()


@pytest.mark.parametrize(
    ("value", "rule"),
    [
        (math.nan, "not-finite"),
        ([math.inf], "not-finite"),
        ({"a": {"b": -math.inf}}, "not-finite"),
        ("\ud800", "lone-surrogate"),
        ({"\udc00": 1}, "lone-surrogate"),
        (b"\xff", "not-serialisable"),
    ],
)
def test_a_value_without_a_json_form_is_not_written(value: Any, rule: str) -> None:
    """R96."""
    with pytest.raises(UnreadableAnswerError) as caught:
        dumps(value)
    assert caught.value.rule == rule
    assert caught.value.__context__ is None


def test_what_is_read_and_what_is_written_come_together() -> None:
    """R96."""
    value, text = canonical(b' { "b" : 1 , "a" : "\\u00e9" } ')
    assert value == {"b": 1, "a": "é"}
    assert text == '{"b":1,"a":"é"}'.encode()
    assert strict_json.loads is loads
