"""The one-way imports of the house: what the checker lets pass, and what it must catch."""

from __future__ import annotations

from pathlib import Path

import pytest

from import_law import FLOORS, MAY_IMPORT, breaches_in

PACKAGE = Path(__file__).resolve().parents[2] / "src" / "surefoot"

ALLOWED = [
    ("policy/_waits.py", "from surefoot.errors import SurefootError"),
    ("policy/_waits.py", "from ._limits import Limits"),
    ("policy/_waits.py", "from . import _limits"),
    ("policy/__init__.py", "from surefoot.policy._limits import Limits"),
    ("policy/_waits.py", "import math, datetime"),
    ("wire/_sse.py", "import timeit"),
    ("credentials/_port.py", "from surefoot import evidence, wire"),
    ("transports/_clock.py", "import time, random, logging, anyio, httpx"),
    ("transports/_stack.py", "from surefoot.wire.strict_json import parse"),
    ("cli/_demo.py", "from surefoot.demo import scenario"),
    ("demo/_scenario.py", "from surefoot.testing import FaultyGateway"),
    ("testing/_clock.py", "from surefoot.agentcore import runtime"),
    ("__main__.py", "from surefoot.cli import main"),
    ("__init__.py", "from surefoot.gateway import Gateway"),
    ("__init__.py", "from surefoot.sinks import record"),
]

BROKEN = [
    ("errors.py", "from surefoot.policy import Limits", "errors may not import policy"),
    ("policy/_waits.py", "from surefoot.wire import parse", "policy may not import wire"),
    ("policy/_waits.py", "from ..wire import parse", "policy may not import wire"),
    ("policy/_waits.py", "from .. import wire", "policy may not import wire"),
    ("policy/_waits.py", "import surefoot.gateway", "policy may not import gateway"),
    ("policy/_waits.py", "import time", "policy is pure and may not import time"),
    ("policy/_waits.py", "from random import random", "policy is pure and may not import random"),
    ("policy/_waits.py", "import asyncio.locks", "policy is pure and may not import asyncio"),
    ("wire/_sse.py", "def f():\n    import httpx2", "wire is pure and may not import httpx2"),
    ("wire/_sse.py", "import importlib as i\ni.import_module('mcp.types')", "may not import mcp"),
    ("wire/_sse.py", "__import__('socket')", "wire is pure and may not import socket"),
    (
        "evidence/_run.py",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import logging",
        "evidence is pure and may not import logging",
    ),
    ("transports/_x.py", "from surefoot.sinks import record", "transports may not import sinks"),
    (
        "transports/_x.py",
        "from surefoot.gateway import Gateway",
        "transports may not import gateway",
    ),
    ("transports/_x.py", "from surefoot.testing import FakeClock", "may not import testing"),
    ("cli/_x.py", "from surefoot.testing import FaultyGateway", "cli may not import testing"),
    ("testing/_x.py", "from surefoot.demo import scenario", "testing may not import demo"),
    ("transports/_x.py", "from surefoot.policy._waits import draw", "_waits is private to policy"),
    ("transports/_x.py", "from surefoot.policy import _waits", "_waits is private to policy"),
    ("transports/_x.py", "import surefoot.policy._waits", "_waits is private to policy"),
    ("__init__.py", "from surefoot.policy._waits import draw", "_waits is private to policy"),
    ("cli/_x.py", "import surefoot.__main__", "cli may not import __main__"),
    ("__init__.py", "from surefoot.cli import main", "the front door may not import cli"),
    ("gateway/_x.py", "import surefoot", "gateway imports the front door"),
    ("gateway/_x.py", "from surefoot import Gateway", "gateway imports the front door"),
    ("gateway/_x.py", "from surefoot.kitchen import sink", "kitchen is no room"),
    ("kitchen/_x.py", "", "kitchen is no room"),
]


def place(package: Path, name: str, text: str) -> None:
    """Write one file of a sample package."""
    path = package / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"{text}\n", "utf-8")


@pytest.mark.parametrize(("name", "text"), ALLOWED)
def test_an_import_along_the_law_passes(tmp_path: Path, name: str, text: str) -> None:
    place(tmp_path, name, text)
    assert breaches_in(tmp_path) == []


@pytest.mark.parametrize(("name", "text", "message"), BROKEN)
def test_an_import_against_the_law_is_named(
    tmp_path: Path, name: str, text: str, message: str
) -> None:
    place(tmp_path, name, text)
    (breach,) = breaches_in(tmp_path)
    assert message in breach.message
    assert breach.path == tmp_path / name
    assert "import" in (["import", *text.splitlines()][breach.line] if text else "import")


def test_no_room_stands_on_itself_or_on_what_stands_on_it() -> None:
    """The table itself is one-way: a reader need not trust it."""
    for room, below in MAY_IMPORT.items():
        assert room not in below
        for lower in below:
            assert room not in MAY_IMPORT[lower], (room, lower)
    assert set().union(*FLOORS) < set(MAY_IMPORT)


def test_the_house_keeps_the_law_and_the_checker_did_look() -> None:
    """The positive control: the same call sees the package, and would see a breach in it."""
    assert len(list(PACKAGE.rglob("*.py"))) > len(FLOORS)
    assert [str(breach) for breach in breaches_in(PACKAGE)] == []
