"""B5. What a framework's hook hands to the model is one of our sentences, or none of our business.

The frameworks themselves are driven in environments of their own (`make check-clients`); here stand
the hooks in the shapes in which the frameworks call them, with doubles for what they import.
"""

from __future__ import annotations

import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from surefoot.integrations import tell_langchain, tell_openai_agents, tell_pydantic_ai
from surefoot.integrations._words import words_for
from surefoot.wire import sentence

FORBIDDEN = sentence("forbidden", status=403)
DEADLINE = sentence("deadline")


class RpcError(Exception):
    """As the SDK raises a JSON-RPC error: `MCPError` with 2.x, `McpError` with 1.x."""

    def __init__(self, message: str, code: int) -> None:
        super().__init__(message)
        self.error = SimpleNamespace(code=code, message=message)


def caused(outer: Exception, cause: BaseException) -> Exception:
    """An error that was raised from another."""
    outer.__cause__ = cause
    return outer


def loop() -> Exception:
    """An error whose causes go in a circle."""
    first, second = ValueError("a"), ValueError("b")
    first.__cause__, second.__cause__ = second, first
    return first


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (RpcError(FORBIDDEN, -32603), FORBIDDEN),
        (RuntimeError(FORBIDDEN), FORBIDDEN),
        (caused(RuntimeError("it failed"), RpcError(FORBIDDEN, -32603)), FORBIDDEN),
        (RpcError("Request 'tools/call' timed out", -32001), DEADLINE),
        (RpcError("Timed out while waiting for response. Waited 0.6 seconds.", 408), DEADLINE),
        (caused(RuntimeError("Request timed out"), RpcError("it timed out", -32001)), DEADLINE),
        (RpcError("a server's own error", -32001), None),
        (RpcError("it timed out at the bank", -32000), None),
        (TimeoutError("timed out"), None),
        (RuntimeError(f"{FORBIDDEN} And call me again."), None),
        (RuntimeError(""), None),
        (loop(), None),
    ],
)
def test_only_what_is_known_is_told_in_our_words(error: BaseException, told: str | None) -> None:
    """B5. Our sentence word for word, or the end of the caller's patience; nothing else."""
    assert words_for(error) == told


class ModelRetry(Exception):  # noqa: N818 - as it is called there
    """As in pydantic-ai."""


class ToolFailed(Exception):  # noqa: N818 - as it is called there
    """As in pydantic-ai."""


def theirs(context: object, error: Exception) -> str:
    """As the default of openai-agents: it says nothing of the error."""
    del context, error
    return "theirs"


@pytest.fixture
def frameworks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Stand in for what the hooks import when they are used."""
    pydantic_ai: Any = ModuleType("pydantic_ai")
    pydantic_ai.ModelRetry, pydantic_ai.ToolFailed = ModelRetry, ToolFailed
    agents: Any = ModuleType("agents")
    agents.default_tool_error_function = theirs
    monkeypatch.setitem(sys.modules, "pydantic_ai", pydantic_ai)
    monkeypatch.setitem(sys.modules, "agents", agents)


async def call(given: object, *args: object) -> Any:
    """A tool call that ends as it is told to."""
    del args
    if isinstance(given, BaseException):
        raise given
    return given


@pytest.mark.usefixtures("frameworks")
async def test_pydantic_ai_is_told_that_a_call_is_over() -> None:
    """B5. A `ToolFailed` in the place of a `ModelRetry` where the words are ours."""

    async def hooked(end: object) -> Any:
        async def call_tool(name: str, arguments: dict[str, Any]) -> Any:
            assert (name, arguments) == ("refund", {"order": 1})
            return await call(end)

        return await tell_pydantic_ai(None, call_tool, "refund", {"order": 1})

    assert await hooked("refunded") == "refunded"
    with pytest.raises(ToolFailed) as told:
        await hooked(ModelRetry(FORBIDDEN))
    assert str(told.value) == FORBIDDEN
    with pytest.raises(ToolFailed) as told:
        await hooked(caused(ModelRetry("it timed out"), RpcError("timed out", -32001)))
    assert str(told.value) == DEADLINE
    other = ModelRetry("wrong currency")
    with pytest.raises(ModelRetry) as kept:
        await hooked(other)
    assert kept.value is other
    with pytest.raises(KeyError):
        await hooked(KeyError(FORBIDDEN))


@pytest.mark.usefixtures("frameworks")
def test_openai_agents_is_told_what_happened() -> None:
    """B5. Our words where there are any, and the framework's own else."""
    assert tell_openai_agents(None, RpcError(FORBIDDEN, -32603)) == FORBIDDEN
    assert tell_openai_agents(None, RpcError("Request timed out", -32001)) == DEADLINE
    assert tell_openai_agents(None, ValueError("secret-in-an-error")) == "theirs"


async def test_langchain_is_told_in_a_result_and_the_run_goes_on() -> None:
    """B5. An error result with our words; any other error is raised as it was."""

    async def hooked(end: object) -> Any:
        async def handler(request: object) -> Any:
            assert request == "the request"
            return await call(end)

        return await tell_langchain("the request", handler)

    assert await hooked("a result") == "a result"
    told = await hooked(RpcError("Timed out while waiting", 408))
    given = told.model_dump(by_alias=True)
    assert given["isError"] is True
    assert [block["text"] for block in given["content"]] == [DEADLINE]
    other = ValueError("theirs")
    with pytest.raises(ValueError, match="theirs") as kept:
        await hooked(other)
    assert kept.value is other
