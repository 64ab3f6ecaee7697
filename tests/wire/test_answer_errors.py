"""R89 to R91, R100, R101, D17 to D20, B5, B7. What passes of an error that is a reply."""

from __future__ import annotations

import json
from typing import Any

import pytest

from support.answers import CANARY, JSON, answered, failed, reply, value
from surefoot.wire import (
    KNOWN_ERROR_MESSAGES,
    AnswerPolicy,
    RawAnswer,
    Scrub,
    failure_sentence,
    is_auth_failure,
    is_sentence,
    sentence,
)

POLICIES: list[AnswerPolicy] = ["strict", "checked"]
both_policies = pytest.mark.parametrize("policy", POLICIES)
RESULT = {"content": [{"type": "text", "text": "3"}], "isError": False}


@both_policies
def test_a_known_message_passes_as_it_is(policy: AnswerPolicy) -> None:
    """R90, R100."""
    for message in KNOWN_ERROR_MESSAGES:
        for status in (200, 400):
            checked = answered(status, failed(-32005, message), policy=policy)
            assert (checked.kind, checked.status) == ("error", status)
            assert value(checked) == failed(-32005, message)


def test_an_unknown_message_passes_only_where_checked() -> None:
    """R90, R91, D20."""
    body = failed(-32050, f"about {CANARY}", data={"why": CANARY})
    assert value(answered(200, body, policy="checked")) == body
    strict = value(answered(200, body, policy="strict"))
    assert strict == failed(-32050, sentence("server-error"))


@pytest.mark.parametrize(
    ("status", "code", "outcome"),
    [
        (200, -32700, "rejected"),
        (200, -32600, "rejected"),
        (200, -32602, "rejected"),
        (200, -32601, "not-found"),
        (200, -32603, "server-error"),
        (200, -32010, "server-error"),
        (200, 12, "server-error"),
        (400, -32602, "rejected"),
        (401, -32001, "unauthorized"),
        (403, -32002, "forbidden"),
        (404, -32601, "not-found"),
        (429, -32029, "rate-limited"),
        (500, -32603, "server-failure"),
    ],
)
def test_an_error_keeps_its_code_and_is_named_by_status_or_code(
    status: int, code: int, outcome: Any
) -> None:
    """R90, D19."""
    checked = answered(status, failed(code, CANARY), policy="strict")
    assert (checked.kind, checked.status, checked.outcome) == ("error", status, outcome)
    said = sentence(outcome, status=status if status >= 300 else None)
    assert value(checked) == failed(code, said)


@both_policies
def test_an_error_that_could_not_name_its_request_gets_its_id(policy: AnswerPolicy) -> None:
    """D18, D19."""
    for body in (
        {**failed(-32600, "Invalid Request"), "id": None},
        {"jsonrpc": "2.0", "error": {"code": -32600, "message": "Invalid Request"}},
        {**failed(-32600, "Invalid Request"), "id": None, "result": None},
    ):
        checked = answered(400, body, policy=policy, request_id="r")
        assert value(checked) == {**failed(-32600, "Invalid Request"), "id": "r"}


def test_a_null_error_beside_a_result_is_read_where_checked() -> None:
    """D19."""
    body = reply(result={"a": 1}, error=None)
    assert answered(200, body, policy="checked").kind == "result"
    assert answered(200, body, policy="strict").rule == "result-and-error"


def test_a_404_with_a_reply_tells_an_unknown_method_from_a_lost_session() -> None:
    """D35."""
    unknown = answered(404, failed(-32601, "Method not found"), in_session=True)
    tool = answered(404, failed(-32602, "Unknown tool: x"), in_session=True)
    lost = answered(404, failed(-32001, "Session not found"), in_session=True)
    assert (unknown.outcome, tool.outcome) == ("not-found", "not-found")
    assert lost.outcome == "session-lost"


def elicitation(name: str, url: str) -> dict[str, str]:
    return {"mode": "url", "elicitationId": name, "url": url, "message": CANARY}


OURS = "A person has to open a page before the server can do this"

PROTOCOL: list[tuple[str, int, Any, Any]] = [
    ("header mismatch", -32020, {"x": CANARY}, None),
    (
        "missing capability",
        -32021,
        {
            "requiredCapabilities": {
                "elicitation": {"url": {CANARY: 1}},
                CANARY: {},
                "roots": {"listChanged": True},
            }
        },
        {"requiredCapabilities": {"elicitation": {"url": {}}, "roots": {"listChanged": {}}}},
    ),
    ("missing capability, no object", -32021, [CANARY], None),
    (
        "unsupported version",
        -32022,
        {
            "supported": ["2025-11-25", f"{CANARY} x", 1, "2026-07-28"],
            "requested": "2027-01-01",
            "x": CANARY,
        },
        {"supported": ["2025-11-25", "2026-07-28"], "requested": "2027-01-01"},
    ),
    (
        "unsupported version, no list",
        -32022,
        {"supported": CANARY},
        {"supported": [], "requested": "unknown"},
    ),
    (
        "elicitation by URL",
        -32042,
        {
            "elicitations": [
                elicitation("e-1", "https://a.example/b?c=d"),
                elicitation("e 2", "https://a.example"),
                elicitation("e-3", "http://a.example"),
                elicitation("e-4", "https://u:p@a.example"),
                elicitation("e-5", "javascript:x"),
                elicitation("e-6", "https://[::1"),
                CANARY,
                {"elicitationId": "e-7"},
            ]
        },
        {"elicitations": [{**elicitation("e-1", "https://a.example/b?c=d"), "message": OURS}]},
    ),
    ("elicitation, no list", -32042, {"elicitations": CANARY}, {"elicitations": []}),
]


