"""The law of this file: what the fence costs is measured alone, and its memory is a stated figure.

Run `python benchmarks/fence.py`; it exits 1 where a bound is not kept: 20 microseconds a question
with 100,000 calls remembered, and 3 microseconds for a call that is not fenced.
"""

from __future__ import annotations

import sys
import time
import tracemalloc
from collections.abc import Callable
from typing import Any, Final

from figures import figure

from surefoot.policy import Call, Fence, Replay, ToolRule, fence_key
from surefoot.transports._fencing import Fencing

_ENTRIES: Final = 100_000
_QUESTION: Final = 20.0
_UNFENCED: Final = 3.0


class _Record:
    """As much of a record as is looked at for a call that is not fenced."""

    call = Call(method="tools/call", tool="search", is_tool_call=True)
    fence = None


def _micros(work: Callable[[], object], times: int = 20_000, rounds: int = 5) -> float:
    """The best of a few rounds, in microseconds of CPU time for one."""
    best = float("inf")
    for _ in range(rounds):
        started = time.process_time_ns()
        for _ in range(times):
            work()
        best = min(best, (time.process_time_ns() - started) / times / 1e3)
    return best


def main() -> int:
    """Measure, print, and say whether the bounds are kept."""
    tracemalloc.start()
    fence = Fence()
    arguments = [b'{"amount":%d}' % number for number in range(_ENTRIES)]
    before = tracemalloc.get_traced_memory()[0]
    for number, one in enumerate(arguments):
        key = fence_key(scope="", principal=None, tool="charge", arguments=one)
        fence.enter(key, f"{number:016x}", now=0.0, changing=True)
        fence.leave(f"{number:016x}", "may-have-run")
    held = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()

    def ask() -> object:
        key = fence_key(scope="", principal=None, tool="charge", arguments=arguments[777])
        return fence.enter(key, "another", now=1.0, changing=True)

    fence.settle(f"{1:016x}", ran=True)
    free = fence_key(scope="", principal=None, tool="refund", arguments=b"{}")

    def pass_by() -> None:
        fence.enter(free, "passing", now=1.0, changing=True)
        fence.leave("passing", "settled")

    replay = Replay(tools={"charge": ToolRule(makes_changes=True)})
    fencing, record = Fencing(fence, replay), _Record()
    bare: Any = record

    def unfenced() -> None:
        fencing.admit(bare, 1.0)
        fencing.release(bare)

    asked, passed, idle = _micros(ask), _micros(pass_by), _micros(unfenced)
    print(f"remembered calls           {len(fence):>10,}")
    print(f"memory                     {held / 1e6:>10.1f} MB ({held / _ENTRIES:.0f} bytes each)")
    print(f"a question that is stopped {asked:>10.2f} us (bound {_QUESTION:.0f})")
    print(f"a call that comes and goes {passed:>10.2f} us")
    print(f"a call that is not fenced  {idle:>10.2f} us (bound {_UNFENCED:.0f})")
    figure("a question to the fence, 100,000 calls remembered", asked, "us", at_most=_QUESTION)
    figure("a call that is not fenced", idle, "us", at_most=_UNFENCED)
    figure("memory of one remembered call", held / _ENTRIES, "bytes")
    return 0 if max(asked, passed) < _QUESTION and idle < _UNFENCED else 1


if __name__ == "__main__":
    sys.exit(main())
