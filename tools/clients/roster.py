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
    says: str
    """What it says when its own patience ends, without surefoot's hook where there is one."""
    where: tuple[str, str]
    """Where that comes from: a file of its environment, and a piece of the line."""

    @property
    def module(self) -> str:
        """The driver's module."""
        return f"clients.drivers.with_{self.key.replace('-', '_')}"


ROSTER: Final = (
    Client(
        key="mcp2",
        title="mcp 2.x",
        package="mcp",
        retries="none",
        says="`Request 'tools/call' timed out`",
        where=("mcp/shared/jsonrpc_dispatcher.py", "code=REQUEST_TIMEOUT"),
    ),
    Client(
        key="mcp1",
        title="mcp 1.x",
        package="mcp",
        retries="none",
        says="`Timed out while waiting for response`",
        where=("mcp/shared/session.py", "Timed out while waiting"),
    ),
    Client(
        key="fastmcp",
        title="FastMCP",
        package="fastmcp",
        retries="none",
        says="the words of `mcp`",
        where=("mcp/shared/jsonrpc_dispatcher.py", "code=REQUEST_TIMEOUT"),
    ),
    Client(
        key="pydantic-ai",
        title="pydantic-ai",
        package="pydantic-ai-slim",
        retries="`MCPToolset(max_retries=)`, 1 unless set: how often the model may try again",
        says="the words of `mcp`, and asks the model to try again",
        where=("pydantic_ai/mcp.py", "_raise_mcp_tool_error(str(e), 'retry'"),
    ),
    Client(
        key="openai-agents",
        title="openai-agents",
        package="openai-agents",
        retries="`MCPServerStreamableHttp(max_retry_attempts=)`, 0 unless set: leave it at that",
        says="`Please try again`, as for any error",
        where=("agents/tool.py", "Please try again."),
    ),
    Client(
        key="langchain",
        title="LangChain",
        package="langchain-mcp-adapters",
        retries="`ToolRetryMiddleware(max_retries=)`, there only if you add it: leave it out",
        says="nothing: the error of `mcp` ends the run",
        where=("langchain_mcp_adapters/tools.py", "raise captured_exception"),
    ),
    Client(
        key="strands",
        title="Strands",
        package="strands-agents",
        retries="none but that of a hook of yours that sets `event.retry`",
        says="`Tool execution failed: ` and the words of `mcp`",
        where=("strands/tools/mcp/mcp_client.py", "Tool execution failed: "),
    ),
    Client(
        key="adk",
        title="Google ADK",
        package="google-adk",
        retries="`ReflectAndRetryToolPlugin(max_retries=)`, there only if you add it",
        says="`MCP tool execution failed: ` and the words of `mcp`",
        where=("google/adk/tools/mcp_tool/mcp_tool.py", '"MCP tool execution failed: {e}'),
    ),
    Client(
        key="agno",
        title="agno",
        package="agno",
        retries="`Agent(retries=)`, 0 unless set: it repeats the whole run",
        says="the words of `mcp`, and `The MCP server may be unreachable`",
        where=("agno/utils/mcp.py", "The MCP server may be unreachable"),
    ),
)
