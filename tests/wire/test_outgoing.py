"""D1, D18, D33, B2, B3. What goes out is read once, and answers what every layer asks of it."""

from __future__ import annotations

import json
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from surefoot.wire import Outgoing, read_request

MODERN = {"io.modelcontextprotocol/protocolVersion": "2026-07-28"}


def outgoing(**members: Any) -> Outgoing:
    found = read_request(json.dumps({"jsonrpc": "2.0", **members}).encode())
    assert found is not None
    return found


def call(**params: Any) -> Outgoing:
    return outgoing(id=3, method="tools/call", params=params)


def test_no_body_is_no_message() -> None:
    """D1. A GET or a DELETE."""
    assert read_request(b"") is None


UNREADABLE: list[bytes] = [
    b"x",
    b"[]",
    b'[{"jsonrpc":"2.0","id":1,"method":"m"}]',
    b"null",
    b'{"id":1,"method":"tools/call"}',
    b'{"jsonrpc":"1.0","id":1,"method":"m"}',
    b'{"jsonrpc":"2.0","id":1,"id":2,"method":"m"}',
    b'{"jsonrpc":"2.0","id":1,"\\u0069d":1,"method":"m"}',
    b'{"jsonrpc":"2.0","id":true,"method":"m"}',
    b'{"jsonrpc":"2.0","id":1.0,"method":"m"}',
    b'{"jsonrpc":"2.0","id":null,"method":"m"}',
    b'{"jsonrpc":"2.0","id":1,"method":1}',
    b'{"jsonrpc":"2.0","id":1,"method":null,"result":{}}',
    b'{"jsonrpc":"2.0","id":1,"method":"m","params":[]}',
    b'{"jsonrpc":"2.0","id":1,"method":"m","result":{}}',
    b'{"jsonrpc":"2.0","id":1}',
    b'{"jsonrpc":"2.0","result":{}}',
    b'{"jsonrpc":"2.0","id":1,"result":{},"error":{}}',
    b'{"jsonrpc":"2.0","id":1,"method":"m"} x',
    b'\xef\xbb\xbf{"jsonrpc":"2.0","id":1,"method":"m"}',
]


@pytest.mark.parametrize("body", UNREADABLE)
def test_what_is_not_one_message_is_unreadable_and_names_nothing(body: bytes) -> None:
    """D1. The layers treat it as an undeclared tool call."""
    found = read_request(body)
    assert found is not None
    assert found.kind == "unreadable"
    assert (found.id, found.method, found.tool, found.arguments) == (None, None, None, None)


@given(st.binary(max_size=80))
def test_no_bytes_raise(body: bytes) -> None:
    """D1."""
    found = read_request(body)
    assert (found is None) == (not body)


@pytest.mark.parametrize(
    ("members", "kind", "request_id", "method"),
    [
        ({"id": 1, "method": "initialize"}, "request", 1, "initialize"),
        ({"id": 0, "method": "ping"}, "request", 0, "ping"),
        ({"id": "", "method": "ping"}, "request", "", "ping"),
        (
            {"method": "notifications/initialized"},
            "notification",
            None,
            "notifications/initialized",
        ),
        ({"id": 9, "result": {}}, "response", 9, None),
        ({"id": "x", "error": {"code": 1, "message": ""}}, "response", "x", None),
        ({"id": None, "error": {"code": 1, "message": ""}}, "response", None, None),
    ],
)
def test_each_kind_of_message_is_told_apart(
    members: dict[str, Any], kind: str, request_id: Any, method: str | None
) -> None:
    """D1. A response of the client answers what the server asked, and passes."""
    found = outgoing(**members)
    assert (found.kind, found.id, found.method) == (kind, request_id, method)
    assert type(found.id) is type(request_id)
    assert not found.is_tool_call


def test_a_tool_call_names_its_tool_and_arguments() -> None:
    """R4, B3."""
    found = call(name="search", arguments={"q": 1}, _meta={**MODERN, "progressToken": 1})
    assert found.is_tool_call
    assert (found.tool, found.arguments) == ("search", {"q": 1})
    assert found.protocol_version == "2026-07-28"
    assert found.has_result_type
    assert found.meta["progressToken"] == 1
    assert not found.has_task
    assert found.request_state is None


