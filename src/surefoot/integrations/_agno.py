"""The law of this file: agno's toolkit as it is, over a connection that a Gateway protects.

agno builds its own HTTP client and has no hook for it. What it does take is an open FastMCP client,
so this toolkit opens one when agno connects it, and closes it when agno does.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from surefoot.gateway import Gateway

__all__ = ["agno_tools"]


def agno_tools(gateway: Gateway, *, timeout_seconds: float = 10, **options: Any) -> Any:
    """Return an ``agno.tools.mcp.MCPTools`` whose connection the Gateway protects.

    In the place of ``MCPTools(url=..., transport="streamable-http")``, with the same life: agno
    connects it when an agent first runs, or use it with ``async with``. An error while connecting
    is raised to whoever connects it; an agent logs it and runs without the tools, as with any.

    Args:
        gateway: The server.
        timeout_seconds: How long a call may take, as of ``MCPTools``.
        options: Whatever else ``MCPTools`` takes, but for what says where the server is.

    Raises:
        ImportError: agno or FastMCP is not installed.
    """
    tools: Any = importlib.import_module("agno.tools.mcp").MCPTools
    fastmcp: Any = importlib.import_module("fastmcp")
    transports: Any = importlib.import_module("fastmcp.client.transports")

    class GatewayTools(tools):
        """agno's toolkit, with a FastMCP client that it opens and closes itself."""

        async def connect(self, force: bool = False) -> None:  # noqa: FBT001, FBT002 - as it is called
            """Open the client, then list the tools."""
            if force:
                await self.close()
            if self.session is None:
                transport = transports.StreamableHttpTransport(
                    gateway.url, httpx_client_factory=gateway.http_client_factory
                )
                client = fastmcp.Client(transport, timeout=timeout_seconds)
                opened = await client.__aenter__()
                if self.session is None:
                    self.session = opened
                else:  # another run of the agent connected it meanwhile, and this one is for nobody
                    await client.__aexit__(None, None, None)
            base: Any = super()
            await base.connect()

        async def close(self) -> None:
            """Close the client."""
            client, self.session = self.session, None
            base: Any = super()
            await base.close()
            if client is not None:
                await client.__aexit__(None, None, None)

        async def __aenter__(self) -> Any:
            await self.connect()
            return self

        async def __aexit__(self, *exc: object) -> None:
            await self.close()

    # Without a session it wants to know where the server is, although it will never connect itself.
    return GatewayTools(
        url=gateway.url,
        transport="streamable-http",
        timeout_seconds=timeout_seconds,
        **options,
    )
