"""D9, R13. Where a call carries its idempotency key, and what counts as one."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from surefoot.policy import idempotency_value

scalars = st.text(min_size=1) | st.integers() | st.floats(allow_nan=False) | st.booleans()
names = st.text(st.characters(exclude_characters="."), min_size=1)


@pytest.mark.parametrize(
    ("path", "arguments", "meta", "value"),
    [
        ("arguments.id", {"id": "k-1"}, None, "k-1"),
        ("arguments.id", {"id": 7}, None, 7),
        ("arguments.id", {"id": 0}, None, 0),
        ("arguments.id", {"id": 1.5}, None, 1.5),
        ("arguments.id", {"id": False}, None, False),
        ("arguments.id", {"id": " "}, None, " "),
        ("arguments.a.b", {"a": {"b": "k"}}, None, "k"),
        ("arguments.a.b.c", {"a": {"b": {"c": "k"}}}, None, "k"),
        ("_meta.key", None, {"key": "k"}, "k"),
        ("_meta.com.example/key", None, {"com.example/key": "k"}, "k"),
    ],
)
def test_a_scalar_where_the_declaration_points_is_the_key(
    path: str, arguments: object, meta: object, value: object
) -> None:
    """D9. A string, a number or a truth value, as the call carries it."""
    found = idempotency_value(path, arguments, meta)
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize(
    ("path", "arguments", "meta"),
    [
        ("arguments.id", {}, None),
        ("arguments.id", None, None),
        ("arguments.id", {"id": ""}, None),
        ("arguments.id", {"id": None}, None),
        ("arguments.id", {"id": ["k"]}, None),
        ("arguments.id", {"id": {"k": "k"}}, None),
        ("arguments.id", {"ID": "k"}, None),
        ("arguments.id", ["id"], None),
        ("arguments.id", "id", None),
        ("arguments.id", {"arguments": {"id": "k"}}, None),
        ("arguments.id", None, {"id": "k"}),
        ("arguments.a.b", {"a": "b"}, None),
        ("arguments.a.b", {"a": [{"b": "k"}]}, None),
        ("arguments.a.b", {"a.b": "k"}, None),
        ("arguments.a.b", {"a": {"b": {}}}, None),
        ("arguments.a", {"a": {"b": "k"}}, None),
        ("arguments.0", ["k"], None),
        ("_meta.key", {"key": "k"}, None),
        ("_meta.key", {"key": "k"}, {}),
        ("_meta.key", None, {"key": ""}),
        ("_meta.key", None, {"key": {"k": 1}}),
        ("_meta.a.b", None, {"a": {"b": "k"}}),
    ],
)
def test_nothing_else_is_a_key(path: str, arguments: object, meta: object) -> None:
    """R13, D9. Empty, absent, a container or somewhere else: the guard stays where it is."""
    assert idempotency_value(path, arguments, meta) is None


@given(steps=st.lists(names, min_size=1, max_size=5), value=scalars, other=names)
def test_a_key_is_found_at_any_depth_and_nowhere_else(
    steps: list[str], value: Any, other: str
) -> None:
    """D9. However deep it lies, under whatever names."""
    arguments: Any = value
    for name in reversed(steps):
        arguments = {name: arguments}
    assert idempotency_value("arguments." + ".".join(steps), arguments, None) == value
    deeper = ".".join([*steps, other])
    assert idempotency_value(f"arguments.{deeper}", arguments, None) is None
    elsewhere = ".".join([*steps[:-1], f"{steps[-1]}x"])
    assert idempotency_value(f"arguments.{elsewhere}", arguments, None) is None


@given(name=st.text(min_size=1), value=scalars, arguments=st.dictionaries(st.text(), st.text()))
def test_a_key_of_meta_is_one_name_whatever_dots_it_holds(
    name: str, value: Any, arguments: dict[str, str]
) -> None:
    """D9. Names under _meta hold dots by the specification's own convention."""
    assert idempotency_value(f"_meta.{name}", arguments, {name: value}) == value
    assert idempotency_value(f"_meta.{name}", arguments, {}) is None
