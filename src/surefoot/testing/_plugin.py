"""The law of this file: pytest finds it by its entry point, and it is imported by nobody else.

`import surefoot` needs no pytest. Three fixtures, each made new for its test: `faulty_gateway`,
`secret_audit` and `run_record`; leave them out with `-p no:surefoot`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import ExitStack
from functools import wraps
from inspect import iscoroutinefunction
from pathlib import Path
from typing import Any, Protocol

import pytest

from surefoot.evidence import Run, bind, current_run
from surefoot.sinks import FanOutSink, record
from surefoot.testing._audit import SecretAudit
from surefoot.testing._gateway import FaultyGateway
from surefoot.testing._sink import RecordingSink

__all__ = ["BeginAudit", "RunRecord"]

_MARK = "faulty_gateway"


class RunRecord(RecordingSink):
    """The evidence of one test: every event, in memory and in a file for `surefoot show`.

    Calls that are made in the test's own context file into it. Where a test runs its loop somewhere
    else, pass it on: `Gateway(url, evidence=run_record)`.
    """

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.path = path
        """Where the same events are as JSON Lines."""

    @property
    def calls(self) -> list[dict[str, object]]:
        """What each tool call came to, in the order in which they ended."""
        return self.of("call.ended")

    @property
    def attempts(self) -> list[Mapping[str, Any]]:
        """Every attempt of every request, in order."""
        found: list[Mapping[str, Any]] = []
        for event in self.of("tool.request_attempts"):
            attempts: Any = event["attempts"]
            found += attempts
        return found


class BeginAudit(Protocol):
    """**Protocol**: what `secret_audit` is: begins to listen, until the test is over."""

    def __call__(
        self, secret: object, *, files: Iterable[str | os.PathLike[str]] = (), **options: Any
    ) -> SecretAudit:
        """Begin; the options are those of `SecretAudit`."""
        ...


def pytest_configure(config: pytest.Config) -> None:
    """Say which marks there are."""
    config.addinivalue_line(
        "markers", f"{_MARK}(tools=(), **options): how the fixture of that name is to be built"
    )


@pytest.fixture
def faulty_gateway(request: pytest.FixtureRequest) -> Generator[FaultyGateway]:
    """Give an MCP gateway on loopback that fails as told, open while the test runs.

    `@pytest.mark.faulty_gateway(tools=[...], sse=True)` passes on what `FaultyGateway` takes.
    """
    mark = request.node.get_closest_marker(_MARK)
    gateway = FaultyGateway() if mark is None else FaultyGateway(*mark.args, **mark.kwargs)
    with gateway:
        yield gateway


@pytest.fixture
def secret_audit(request: pytest.FixtureRequest) -> Generator[BeginAudit]:
    """Hand out what begins an audit; a test calls it with the secret it plants.

    At the end of the test everything that was logged, warned, printed and raised is searched, and
    `SecretLeakError` is raised where the secret was seen. Call it in the test, not in a fixture.
    """
    with ExitStack() as audits:

        def begin(
            secret: object, *, files: Iterable[str | os.PathLike[str]] = (), **options: Any
        ) -> SecretAudit:
            # The test's own frames plant the secret, so they may hold it.
            trusted = (request.path, *options.pop("trusted", ()))
            audit = SecretAudit(secret, files=files, trusted=trusted, **options)
            return audits.enter_context(audit)

        yield begin


@pytest.fixture
def run_record(request: pytest.FixtureRequest, tmp_path: Path) -> Generator[RunRecord]:
    """The evidence of the calls that the test makes, as it is filed.

    Where a test fails, its report says by which command the timeline can be read.
    """
    kept = RunRecord(tmp_path / "run.jsonl")
    request.node.add_report_section("call", "surefoot", f"surefoot show {kept.path}")
    sink = FanOutSink(kept, kept.path)
    test = request.node
    body: Any = getattr(test, "obj", None)
    try:
        with record(sink, name=_label(test.name)):
            if iscoroutinefunction(body):
                test.obj = _within(current_run(), body)
            yield kept
    finally:
        test.obj = body
        sink.close()


def _within(run: Run | None, body: Callable[..., Any]) -> Callable[..., Any]:
    """An async test inside the run: who runs it has a context from before this fixture."""

    @wraps(body)
    async def test(*given: Any, **fixtures: Any) -> Any:
        with bind(run):
            return await body(*given, **fixtures)

    return test


def _label(name: str) -> str:
    """A test's name as a run may be called."""
    return ascii(name)[1:-1][:128]
