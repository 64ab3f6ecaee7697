"""The law of this file: every client that is claimed to work is named here, once, with its title.

What stands in `retries` are the client's own settings that send a call again; surefoot decides what
may be repeated, so they are best left off.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

__all__ = ["ROSTER", "Client"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Client:
    """One MCP client, and where it is found."""

    key: str
    """Names its environment, its requirements and its driver."""
    title: str
    package: str
    """The package whose version is shown beside the title."""
    retries: str
    """Its own settings that send a call again, or ask the model to."""

    @property
    def module(self) -> str:
        """The driver's module."""
        return f"clients.drivers.with_{self.key.replace('-', '_')}"


ROSTER: Final = (
    Client(key="mcp2", title="mcp 2.x", package="mcp", retries="none"),
    Client(key="mcp1", title="mcp 1.x", package="mcp", retries="none"),
    Client(key="fastmcp", title="FastMCP", package="fastmcp", retries="none"),
    Client(
        key="pydantic-ai",
        title="pydantic-ai",
        package="pydantic-ai-slim",
        retries="`MCPToolset(max_retries=)`, 1 unless set: how often the model may try again",
    ),
    Client(
        key="openai-agents",
        title="openai-agents",
        package="openai-agents",
        retries="`MCPServerStreamableHttp(max_retry_attempts=)`, 0 unless set: leave it at that",
    ),
    Client(
        key="langchain",
        title="LangChain",
        package="langchain-mcp-adapters",
        retries="`ToolRetryMiddleware(max_retries=)`, there only if you add it: leave it out",
    ),
    Client(
        key="strands",
        title="Strands",
        package="strands-agents",
        retries="none but that of a hook of yours that sets `event.retry`",
    ),
    Client(
        key="adk",
        title="Google ADK",
        package="google-adk",
        retries="`ReflectAndRetryToolPlugin(max_retries=)`, there only if you add it",
    ),
    Client(
        key="agno",
        title="agno",
        package="agno",
        retries="`Agent(retries=)`, 0 unless set: it repeats the whole run",
    ),
)
