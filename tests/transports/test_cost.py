"""What a call costs is held in CI: what it takes to pass, and what it holds while it waits.

The unit of the first is the time of a fixed piece of Python, which is 0.55 microseconds where the
promise of 15 microseconds was made, so that a slow machine has it, too. The least of many rounds is
compared, since noise only ever adds.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

pytestmark = pytest.mark.unmeasured

TESTS: Final = Path(__file__).parents[1]
BENCHMARK: Final = TESTS.parent / "benchmarks" / "transport_overhead.py"
PROMISED_LOOPS: Final = 15 / 0.55
TRIES: Final = 3
"""A machine that is busy all the while is given more than one chance."""


def _alone(*arguments: str) -> str:
    """What a program prints, which coverage does not measure: it slows and swells our code."""
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=TESTS,
        check=True,
        capture_output=True,
        text=True,
        timeout=50,
    )
    return done.stdout


def _loops() -> float:
    return float(_alone(str(BENCHMARK), "--gate"))


def test_retrying_recording_and_vending_cost_no_more_than_was_promised() -> None:
    """R79, R105. On by default, for every request: so it has to cost next to nothing."""
    measured = [_loops()]
    while measured[-1] > PROMISED_LOOPS and len(measured) < TRIES:
        measured.append(_loops())
    assert min(measured) <= PROMISED_LOOPS, measured
    # The control: something was measured at all.
    assert min(measured) > 1


# ------------------------------------------------------------------------------- calls that wait

PROMISED_BYTES: Final = 2.5 * 1024


def test_a_call_that_waits_holds_little_more_than_one_asleep_in_a_bare_transport() -> None:
    """B2, D11, invariant 16. Thousands may wait at once; cancelled, they are gone at once."""
    bare, waiting = map(float, _alone("-m", "support.parked").split())
    assert bare > 1024  # (the control: something was measured at all)
    assert waiting - bare <= PROMISED_BYTES