@pytest.mark.parametrize(
    ("code", "data", "kept"), [p[1:] for p in PROTOCOL], ids=[p[0] for p in PROTOCOL]
)
def test_what_the_protocol_gives_meaning_to_keeps_it(code: int, data: Any, kept: Any) -> None:
    """R90, D20. Strict: the code, and of the data only what has a fixed form."""
    body = failed(code, f"about {CANARY}", data=data)
    checked = answered(400, body, policy="strict")
    error = value(checked)["error"]
    assert (error["code"], error.get("data")) == (code, kept)
    assert CANARY not in json.dumps(error)
    assert value(answered(400, body, policy="checked")) == body


def test_the_known_messages_are_a_fixed_set_that_interpolates_nothing() -> None:
    """R100."""
    assert isinstance(KNOWN_ERROR_MESSAGES, frozenset)
    assert len(KNOWN_ERROR_MESSAGES) >= 35
    assert not any(mark in text for text in KNOWN_ERROR_MESSAGES for mark in "{}%\\<>\n")


@pytest.mark.parametrize(
    ("status", "error_type", "auth"),
    [
        (401, None, True),
        (403, None, True),
        (403, "AccessDeniedException", True),
        (400, "ExpiredTokenException", True),
        (400, "UnrecognizedClientException", True),
        (400, None, False),
        (404, None, False),
        (429, "ThrottlingException", False),
        (500, "InternalServerException", False),
    ],
)
def test_a_failure_of_authorization_is_known(
    status: int, error_type: str | None, auth: bool
) -> None:
    """R101."""
    assert is_auth_failure(status, error_type) is auth
    assert is_sentence(failure_sentence(status, error_type))


def test_an_answer_shows_no_word_of_itself() -> None:
    """R89."""
    raw = RawAnswer(200, ((b"x", CANARY.encode()),), CANARY.encode())
    checked = answered(200, reply(result={"a": CANARY}), (b"mcp-session-id", CANARY.encode()), JSON)
    assert CANARY not in repr(raw)
    assert CANARY not in repr(checked)
    assert CANARY in checked.body.decode()


# ---- our own keys, and secrets


@both_policies
def test_a_server_cannot_speak_as_surefoot(policy: AnswerPolicy) -> None:
    """B5, B7. Its `_meta` under our prefix is removed, however it is written; the rest stays."""
    body = json.dumps(reply(result={**RESULT, "_meta": {"surefoot/outcome": {}, "x/y": 1}}))
    for text in (body, body.replace("surefoot/", "\\u0073urefoot\\/")):
        checked = answered(200, text.encode(), policy=policy)
        assert value(checked)["result"] == {**RESULT, "_meta": {"x/y": 1}}
        assert checked.message is not None
        assert checked.message.value == value(checked)
    forged = failed(-32603, "Internal error", data={"surefoot/outcome": {}, "a": 1})
    error = value(answered(200, forged, policy=policy))["error"]
    assert "surefoot/outcome" not in error.get("data", {})


def test_a_mere_mention_of_our_prefix_stays() -> None:
    """B5."""
    result = {"content": [{"surefoot/x": 1}], "text": '"surefoot/outcome"', "_meta": {"a": 1}}
    assert value(answered(200, reply(result=result)))["result"] == result


@pytest.mark.parametrize("status", [200, 400, 401, 403, 429, 500])
@both_policies
def test_no_secret_comes_back_at_any_status(policy: AnswerPolicy, status: int) -> None:
    """B7, R89, R108; invariant 11. With its positive control."""
    secret = "s3cr3t-TOKEN-0123456789"
    error = failed(-32603, f"signed {secret}", data={secret: [secret]})
    result = reply(result={"content": [{"type": "text", "text": f"you sent {secret}"}]})
    lines = (JSON, (b"mcp-session-id", secret.encode()), (b"x-amzn-errortype", secret.encode()))
    for body in (error, result, {"message": secret}):
        checked = answered(status, body, *lines, policy=policy, scrub=Scrub([secret.encode()]))
        assert secret not in repr(tuple(checked))
        assert secret not in repr(checked.message and checked.message.value)
    seen = answered(200, result, *lines, policy=policy)
    assert secret in repr(tuple(seen))
    assert answered(200, result, scrub=Scrub([secret.encode()])).scrubbed == 1
