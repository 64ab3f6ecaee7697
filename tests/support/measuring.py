"""The law of this file: coverage is for what is tried, not for what is tried at length.

Coverage doubles what a test costs. Tables of hundreds of rows, properties and searches of all that
is alive are marked ``unmeasured``: of what they run, shorter tests say that it is covered, and the
figures of those that time or weigh something are not the measuring's.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from coverage import Coverage

__all__ = ["unmeasured"]


@contextmanager
def unmeasured() -> Generator[None]:
    """Let coverage look away, here and in each process that is started meanwhile."""
    coverage: Any = sys.modules.get("coverage")  # where nothing is measured it need not be there
    measuring: Coverage | None = None if coverage is None else coverage.Coverage.current()
    told = {name: it for name, it in os.environ.items() if name.startswith("COVERAGE")}
    for name in told:
        del os.environ[name]
    if measuring is not None:
        measuring.stop()
    try:
        yield
    finally:
        os.environ.update(told)
        if measuring is not None:
            measuring.start()
