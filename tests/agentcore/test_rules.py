"""R14, R16, R33, R56, R59 to R61, R66 to R68, D14, D16, D17: what is a refusal of AgentCore's.

Pure: a table of answers as they were read. Codes are shared between meanings, so each row that is
recognised has neighbours that differ in one thing and are not.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from surefoot import Retry
from surefoot.agentcore import DEFAULT_RETRY, SessionBusyRule, StatedThrottleRule
from surefoot.agentcore._rules import adapter_rules
from surefoot.policy import AnswerView, Limits, ThrottleRule, Verdict
from surefoot.wire import RawAnswer, safe_answer

NOW: Final = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)
BUSY: Final = "Session operation in progress, please retry"
CONFLICT: Final = "Resource conflict - Resource already exists"
RUNTIME: Final = "Rate limit exceeded - Too many requests"
GATEWAY: Final = "Rate limit exceeded"
TYPE: Final = "x-amzn-errortype"


def error(code: int, message: str, data: object = None, **more: object) -> bytes:
    """A JSON-RPC error."""
    told: dict[str, object] = {"code": code, "message": message}
    if data is not None:
        told["data"] = data
    return json.dumps({"jsonrpc": "2.0", "id": 1, "error": told, **more}).encode()


def stream(body: bytes, before: bytes = b"") -> bytes:
    """The same as the first event of a stream."""
    return before + b"id: 7\ndata: " + body + b"\n\n"


def either(code: int, message: str, data: object, in_stream: bool) -> bytes:
    """An error, in a body or in a stream."""
    body = error(code, message, data)
    return stream(body) if in_stream else body


def view(status: int, body: bytes = b"", headers: Mapping[str, str] | None = None) -> AnswerView:
    """An answer as rules see it."""
    return AnswerView(status=status, headers=tuple((headers or {}).items()), now=NOW, body=body)


BUSY_TYPE: Final = {TYPE: "RetryableConflictException"}

BUSY_ROWS: Final = [
    (view(200, error(-32005, BUSY)), True),
    (view(200, error(-32005, BUSY, result=None)), True),
    (view(200, stream(error(-32005, BUSY))), True),
    (view(200, stream(error(-32005, BUSY), before=b":\n\n")), True),
    (view(200, stream(error(-32005, BUSY), before=b"retry: 500\n\n")), True),
    (view(409, error(-32005, BUSY)), True),
    (view(409, error(-32603, "in words of ours"), BUSY_TYPE), True),
    (view(409, b"", BUSY_TYPE), True),
    (view(409, b"", {TYPE: "RetryableConflictException:http://internal.amazon.com/coral/"}), True),
    # The other meaning of the code, other words, other codes.
    (view(200, error(-32005, CONFLICT)), False),
    (view(200, error(-32005, BUSY.lower())), False),
    (view(200, error(-32005, BUSY + ".")), False),
    (view(200, error(-32003, BUSY)), False),
    (view(200, error(-32005, BUSY, result={})), False),
    (view(200, json.dumps({"result": {"code": -32005, "message": BUSY}}).encode()), False),
    (view(200, json.dumps([json.loads(error(-32005, BUSY))]).encode()), False),
    (view(200, error(-32005, BUSY)[:-1]), False),
    (view(200, stream(error(-32006, "x")) + stream(error(-32005, BUSY))), False),
    (view(200, b"data: " + error(-32005, BUSY)), False),
    (view(200, b""), False),
    # Other statuses, and the plain conflict, which has the status.
    (view(409, error(-32603, "in words of ours"), {TYPE: "ConflictException"}), False),
    (view(409, error(-32603, BUSY)), False),
    (view(409), False),
    (view(200, b"", BUSY_TYPE), False),
    (view(429, error(-32005, BUSY)), False),
    (view(500, error(-32005, BUSY), BUSY_TYPE), False),
    (view(503, error(-32005, BUSY), BUSY_TYPE), False),
]  # fmt: skip


@pytest.mark.parametrize(("answer", "busy"), BUSY_ROWS, ids=range(len(BUSY_ROWS)))
def test_a_session_is_busy_by_code_and_words_or_by_its_type(answer: AnswerView, busy: bool) -> None:
    """R60, D16. A busy session states no wait; nothing is a refusal by its status alone."""
    wanted = Verdict(kind="session-busy") if busy else None
    assert SessionBusyRule().recognise(answer) == wanted


def test_a_busy_session_that_states_a_wait_is_believed() -> None:
    """D14, R35. None is documented; one that comes is taken whole."""
    headers = {**BUSY_TYPE, "retry-after": "3"}
    verdict = SessionBusyRule().recognise(view(409, b"", headers))
    assert verdict == Verdict(kind="session-busy", retry_after=3.0)


STATED: Final[list[tuple[AnswerView, Verdict | None]]] = [
    (view(200, error(-32003, RUNTIME)), Verdict(kind="throttle")),
    (view(200, error(-32003, GATEWAY)), Verdict(kind="throttle")),
    (view(200, stream(error(-32003, RUNTIME))), Verdict(kind="throttle")),
    (view(200, error(-32003, GATEWAY, {"retryAfter": 1})), Verdict(kind="throttle", retry_after=1)),
    (view(200, error(-32003, GATEWAY, {"retryAfter": 0.2})),
     Verdict(kind="throttle", retry_after=0.2)),
    (view(429, error(-32003, GATEWAY, {"retryAfter": 60.0})),
     Verdict(kind="throttle", retry_after=60)),
    (view(429, error(-32603, "in words of ours", {"retryAfter": 1})),
     Verdict(kind="throttle", retry_after=1)),
    # Of two stated waits the longer one: none is ever shortened.
    (view(429, error(-32003, GATEWAY, {"retryAfter": 1}), {"retry-after": "5"}),
     Verdict(kind="throttle", retry_after=5)),
    (view(429, error(-32003, GATEWAY, {"retryAfter": 7}), {"retry-after": "5"}),
     Verdict(kind="throttle", retry_after=7)),
    (view(200, error(-32003, RUNTIME), {"retry-after": "5"}),
     Verdict(kind="throttle", retry_after=5)),
    # A wait that cannot be waited is own backoff.
    (view(200, error(-32003, GATEWAY, {"retryAfter": -1})),
     Verdict(kind="throttle", malformed=True)),
    (view(200, error(-32003, GATEWAY, {"retryAfter": "1"})),
     Verdict(kind="throttle", malformed=True)),
    (view(200, error(-32003, GATEWAY, {"retryAfter": None})), Verdict(kind="throttle")),
    # A plain 429 is the other rule's; a quota, a code or a text alone are nothing.
    (view(429, error(-32003, GATEWAY)), None),
    (view(429, b"", {"retry-after": "5"}), None),
    (view(402, error(-32003, RUNTIME)), None),
    (view(402, b"", {TYPE: "ServiceQuotaExceededException"}), None),
    (view(200, error(-32003, "Rate limit")), None),
    (view(200, error(-32004, RUNTIME)), None),
    (view(200, error(-32003, RUNTIME, result={})), None),
    (view(200, error(-32099, "x", {"retryAfter": 1})), None),
    (view(424, error(-32003, RUNTIME)), None),
    (view(503, error(-32003, GATEWAY, {"retryAfter": 1}), {"retry-after": "1"}), None),
]  # fmt: skip


@pytest.mark.parametrize(("answer", "verdict"), STATED, ids=range(len(STATED)))
def test_a_throttle_is_told_by_code_and_words_and_may_state_its_wait_in_the_body(
    answer: AnswerView, verdict: Verdict | None
) -> None:
    """D17. In seconds, an int or a float; at 429 a body that states a wait is enough."""
    assert StatedThrottleRule().recognise(answer) == verdict


@pytest.mark.parametrize("status", [200, 409, 429])
def test_what_the_strict_reading_leaves_of_a_refusal_still_tells_it(status: int) -> None:
    """R90, D20. Rules see what was read; nothing that they need is lost, and nothing else stays."""
    data = {"limitKey": "canary", "metric": "requests", "retryAfter": 1}
    for code, message, rule in (
        (-32005, BUSY, SessionBusyRule()),
        (-32003, GATEWAY, StatedThrottleRule()),
    ):
        raw = RawAnswer(
            status, ((b"content-type", b"application/json"),), error(code, message, data)
        )
        read = safe_answer(raw, request_id=1, policy="strict")
        seen = rule.recognise(view(status, read.body))
        known = {-32005: (200, 409), -32003: (200, 429)}[code]
        assert (seen is not None) == (status in known)
        assert b"canary" not in read.body


@pytest.mark.parametrize(
    ("told", "busy"),
    [
        ({"__type": "com.amazonaws#RetryableConflictException", "message": "in other words"}, True),
        ({"__type": "com.amazonaws#ConflictException", "message": BUSY}, False),
        ({"message": BUSY}, True),
        ({"message": CONFLICT}, False),
        ({"Message": BUSY}, False),
        ([BUSY], False),
        ({}, False),
    ],
)
def test_a_409_is_told_by_what_its_body_names_or_says(told: Any, busy: bool) -> None:
    """R60, D24. A hop may drop the header; our own sentence stands in what was written anew."""
    raw = RawAnswer(409, ((b"content-type", b"application/json"),), json.dumps(told).encode())
    read = safe_answer(raw, request_id=1, policy="strict")
    assert (SessionBusyRule().recognise(view(409, read.body)) is not None) is busy


@given(
    status=st.sampled_from([200, 202, 402, 404, 409, 424, 429, 500, 503]),
    body=st.binary(max_size=200)
    | st.builds(
        either,
        st.sampled_from([-32003, -32005, -32004, 0]),
        st.sampled_from([BUSY, CONFLICT, RUNTIME, GATEWAY, ""]),
        st.none() | st.dictionaries(st.sampled_from(["retryAfter", "x"]), st.floats() | st.text()),
        st.booleans(),
    ),
)
def test_no_rule_ever_raises_or_asks_to_wait_for_what_cannot_be_waited(
    status: int, body: bytes
) -> None:
    """R58, R59, D14. Whatever a server sends."""
    answer = view(status, body)
    for rule in (SessionBusyRule(), StatedThrottleRule()):
        verdict = rule.recognise(answer)
        assert verdict is None or verdict.retry_after is None or 0 <= verdict.retry_after < 1e400
        assert verdict is None or status in (200, 409, 429)
        assert rule.reads <= 64 * 1024


def test_the_adapters_rules_and_what_they_assume() -> None:
    """R16, R66 to R68. HTTP 429 assumes nothing here: the policy does."""
    rules = adapter_rules(DEFAULT_RETRY)
    assert [type(rule.recognise) for rule in rules] == [
        SessionBusyRule,
        StatedThrottleRule,
        ThrottleRule,
    ]
    assert [rule.assumes for rule in rules] == ["refused-before-execution"] * 2 + [None]


def test_the_default_budget_waits_a_session_create_out() -> None:
    """R56. The numbers, and what follows from them: at least 16.25 s, at most 30."""
    limits = DEFAULT_RETRY.limits
    assert limits == Limits(max_attempts=10, max_wait=30.0, base_delay=0.5, max_delay=5.0)
    assert limits.max_attempts is not None
    ceilings = [min(0.5 * 2**n, 5.0) for n in range(limits.max_attempts - 1)]
    assert sum(ceilings) / 2 == 16.25
    assert max(ceilings) == 5.0


def test_limits_of_your_own_hold_for_every_kind_of_refusal() -> None:
    """R33, R56. Those of the throttle's are the default's; a hook changes no number."""
    told: list[Any] = []
    hooked = adapter_rules(replace(DEFAULT_RETRY, on_retry=told.append))
    assert [rule.limits and rule.limits.max_attempts for rule in hooked] == [None, 5, 5]
    assert {rule.on_retry for rule in hooked} == {told.append}
    assert {rule.limits for rule in adapter_rules(Retry(max_attempts=4))} == {None}


def test_with_repeats_off_a_refusal_is_still_told_as_one() -> None:
    """R57. Recognised, and sent once."""
    assert {rule.limits and rule.limits.max_attempts for rule in adapter_rules(None)} == {1}
