# pyright: basic, reportMissingImports=false
"""The law of this file: a Strands agent with a scripted model, and one line adopts surefoot."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

from strands import Agent
from strands.models import Model
from strands.tools.mcp import MCPClient

from clients.drive import Converse, Setting
from clients.model import Script

__all__ = ["session"]


def plain(url: str) -> Any:
    """Without surefoot."""
    return MCPClient(url=url)


def adopted(billing: Any) -> Any:
    """With it."""
    return MCPClient(billing.transport)


class Scripted(Model):
    """The script as one of Strands' models."""

    def __init__(self, script: Script) -> None:
        self._script = script

    def update_config(self, **model_config: Any) -> None:
        """It has none."""

    def get_config(self) -> Any:
        """It has none."""
        return {}

    def structured_output(self, *args: Any, **kwargs: Any) -> Any:
        """Not asked for."""
        raise NotImplementedError

    async def stream(self, messages: Any, *args: Any, **kwargs: Any) -> Any:
        """Call the next tools, or say that it is done."""
        del args, kwargs
        results = [
            block["toolResult"]
            for message in messages
            for block in message["content"]
            if "toolResult" in block
        ]
        calls = self._script.next({one["toolUseId"]: _text(one) for one in results})
        yield {"messageStart": {"role": "assistant"}}
        for call in calls:
            use = {"toolUse": {"name": call.tool, "toolUseId": call.id}}
            yield {"contentBlockStart": {"start": use}}
            given = json.dumps(dict(call.arguments))
            yield {"contentBlockDelta": {"delta": {"toolUse": {"input": given}}}}
            yield {"contentBlockStop": {}}
        if not calls:
            yield {"contentBlockStart": {"start": {}}}
            yield {"contentBlockDelta": {"delta": {"text": "done"}}}
            yield {"contentBlockStop": {}}
        yield {"messageStop": {"stopReason": "tool_use" if calls else "end_turn"}}


def _text(result: Any) -> str:
    return "\n".join(str(block.get("text", block)) for block in result["content"])


@asynccontextmanager
async def session(setting: Setting) -> AsyncGenerator[Converse]:
    """One client, in the thread that Strands starts for it, and an agent run for each script."""
    billing = setting.billing
    client = plain(setting.url) if billing is None else adopted(billing)
    await asyncio.to_thread(client.start)
    try:
        tools = await asyncio.to_thread(client.list_tools_sync)
        if setting.patience is not None:
            for tool in tools:
                tool.timeout = timedelta(seconds=setting.patience)

        async def play(script: Script) -> None:
            agent = Agent(model=Scripted(script), tools=list(tools), callback_handler=None)
            await agent.invoke_async("go")

        yield play
    finally:
        await asyncio.to_thread(client.stop, None, None, None)
