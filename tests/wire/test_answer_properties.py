"""R88, R90, R91, R96, R98, B7, D23; invariants 12 and 14. What holds for every answer."""

from __future__ import annotations

import json
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp_types import jsonrpc_message_adapter
from pydantic import ValidationError

from support.answers import CANARY, JSON
from surefoot.wire import (
    CheckedAnswer,
    RawAnswer,
    Scrub,
    SseBlock,
    SseDecoder,
    origin_of,
    read_message,
    safe_answer,
    safe_event,
    sentence,
)
from surefoot.wire.strict_json import dumps, loads

pytestmark = pytest.mark.unmeasured

ORIGIN = origin_of("https://gateway.example.com/mcp")
SECRET = "s3cr3t-TOKEN-0123456789"

texts = st.sampled_from([f"a {CANARY} b", f"a {SECRET}", "Rate limit exceeded", "", "é\u2028"])
small = st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from([1.0, 0.5, 1e9]) | texts
keys = st.sampled_from(["surefoot/outcome", SECRET, "retryAfter", "supported", "_meta", "a"])
objects = st.recursive(
    st.dictionaries(keys, small, max_size=3),
    lambda inner: st.dictionaries(keys, inner | st.lists(inner | small, max_size=2), max_size=3),
    max_leaves=6,
)
errors = st.fixed_dictionaries(
    {
        "code": st.sampled_from([-32603, -32003, -32020, -32021, -32022, -32042, -32601, 1]),
        "message": texts,
        "data": st.dictionaries(keys, small, min_size=1) | objects,
    },
    optional={"extra": small},
)
results = st.fixed_dictionaries({"text": texts, "_meta": st.dictionaries(keys, small, min_size=1)})

head: dict[str, Any] = {"jsonrpc": st.just("2.0")}
replies = st.one_of(
    st.fixed_dictionaries({**head, "id": st.just(1), "result": results | objects}),
    st.fixed_dictionaries({**head, "id": st.sampled_from([1, None]), "error": errors}),
)
messages = st.fixed_dictionaries(
    {},
    optional={
        "jsonrpc": st.sampled_from(["2.0", "1.0"]),
        "id": st.sampled_from([1, "1", 2, None, True]),
        "result": objects | small,
        "error": errors | objects | small,
        "method": st.sampled_from(["m", 1]),
        "params": objects | small,
        "Result": small,
        "x": small,
    },
)
well_formed = st.tuples(replies, st.sampled_from([None, 1]), st.booleans()).map(
    lambda made: json.dumps(made[0], indent=made[1], ensure_ascii=made[2]).encode()
)
bodies = st.one_of(
    well_formed,
    well_formed,
    messages.map(lambda value: json.dumps(value).encode()),
    st.binary(max_size=30),
    st.sampled_from(
        [
            b"",
            f"<html>{CANARY} {SECRET}</html>".encode(),
            f'{{"{CANARY}":1,"{CANARY}":2}}'.encode(),
            f'{{"__type":"x#AccessDeniedException","message":"{CANARY} {SECRET}"}}'.encode(),
            f'{{"retryAfter":2,"limitKey":"{CANARY}"}}'.encode(),
        ]
    ),
)
odd_lines = st.lists(
    st.sampled_from(
        [
            (b"Content-Type", b"text/html"),
            (b"content-type", b"application/json; x=y"),
            (b"mcp-session-id", b"s-1"),
            (b"mcp-session-id", SECRET.encode()),
            (b"retry-after", b"12"),
            (b"x-amzn-errortype", b"ThrottlingException:http://x"),
            (b"x-amzn-errortype", CANARY.encode()),
            (b"www-authenticate", b'Bearer error="invalid_token", realm="CANARY-3f9c"'),
            (b"www-authenticate", b'Bearer scope="%b"' % SECRET.encode()),
            (b"set-cookie", CANARY.encode()),
            (b"location", CANARY.encode()),
        ]
    ),
    max_size=3,
)
lines = st.one_of(st.just((JSON,)), odd_lines.map(lambda more: (JSON, *more)), odd_lines.map(tuple))
statuses = st.just(200) | st.sampled_from([202, 302, 400, 401, 403, 404, 409, 429, 500, 502])
policies = st.sampled_from(["strict", "checked"])
readable = st.builds(RawAnswer, st.just(200) | statuses, st.just((JSON,)), well_formed)
answers = st.builds(RawAnswer, statuses, lines, bodies) | readable
options = st.fixed_dictionaries(
    {"request_id": st.just(1) | st.sampled_from([1, "1", None]), "policy": policies},
    optional={"in_session": st.booleans(), "origin": st.just(ORIGIN)},
)
asked = st.fixed_dictionaries({"request_id": st.just(1), "policy": policies})


def checked(answer: RawAnswer, options: dict[str, Any]) -> CheckedAnswer:
    return safe_answer(answer, **options)


