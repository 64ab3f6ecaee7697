# pyright: basic, reportMissingImports=false
"""The law of this file: in an instrumented pydantic-ai the attempts lie under the tool's own span.

Prints one JSON object for each span of an attempt, with the names of all spans above it, nearest
first. Needs pydantic-ai and the SDK of OpenTelemetry; `tests/house/test_pydantic_ai_spans.py` runs
it where both are.
"""

from __future__ import annotations

import asyncio
import json
from typing import Any

from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from pydantic_ai import Agent
from pydantic_ai.mcp import MCPToolset
from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import FunctionModel
from pydantic_ai.models.instrumented import InstrumentationSettings

from surefoot import Gateway, Replay, Retry, ToolRule
from surefoot.testing import FaultyGateway, Reset, Status, Throttle

CALLS = ("search", "charge", "refund")


async def main() -> None:
    """Let an agent call three tools: one is throttled, one fails, of one the answer is lost."""
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    trace.set_tracer_provider(provider)
    left = list(CALLS)

    async def respond(_messages: object, _info: object) -> ModelResponse:
        if not left:
            return ModelResponse(parts=[TextPart("done")])
        tool = left.pop(0)
        return ModelResponse(parts=[ToolCallPart(tool, {"q": "W-7712"}, tool_call_id=tool)])

    with FaultyGateway() as server:
        server.script("search", Throttle(1))
        server.script("charge", Status(503))
        server.script("refund", Reset("after-run"))
        billing = Gateway(
            server.url,
            name="billing",
            retry=Retry(spread=0),
            replay=Replay(tools={"refund": ToolRule(makes_changes=True)}),
        )
        toolset = MCPToolset(server.url, http_client=billing.http_client())
        agent = Agent(FunctionModel(respond), toolsets=[toolset])
        agent.instrument = InstrumentationSettings(tracer_provider=provider)
        async with toolset:
            await agent.run("go")
    finished: list[Any] = list(exporter.get_finished_spans())
    spans = {span.context.span_id: span for span in finished}
    ours = [span for span in spans.values() if span.instrumentation_scope.name == "surefoot"]
    for span in sorted(ours, key=lambda one: one.start_time):
        above = []
        one = span
        while one.parent is not None and one.parent.span_id in spans:
            one = spans[one.parent.span_id]
            above.append(one.name)
        print(json.dumps({**dict(span.attributes), "above": above}))


if __name__ == "__main__":
    asyncio.run(main())