def test_what_a_call_leaves_out_is_absent() -> None:
    """R4."""
    found = call()
    assert (found.tool, found.arguments, found.meta) == (None, None, {})
    assert found.canonical_arguments() is None
    assert found.protocol_version is None
    assert not found.has_result_type
    assert outgoing(id=1, method="tools/call").params == {}


@pytest.mark.parametrize("name", [1, None, True, ["x"], {"x": 1}])
def test_a_name_that_is_no_text_is_no_name(name: Any) -> None:
    """D1."""
    assert call(name=name).tool is None
    assert call(name="x", arguments=name if not isinstance(name, dict) else 1).arguments is None


def test_only_a_request_calls_a_tool_and_what_a_tool_may_holds_without_an_id_too() -> None:
    """D1, R13. A call that nobody waits for is still one of a tool that was declared."""
    assert not outgoing(method="tools/call", params={"name": "x"}).is_tool_call
    assert outgoing(method="tools/call", params={"name": "x"}).tool == "x"
    assert outgoing(id=1, method="prompts/get", params={"name": "x"}).tool is None


def test_a_task_and_a_sealed_state_are_seen() -> None:
    """D33. They decide which form a give-up has, and which requests are one call."""
    assert call(name="x", task={"ttl": 1}).has_task
    assert not call(name="x", task=None).has_task
    assert call(name="x", requestState="v1.abc").request_state == "v1.abc"
    assert call(name="x", requestState=1).request_state is None


@pytest.mark.parametrize("cancelled", [7, "7", 0])
def test_a_cancellation_names_what_it_cancels(cancelled: Any) -> None:
    """B2."""
    found = outgoing(method="notifications/cancelled", params={"requestId": cancelled})
    assert found.cancelled_id == cancelled
    assert type(found.cancelled_id) is type(cancelled)


def test_what_is_no_cancellation_cancels_nothing() -> None:
    """B2."""
    assert outgoing(method="notifications/x", params={"requestId": 7}).cancelled_id is None
    for value in (True, 1.0, None, [7]):
        found = outgoing(method="notifications/cancelled", params={"requestId": value})
        assert found.cancelled_id is None
    assert outgoing(method="notifications/cancelled").cancelled_id is None


@pytest.mark.parametrize(
    ("version", "has"),
    [("2025-11-25", False), ("2026-07-28", True), ("2027-01-01", True), ("", False), (1, False)],
)
def test_a_result_type_is_for_those_who_know_it(version: Any, has: bool) -> None:
    """B5."""
    meta = {"io.modelcontextprotocol/protocolVersion": version}
    assert call(name="x", _meta=meta).has_result_type is has


SAME: list[tuple[Any, Any]] = [
    ({"a": 1, "b": 2}, {"b": 2, "a": 1}),
    ({"a": {"x": 1, "y": [{"p": 1, "q": 2}]}}, {"a": {"y": [{"q": 2, "p": 1}], "x": 1}}),
    ({"a": 1}, {"a": 1.0}),
    ({"a": 0}, {"a": -0.0}),
    ({}, {}),
]

DIFFERENT: list[tuple[Any, Any]] = [
    ({"a": 1}, {"a": True}),
    ({"a": 1}, {"a": "1"}),
    ({"a": [1, 2]}, {"a": [2, 1]}),
    ({"a": None}, {}),
    ({"a": 1}, {"A": 1}),
    ({"a": 0.1}, {"a": 0.2}),
    ({"a": 2**60}, {"a": 2**60 + 1}),
    ({"a": {}}, {"a": []}),
]


@pytest.mark.parametrize(("one", "other"), SAME)
def test_equal_arguments_have_one_form(one: Any, other: Any) -> None:
    """B3."""
    assert call(arguments=one).canonical_arguments() == call(arguments=other).canonical_arguments()


@pytest.mark.parametrize(("one", "other"), DIFFERENT)
def test_different_arguments_have_different_forms(one: Any, other: Any) -> None:
    """B3."""
    assert call(arguments=one).canonical_arguments() != call(arguments=other).canonical_arguments()


