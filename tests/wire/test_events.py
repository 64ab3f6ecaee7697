"""R88, R97, R98, D18, D22, B5, B7, B12. What the client may read of one event of a stream."""

from __future__ import annotations

import json
from typing import Any

import pytest

from support.answers import CANARY, failed, reply
from surefoot.wire import (
    KEEP_ALIVE,
    AnswerPolicy,
    CheckedEvent,
    Scrub,
    SseBlock,
    encode_event,
    safe_event,
    sentence,
)

POLICIES: list[AnswerPolicy] = ["strict", "checked"]
both_policies = pytest.mark.parametrize("policy", POLICIES)


def event(message: Any, block: dict[str, Any] | None = None, **options: Any) -> CheckedEvent:
    """Check one event in a stream that answers request 1."""
    data = message if isinstance(message, bytes) else json.dumps(message).encode()
    options.setdefault("request_id", 1)
    return safe_event(SseBlock(data=data, **(block or {})), **options)


def message_in(checked: CheckedEvent) -> Any:
    """The message that the client reads."""
    data = [line[6:] for line in checked.wire.split(b"\n") if line.startswith(b"data: ")]
    assert len(data) == 1
    return json.loads(data[0])


PROGRESS: dict[str, Any] = {"jsonrpc": "2.0", "method": "notifications/progress", "params": {}}

PASSES: list[tuple[str, Any, str]] = [
    ("result", reply(result={"a": 1}), "result"),
    ("progress", PROGRESS, "notification"),
    ("a question of the server", reply(method="sampling/createMessage", params={}), "request"),
    ("another id on a question", {**reply(method="ping"), "id": "s-1"}, "request"),
    ("a known error", failed(-32601, "Method not found"), "error"),
]


@pytest.mark.parametrize(("message", "kind"), [p[1:] for p in PASSES], ids=[p[0] for p in PASSES])
@both_policies
def test_one_message_of_one_event_passes_in_its_canonical_form(
    policy: AnswerPolicy, message: Any, kind: str
) -> None:
    """R88, R96, R97."""
    padded = json.dumps(message, indent=1).replace("\n", " ").encode()
    checked = event(padded, policy=policy)
    assert checked.kind == kind
    assert checked.replies is (kind in {"result", "error"})
    assert checked.wire == b"data: " + json.dumps(message, separators=(",", ":")).encode() + b"\n\n"
    assert checked.message is not None
    assert checked.message.value == message
    assert checked.rule is None


REFUSED: list[tuple[str, Any, str]] = [
    ("no JSON", b"hello", "not-json"),
    ("batch", [reply(result={})], "batch"),
    ("two messages", b'{"jsonrpc":"2.0","id":1,"result":{}}\n{}', "trailing-data"),
    ("a key twice", b'{"jsonrpc":"2.0","id":1,"id":1,"result":{}}', "duplicate-key"),
    ("another id", {**reply(result={}), "id": 2}, "wrong-id"),
    ("the id as text", {**reply(result={}), "id": "1"}, "wrong-id"),
    ("another id on an error", {**failed(), "id": 2}, "wrong-id"),
    ("both", reply(result={}, error={"code": 1, "message": ""}), "result-and-error"),
    ("no message", {"a": 1}, "not-jsonrpc"),
]


@pytest.mark.parametrize(("message", "rule"), [r[1:] for r in REFUSED], ids=[r[0] for r in REFUSED])
@both_policies
def test_an_event_with_two_meanings_is_refused_by_name(
    policy: AnswerPolicy, message: Any, rule: str
) -> None:
    """R97, R98, D18. What the stream ends with is the caller's to word."""
    checked = event(message, policy=policy)
    assert (checked.kind, checked.rule, checked.wire) == ("unreadable", rule, b"")
    assert checked.outcome == "unreadable"
    assert not checked.replies


def test_on_a_standing_stream_a_reply_to_any_request_may_come() -> None:
    """D22. A resumed stream carries the reply to an earlier request."""
    for message in (reply(result={}), {**failed(), "id": "x"}, {**failed(), "id": None}):
        checked = event(message, request_id=None)
        assert checked.replies
        assert message_in(checked) == message


def test_an_error_that_could_not_name_its_request_gets_its_id() -> None:
    """D18."""
    assert message_in(event({**failed(), "id": None}))["id"] == 1


def test_id_and_retry_pass_when_plain_and_bounded() -> None:
    """D22, D37."""
    checked = event(reply(result={}), {"id": "e-1", "retry": 0.5})
    assert checked.id == "e-1"
    assert checked.wire.startswith(b"id: e-1\nretry: 500\ndata: {")
    for unplain in ("a b", "\u2026", "x" * 1_025):
        checked = event(reply(result={}), {"id": unplain})
        assert checked.id is None
        assert checked.wire.startswith(b"data: ")


