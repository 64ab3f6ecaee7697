"""The law of this file: another library's client makes one call, alone, and says what it was told.

It runs in an environment of its own (`make peer`), because that library needs mcp 1.x, and prints
one line of JSON: the text that its caller reads, and everything that was logged at its own levels.
"""

from __future__ import annotations

import io
import json
import logging
import sys
from importlib import import_module
from typing import Any

__all__ = ["main"]


async def _call(url: str, keys: tuple[str, str, str]) -> str:
    """What the caller of the tool reads."""
    client: Any = import_module("mcp_proxy_for_aws.client")
    mcp: Any = import_module("mcp")
    held: Any = import_module("botocore.credentials").Credentials(*keys)
    streams = client.aws_iam_streamablehttp_client(
        url, aws_service="bedrock-agentcore", aws_region="us-west-2", credentials=held
    )
    try:
        async with streams as (read, write, _), mcp.ClientSession(read, write) as session:
            await session.initialize()
            try:
                result = await session.call_tool("search", {"q": "it"})
            except mcp.McpError as error:
                return str(error)
            return repr(result)
    except BaseExceptionGroup as group:
        return repr(group.exceptions)


def main() -> None:
    """Make the call, and print what came of it."""
    anyio: Any = import_module("anyio")
    heard = io.StringIO()
    logging.basicConfig(stream=heard, level=logging.WARNING)
    url, *keys = sys.argv[1:]
    told = anyio.run(_call, url, tuple(keys))
    version: str = import_module("importlib.metadata").version("mcp-proxy-for-aws")
    sys.stdout.write(json.dumps({"told": told, "logged": heard.getvalue(), "version": version}))


if __name__ == "__main__":
    main()
