"""R95, R96, D20. What holds for every JSON text: the properties of reading and writing."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.corpora import ABSENT, corpus
from surefoot.errors import UnreadableAnswerError
from surefoot.wire import JsonLimits
from surefoot.wire.strict_json import canonical, dumps, loads

pytestmark = pytest.mark.unmeasured

text = st.text(st.characters(exclude_categories=["Cs"]))
leaves = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.integers(min_value=-(10**80), max_value=10**80)
    | st.floats(allow_nan=False, allow_infinity=False)
    | text
)
values = st.recursive(
    leaves, lambda inner: st.lists(inner) | st.dictionaries(text, inner), max_leaves=30
)


class RefusedError(Exception):
    """What the reference reader refuses."""


def reference(data: bytes) -> Any:
    """A second strict reader, of the standard library's parts."""

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        members = dict(pairs)
        if len(members) != len(pairs):
            raise RefusedError
        return members

    def finite(text: str) -> float:
        value = float(text)
        if value in {float("inf"), float("-inf")}:
            raise RefusedError
        return value

    def constant(_: str) -> None:
        raise RefusedError

    try:
        value = json.loads(
            data.decode("utf-8"),
            object_pairs_hook=unique,
            parse_float=finite,
            parse_constant=constant,
        )
        json.dumps(value, ensure_ascii=False).encode("utf-8")  # a lone surrogate does not encode
    except (ValueError, RecursionError):
        raise RefusedError from None
    return value


def agree(data: bytes) -> bool:
    """Whether both read a text alike; tells whether it was read."""
    try:
        expected = reference(data)
    except RefusedError:
        with pytest.raises(UnreadableAnswerError):
            loads(data)
        return False
    try:
        value = loads(data)
    except UnreadableAnswerError as error:
        # A bound of ours; the reference has none.
        assert error.rule in {"too-deep", "too-many-digits"}  # noqa: PT017
        return False
    assert exact(value) == exact(expected)
    return True


def exact(value: Any) -> str:
    """A form in which 1, 1.0 and True differ, and so do 0.0 and -0.0."""
    return repr(value)


@given(values)
def test_reading_what_was_written_gives_the_value_back(value: Any) -> None:
    """R96; invariant 12."""
    assert exact(loads(dumps(value))) == exact(value)


@given(values)
def test_writing_twice_gives_the_same_bytes(value: Any) -> None:
    """R96; invariant 12."""
    once = dumps(value)
    assert dumps(loads(once)) == once
    assert canonical(once)[1] == once


@given(values, st.booleans(), st.sampled_from([None, 1, "\t"]))
def test_layout_and_escapes_change_nothing(value: Any, ascii_only: bool, indent: Any) -> None:
    """R96."""
    data = json.dumps(value, ensure_ascii=ascii_only, indent=indent).encode()
    assert dumps(loads(data)) == dumps(value)


@given(values)
def test_lower_limits_read_the_same_or_refuse(value: Any) -> None:
    """B12."""
    data = dumps(value)
    limits = JsonLimits(max_depth=2, max_digits=20, max_containers=3)
    try:
        found = loads(data, limits=limits)
    except UnreadableAnswerError as error:
        assert error.rule in {"too-deep", "too-many-digits", "too-many-containers"}  # noqa: PT017
    else:
        assert exact(found) == exact(value)
        assert data.count(b"[") + data.count(b"{") <= 3 or b'"' in data


@given(st.binary(max_size=60))
def test_arbitrary_bytes_are_read_as_the_reference_reads_them_or_refused(data: bytes) -> None:
    """R95; invariant 13."""
    agree(data)


@given(
    st.lists(
        st.sampled_from(
            [*'{}[],:" \n', '"a"', '"\\u0061"', "1", "-0", "1e400", "1.5", "true", "null", "NaN"]
        ),
        max_size=14,
    )
)
def test_what_looks_like_json_is_read_as_the_reference_reads_it(tokens: list[str]) -> None:
    """R95; invariant 13."""
    agree("".join(tokens).encode())


@pytest.mark.skipif(corpus("JSONTestSuite") is None, reason=ABSENT)
def test_every_mutated_text_of_the_suite_is_read_as_the_reference_reads_it() -> None:
    """R95; invariant 13. Seeded, so that each run sees the same 20,000 texts."""
    suite = corpus("JSONTestSuite")
    assert suite is not None
    texts = [case.read_bytes() for case in sorted((suite / "test_parsing").glob("*.json"))]
    texts = [text for text in texts if len(text) < 2_000]
    draw = random.Random(20261130)
    alphabet = b'{}[]",:\\u0123456789eE+-.tfn \xef\xbb\xbf\xff\x00/'
    read = 0
    for _ in range(20_000):
        data = bytearray(draw.choice(texts))
        for _ in range(draw.randint(1, 3)):
            at = draw.randint(0, len(data))
            match draw.randint(0, 3):
                case 0:
                    del data[at : at + draw.randint(1, 4)]
                case 1:
                    data[at:at] = bytes([draw.choice(alphabet)])
                case 2:
                    data[at : at + 1] = bytes([draw.choice(alphabet)])
                case _:
                    data[at:at] = draw.choice(texts)[:20]
        read += agree(bytes(data))
    assert 1_000 < read < 19_000  # both kinds were really met
