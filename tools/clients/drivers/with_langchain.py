# pyright: basic, reportMissingImports=false
"""The law of this file: a LangChain agent with a scripted model, and one line adopts surefoot."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

from langchain.agents import create_agent
from langchain.agents.middleware import ToolRetryMiddleware
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_mcp_adapters.client import MultiServerMCPClient

from clients.drive import Converse, Setting
from clients.model import Script
from surefoot.integrations import tell_langchain

__all__ = ["session"]


def plain(url: str, **options: Any) -> Any:
    """Without surefoot."""
    return MultiServerMCPClient(
        {"billing": {"transport": "streamable_http", "url": url, **options}}
    )


def adopted(url: str, billing: Any, **options: Any) -> Any:
    """With it."""
    return MultiServerMCPClient(
        {
            "billing": {
                "transport": "streamable_http",
                "url": url,
                "httpx_client_factory": billing.http_client_factory,
                **options,
            }
        },
        tool_interceptors=[tell_langchain],
    )


class Scripted(BaseChatModel):
    """The script as one of LangChain's models."""

    script: Any

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Any, **kwargs: Any) -> Any:
        """It knows the tools."""
        del tools, kwargs
        return self

    def _generate(self, messages: Any, *args: Any, **kwargs: Any) -> ChatResult:
        del args, kwargs
        answers = {
            message.tool_call_id: _text(message)
            for message in messages
            if isinstance(message, ToolMessage)
        }
        calls = [
            {"name": call.tool, "args": dict(call.arguments), "id": call.id, "type": "tool_call"}
            for call in self.script.next(answers)
        ]
        message = AIMessage(content="" if calls else "done", tool_calls=calls)
        return ChatResult(generations=[ChatGeneration(message=message)])


def _text(message: ToolMessage) -> str:
    content = message.content
    if isinstance(content, str):
        return content
    return "\n".join(str(block["text"] if isinstance(block, dict) else block) for block in content)


@asynccontextmanager
async def session(setting: Setting) -> AsyncGenerator[Converse]:
    """One client, and an agent run for each script; the client opens a session for each call."""
    url, billing = setting.url, setting.billing
    options: dict[str, Any] = {}
    if setting.patience is not None:
        options["session_kwargs"] = {"read_timeout_seconds": timedelta(seconds=setting.patience)}
    client = plain(url, **options) if billing is None else adopted(url, billing, **options)
    tools = await client.get_tools()
    repeats: Any = []
    if setting.retries is not None:
        repeats = [ToolRetryMiddleware(max_retries=setting.retries, initial_delay=0.05)]

    async def play(script: Script) -> None:
        agent = create_agent(Scripted(script=script), tools, middleware=repeats)
        await agent.ainvoke({"messages": [("user", "go")]})

    yield play
