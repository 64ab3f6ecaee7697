"""The law of this file: a framework's own hook hands our sentence on, and changes nothing else.

Each function has the shape of one public hook of one framework, which is imported when it is used
and not before. What is not one of our sentences goes on as the framework would have it.
"""

from __future__ import annotations

import importlib
from collections.abc import Awaitable, Callable
from typing import Any

from ._words import words_for

__all__ = ["tell_langchain", "tell_openai_agents", "tell_pydantic_ai"]


async def tell_pydantic_ai(
    context: Any, call_tool: Callable[..., Awaitable[Any]], name: str, arguments: dict[str, Any]
) -> Any:
    """Tell a pydantic-ai model that a call is over, where it would be asked to try again.

    For ``MCPToolset(url, http_client=..., process_tool_call=tell_pydantic_ai)``. By default every
    failed call is a ``ModelRetry``, which invites the model to repeat it and ends the run when it
    has done so more than ``max_retries`` times. What we give up on becomes a ``ToolFailed``: the
    model reads the sentence and goes on.
    """
    del context
    framework: Any = importlib.import_module("pydantic_ai")
    try:
        return await call_tool(name, arguments)
    except framework.ModelRetry as error:
        words = words_for(error)
        if words is None:
            raise
        raise framework.ToolFailed(words) from None


def tell_openai_agents(context: Any, error: Exception) -> str:
    """Tell a model of openai-agents what happened, where it would read "Please try again".

    For ``MCPServerStreamableHttp({...}, failure_error_function=tell_openai_agents)``. An error that
    is not ours is worded by the framework's own ``default_tool_error_function``.
    """
    words = words_for(error)
    if words is not None:
        return words
    framework: Any = importlib.import_module("agents")
    return str(framework.default_tool_error_function(context, error))


async def tell_langchain(request: Any, handler: Callable[[Any], Awaitable[Any]]) -> Any:
    """Tell a LangChain model what happened, where an error would end the run.

    For ``MultiServerMCPClient({...}, tool_interceptors=[tell_langchain])``. An error that is not
    ours is raised as it was.
    """
    try:
        return await handler(request)
    except Exception as error:
        words = words_for(error)
        if words is None:
            raise
    types: Any = importlib.import_module("mcp.types")
    content = [types.TextContent(type="text", text=words)]
    return types.CallToolResult(content=content, isError=True)