def test_arguments_that_have_no_form_have_none() -> None:
    """B3."""
    body = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"arguments":{"a":1e999}}}'
    found = read_request(body)
    assert found is not None
    assert found.kind == "request"
    assert found.canonical_arguments() is None


def test_deeply_nested_arguments_still_have_a_form() -> None:
    """B3, B12."""
    nested: Any = 1
    for _ in range(190):
        nested = {"a": nested}
    assert call(arguments={"a": nested}).canonical_arguments() is not None


def test_what_goes_out_shows_no_argument_and_no_tool() -> None:
    """R89."""
    assert "CANARY" not in repr(call(name="CANARY", arguments={"CANARY": "CANARY"}))


_COMPARED: list[str] = [
    "{}",
    '{"a":1}',
    "[]",
    "[1]",
    '"x"',
    "0",
    "false",
    '{"a":1e999,"b":1}',
    '{"a":-1e999,"b":1}',
    '{"a":1e999}',
    "1" * 30,
    "1" * 1000,
]


def _compared(arguments: str) -> bytes:
    body = f'{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"arguments":{arguments}}}}}'
    found = read_request(body.encode())
    assert found is not None
    assert found.kind == "request"
    return found.compared_arguments()


def test_arguments_that_are_no_object_are_compared_too() -> None:
    """B3. Whatever stands there, two that differ stay two; none at all is an empty object."""
    assert len({_compared(one) for one in _COMPARED}) == len(_COMPARED)
    assert _compared("null") == _compared("{}") == call().compared_arguments()


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ('{"a":1e999,"b":1}', '{"b":1.0,"a":1e999}'),
        ("[1.0, 2]", "[1,2.0]"),
        ('[{"a":1,"b":2}]', '[{"b":2,"a":1}]'),
    ],
)
def test_equal_arguments_compare_as_equal_in_every_form(one: str, other: str) -> None:
    """B3. A repeat is known however it is written; what cannot be told apart is not told apart."""
    assert _compared(one) == _compared(other)


def test_numbers_that_python_will_not_write_compare_as_equal() -> None:
    """B3. What cannot be told apart is taken for a repeat, and never for something new."""
    most = sys.get_int_max_str_digits()
    sys.set_int_max_str_digits(640)
    try:
        assert _compared("1" * 1000) == _compared("2" * 1000) != _compared("{}")
    finally:
        sys.set_int_max_str_digits(most)


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("1000000000000000000", "1e18", True),
        ("9007199254740992", "9007199254740992.0", True),
        ("100000000000000000000", "1e20", True),
        ("9007199254740993", "9007199254740992.0", False),
        ("1.5", "1", False),
    ],
)
def test_a_number_written_in_another_way_is_the_same_call(one: str, other: str, same: bool) -> None:
    """B3. A model writes a large amount with or without an exponent."""
    forms = [
        read_request(
            b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"pay",'
            b'"arguments":{"amount":%s}}}' % number.encode()
        )
        for number in (one, other)
    ]
    assert forms[0] is not None
    assert forms[1] is not None
    equal = forms[0].canonical_arguments() == forms[1].canonical_arguments()
    assert equal is same


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"Name":"pay"}}', "unreadable"),
        (
            b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"look","NAME":"pay"}}',
            "unreadable",
        ),
        (
            b'{"jsonrpc":"2.0","id":1,"method":"ping","Method":"tools/call","params":{}}',
            "unreadable",
        ),
        (
            b'{"jsonrpc":"2.0","id":1,"method":"tools/call","Params":{"name":"pay"}}',
            "unreadable",
        ),
        (b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"pay"}}', "request"),
        (
            (
                b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"pay",'
                b'"arguments":{"Name":"x"}}}'
            ),
            "request",
        ),
        (b'{"jsonrpc":"2.0","id":1,"method":"x/y","params":{"Name":"pay"}}', "request"),
    ],
)
def test_a_member_that_others_would_take_for_the_name_makes_a_message_unreadable(
    body: bytes, kind: str
) -> None:
    """B3. Some servers match names whatever their case; which tool runs must have one reading."""
    message = read_request(body)
    assert message is not None
    assert message.kind == kind
