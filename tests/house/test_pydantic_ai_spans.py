"""B14. In an instrumented pydantic-ai each attempt lies under the span of its tool call.

Runs in the environment that `make check-clients` makes for pydantic-ai, and is skipped where there
is none yet; `make check-clients` runs it again.
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any, Final

import pytest

ROOT: Final = Path(__file__).parents[2]
PYTHON: Final = ROOT / ".venv-clients" / "pydantic-ai" / "bin" / "python"
SDK: Final = next((PYTHON.parents[1] / "lib").glob("*/site-packages/opentelemetry/sdk"), None)


@pytest.mark.slow
@pytest.mark.skipif(SDK is None, reason="make check-clients has not made its environment yet")
def test_the_attempts_of_an_agents_calls_lie_under_its_tool_calls() -> None:
    """B14, R23, R27, D32. A 429 and a 503 differ; wait, permission and may-have-run are there."""
    done = subprocess.run(
        [str(PYTHON), str(ROOT / "tools" / "clients" / "pydantic_ai_spans.py")],
        capture_output=True,
        text=True,
        timeout=50,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        check=False,
    )
    assert done.returncode == 0, done.stderr
    spans: list[dict[str, Any]] = [json.loads(line) for line in done.stdout.splitlines()]
    calls = [span for span in spans if span.get("mcp.method.name") == "tools/call"]
    for span in calls:
        tool = span["gen_ai.tool.name"]
        assert span["above"][:3] == [
            f"MCP send tools/call {tool}", f"tools/call {tool}", f"execute_tool {tool}",
        ]  # fmt: skip
    told = [
        (
            span["gen_ai.tool.name"],
            span.get("http.response.status_code"),
            span.get("http.request.resend_count"),
            span.get("surefoot.wait_seconds"),
            span.get("surefoot.permission.by"),
            span.get("surefoot.may_have_run", False),
        )
        for span in calls
    ]
    assert told == [
        ("search", 429, None, 1.0, "policy", False),
        ("search", 200, 1, None, None, False),
        ("charge", 503, None, None, None, True),
        ("refund", None, None, None, None, True),
    ]
