"""B4, B5; DESIGN section 7. What surefoot itself answers validates, and means one thing."""

from __future__ import annotations

import json
from typing import Any

import mcp_types
import pytest
from mcp_types import CallToolResult, JSONRPCError, JSONRPCResponse, jsonrpc_message_adapter
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS, MODERN_PROTOCOL_VERSIONS

from surefoot.wire import (
    INTERNAL_ERROR,
    MAY_HAVE_RUN,
    OUTCOME_KEY,
    OUTCOMES,
    PREFIX,
    Outcome,
    RequestId,
    discover_failure,
    error,
    outcome_meta,
    sentence,
    tool_result,
)
from surefoot.wire.strict_json import dumps, loads

IDS: list[RequestId] = [0, 1, 2**53, "", "a-1"]
FACTS = outcome_meta("no-answer", may_have_run=True, effect="unknown", attempts=2, waited=1.5)


@pytest.mark.parametrize("outcome", OUTCOMES)
@pytest.mark.parametrize("result_type", [True, False])
def test_a_tool_call_that_is_given_up_on_is_a_result_that_says_so(
    outcome: Outcome, result_type: bool
) -> None:
    """B5. It validates in both eras: with `resultType` and without."""
    meta = outcome_meta(outcome, may_have_run=outcome in MAY_HAVE_RUN, effect="unknown")
    body = tool_result("r-1", sentence(outcome), meta, result_type=result_type)
    read = jsonrpc_message_adapter.validate_json(body, by_name=False)
    assert isinstance(read, JSONRPCResponse)
    assert ("resultType" in read.result) is result_type
    result = CallToolResult.model_validate(read.result)
    assert result.is_error is True
    assert result.structured_content is None
    assert result.meta == {OUTCOME_KEY: meta}
    assert [block.model_dump(exclude_none=True) for block in result.content] == [
        {"type": "text", "text": sentence(outcome)}
    ]


@pytest.mark.parametrize("request_id", IDS)
def test_a_form_carries_the_requests_own_id(request_id: RequestId) -> None:
    """D18. By type and value."""
    for body in (
        tool_result(request_id, "x", FACTS, result_type=True),
        error(request_id, INTERNAL_ERROR, "x"),
        discover_failure(request_id, "x", FACTS, requested="2026-07-28"),
    ):
        found = json.loads(body)["id"]
        assert (found, type(found)) == (request_id, type(request_id))


def test_any_other_request_is_answered_with_an_error() -> None:
    """B5."""
    body = error(
        7, INTERNAL_ERROR, sentence("server-failure", what="request"), {OUTCOME_KEY: FACTS}
    )
    read = jsonrpc_message_adapter.validate_json(body, by_name=False)
    assert isinstance(read, JSONRPCError)
    assert (read.error.code, read.error.data) == (-32603, {OUTCOME_KEY: FACTS})
    assert "data" not in json.loads(error(7, INTERNAL_ERROR, "x"))["error"]
    nobody = jsonrpc_message_adapter.validate_json(error(None, -32600, "x"), by_name=False)
    assert isinstance(nobody, JSONRPCError)
    assert nobody.id is None


def test_a_discovery_that_is_given_up_on_ends_connecting() -> None:
    """B4. The SDK shares no version with it and finds no older one in it."""
    body = discover_failure(1, "x", FACTS, requested="2026-07-28")
    read = jsonrpc_message_adapter.validate_json(body, by_name=False)
    assert isinstance(read, JSONRPCError)
    assert read.error.code == mcp_types.UNSUPPORTED_PROTOCOL_VERSION
    data = mcp_types.UnsupportedProtocolVersionErrorData.model_validate(read.error.data)
    assert data.supported
    assert not {*data.supported} & {*HANDSHAKE_PROTOCOL_VERSIONS, *MODERN_PROTOCOL_VERSIONS}
    assert data.requested == "2026-07-28"
    assert read.error.data[OUTCOME_KEY] == FACTS


@pytest.mark.parametrize(
    "body",
    [
        tool_result(1, "é \u2028 \U0001f600", FACTS, result_type=True),
        error("x", -32603, "é", {"a": 1}),
        discover_failure(1, "x", FACTS, requested="2026-07-28"),
    ],
)
def test_a_form_is_canonical(body: bytes) -> None:
    """R96; invariant 12."""
    assert dumps(loads(body)) == body
    assert b"\n" not in body
    assert b"\r" not in body


def test_the_facts_say_what_is_known_and_leave_out_what_is_not() -> None:
    """B5. Durations carry their unit in their names."""
    assert outcome_meta("not-sent", may_have_run=False, effect="not_sent") == {
        "kind": "not-sent",
        "may_have_run": False,
        "effect": "not_sent",
    }
    facts: dict[str, Any] = outcome_meta(
        "rate-limited",
        may_have_run=True,
        effect="unknown",
        status=429,
        retry_after=30.0,
        attempts=3,
        waited=0.0,
        error_type="ThrottlingException",
        rule="x",
        call_id="c-1",
    )
    assert facts == {
        "kind": "rate-limited",
        "may_have_run": True,
        "effect": "unknown",
        "status": 429,
        "retry_after_seconds": 30.0,
        "attempts": 3,
        "waited_seconds": 0.0,
        "error_type": "ThrottlingException",
        "rule": "x",
        "call_id": "c-1",
    }
    assert OUTCOME_KEY.startswith(PREFIX)
