# pyright: basic, reportMissingImports=false
"""The law of this file: an agno agent with a scripted model, and one line adopts surefoot."""

from __future__ import annotations

import json
import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

os.environ["AGNO_TELEMETRY"] = "false"

from agno.agent import Agent
from agno.models.base import Model
from agno.models.response import ModelResponse
from agno.tools.mcp import MCPTools

from clients.drive import Converse, Setting
from clients.model import Script
from surefoot.integrations import agno_tools

__all__ = ["session"]


def plain(url: str, **options: Any) -> Any:
    """Without surefoot."""
    return MCPTools(url=url, transport="streamable-http", **options)


def adopted(billing: Any, **options: Any) -> Any:
    """With it."""
    return agno_tools(billing, **options)


@dataclass
class Scripted(Model):
    """The script as one of agno's models."""

    id: str = "scripted"
    script: Any = None

    async def ainvoke(self, messages: Any, assistant_message: Any, **kwargs: Any) -> ModelResponse:
        """Call the next tools, or say that it is done."""
        del kwargs
        answers = {m.tool_call_id: str(m.content) for m in messages if m.role == "tool"}
        calls = [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": call.tool, "arguments": json.dumps(dict(call.arguments))},
            }
            for call in self.script.next(answers)
        ]
        assistant_message.metrics.start_timer()
        assistant_message.metrics.stop_timer()
        return ModelResponse(role="assistant", content=None if calls else "done", tool_calls=calls)

    def invoke(self, *args: Any, **kwargs: Any) -> Any:
        """Not asked for."""
        raise NotImplementedError

    invoke_stream = ainvoke_stream = invoke
    _parse_provider_response = _parse_provider_response_delta = invoke


@asynccontextmanager
async def session(setting: Setting) -> AsyncGenerator[Converse]:
    """One toolkit, and an agent run for each script."""
    url, billing = setting.url, setting.billing
    options: dict[str, Any] = {}
    if setting.patience is not None:
        options["timeout_seconds"] = setting.patience
    async with plain(url, **options) if billing is None else adopted(billing, **options) as tools:

        async def play(script: Script) -> None:
            agent = Agent(
                model=Scripted(script=script),
                tools=[tools],
                telemetry=False,
                retries=setting.retries or 0,
                delay_between_retries=0,
            )
            await agent.arun("go")

        yield play
