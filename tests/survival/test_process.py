"""B1, invariant 16. A program that met every fault ends by itself, cleanly and without a word.

A process of its own: warnings are errors, and what an unclosed connection, a task that nobody
awaited or a generator left behind would print is seen on its standard error.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from support.sessions import KINDS, Kind

pytestmark = pytest.mark.both_majors

TESTS = Path(__file__).resolve().parents[1]

PROGRAM = """
import logging, sys, threading
sys.path.insert(0, sys.argv[1])
import anyio
from support.sessions import opened
from surefoot import Gateway, Retry
from surefoot.testing import (
    BadJson, CutJson, FaultyGateway, HeldStream, Reset, Slow, SseCut, Status, Throttle,
)

logging.getLogger("surefoot").addHandler(logging.NullHandler())
FAULTS = [
    Status(401), Status(403), Throttle(0), Throttle(60), Status(500), Status(503), Reset(),
    Reset("in-body"), Reset("after-run"), CutJson(), CutJson("chunked"), SseCut(),
    SseCut(how="reset"), SseCut(1, after_event_id="e-1", retry=1), BadJson("duplicate-keys"),
]

async def main(kind):
    with FaultyGateway() as faulty:
        gateway = Gateway(faulty.url, retry=Retry(max_attempts=2, base_delay=0.01))
        async with opened(gateway.transport(), kind) as session:
            for fault in FAULTS:
                faulty.script("charge", fault)
                await session.call("charge", {"amount": 1})
            for fault in (Slow(5), HeldStream()):
                faulty.script("charge", fault)
                await session.call("charge", {"amount": 1}, patience=0.1)
            print((await session.call("search", {"q": "it"})).text)

anyio.run(main, sys.argv[2])
print([thread.name for thread in threading.enumerate()])
"""


@pytest.mark.unmeasured
@pytest.mark.parametrize("kind", KINDS)
def test_a_program_that_met_every_fault_ends_cleanly(kind: Kind) -> None:
    """B1. Its exit code is 0, it says nothing, and no thread is left."""
    done = _run(PROGRAM, kind)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == ["found it", "['MainThread']"]


def test_what_would_be_left_behind_would_be_seen() -> None:
    """B1. The control: a socket that nobody closed is told of."""
    done = _run("import socket\nsocket.create_server(('127.0.0.1', 0))\n", "none")
    assert "ResourceWarning" in done.stderr


def _run(program: str, kind: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", program, str(TESTS), kind],
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