@pytest.mark.parametrize("data", [None, b""])
def test_an_event_without_data_keeps_its_id(data: bytes | None) -> None:
    """D22. A priming event: MCP resumes from it."""
    checked = safe_event(SseBlock(data=data, id="e-0", retry=2.0), request_id=1)
    assert (checked.kind, checked.id) == ("empty", "e-0")
    assert checked.wire == b"id: e-0\nretry: 2000\ndata:\n\n"
    assert safe_event(SseBlock(id=""), request_id=1).wire == b"id: \ndata:\n\n"


def test_a_comment_passes_as_a_bare_keep_alive() -> None:
    """D22. Without its words."""
    assert safe_event(SseBlock(), request_id=1).wire == KEEP_ALIVE


def test_of_other_events_only_the_one_that_names_a_path_passes() -> None:
    """D22."""
    path = SseBlock("endpoint", b"/messages?session=1", "7", None)
    checked = safe_event(path, request_id=None)
    assert (checked.kind, checked.id) == ("other", "7")
    assert checked.wire == b"id: 7\nevent: endpoint\ndata: /messages?session=1\n\n"
    for event_type, data in (("endpoint", b"/a b"), ("endpoint", b"/a\n/b"), ("other", b"{}")):
        assert safe_event(SseBlock(event_type, data), request_id=None).wire == b""
        kept = safe_event(SseBlock(event_type, data, "8", 1.0), request_id=None)
        assert kept.wire == encode_event(None, id="8", retry=1.0)
        assert kept.id == "8"


@pytest.mark.parametrize("over", [0, 1])
def test_an_event_that_the_client_would_refuse_is_refused_here(over: int) -> None:
    """B12. Written anew, a message may be longer than it came; line ends are not counted."""
    message = reply(result={"a": [1e22] * 10})
    written = event(message, {"id": "e-1"}).wire
    size = len(written) - written.count(b"\n")
    checked = event(message, {"id": "e-1"}, max_event_bytes=size - over)
    assert checked.rule == ("event-bytes" if over else None)
    assert checked.outcome == ("too-large" if over else None)


def test_an_unknown_message_of_an_error_passes_only_where_checked() -> None:
    """R90, D20."""
    message = failed(-32050, CANARY, data={"retryAfter": 2, "x": CANARY})
    checked = event(message, policy="checked")
    assert message_in(checked) == message
    strict = event(message, policy="strict")
    said = sentence("server-error")
    assert message_in(strict) == failed(-32050, said, data={"retryAfter": 2})
    for found in (checked, strict):
        assert (found.kind, found.outcome, found.retry_after) == ("error", "server-error", 2.0)


def test_a_server_cannot_speak_as_surefoot_in_a_stream() -> None:
    """B5. Neither in its reply nor in what it asks or notifies."""
    ours = {"surefoot/outcome": {"kind": "not-sent"}, "a": 1}
    for message in (
        reply(result={"_meta": ours}),
        reply(method="m", params={"_meta": ours}),
        {"jsonrpc": "2.0", "method": "m", "params": {"_meta": ours}},
        failed(data=ours),
    ):
        checked = event(message)
        assert b"surefoot" not in checked.wire
        assert b'"a":1' in checked.wire
    assert b"surefoot/x" in event(reply(method="m", params={"surefoot/x": 1})).wire


def test_no_secret_passes_in_an_event_its_id_or_its_path() -> None:
    """B7; invariant 11. With its positive control."""
    secret = "s3cr3t-TOKEN-0123456789"
    scrub = Scrub([secret.encode()])
    message = {"jsonrpc": "2.0", "method": "m", "params": {"text": f"you sent {secret}"}}
    block = {"id": f"e-{secret}"}
    clean = event(message, block, scrub=scrub)
    assert secret not in repr(tuple(clean))
    assert secret not in repr(clean.message and clean.message.value)
    assert (clean.scrubbed, clean.id) == (1, None)
    assert secret in repr(tuple(event(message, block)))
    path = SseBlock("endpoint", b"/m?token=" + secret.encode())
    assert safe_event(path, request_id=None, scrub=scrub).wire == b""
    assert secret.encode() in safe_event(path, request_id=None).wire
    priming = safe_event(SseBlock(id=secret), request_id=1, scrub=scrub)
    assert (priming.id, priming.wire) == (None, b"data:\n\n")


def test_an_event_shows_no_word_of_itself() -> None:
    """R89."""
    assert CANARY not in repr(event(reply(result={"a": CANARY}), {"id": CANARY}))