@given(answers, options)
def test_no_answer_of_any_server_raises(answer: RawAnswer, options: dict[str, Any]) -> None:
    """R98. And what it says of itself is true."""
    found = checked(answer, options)
    assert found.status in {answer.status, 502}
    assert dict(found.headers)[b"content-length"] == b"%d" % len(found.body)
    assert (found.rule is not None) == (found.kind == "unreadable")
    assert (found.outcome is None) == (found.kind in {"result", "empty"})
    for _, value in found.headers:
        assert value.isascii()
        assert value.decode().isprintable()


@given(answers, options)
def test_checking_what_was_checked_changes_nothing(
    answer: RawAnswer, options: dict[str, Any]
) -> None:
    """R88, R96. Status, headers and body, byte for byte."""
    once = checked(answer, options)
    twice = checked(RawAnswer(once.status, once.headers, once.body), options)
    assert (twice.status, twice.body) == (once.status, once.body)
    assert sorted(twice.headers) == sorted(once.headers)


@given(answers, options)
def test_every_body_is_one_message_that_every_reader_reads_alike(
    answer: RawAnswer, options: dict[str, Any]
) -> None:
    """R95, R96, R97; invariant 12. Two parsers and the SDK's own adapter."""
    found = checked(answer, options)
    if not found.body:
        return
    value = loads(found.body)
    assert value == json.loads(found.body)
    assert dumps(value) == found.body
    message = read_message(value)
    assert not isinstance(message, str)
    assert message.kind in {"response", "error"}
    assert message.id == options["request_id"]
    assert type(message.id) is type(options["request_id"])
    read = jsonrpc_message_adapter.validate_json(found.body, by_name=False)
    assert json.loads(read.model_dump_json(by_alias=True, exclude_unset=True)) == value


@given(answers, options)
def test_a_rewritten_failure_is_a_function_of_the_allow_listed_parts(
    answer: RawAnswer, options: dict[str, Any]
) -> None:
    """R90, R91, R103; invariant 14. Its words are made here from those parts alone."""
    found = checked(answer, options)
    if found.kind not in {"failure", "unreadable"} or not found.body:
        return
    assert found.outcome is not None
    error: dict[str, Any] = {"message": sentence(found.outcome), "code": -32603}
    if found.kind == "failure":
        error["message"] = sentence(
            found.outcome,
            status=answer.status,
            retry_after=found.retry_after,
            error_type=found.error_type,
        )
        if answer.status == 404:
            error["code"] = -32600 if found.outcome == "session-lost" else -32601
        if found.retry_after is not None:
            error["data"] = {"retryAfter": found.retry_after}
    expected = {"jsonrpc": "2.0", "id": options["request_id"], "error": error}
    assert json.loads(found.body) == expected


@given(readable | answers, asked)
def test_under_strict_no_word_of_a_failure_passes(
    answer: RawAnswer, options: dict[str, Any]
) -> None:
    """R89, R90, R91. A result is content; a failure is not."""
    found = checked(answer, {**options, "policy": "strict"})
    if found.kind != "result":
        assert CANARY not in repr(tuple(found))


@given(readable | answers, asked)
def test_no_secret_passes_whatever_is_answered(answer: RawAnswer, options: dict[str, Any]) -> None:
    """B7; invariant 11."""
    scrub = Scrub([SECRET.encode()])
    found = safe_answer(answer, scrub=scrub, **options)
    assert SECRET not in repr(tuple(found))
    assert SECRET not in repr(found.message and found.message.value)
    assert scrub(found.body or b"0")[1] == 0


@given(readable, asked)
def test_nothing_under_our_prefix_passes_where_it_would_mean_something(
    answer: RawAnswer, options: dict[str, Any]
) -> None:
    """B5."""
    found = checked(answer, options)
    value: Any = json.loads(found.body) if found.body else {}
    for holder, inside in (("result", "_meta"), ("error", "data")):
        inner: Any = value.get(holder, {}).get(inside)
        if isinstance(inner, dict):
            assert not json.dumps(list(cast("dict[str, Any]", inner))).count('"surefoot/')


@given(bodies, policies, st.none() | st.sampled_from(["e-1", "a b"]), st.none() | st.just(0.5))
def test_an_event_that_passes_reads_back_as_one_message_and_stays_as_it_is(
    data: bytes, policy: Any, event_id: str | None, retry: float | None
) -> None:
    """R88, R97, D22; invariant 12. Nothing raises."""
    if b"\r" in data:
        return
    found = safe_event(SseBlock("message", data, event_id, retry), request_id=1, policy=policy)
    if found.kind == "unreadable":
        assert found.wire == b""
        return
    decoder = SseDecoder()
    blocks = list(decoder.feed(found.wire))
    assert not decoder.close()
    again = [safe_event(block, request_id=1, policy=policy) for block in blocks]
    assert [e.wire for e in again] == [found.wire] * len(blocks)
    assert [e.kind for e in again] == [found.kind] * len(blocks)
    if found.message is not None:
        assert len(blocks) == 1
        assert blocks[0].data is not None
        try:
            jsonrpc_message_adapter.validate_json(blocks[0].data, by_name=False)
        except ValidationError as error:
            raise AssertionError(found.kind) from error
