"""R88 to R99, R102 to R104, D18 to D25. What the client may read of an answer that came whole."""

from __future__ import annotations

import json
from typing import Any

import pytest

from support.answers import CANARY, JSON, answered, failed, reply, value
from surefoot.wire import (
    AnswerPolicy,
    JsonLimits,
    RawAnswer,
    failure_sentence,
    refused_answer,
    safe_answer,
    sentence,
)

POLICIES: list[AnswerPolicy] = ["strict", "checked"]
both_policies = pytest.mark.parametrize("policy", POLICIES)
RESULT = {"content": [{"type": "text", "text": "3"}], "isError": False}


@both_policies
def test_a_result_passes_in_its_canonical_form(policy: AnswerPolicy) -> None:
    """R88, R92, R96."""
    body = b' {"result" : {"b":1.0,"a":"\\u00e9"}, "id":1 ,"jsonrpc":"2.0"}\n'
    checked = answered(200, body, policy=policy)
    assert checked.kind == "result"
    assert checked.status == 200
    assert checked.body == '{"result":{"b":1.0,"a":"é"},"id":1,"jsonrpc":"2.0"}'.encode()
    assert value(checked)["result"] == {"b": 1.0, "a": "é"}
    assert checked.message is not None
    assert checked.message.value["result"] == {"b": 1.0, "a": "é"}
    assert (checked.outcome, checked.rule) == (None, None)


@both_policies
def test_a_result_that_says_it_failed_is_content(policy: AnswerPolicy) -> None:
    """D19."""
    checked = answered(200, reply(result={**RESULT, "isError": True}), policy=policy)
    assert (checked.kind, value(checked)["result"]["isError"]) == ("result", True)


UNREADABLE: list[tuple[str, Any, str]] = [
    ("empty", b"", "empty"),
    ("HTML", b"<html>", "not-json"),
    ("cut off", b'{"jsonrpc":"2.0","id":1,"res', "not-json"),
    ("a key twice", b'{"jsonrpc":"2.0","id":7,"id":1,"result":{}}', "duplicate-key"),
    ("two messages", b'{"jsonrpc":"2.0","id":1,"result":{}}{}', "trailing-data"),
    ("mark", b'\xef\xbb\xbf{"jsonrpc":"2.0","id":1,"result":{}}', "byte-order-mark"),
    ("UTF-16", '{"jsonrpc":"2.0","id":1,"result":{}}'.encode("utf-16"), "not-utf8"),
    ("overflow", b'{"jsonrpc":"2.0","id":1,"result":{"a":1e999}}', "not-finite"),
    ("batch", [reply(result={})], "batch"),
    ("another id", {**reply(result={}), "id": 2}, "wrong-id"),
    ("the id as text", {**reply(result={}), "id": "1"}, "wrong-id"),
    ("the id as truth", {**reply(result={}), "id": True}, "bad-id"),
    ("the id as a float", {**reply(result={}), "id": 1.0}, "bad-id"),
    ("no id", {"jsonrpc": "2.0", "result": {}}, "bad-id"),
    ("an error of another", {**failed(), "id": 2}, "wrong-id"),
    ("both", reply(result={}, error={"code": 1, "message": ""}), "result-and-error"),
    ("another case", reply(result={}, Result={}), "member-case"),
    ("a request", reply(method="ping"), "not-an-answer"),
    ("a notification", {"jsonrpc": "2.0", "method": "m"}, "not-an-answer"),
    ("a bare value", {"ok": True}, "not-jsonrpc"),
    ("null", b"null", "not-an-object"),
    ("a result that is no object", reply(result=[]), "bad-result"),
]


@pytest.mark.parametrize(
    ("body", "rule"), [u[1:] for u in UNREADABLE], ids=[u[0] for u in UNREADABLE]
)
@both_policies
def test_an_answer_with_two_meanings_is_a_502_in_our_words(
    policy: AnswerPolicy, body: Any, rule: str
) -> None:
    """R95, R97, R98, D18, D19."""
    checked = answered(200, body, policy=policy)
    assert (checked.kind, checked.status, checked.rule) == ("unreadable", 502, rule)
    assert checked.outcome == "unreadable"
    assert value(checked) == failed(-32603, sentence("unreadable"))


