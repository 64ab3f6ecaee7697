# pyright: basic, reportMissingImports=false
"""The law of this file: an agent of Google ADK with a scripted model; one line adopts surefoot."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

from google.adk.agents import LlmAgent
from google.adk.models import BaseLlm, LlmResponse
from google.adk.plugins import ReflectAndRetryToolPlugin
from google.adk.runners import InMemoryRunner
from google.adk.tools.mcp_tool import McpToolset, StreamableHTTPConnectionParams
from google.genai import types

from clients.drive import Converse, Setting
from clients.model import Script

__all__ = ["session"]


def plain(url: str, **options: Any) -> Any:
    """Without surefoot."""
    return McpToolset(connection_params=StreamableHTTPConnectionParams(url=url, **options))


def adopted(url: str, billing: Any, **options: Any) -> Any:
    """With it."""
    return McpToolset(
        connection_params=StreamableHTTPConnectionParams(
            url=url, httpx_client_factory=billing.http_client_factory, **options
        )
    )


class Scripted(BaseLlm):
    """The script as one of ADK's models."""

    script: Any

    async def generate_content_async(self, llm_request: Any, stream: bool = False) -> Any:  # noqa: FBT001, FBT002
        """Call the next tools, or say that it is done."""
        del stream
        answers = {
            part.function_response.id: _text(part.function_response.response)
            for content in llm_request.contents
            for part in content.parts
            if part.function_response is not None
        }
        parts = [
            types.Part(
                function_call=types.FunctionCall(
                    id=call.id, name=call.tool, args=dict(call.arguments)
                )
            )
            for call in self.script.next(answers)
        ]
        parts = parts or [types.Part(text="done")]
        yield LlmResponse(content=types.Content(role="model", parts=parts))


def _text(response: Any) -> str:
    """What the model is shown is a mapping: the whole MCP result, or an error's text."""
    content = response.get("content")
    if isinstance(content, list):
        return "\n".join(str(block.get("text", block)) for block in content)
    return str(response.get("error", response))


@asynccontextmanager
async def session(setting: Setting) -> AsyncGenerator[Converse]:
    """One toolset, and an agent run for each script."""
    url, billing = setting.url, setting.billing
    options: dict[str, Any] = {}
    if setting.patience is not None:
        options["sse_read_timeout"] = setting.patience
    toolset = plain(url, **options) if billing is None else adopted(url, billing, **options)
    try:

        async def play(script: Script) -> None:
            agent = LlmAgent(
                name="payer", model=Scripted(model="scripted", script=script), tools=[toolset]
            )
            repeats = []
            if setting.retries is not None:
                repeats = [ReflectAndRetryToolPlugin(max_retries=setting.retries)]
            runner = InMemoryRunner(agent=agent, app_name="matrix", plugins=repeats)
            opened = await runner.session_service.create_session(app_name="matrix", user_id="u")
            message = types.Content(role="user", parts=[types.Part(text="go")])
            async for _ in runner.run_async(user_id="u", session_id=opened.id, new_message=message):
                pass

        yield play
    finally:
        await toolset.close()
