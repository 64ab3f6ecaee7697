"""One span per attempt, through the API alone, under the caller's current span. B14, B13, R41."""

from __future__ import annotations

import logging
import subprocess
import sys
from textwrap import dedent
from typing import Any

import anyio
import anyio.lowlevel
import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF
from opentelemetry.trace import SpanKind, StatusCode

from support.records import an_attempt
from surefoot.policy import Permission
from surefoot.sinks import OpenTelemetrySpans
from surefoot.sinks import _spans as spans_file

pytestmark = pytest.mark.both_majors

BEGIN: dict[str, Any] = {
    "number": 1,
    "endpoint": "billing",
    "origin": "https://gateway.example.com:8443",
    "http_method": "POST",
    "method": "tools/call",
    "tool": "refund",
}


class Traced:
    """A provider of its own, and what it exported."""

    def __init__(self) -> None:
        self.exporter = InMemorySpanExporter()
        self.provider = TracerProvider()
        self.provider.add_span_processor(SimpleSpanProcessor(self.exporter))
        self.source = OpenTelemetrySpans(self.provider)

    def attempt(self, begin: dict[str, Any] | None = None, **facts: Any) -> ReadableSpan:
        """One attempt from beginning to end; its span."""
        may_have_run = facts.pop("may_have_run", False)
        span = self.source.open(**{**BEGIN, **(begin or {})})
        assert span is not None
        span.end(an_attempt(**facts), may_have_run=may_have_run)
        return self.exporter.get_finished_spans()[-1]


@pytest.fixture
def traced() -> Traced:
    return Traced()


def test_an_attempt_is_a_client_span_with_the_conventions_names(traced: Traced) -> None:
    """B14. No URL beyond the origin."""
    span = traced.attempt(status=200)
    assert (span.name, span.kind) == ("POST", SpanKind.CLIENT)
    assert dict(span.attributes or {}) == {
        "server.address": "gateway.example.com",
        "server.port": 8443,
        "http.request.method": "POST",
        "http.response.status_code": 200,
        "mcp.method.name": "tools/call",
        "gen_ai.tool.name": "refund",
        "surefoot.endpoint": "billing",
        "surefoot.attempt.outcome": "answered",
        "surefoot.attempt.effect": "unknown",
    }
    assert span.status.status_code is StatusCode.UNSET


def test_a_repeat_counts_its_sends_and_says_who_permitted_the_one_after_it(
    traced: Traced,
) -> None:
    """B14, D32, D15. Waits, permission and assumption are on the span."""
    grant = Permission(by="policy", assumes="refused-before-execution")
    span = traced.attempt(
        {"number": 3},
        number=3,
        reason="throttle",
        status=429,
        outcome="refused",
        kind="throttle",
        retry_after_seconds=2.0,
        retry_after_malformed=True,
        wait_seconds=2.5,
        permission=grant,
        credential="bearer",
        scrubbed_hits=2,
        unsearched_secrets=1,
    )
    attributes = dict(span.attributes or {})
    assert attributes["http.request.resend_count"] == 2
    ours = {name: value for name, value in attributes.items() if name.startswith("surefoot.")}
    assert ours == {
        "surefoot.endpoint": "billing",
        "surefoot.attempt.reason": "throttle",
        "surefoot.attempt.outcome": "refused",
        "surefoot.attempt.effect": "unknown",
        "surefoot.refusal.kind": "throttle",
        "surefoot.refusal.retry_after_seconds": 2.0,
        "surefoot.refusal.retry_after_malformed": True,
        "surefoot.wait_seconds": 2.5,
        "surefoot.permission.by": "policy",
        "surefoot.permission.assumes": "refused-before-execution",
        "surefoot.credential.kind": "bearer",
        "surefoot.scrubbed_hits": 2,
        "surefoot.unsearched_secrets": 1,
    }


@pytest.mark.parametrize(
    ("facts", "error", "type_"),
    [
        ({"status": 200}, False, None),
        ({"status": 307}, False, None),
        ({"status": 429, "outcome": "refused", "kind": "throttle"}, True, "429"),
        ({"status": 503}, True, "503"),
        ({"outcome": "unanswered", "error": "ReadError"}, True, "ReadError"),
        ({"outcome": "not_sent", "effect": "not_sent", "error": "NoWay"}, True, "NoWay"),
        ({"outcome": "cut"}, True, "cut"),
    ],
)
def test_a_429_a_503_and_a_lost_connection_differ(
    traced: Traced, facts: dict[str, Any], error: bool, type_: str | None
) -> None:
    """B14, R23. By status, by error type, by outcome."""
    span = traced.attempt(**facts)
    assert (span.status.status_code is StatusCode.ERROR) is error
    assert (span.attributes or {}).get("error.type") == type_
    assert (span.attributes or {})["surefoot.attempt.outcome"] == facts.get("outcome", "answered")


def test_what_may_have_run_is_on_the_span(traced: Traced) -> None:
    """B14, R27. As the transports say, because a span does not know what is a tool call."""
    span = traced.attempt(outcome="unanswered", may_have_run=True)
    assert (span.attributes or {})["surefoot.may_have_run"] is True


def test_a_span_lasts_as_long_as_its_attempt_and_not_as_long_as_its_wait(traced: Traced) -> None:
    """B14. It is told late, and ends where the attempt ended."""
    span = traced.attempt(duration_seconds=0.25, wait_seconds=60.0)
    assert (span.end_time or 0) - (span.start_time or 0) == 250_000_000


