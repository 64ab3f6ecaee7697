"""R97, D18, D19. What is not exactly one JSON-RPC message is not read as one."""

from __future__ import annotations

from typing import Any

import pytest

from surefoot.wire import Message, as_request_id, read_message, same_id

ERROR = {"code": -32603, "message": "m"}


def message(**members: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", **members}


REFUSED: list[tuple[str, Any, str]] = [
    ("batch", [message(id=1, result={})], "batch"),
    ("empty batch", [], "batch"),
    ("text", "x", "not-an-object"),
    ("null", None, "not-an-object"),
    ("number", 1, "not-an-object"),
    ("no version", {"id": 1, "result": {}}, "not-jsonrpc"),
    ("version as a number", {"jsonrpc": 2.0, "id": 1, "result": {}}, "not-jsonrpc"),
    ("version 1.0", {"jsonrpc": "1.0", "id": 1, "result": {}}, "not-jsonrpc"),
    ("neither", message(id=1), "neither-result-nor-error"),
    ("both", message(id=1, result={}, error=ERROR), "result-and-error"),
    ("both, the error null", message(id=1, result={}, error=None), "result-and-error"),
    ("both null", message(id=1, result=None, error=None), "result-and-error"),
    ("an answer that calls", message(id=1, method="m", result={}), "answer-and-call"),
    ("a call that answers", message(method="m", error=ERROR), "answer-and-call"),
    ("another case", message(id=1, result={}, Result={}), "member-case"),
    ("another case of the id", message(id=1, ID=2, result={}), "member-case"),
    ("another case alone", message(id=1, Error=ERROR), "member-case"),
    ("id true", message(id=True, result={}), "bad-id"),
    ("id a float", message(id=1.0, result={}), "bad-id"),
    ("id a list", message(id=[1], result={}), "bad-id"),
    ("id null on a result", message(id=None, result={}), "bad-id"),
    ("no id on a result", message(result={}), "bad-id"),
    ("id an object on an error", message(id={}, error=ERROR), "bad-id"),
    ("id true on an error", message(id=True, error=ERROR), "bad-id"),
    ("null id on a request", message(id=None, method="m"), "bad-id"),
    ("result null", message(id=1, result=None), "bad-result"),
    ("result a list", message(id=1, result=[]), "bad-result"),
    ("result a text", message(id=1, result="x"), "bad-result"),
    ("error null", message(id=1, error=None), "bad-error"),
    ("error a text", message(id=1, error="x"), "bad-error"),
    ("error without a code", message(id=1, error={"message": "m"}), "bad-error"),
    ("error without a message", message(id=1, error={"code": 1}), "bad-error"),
    ("code a float", message(id=1, error={"code": 1.0, "message": "m"}), "bad-error"),
    ("code true", message(id=1, error={"code": True, "message": "m"}), "bad-error"),
    ("code a text", message(id=1, error={"code": "1", "message": "m"}), "bad-error"),
    ("message null", message(id=1, error={"code": 1, "message": None}), "bad-error"),
    ("method a number", message(method=1), "bad-method"),
    ("method null", message(method=None, id=1), "bad-method"),
    ("params a list", message(method="m", params=[]), "bad-params"),
    ("params null", message(method="m", params=None), "bad-params"),
]


@pytest.mark.parametrize(("value", "rule"), [r[1:] for r in REFUSED], ids=[r[0] for r in REFUSED])
def test_what_is_not_one_message_is_refused_by_name(value: Any, rule: str) -> None:
    """R97, R98, D18, D19."""
    assert read_message(value) == rule


READ: list[tuple[str, Any, str, Any]] = [
    ("response", message(id=1, result={"a": 1}), "response", ...),
    ("response to a text id", message(id="1", result={}), "response", ...),
    ("error", message(id=1, error=ERROR), "error", ...),
    ("error with data", message(id=1, error={**ERROR, "data": [1]}), "error", ...),
    ("error with null data", message(id=1, error={**ERROR, "data": None}), "error", ...),
    ("error of nobody", message(id=None, error=ERROR), "error", ...),
    ("error without an id", message(error=ERROR), "error", message(id=None, error=ERROR)),
    (
        "error beside a null result, as AWS writes it",
        message(id=1, result=None, error=ERROR),
        "error",
        message(id=1, error=ERROR),
    ),
    (
        "an error's other members are gone",
        message(id=1, error={**ERROR, "trace": "x"}),
        "error",
        message(id=1, error=ERROR),
    ),
    ("other members are gone", message(id=1, result={}, x=1), "response", message(id=1, result={})),
    (
        "params of an answer are gone",
        message(id=1, result={}, params={}),
        "response",
        message(id=1, result={}),
    ),
    ("request", message(id=1, method="m", params={}), "request", ...),
    ("request without parameters", message(id="a", method="m"), "request", ...),
    ("notification", message(method="m"), "notification", ...),
]


@pytest.mark.parametrize(("value", "kind", "kept"), [r[1:] for r in READ], ids=[r[0] for r in READ])
def test_one_message_is_read_and_what_json_rpc_does_not_know_is_gone(
    value: Any, kind: str, kept: Any
) -> None:
    """R96, R97, D19."""
    found = read_message(value)
    assert isinstance(found, Message)
    assert found.kind == kind
    assert found.value == (value if kept is ... else kept)
    assert found.id == value.get("id")


def test_a_null_error_beside_a_result_is_a_result_only_for_a_lenient_reader() -> None:
    """D19."""
    value = message(id=1, result={"a": 1}, error=None)
    found = read_message(value, lenient=True)
    assert isinstance(found, Message)
    assert (found.kind, found.value) == ("response", message(id=1, result={"a": 1}))
    assert read_message(value) == "result-and-error"
    assert read_message(message(id=1, result={}, error=ERROR), lenient=True) == "result-and-error"


@pytest.mark.parametrize(
    ("value", "kind", "kept"),
    [
        (message(id=None, method="m"), "notification", message(method="m")),
        (message(method="m", params=None), "notification", message(method="m")),
        (message(id=1, method="m", params=None), "request", message(id=1, method="m")),
        (message(id=None, method="m", params=None), "notification", message(method="m")),
    ],
)
def test_a_null_that_says_none_on_a_call_is_dropped_only_by_a_lenient_reader(
    value: Any, kind: str, kept: Any
) -> None:
    """R97, D20."""
    found = read_message(value, lenient=True)
    assert isinstance(found, Message)
    assert (found.kind, found.value) == (kind, kept)
    assert isinstance(read_message(value), str)
    assert read_message(message(id=True, method="m"), lenient=True) == "bad-id"


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (1, 1, True),
        ("1", "1", True),
        ("", "", True),
        (None, None, True),
        (1, True, False),
        (0, False, False),
        (1, "1", False),
        (1, 1.0, False),
        (1, 2, False),
        (None, 0, False),
        (None, "", False),
    ],
)
def test_ids_are_the_same_by_type_and_value(one: object, other: object, same: bool) -> None:
    """D18."""
    assert same_id(one, other) is same
    assert same_id(other, one) is same


def test_only_what_mcp_allows_is_an_id() -> None:
    """D18."""
    assert [as_request_id(value) for value in (1, "a", 0, "")] == [1, "a", 0, ""]
    others: list[Any] = [True, 1.0, None, [], {}]
    assert [as_request_id(value) for value in others] == [None] * len(others)


def test_a_message_shows_no_word_of_its_value() -> None:
    """R89."""
    found = read_message(message(id="CANARY", result={"a": "CANARY"}))
    assert "CANARY" not in repr(found)
    assert isinstance(found, Message)
    assert "CANARY" in str(found.value)
