"""The pytest plugin: a suite that knows nothing of this repository gets three fixtures.

R109, B13: each test file below is run by a pytest of its own, in an empty folder.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from support.examples import examples_in
from surefoot.cli import main

pytestmark = pytest.mark.both_majors

THREE_LINES = """
import anyio
from surefoot import Gateway
from surefoot.testing import Tool

async def agent(url, **options):
    async with Gateway(url, **options).session() as session:
        return (await session.call("search", {"q": "W-7712"})).text
"""

PASSES = {
    "a gateway": """
def test_it(faulty_gateway):
    assert anyio.run(agent, faulty_gateway.url) == "found W-7712"
    assert faulty_gateway.executions("search") == 1
""",
    "a gateway as the mark says": """
import pytest

@pytest.mark.faulty_gateway([Tool("book", answer="booked")], path="/elsewhere")
def test_it(faulty_gateway):
    assert faulty_gateway.url.endswith("/elsewhere")
    assert faulty_gateway.executions("book") == 0
""",
    "each test has its own": """
def test_one(faulty_gateway):
    anyio.run(agent, faulty_gateway.url)

def test_two(faulty_gateway, run_record):
    assert faulty_gateway.journal == ()
    assert run_record.calls == []
""",
    "a record": """
def test_it(faulty_gateway, run_record):
    anyio.run(agent, faulty_gateway.url)
    (call,) = run_record.calls
    assert (call["effect"], call["is_error"]) == ("ran", False)
    assert [one["status"] for one in run_record.attempts][-1] == 200
""",
    "a record of an async test after an async fixture": """
import pytest

pytestmark = pytest.mark.anyio

@pytest.fixture(scope="module")
def anyio_backend():
    return "asyncio"

@pytest.fixture(scope="module")
async def made_before():
    yield

async def test_it(made_before, faulty_gateway, run_record):
    await agent(faulty_gateway.url)
    assert len(run_record.calls) == 1

class TestOfAClass:
    async def test_it(self, made_before, faulty_gateway, run_record):
        await agent(faulty_gateway.url)
        assert len(run_record.calls) == 1
""",
    "a record that is passed on": """
import threading

def test_it(faulty_gateway, run_record):
    async def main():
        await agent(faulty_gateway.url, evidence=run_record)
    worker = threading.Thread(target=anyio.run, args=(main,))
    worker.start()
    worker.join()
    assert len(run_record.calls) == 1
""",
    "an audit that finds nothing": """
from surefoot import Bearer

def test_it(faulty_gateway, secret_audit):
    audit = secret_audit("CANARY-3d9a77")
    anyio.run(lambda: agent(faulty_gateway.url, credentials=Bearer("CANARY-3d9a77")))
    assert faulty_gateway.received("CANARY-3d9a77")
""",
}

PAGE = Path(__file__).resolve().parents[2] / "docs" / "how-to" / "test-your-agent.md"
PASSES["as the page has it"] = next(
    example.code for example in examples_in(PAGE) if "faulty_gateway" in example.code
)

FAILS = {
    "a secret that is printed": (
        """
def test_it(secret_audit):
    secret_audit("CANARY-3d9a77")
    print("the token is CANARY-" + "3d9a77")
""",
        "SecretLeakError",
    ),
    "a secret that is logged": (
        """
import logging

def test_it(secret_audit):
    secret_audit("CANARY-3d9a77")
    logging.getLogger("app").warning("the token is %s", "CANARY-" + "3d9a77")
""",
        "SecretLeakError",
    ),
    "a record names the command that shows it": (
        """
def test_it(faulty_gateway, run_record):
    anyio.run(agent, faulty_gateway.url)
    assert run_record.calls == []
""",
        "surefoot show ",
    ),
}


Suite = tuple[int, str]


def suite(folder: Path, tests: dict[str, str], *options: str) -> Suite:
    """Run a suite of a user's, each test in a file of its own; its exit code and what it said."""
    for name, test in tests.items():
        (folder / f"test_{name.replace(' ', '_')}.py").write_text(THREE_LINES + test, "utf-8")
    command = [sys.executable, "-m", "pytest", "-q", "-rA", "--strict-markers", "-W", "error"]
    left_out = [f"no:{plugin}" for plugin in ("cacheprovider", "xdist", "hypothesispytest")]
    done = subprocess.run(
        [*command, *(word for name in left_out for word in ("-p", name)), *options],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=55,
    )
    return done.returncode, done.stdout + done.stderr


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Suite:
    return suite(tmp_path_factory.mktemp("sound"), PASSES)


@pytest.fixture(scope="module")
def unsound(tmp_path_factory: pytest.TempPathFactory) -> Suite:
    return suite(
        tmp_path_factory.mktemp("unsound"), {name: one for name, (one, _) in FAILS.items()}
    )


def test_a_suite_that_uses_the_fixtures_passes(sound: Suite) -> None:
    code, said = sound
    assert code == 0, said
    for name in PASSES:
        assert f"PASSED test_{name.replace(' ', '_')}.py" in said


@pytest.mark.parametrize(("name", "says"), [(name, says) for name, (_, says) in FAILS.items()])
def test_what_is_wrong_fails_its_test_and_says_why(name: str, says: str, unsound: Suite) -> None:
    code, said = unsound
    assert code == 1
    assert says in said
    assert f" test_{name.replace(' ', '_')}.py::test_it" in said.partition("short test summary")[2]


def test_the_file_of_a_record_is_shown_by_the_command(
    unsound: Suite, capsys: pytest.CaptureFixture[str]
) -> None:
    _, said = unsound
    (path,) = {line.split()[2] for line in said.splitlines() if line.startswith("surefoot show ")}
    assert main(["show", path]) == 0
    assert "search" in capsys.readouterr().out


def test_the_plugin_can_be_left_out(tmp_path: Path) -> None:
    code, said = suite(tmp_path, {"it": PASSES["a gateway"]}, "-p", "no:surefoot")
    assert code == 1
    assert "fixture 'faulty_gateway' not found" in said


def test_surefoot_itself_needs_no_pytest() -> None:
    look = "import sys, surefoot, surefoot.testing; sys.exit('pytest' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", look], check=False, timeout=50)
    assert done.returncode == 0
