"""The law of this file: AgentCore Gateway in front of sound targets: names, sessions, search.

Sources: the AWS developer guide (using a gateway, gateway sessions, inbound authorization).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from surefoot.testing._agentcore_gateway_rows import GATEWAY_ROWS
from surefoot.testing._agentcore_rows import AgentCoreRow, request_id
from surefoot.testing._agentcore_runtime import lend_session, without_session
from surefoot.testing._eras import Service
from surefoot.testing._request import Received, Reply
from surefoot.testing._tools import Tool

if TYPE_CHECKING:
    from surefoot.testing._exchange import Exchange

__all__ = ["SEARCH_TOOL", "GatewayService", "gateway_tools"]

SEARCH_TOOL: Final = "x_amz_bedrock_agentcore_search"
_SEPARATOR: Final = "___"


def gateway_tools(target: str, tools: Mapping[str, Tool]) -> dict[str, Tool]:
    """The tools as a gateway lists them: its own search, and each tool under its target's name."""
    named = {
        f"{target}{_SEPARATOR}{name}": replace(tool, name=f"{target}{_SEPARATOR}{name}")
        for name, tool in tools.items()
    }

    def search(arguments: Mapping[str, object]) -> Mapping[str, object]:
        words = str(arguments.get("query", "")).lower().split()
        found = [tool for tool in named.values() if any(word in tool.name for word in words)]
        return {"tools": [tool.listed() for tool in found or named.values()]}

    schema = {
        "type": "object",
        "properties": {"query": {"type": "string"}},
        "required": ["query"],
    }
    return {
        SEARCH_TOOL: Tool(
            SEARCH_TOOL,
            answer=search,
            description="Finds the tools of this gateway that suit a question.",
            input_schema=schema,
        ),
        **named,
    }


class GatewayService(Service):
    """A gateway, as its clients see it. Lives in the loop of the stand-in."""

    def __init__(
        self,
        tools: Mapping[str, Tool],
        eras: tuple[str, ...],
        *,
        session_seconds: float | None,
        monotonic: Callable[[], float],
    ) -> None:
        super().__init__(tools, eras)
        self._offered = tools
        self._session_seconds = session_seconds
        self._monotonic = monotonic
        self._owners: dict[str, tuple[str, float]] = {}
        """Who opened a session, and until when it lives."""

    def refusal(self, received: Received, principal: str) -> AgentCoreRow | None:
        """What the gateway answers before a target is asked; `None` lets the request through."""
        if received.tool is not None and received.tool not in self._offered:
            return GATEWAY_ROWS["gateway-unknown-tool"]
        if self._session_seconds is None or received.modern or received.method == "initialize":
            return None
        name = received.header("mcp-session-id")
        if name is None:
            return GATEWAY_ROWS["gateway-session-missing"]
        owner, until = self._owners.get(name, ("", 0.0))
        known = name in self.sessions and owner == principal and self._monotonic() < until
        return None if known else GATEWAY_ROWS["gateway-session-lost"]

    async def run_for(self, exchange: Exchange, principal: str) -> Reply:
        """Let the targets answer; a gateway without sessions names none."""
        received = exchange.received
        seconds = self._session_seconds
        if seconds is None:
            if received.http_method != "POST":
                return Reply(status=405, lines=((b"allow", b"POST"), request_id()))
            lend_session(self, exchange)
            reply = without_session(await self.run(exchange))
        else:
            reply = await self.run(exchange)
            for name, value in reply.lines:
                if name == b"mcp-session-id":
                    self._owners[value.decode()] = (principal, self._monotonic() + seconds)
        return replace(reply, lines=(*reply.lines, request_id()))
