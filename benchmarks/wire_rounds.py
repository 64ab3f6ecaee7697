"""How the wire benchmarks measure: rows take turns within a round, and are compared within it.

CPU time, not the clock. Other programs still slow a whole round down, so that a row is compared
with the first row of its own round; the median of those ratios is what counts. The second row is
the first one again (A/A): what differs there is noise.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Mapping
from statistics import median, quantiles

__all__ = ["Compared", "compare"]

Row = Callable[[], object]


class Compared(dict[str, float]):
    """Each row's median ratio to the first.

    ``least`` has the best microseconds of each, ``typical`` the median.
    """

    least: dict[str, float]
    typical: dict[str, float]


def compare(
    title: str, rows: Mapping[str, Row], *, rounds: int = 25, seconds: float = 0.02
) -> Compared:
    """Time the rows in turns, print one table, and return each row's median ratio to the first.

    Args:
        title: what is measured.
        rows: the first is what the others are compared with.
        rounds: how often each row has its turn.
        seconds: roughly how long one turn takes.
    """
    first = next(iter(rows))
    turns = {first: rows[first], f"{first} (A/A)": rows[first], **rows}
    times: dict[str, list[float]] = {name: [] for name in turns}
    often = {name: _often(row, seconds) for name, row in turns.items()}
    for _ in range(rounds):
        for name, row in turns.items():
            gc.collect()
            started = time.process_time()
            for _ in range(often[name]):
                row()
            times[name].append((time.process_time() - started) / often[name] * 1e6)
    print(f"\n{title}")
    print(f"  {'':38}{'best us':>12}{'ratio':>8}   quartiles")
    ratios = Compared()
    ratios.least = {name: min(taken) for name, taken in times.items()}
    ratios.typical = {name: median(taken) for name, taken in times.items()}
    for name, taken in times.items():
        each = [mine / base for mine, base in zip(taken, times[first], strict=True)]
        low, _, high = quantiles(each, n=4)
        ratios[name] = median(each)
        print(f"  {name:38}{min(taken):12.2f}{ratios[name]:8.2f}   {low:.2f} to {high:.2f}")
    return ratios


def _often(row: Row, seconds: float) -> int:
    """How often a row fits into one turn."""
    times, taken = 1, 0.0
    while taken < seconds / 4:
        times *= 2
        started = time.process_time()
        for _ in range(times):
            row()
        taken = time.process_time() - started
    return max(1, int(times * seconds / taken))
