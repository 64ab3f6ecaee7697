"""The law of this file: what leaks here leaks on purpose, and from another file than its test.

And an audit hears the spans of a test only where somebody traces: here it is done for the test.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Generator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from surefoot.errors import CredentialError
from surefoot.testing import AuditChannel

__all__ = ["CANARY", "NOTHING_ALIVE", "caught", "leaky", "ours", "traced"]

CANARY = "CANARY-3d9a77/+b"

NOTHING_ALIVE: tuple[AuditChannel, ...] = ("objects", "requests", "tasks")
"""The channels of what is alive, left out where a test is about another one."""


def leaky(code: str) -> Callable[..., Any]:
    """A function ``f`` whose frames belong to another file than this one."""
    httpx2: Any = importlib.import_module("httpx2")
    space: dict[str, Any] = {"httpx2": httpx2, "CredentialError": CredentialError}
    exec(compile(code, "elsewhere.py", "exec"), space)  # noqa: S102
    function: Callable[..., Any] = space["f"]
    return function


def ours(**held: object) -> object:
    """An object that passes for one of this library's."""
    kind = type("Fake", (SimpleNamespace,), {"__module__": "surefoot.fake"})
    made: object = kind(**held)
    return made


def caught(function: Callable[..., Any], *arguments: object) -> BaseException:
    """The exception that it raises, without this frame, which knows the arguments."""
    try:
        function(*arguments)
    except BaseException as error:  # noqa: BLE001
        frames = error.__traceback__
        return error.with_traceback(None if frames is None else frames.tb_next)
    pytest.fail("nothing was raised")


@contextmanager
def traced() -> Generator[InMemorySpanExporter]:
    """Trace as a program that has set a provider; every audit that begins inside hears its spans.

    The provider of a process can be set once; this one is put in its place, and taken out again.
    """
    provider, exporter = TracerProvider(), InMemorySpanExporter()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(trace, "get_tracer_provider", lambda: provider)
        try:
            sdk: Any = importlib.import_module("mcp.shared._otel")
        except ImportError:  # mcp 1.x traces nothing by itself
            pass
        else:
            patch.setattr(sdk, "_tracer", provider.get_tracer("mcp-python-sdk"))
        yield exporter
