"""B5; DESIGN section 7. What surefoot itself answers validates for mcp 1.x as well."""

from __future__ import annotations

import pytest
from mcp.types import CallToolResult, JSONRPCError, JSONRPCMessage, JSONRPCResponse

from surefoot.wire import (
    OUTCOME_KEY,
    OUTCOMES,
    Outcome,
    error,
    outcome_meta,
    sentence,
    tool_result,
)


@pytest.mark.parametrize("outcome", OUTCOMES)
@pytest.mark.parametrize("result_type", [True, False])
def test_a_tool_call_that_is_given_up_on_is_a_result_that_says_so(
    outcome: Outcome, result_type: bool
) -> None:
    """B5. `resultType` is harmless to a client that does not know it."""
    meta = outcome_meta(outcome, may_have_run=True, effect="unknown")
    body = tool_result(1, sentence(outcome), meta, result_type=result_type)
    read = JSONRPCMessage.model_validate_json(body).root
    assert isinstance(read, JSONRPCResponse)
    result = CallToolResult.model_validate(read.result)
    assert result.isError is True
    assert result.structuredContent is None
    assert result.meta == {OUTCOME_KEY: meta}
    assert result.content[0].model_dump(include={"type", "text"}) == {
        "type": "text",
        "text": sentence(outcome),
    }


def test_any_other_request_is_answered_with_an_error() -> None:
    """B5."""
    body = error(7, -32603, sentence("server-failure", what="request"), {OUTCOME_KEY: {}})
    read = JSONRPCMessage.model_validate_json(body).root
    assert isinstance(read, JSONRPCError)
    assert (read.id, read.error.data) == (7, {OUTCOME_KEY: {}})
