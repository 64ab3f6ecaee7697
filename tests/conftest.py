"""The law of this file: the world is the same for each test: no proxy, no certificates, no luck.

Two environments run these tests. With mcp 2.x all of `tests/` runs except `tests/mcp1/`. With
mcp 1.x, which has another HTTP family and other module names, `tests/mcp1/` runs and each file that
says `pytestmark = pytest.mark.both_majors`; the word is looked for in the text, since importing a
file that needs httpx2 would already fail there.
"""

from __future__ import annotations

import gc
import os
import re
from collections.abc import Generator
from importlib.metadata import version
from pathlib import Path
from typing import Any

import hypothesis
import pytest

from support.corpora import ABSENT, corpora
from support.measuring import unmeasured
from support.turns import in_turns

MCP_MAJOR = int(version("mcp").partition(".")[0])

HERE = Path(__file__).resolve().parent
DATA = HERE / "data"

_FOREIGN = ("http_proxy", "https_proxy", "all_proxy", "no_proxy", "ws_proxy", "wss_proxy")
_FOREIGN_PREFIXES = ("AWS_", "OTEL_", "SUREFOOT_")
_OURS = {"SUREFOOT_DATA"}
_OF_A_SET = re.compile(r"\{'[^':]*', ")

# "check" finds the same counterexample on every machine; "explore" looks for new ones.
hypothesis.settings.register_profile(
    "check", derandomize=True, database=None, max_examples=100, deadline=None
)
hypothesis.settings.register_profile("explore", max_examples=2_000, deadline=None)
hypothesis.settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "check"))


def pytest_configure() -> None:
    """Take out of the environment what would change how a client connects; children inherit it."""
    for name in list(os.environ):
        foreign = name.lower() in _FOREIGN or name.startswith(_FOREIGN_PREFIXES)
        if foreign and name not in _OURS:
            del os.environ[name]
    # Reading certificates takes longer than a whole call over loopback, where nobody speaks TLS.
    os.environ.pop("SSL_CERT_FILE", None)
    os.environ["SSL_CERT_DIR"] = str(DATA)


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    """Keep to the files that this environment's major of mcp can import."""
    if collection_path.suffix != ".py" or not collection_path.name.startswith("test_"):
        return None
    for_mcp1 = HERE / "mcp1" in collection_path.parents
    if MCP_MAJOR > 1:
        return for_mcp1 or None
    return None if for_mcp1 or "mark.both_majors" in collection_path.read_text("utf-8") else True


def pytest_addoption(parser: pytest.Parser) -> None:
    """Long tables take their loops and HTTP families in turns, unless every pair is asked for."""
    parser.addoption(
        "--every-pair",
        action="store_true",
        help="run each row of the long tables on both loops with each HTTP family and era",
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Refuse a name made of a set, whose order is luck; and let the long tables take turns."""
    for item in items:
        if _OF_A_SET.search(item.nodeid):
            msg = f"{item.nodeid}: the name holds a set of several; give the row an id of its own"
            raise pytest.UsageError(msg)
    if not config.getoption("every_pair"):
        kept, left = in_turns(items)
        if left:
            config.hook.pytest_deselected(items=left)
            items[:] = kept


def pytest_collection_finish() -> None:
    """Take the tests themselves out of what is collected and searched again and again.

    An audit of secrets walks over all objects, and a test that counts them collects first; twelve
    thousand tests are a million of them, and none was made by what a test does.
    """
    gc.collect()
    gc.freeze()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, bool, bool]:
    """Measure no coverage of a test that is marked so."""
    if item.get_closest_marker("unmeasured") is None:
        return (yield)
    with unmeasured():
        return (yield)


@pytest.fixture(params=["asyncio", "trio"], scope="module")
def anyio_backend(request: pytest.FixtureRequest) -> str:
    """Each async test runs on asyncio and on trio."""
    return str(request.param)


@pytest.fixture(params=["httpx2", "httpx"])
def family(request: pytest.FixtureRequest) -> Any:
    """Each HTTP family that is installed: what holds for one holds for the other."""
    return pytest.importorskip(request.param)


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """The folder of the published test suites; the test is skipped where there is none."""
    folder = corpora()
    if folder is None:
        pytest.skip(ABSENT)
    return folder