@pytest.mark.parametrize(
    ("lines", "rule"),
    [
        ((), "content-type"),
        (((b"content-type", b"text/html"),), "content-type"),
        (((b"content-type", b"text/event-stream"),), "content-type"),
        (((b"content-type", b"application/json-seq"),), "content-type"),
        ((JSON, JSON), "two-content-types"),
    ],
)
@both_policies
def test_a_body_that_is_not_json_by_its_type_is_not_read(
    policy: AnswerPolicy, lines: tuple[tuple[bytes, bytes], ...], rule: str
) -> None:
    """R93, D25. Even where it would be JSON."""
    raw = RawAnswer(200, lines, json.dumps(reply(result={})).encode())
    checked = safe_answer(raw, request_id=1, policy=policy)
    assert (checked.kind, checked.rule) == ("unreadable", rule)


def test_a_parameter_of_the_content_type_is_refused_only_where_strict() -> None:
    """D25."""
    line = (b"content-type", b"application/json; profile=x")
    assert answered(200, reply(result={}), line, policy="checked").kind == "result"
    assert answered(200, reply(result={}), line, policy="strict").rule == "content-type-parameter"


def test_a_body_beyond_a_bound_is_too_large_and_says_so() -> None:
    """B12, B5."""
    checked = answered(200, reply(result={}), limits=JsonLimits(max_bytes=10))
    assert (checked.kind, checked.outcome, checked.rule) == (
        "unreadable",
        "too-large",
        "too-many-bytes",
    )
    assert value(checked)["error"]["message"] == sentence("too-large")


def test_what_was_refused_before_it_was_read_has_the_same_form() -> None:
    """R98."""
    checked = refused_answer("truncated", request_id="a", headers=((b"mcp-session-id", b"x"),))
    assert (checked.kind, checked.status, checked.rule) == ("unreadable", 502, "truncated")
    assert value(checked)["id"] == "a"
    assert checked.headers[0] == (b"mcp-session-id", b"x")
    assert refused_answer("x", request_id=1, too_large=True).outcome == "too-large"


@pytest.mark.parametrize("status", [200, 201, 202, 204])
def test_where_nothing_was_asked_an_answer_is_delivered_empty(status: int) -> None:
    """D21. A notification, a DELETE with `200 application/json` and no body."""
    for body in (b"", b"accepted", b"null"):
        checked = answered(status, body, request_id=None)
        assert (checked.kind, checked.status, checked.body) == ("empty", status, b"")
        assert checked.headers == ((b"content-length", b"0"),)


@pytest.mark.parametrize("status", [202, 204])
def test_an_answer_without_content_is_delivered_empty_even_to_a_request(status: int) -> None:
    """D21. That no reply will come is for the layer above to say."""
    checked = answered(status, CANARY.encode(), (b"mcp-session-id", b"s"))
    assert (checked.kind, checked.body) == ("empty", b"")
    assert checked.headers == ((b"mcp-session-id", b"s"), (b"content-length", b"0"))


# ---- failures without a reply

FAILURES: list[tuple[int, bytes, str]] = [
    (400, b'{"message":"Value CANARY-3f9c at ..."}', "rejected"),
    (401, b'{"message":"CANARY-3f9c"}', "unauthorized"),
    (403, b"<html>CANARY-3f9c</html>", "forbidden"),
    (404, b"CANARY-3f9c", "not-found"),
    (405, b'{"jsonrpc":"2.0","id":"","result":null,"error":{"code":1,"message":"x"}}', "rejected"),
    (409, b'["CANARY-3f9c"]', "server-error"),
    (424, b'{"message":"Received error (500) from runtime CANARY-3f9c"}', "server-error"),
    (429, b'{"message":"CANARY-3f9c","message":1}', "rate-limited"),
    (500, b"\xffCANARY-3f9c", "server-failure"),
    (502, b"", "server-failure"),
    (503, b'{"jsonrpc":"2.0","id":2,"error":{"code":1,"message":"CANARY-3f9c"}}', "server-failure"),
    (504, b'{"jsonrpc":"2.0","id":1,"result":{"a":"CANARY-3f9c"}}', "server-failure"),
]  # fmt: skip


@pytest.mark.parametrize(("status", "body", "outcome"), FAILURES)
@both_policies
def test_a_failure_without_a_reply_is_made_anew_from_its_status(
    policy: AnswerPolicy, status: int, body: bytes, outcome: str
) -> None:
    """R90, R91, R103, D20. In both policies."""
    checked = answered(status, body, JSON, policy=policy)
    assert (checked.kind, checked.status, checked.outcome) == ("failure", status, outcome)
    assert CANARY not in repr(checked.body)
    found = value(checked)
    assert found["id"] == 1
    assert found["error"]["message"] == failure_sentence(status)
    assert "data" not in found["error"]


