# pyright: basic, reportMissingImports=false
"""The law of this file: an openai-agents agent, its model a script; one line adopts surefoot."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

from agents import Agent, Model, ModelResponse, Runner, Usage, set_tracing_disabled
from agents.mcp import MCPServerStreamableHttp
from openai.types.responses import (
    ResponseFunctionToolCall,
    ResponseOutputMessage,
    ResponseOutputText,
)

from clients.drive import Converse, Setting
from clients.model import Script
from surefoot.integrations import tell_openai_agents

__all__ = ["session"]

set_tracing_disabled(True)


def plain(url: str, **options: Any) -> Any:
    """Without surefoot."""
    return MCPServerStreamableHttp({"url": url}, **options)


def adopted(url: str, billing: Any, **options: Any) -> Any:
    """With it."""
    return MCPServerStreamableHttp(
        {"url": url, "httpx_client_factory": billing.http_client_factory},
        failure_error_function=tell_openai_agents,
        **options,
    )


class Scripted(Model):
    """The script as one of openai-agents' models."""

    def __init__(self, script: Script) -> None:
        self._script = script

    async def get_response(self, *args: Any, **kwargs: Any) -> Any:
        """Call the next tools, or say that it is done."""
        given = kwargs.get("input", args[1] if len(args) > 1 else "")
        items = [] if isinstance(given, str) else given
        answers = {
            item["call_id"]: _text(item["output"])
            for item in items
            if item.get("type") == "function_call_output"
        }
        output: list[Any] = [
            ResponseFunctionToolCall(
                type="function_call",
                call_id=call.id,
                name=call.tool,
                arguments=json.dumps(dict(call.arguments)),
            )
            for call in self._script.next(answers)
        ]
        if not output:
            text = ResponseOutputText(type="output_text", text="done", annotations=[])
            output = [
                ResponseOutputMessage(
                    id="m", type="message", role="assistant", status="completed", content=[text]
                )
            ]
        return ModelResponse(output=output, usage=Usage(), response_id=None)

    def stream_response(self, *args: Any, **kwargs: Any) -> Any:
        """Not asked for."""
        raise NotImplementedError


def _text(output: Any) -> str:
    """A tool's output as a text: the MCP content may come as it is, in a JSON text."""
    if isinstance(output, list):
        return "\n".join(str(block.get("text", block)) for block in output)
    return str(output)


@asynccontextmanager
async def session(setting: Setting) -> AsyncGenerator[Converse]:
    """One server, and an agent run for each script."""
    url, billing = setting.url, setting.billing
    options: dict[str, Any] = {}
    if setting.patience is not None:
        options["client_session_timeout_seconds"] = setting.patience
    if setting.retries is not None:
        options["max_retry_attempts"] = setting.retries
        options["retry_backoff_seconds_base"] = 0.1
    server = plain(url, **options) if billing is None else adopted(url, billing, **options)
    async with server:

        async def play(script: Script) -> None:
            agent = Agent(name="payer", model=Scripted(script), mcp_servers=[server])
            await Runner.run(agent, "go")

        yield play