async def test_the_parent_is_the_span_that_was_current_where_the_attempt_began(
    traced: Traced,
) -> None:
    """B14. In every task its own caller's, whenever the attempt is told to have ended."""
    tracer = traced.provider.get_tracer("test")
    opened: list[Any] = []

    async def call(name: str) -> None:
        with tracer.start_as_current_span(name):
            await anyio.lowlevel.checkpoint()
            begin: dict[str, Any] = {**BEGIN, "tool": name}
            opened.append(traced.source.open(**begin))
            await anyio.lowlevel.checkpoint()

    async with anyio.create_task_group() as tasks:
        for number in range(10):
            tasks.start_soon(call, f"caller-{number}")
    for span in opened:
        span.end(an_attempt())
    spans = traced.exporter.get_finished_spans()
    callers = {s.context.span_id: s.name for s in spans if s.context and s.name != "POST"}
    attempts = [s for s in spans if s.name == "POST"]
    assert len(attempts) == 10
    for one in attempts:
        assert one.parent is not None
        assert callers[one.parent.span_id] == (one.attributes or {})["gen_ai.tool.name"]


def test_without_a_caller_the_span_is_a_root(traced: Traced) -> None:
    """B14. The control for the test above."""
    assert traced.attempt().parent is None


@pytest.mark.parametrize(
    ("origin", "expected"),
    [
        ("https://h", {"server.address": "h", "server.port": 443}),
        ("http://[::1]:9", {"server.address": "::1", "server.port": 9}),
        ("", {}),
    ],
)
def test_an_origin_becomes_address_and_port(
    traced: Traced, origin: str, expected: dict[str, Any]
) -> None:
    """B14, D13. Nothing where there is no origin."""
    attributes = dict(traced.attempt({"origin": origin}).attributes or {})
    found = {n: v for n, v in attributes.items() if n.startswith(("url.", "server."))}
    assert found == expected


def test_a_method_that_http_does_not_know_does_not_become_a_name(traced: Traced) -> None:
    """B14. The conventions' rule: names stay few."""
    span = traced.attempt({"http_method": "X" * 99, "method": None, "tool": None})
    assert span.name == "HTTP"
    assert (span.attributes or {})["http.request.method"] == "_OTHER"
    assert "mcp.method.name" not in (span.attributes or {})


def test_origins_that_are_remembered_are_bounded(traced: Traced) -> None:
    """B14. Many servers do not become a leak."""
    for number in range(200):
        traced.attempt({"origin": f"https://h{number}"})
    assert len(traced.source._places) <= 64


class Program:
    """What the program has set, how often somebody looked, and its clock."""

    def __init__(self, provider: Any) -> None:
        self.provider = provider
        self.looks = 0
        self.now = 100.0

    def get_tracer_provider(self) -> Any:
        self.looks += 1
        return self.provider

    def monotonic(self) -> float:
        return self.now

    def time_ns(self) -> int:
        return round(self.now * 1e9)


@pytest.mark.parametrize("idle", [trace.ProxyTracerProvider, trace.NoOpTracerProvider])
def test_without_a_provider_no_span_is_opened_and_one_look_a_second_is_all(
    idle: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """B14. And a provider that the program sets later is found within a second."""
    program = Program(idle())
    monkeypatch.setattr(trace, "get_tracer_provider", program.get_tracer_provider)
    monkeypatch.setattr(spans_file, "time", program)
    source = OpenTelemetrySpans()
    for _ in range(1_000):
        assert source.open(**BEGIN) is None
    program.provider = TracerProvider()
    assert source.open(**BEGIN) is None
    assert program.looks == 1
    program.now += 1.0
    assert source.open(**BEGIN) is not None
    assert program.looks == 2


def test_a_program_that_has_no_opentelemetry_gets_none_and_loads_none() -> None:
    """B14. Nothing is imported for it."""
    program = """
    import sys
    sys.modules["opentelemetry"] = None
    for name in [n for n in sys.modules if n.startswith("opentelemetry.")]:
        del sys.modules[name]
    from surefoot.sinks._spans import OpenTelemetrySpans
    source = OpenTelemetrySpans()
    print(source.open(number=1, endpoint="e"))
    print(sorted(n for n in sys.modules if n.startswith("opentelemetry.")))
    """
    done = subprocess.run(
        [sys.executable, "-c", dedent(program)],
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert done.stdout.split("\n")[:2] == ["None", "[]"], done.stderr


def test_a_span_that_is_sampled_out_is_not_exported(traced: Traced) -> None:
    """B14. The program's sampler decides."""
    provider = TracerProvider(sampler=ALWAYS_OFF)
    provider.add_span_processor(SimpleSpanProcessor(traced.exporter))
    span = OpenTelemetrySpans(provider).open(**BEGIN)
    assert span is not None
    span.end(an_attempt())
    assert traced.exporter.get_finished_spans() == ()


class Broken:
    """A provider, tracer or span that fails from a given step on."""

    def __init__(self, step: str) -> None:
        self.step = step

    def __getattr__(self, name: str) -> Any:
        if name == self.step:
            raise RuntimeError("canary-of-the-tracer")
        return self._next

    def _next(self, *_args: Any, **_options: Any) -> Broken:
        return Broken(self.step)


@pytest.mark.parametrize("step", ["get_tracer", "start_span", "set_status", "end"])
def test_tracing_that_fails_touches_no_call_and_is_loud_once(
    step: str, caplog: pytest.LogCaptureFixture
) -> None:
    """B13, B14. Whatever step it is."""
    source = OpenTelemetrySpans(Broken(step))  # type: ignore[arg-type]
    for _ in range(3):
        span = source.open(**BEGIN)
        if span is not None:
            span.end(an_attempt(status=503))
    assert [one.levelno for one in caplog.records] == [logging.ERROR]
    assert "spans are incomplete" in caplog.text
    assert "canary-of-the-tracer" not in caplog.text
