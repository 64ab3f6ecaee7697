"""What a call costs that needs nothing is held in CI, in a unit that a slow machine has, too.

The unit is the time of a fixed piece of Python, which is 0.55 microseconds where the promise of 15
microseconds was made. The least of many rounds is compared, since noise only ever adds.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Final

BENCHMARK: Final = Path(__file__).parents[2] / "benchmarks" / "transport_overhead.py"
PROMISED_LOOPS: Final = 15 / 0.55
TRIES: Final = 3
"""A machine that is busy all the while is given more than one chance."""


def _loops() -> float:
    # Not measured by coverage, which makes our own code slow and not the unit.
    kept = {name: value for name, value in os.environ.items() if not name.startswith("COVERAGE")}
    done = subprocess.run(
        [sys.executable, str(BENCHMARK), "--gate"],
        env=kept,
        check=True,
        capture_output=True,
        text=True,
        timeout=50,
    )
    return float(done.stdout)


def test_retrying_recording_and_vending_cost_no_more_than_was_promised() -> None:
    """R79, R105. On by default, for every request: so it has to cost next to nothing."""
    measured = [_loops()]
    while measured[-1] > PROMISED_LOOPS and len(measured) < TRIES:
        measured.append(_loops())
    assert min(measured) <= PROMISED_LOOPS, measured
    # The control: something was measured at all.
    assert min(measured) > 1
