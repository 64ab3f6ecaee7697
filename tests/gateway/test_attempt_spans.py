"""B13, B14, R41, R107. Each attempt is a span under its caller's own, through every session.

With the real SDK and an exporter in memory; on mcp 2.x the caller is the SDK's own span of the
request. Where nobody traces, no span is even asked for.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from typing import Any, Final, cast

import anyio
import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind

from support.sessions import FAMILY, KINDS, MCP_MAJOR, SDK_ON_TRIO, Kind, opened
from surefoot import Bearer, Gateway, Replay, Retry, ToolRule, record
from surefoot.evidence import AttemptFacts, AttemptSpan
from surefoot.sinks import FanOutSink, OpenTelemetrySpans
from surefoot.testing import (
    Fails,
    FaultyGateway,
    RecordingSink,
    Replies,
    Reset,
    ScriptedTransport,
    SseCut,
    Status,
    Throttle,
    tool_call,
)

pytestmark = [pytest.mark.both_majors, pytest.mark.anyio, *SDK_ON_TRIO]

CANARY: Final = "canary-81c5f00d"
QUICK: Final = Retry(max_attempts=3, base_delay=0.001, spread=0, max_wait=5.0)


class Tracing:
    """A provider of the program's own, as the SDK and a framework would use it."""

    def __init__(self) -> None:
        self.exporter = InMemorySpanExporter()
        self.provider = TracerProvider()
        self.provider.add_span_processor(SimpleSpanProcessor(self.exporter))
        self.tracer = self.provider.get_tracer("the app")
        self.source = OpenTelemetrySpans(self.provider)

    def spans(self, tool: str | None = None) -> list[ReadableSpan]:
        """The spans of attempts, in the order in which they began."""
        ours = [
            span for span in self.exporter.get_finished_spans()
            if span.instrumentation_scope is not None
            and span.instrumentation_scope.name == "surefoot"
            and (tool is None or (span.attributes or {}).get("gen_ai.tool.name") == tool)
        ]  # fmt: skip
        return sorted(ours, key=lambda span: span.start_time or 0)

    def parent(self, span: ReadableSpan) -> ReadableSpan | None:
        """The span that it is a child of."""
        return next(
            (one for one in self.exporter.get_finished_spans()
             if span.parent is not None and one.context is not None
             and one.context.span_id == span.parent.span_id),
            None,
        )  # fmt: skip


@pytest.fixture
def tracing(monkeypatch: pytest.MonkeyPatch) -> Iterator[Tracing]:
    """The SDK of mcp 2.x traces each request by itself; here into the same exporter."""
    made = Tracing()
    if MCP_MAJOR > 1:
        module: Any = importlib.import_module("mcp.shared._otel")
        monkeypatch.setattr(module, "_tracer", made.provider.get_tracer("mcp-python-sdk"))
    yield made
    made.provider.shutdown()


def _facts(span: ReadableSpan) -> dict[str, Any]:
    return dict(span.attributes or {})


@pytest.mark.parametrize("kind", KINDS)
async def test_the_attempts_of_a_call_are_children_of_where_it_was_made(
    kind: Kind, tracing: Tracing
) -> None:
    """B14. Of the SDK's span where it has one; else of the caller's, and not of who connected."""
    with FaultyGateway() as faulty:
        faulty.script("search", Throttle(0), Throttle(0))
        gateway = Gateway(faulty.url, name="shop", retry=QUICK, evidence=tracing.source)
        with tracing.tracer.start_as_current_span("connecting"):
            async with opened(gateway.transport(), kind) as session:
                with tracing.tracer.start_as_current_span("the turn"):
                    await session.call("search", {"q": "W-1"})
        sends = faulty.requests("search")
    spans = tracing.spans("search")
    assert [span.kind for span in spans] == [SpanKind.CLIENT] * len(sends) == [SpanKind.CLIENT] * 3
    assert [_facts(span).get("http.request.resend_count") for span in spans] == [None, 1, 2]
    parents = {cast("ReadableSpan", tracing.parent(span)).name for span in spans}
    assert parents == {"the turn" if MCP_MAJOR == 1 else "MCP send tools/call search"}
    (above,) = {cast("Any", tracing.parent(span)) for span in spans}
    if MCP_MAJOR > 1:
        assert cast("ReadableSpan", tracing.parent(above)).name == "the turn"
    refused = _facts(spans[0])
    assert refused["surefoot.wait_seconds"] > 0
    assert refused["surefoot.permission.by"] == "policy"
    assert refused["surefoot.permission.assumes"] == "refused-before-execution"
    assert refused["surefoot.endpoint"] == "shop"
    assert f"http://{refused['server.address']}:{refused['server.port']}" == faulty.origin


