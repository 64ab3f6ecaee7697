"""The law of this file: the peak of a process is its own, and not that of whoever started it.

``ru_maxrss`` begins with what the parent held when it forked, so that in a large test process it
would not grow at all; the kernel's own high-water mark begins with the program.
"""

from __future__ import annotations

import sys
from typing import Final

import pytest

__all__ = ["PEAK", "needs_peak"]

PEAK: Final = """
def peak():
    with open("/proc/self/status") as status:
        marks = (line.split()[1] for line in status if line.startswith("VmHWM:"))
        return int(next(marks)) * 1024
"""
"""A function for a script of its own: the most bytes that its process has held so far."""

needs_peak: Final = pytest.mark.skipif(
    sys.platform != "linux", reason="the high-water mark is read from /proc"
)