@pytest.mark.parametrize("status", [400, 404, 405, 429, 503])
def test_a_failure_where_nothing_was_asked_has_no_words(status: int) -> None:
    """R91, D21. Nobody reads a reply to a notification, a GET or a DELETE."""
    body = {**failed(-32600, CANARY), "id": None}
    checked = answered(status, body, JSON, (b"retry-after", b"3"), request_id=None)
    assert (checked.kind, checked.status, checked.body) == ("failure", status, b"")
    assert checked.headers == ((b"retry-after", b"3"), (b"content-length", b"0"))


@pytest.mark.parametrize(("in_session", "code"), [(True, -32600), (False, -32601)])
def test_a_404_keeps_the_meaning_that_the_sdk_gives_it(in_session: bool, code: int) -> None:
    """D35, B4. The session is gone; without one, the method is not known."""
    checked = answered(404, b"", in_session=in_session)
    assert value(checked)["error"]["code"] == code
    assert checked.outcome == ("session-lost" if in_session else "not-found")
    assert answered(403, b"", in_session=in_session).outcome == "forbidden"


@pytest.mark.parametrize("status", [300, 301, 302, 303, 307, 308])
def test_a_redirect_that_reaches_the_reader_is_a_502_without_its_target(status: int) -> None:
    """B11."""
    checked = answered(status, b"", (b"location", f"https://{CANARY}.example".encode()))
    assert (checked.kind, checked.status, checked.outcome) == ("failure", 502, "redirected")
    assert CANARY not in repr(tuple(checked))
    assert f"HTTP {status}" in value(checked)["error"]["message"]


@pytest.mark.parametrize(
    ("lines", "body", "error_type"),
    [
        ([(b"x-amzn-errortype", b"AccessDeniedException")], b"", "AccessDeniedException"),
        ([(b"x-amzn-errortype", b"ThrottlingException:http://x/")], b"", "ThrottlingException"),
        ([(b"X-Amzn-ErrorType", b"ns#ValidationException")], b"", "ValidationException"),
        ([JSON], b'{"__type":"com.amazon#ThrottlingException"}', "ThrottlingException"),
        ([JSON], b'{"code":"InternalServerError"}', "InternalServerError"),
        ([JSON], b'{"code":-32603,"__type":"ClientFault"}', "ClientFault"),
        ([(b"content-type", b"application/x-amz-json-1.1")], b'{"__type":"AFault"}', "AFault"),
        ([(b"content-type", b"text/html")], b'{"__type":"AFault"}', None),
        ([(b"x-amzn-errortype", b"CANARY-3f9c")], b"", None),
        ([(b"x-amzn-errortype", b"CANARY 3f9c Exception")], b"", None),
        ([(b"x-amzn-errortype", b"x" * 60 + b"Exception")], b"", None),
        ([(b"x-amzn-errortype", b"")], b"", None),
        ([JSON], b'{"__type":"CANARY_3f9c_Exception"}', None),
        ([JSON], b'{"__type":["AFault"],"code":1}', None),
    ],
)
@both_policies
def test_an_aws_error_type_passes_only_in_its_form(
    policy: AnswerPolicy, lines: Any, body: bytes, error_type: str | None
) -> None:
    """D24."""
    checked = answered(400, body, *lines, policy=policy)
    assert checked.error_type == error_type
    assert (error_type or "HTTP 400)") in value(checked)["error"]["message"]
    assert CANARY not in repr(tuple(checked))


@pytest.mark.parametrize(
    ("stated", "seconds"),
    [
        ("1", 1.0),
        ("60.0", 60.0),
        ("0.2", 0.2),
        ("0", 0.0),
        ('"1"', None),
        ("-1", None),
        ("null", None),
        ("true", None),
        ("1e9", None),
        ("[1]", None),
    ],
)
@both_policies
def test_a_wait_that_the_body_states_passes_as_a_number(
    policy: AnswerPolicy, stated: str, seconds: float | None
) -> None:
    """D17. AgentCore's Gateway states it in the body alone; its key never passes where strict."""
    body = f'{{"error":"Rate limit exceeded","limitKey":"{CANARY}","retryAfter":{stated}}}'
    checked = answered(429, body.encode(), policy=policy)
    assert checked.retry_after == seconds
    data = value(checked)["error"].get("data")
    assert data == (None if seconds is None else {"retryAfter": seconds})
    inside = f'{{"limitKey":"{CANARY}","retryAfter":{stated}}}'
    message = json.dumps(failed(-32003, "Rate limit exceeded", data=0)).replace(
        "0}}", inside + "}}"
    )
    for status in (200, 429):
        found = answered(status, message.encode(), policy="strict")
        assert (found.kind, found.retry_after) == ("error", seconds)
        assert CANARY not in found.body.decode()