ENDS: Final[dict[str, tuple[Any, dict[str, Any]]]] = {
    "a 429": (
        Throttle(60), {"http.response.status_code": 429, "surefoot.refusal.kind": "throttle"},
    ),
    "a 503": (
        Status(503), {"http.response.status_code": 503, "surefoot.may_have_run": True},
    ),
    "a lost answer": (
        Reset("after-run"), {"error.type": "ReadError", "surefoot.may_have_run": True},
    ),
    "a cut stream": (
        SseCut(), {"http.response.status_code": 200, "surefoot.may_have_run": True},
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
async def test_a_429_a_503_and_what_may_have_run_differ(kind: Kind, tracing: Tracing) -> None:
    """B14, R23, R27. To the spans as to the events, which say the same."""
    sink = RecordingSink()
    pays = Replay(tools={"refund": ToolRule(makes_changes=True)})
    told: list[dict[str, Any]] = []
    with FaultyGateway() as faulty:
        for step, _ in ENDS.values():
            gateway = Gateway(faulty.url, retry=QUICK, replay=pays, evidence=tracing.source)
            faulty.script("refund", step)
            async with opened(gateway.transport(), kind) as session:
                with record(sink):
                    await session.call("refund", {"order": "W-1", "amount": 1})
            told.append(_facts(tracing.spans("refund")[-1]))
    for facts, (_, expected) in zip(told, ENDS.values(), strict=True):
        assert {name: facts.get(name) for name in expected} == expected
        assert facts.get("surefoot.may_have_run", False) is expected.get(
            "surefoot.may_have_run", False
        )
    requests = [dict(event) for event in sink.events if event.get("tool") == "refund"]
    filed = [one["may_have_run"] for one in requests if one["type"] == "tool.request_attempts"]
    assert filed == [facts.get("surefoot.may_have_run", False) for facts in told]


async def test_no_span_carries_a_secret_or_more_of_a_url_than_its_origin(tracing: Tracing) -> None:
    """B14, R41, R107. Not the path, not the query, not the token, not an argument."""
    plain = "http://gateway.example.com:8080/tenant-secret/mcp"
    wire = ScriptedTransport(Replies(429), Fails("ReadError", CANARY))
    gateway = Gateway(plain, retry=QUICK, credentials=Bearer(CANARY), evidence=tracing.source)
    async with gateway.protect(FAMILY.AsyncClient(transport=wire)) as client:
        asked = tool_call("search", {"q": CANARY})
        await client.post(f"{plain}?key={CANARY}", headers=asked.headers, content=asked.body)
    spans = tracing.spans("search")
    assert len(spans) == 2
    told = "".join(span.to_json() for span in spans)
    assert "gateway.example.com" in told
    assert "bearer" in told
    assert CANARY not in told
    assert "tenant-secret" not in told


async def test_each_of_many_callers_has_its_own_attempts(tracing: Tracing) -> None:
    """B14. Concurrent calls of one session, each under a span of its own."""
    with FaultyGateway() as faulty:
        gateway = Gateway(faulty.url, retry=QUICK, evidence=tracing.source)
        async with opened(gateway.transport(), KINDS[0]) as session:

            async def turn(number: int) -> None:
                with tracing.tracer.start_as_current_span(f"turn {number}"):
                    await session.call("search", {"q": f"{number}"})

            for number in range(5):  # mcp 1.30 on trio mixes up two requests of one moment
                await turn(number)
            if MCP_MAJOR > 1:
                async with anyio.create_task_group() as tasks:
                    for number in range(5, 25):
                        tasks.start_soon(turn, number)
    tops: list[str] = []
    for span in tracing.spans("search"):
        above = cast("ReadableSpan", tracing.parent(span))
        top = above if MCP_MAJOR == 1 else cast("ReadableSpan", tracing.parent(above))
        tops.append(top.name)
    count = 25 if MCP_MAJOR > 1 else 5
    assert sorted(tops) == sorted(f"turn {number}" for number in range(count))


class Counting:
    """A source that counts what it is asked, and traces or not."""

    def __init__(self, *, on: bool) -> None:
        self.on = on
        self.looks = 0
        self.opened: list[int] = []
        self.ended: list[tuple[str, bool]] = []

    def tracing(self) -> bool:
        self.looks += 1
        return self.on

    def current(self) -> object:
        return None

    def open(self, *, number: int, **_facts: Any) -> AttemptSpan | None:
        self.opened.append(number)
        return self

    def end(self, attempt: AttemptFacts, *, may_have_run: bool = False) -> None:
        self.ended.append((attempt.outcome, may_have_run))


@pytest.mark.parametrize("on", [True, False])
async def test_a_request_costs_one_look_where_nobody_traces(on: bool) -> None:
    """B14. And where somebody does, each attempt is opened and ended once, in its turn."""
    source = Counting(on=on)
    wire = ScriptedTransport(Replies(429), Replies(429), Fails("ReadError"))
    gateway = Gateway("http://127.0.0.1:1/mcp", retry=QUICK, evidence=source)
    asked = tool_call("search")
    async with gateway.protect(FAMILY.AsyncClient(transport=wire)) as client:
        await client.post(gateway.url, headers=asked.headers, content=asked.body)
    assert source.looks == 1
    assert source.opened == ([1, 2, 3] if on else [])
    ends = [("refused", False), ("refused", False), ("unanswered", True)]
    assert source.ended == (ends if on else [])


async def test_a_call_that_is_cancelled_ends_its_span(tracing: Tracing) -> None:
    """B14, D27. Cut, and it may have run."""

    async def never() -> Any:
        yield b""
        await anyio.sleep(30)

    json_line = {"content-type": "application/json"}
    wire = ScriptedTransport(Replies(200, chunks=cast("Any", never), headers=json_line))
    gateway = Gateway("http://127.0.0.1:1/mcp", evidence=tracing.source)
    asked = tool_call("search")
    with anyio.move_on_after(0.1):
        async with gateway.protect(FAMILY.AsyncClient(transport=wire)) as client:
            await client.post(gateway.url, headers=asked.headers, content=asked.body)
    (span,) = tracing.spans("search")
    assert _facts(span)["surefoot.attempt.outcome"] == "cut"
    assert _facts(span)["surefoot.may_have_run"] is True


async def test_a_gateway_traces_with_the_programs_own_provider_or_the_one_it_is_given(
    tracing: Tracing, monkeypatch: pytest.MonkeyPatch
) -> None:
    """B14. Without a word; beside events in a fan-out; and not at all where that is asked for."""
    monkeypatch.setattr(trace, "get_tracer_provider", lambda: tracing.provider)
    sink = RecordingSink()
    nobody = OpenTelemetrySpans(trace.NoOpTracerProvider())
    asked = tool_call("search")
    for evidence, spans in (
        (None, 1),
        (sink, 1),
        (FanOutSink(sink, tracing.source), 1),
        (nobody, 0),
    ):
        tracing.exporter.clear()
        wire = ScriptedTransport(Replies(result={"content": []}))
        gateway = Gateway("http://127.0.0.1:1/mcp", evidence=evidence)
        async with gateway, gateway.protect(FAMILY.AsyncClient(transport=wire)) as client:
            await client.post(gateway.url, headers=asked.headers, content=asked.body)
        assert len(tracing.spans("search")) == spans
    assert len(sink.of("tool.request_attempts")) == 2
    with pytest.raises(TypeError, match="target: spans belong to a Gateway"):
        record(cast("Any", tracing.source)).__enter__()
