# pyright: basic, reportMissingImports=false
"""The law of this file: a pydantic-ai agent with a scripted model, and one line adopts surefoot."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

from pydantic_ai import Agent
from pydantic_ai.mcp import MCPToolset
from pydantic_ai.messages import (
    ModelResponse,
    RetryPromptPart,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
)
from pydantic_ai.models.function import FunctionModel

from clients.drive import Converse, Setting
from clients.model import Script
from surefoot.integrations import tell_pydantic_ai

__all__ = ["session"]


def plain(url: str, **options: Any) -> Any:
    """Without surefoot."""
    return MCPToolset(url, **options)


def adopted(url: str, billing: Any, **options: Any) -> Any:
    """With it."""
    return MCPToolset(
        url, http_client=billing.http_client(), process_tool_call=tell_pydantic_ai, **options
    )


def scripted(script: Script) -> FunctionModel:
    """The script as one of pydantic-ai's models."""

    async def respond(messages: list[Any], info: Any) -> ModelResponse:
        del info
        answers = {
            part.tool_call_id: _text(part)
            for part in messages[-1].parts
            if isinstance(part, ToolReturnPart | RetryPromptPart)
        }
        calls = script.next(answers)
        if not calls:
            return ModelResponse(parts=[TextPart("done")])
        return ModelResponse(
            parts=[
                ToolCallPart(call.tool, dict(call.arguments), tool_call_id=call.id)
                for call in calls
            ]
        )

    return FunctionModel(respond)


def _text(part: Any) -> str:
    if isinstance(part, ToolReturnPart):
        return part.model_response_str()
    return part.model_response()


@asynccontextmanager
async def session(setting: Setting) -> AsyncGenerator[Converse]:
    """One toolset, and an agent run for each script."""
    url, billing = setting.url, setting.billing
    options: dict[str, Any] = {}
    if setting.patience is not None:
        options["read_timeout"] = setting.patience
    if setting.retries is not None:
        options["max_retries"] = setting.retries
    toolset = plain(url, **options) if billing is None else adopted(url, billing, **options)
    async with toolset:

        async def play(script: Script) -> None:
            await Agent(scripted(script), toolsets=[toolset]).run("go")

        yield play
