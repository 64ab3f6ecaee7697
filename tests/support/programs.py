"""The law of this file: a program runs in a process of its own, from its first line to its exit.

Starting Python and importing the SDK takes longer than any example. So one process imports what
they all need, with warnings as errors, and nothing else; each program is a fork of that, which
ends as a program ends.
"""

from __future__ import annotations

import gc
import os
import runpy
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Final, Self

__all__ = ["Ended", "Programs"]

_TESTS: Final = Path(__file__).resolve().parents[1]
_SECONDS: Final = 30
"""After which a program is ended by a signal."""

_OUT: Final = "stdout.txt"
_ERR: Final = "stderr.txt"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """How a program ended, and what it wrote."""

    returncode: int
    stdout: str
    stderr: str


class Programs:
    """Runs programs one after the other, each in a process of its own."""

    def __init__(self) -> None:
        # Not measured by coverage: what an example shows of us, the tests of it have run.
        kept = {name: it for name, it in os.environ.items() if not name.startswith("COVERAGE")}
        self._server = subprocess.Popen(
            [sys.executable, "-W", "error", "-m", "support.programs"],
            cwd=_TESTS,
            env=kept,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )

    def run(self, program: Path) -> Ended:
        """Run one, in its folder."""
        assert self._server.stdin is not None
        assert self._server.stdout is not None
        self._server.stdin.write(f"{program}\n".encode())
        self._server.stdin.flush()
        answer = self._server.stdout.readline()
        assert answer, "the process that forks is gone"
        wrote = ((program.parent / name).read_text("utf-8") for name in (_OUT, _ERR))
        return Ended(returncode=int(answer), stdout=next(wrote), stderr=next(wrote))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        raised: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._server.communicate(timeout=_SECONDS)


def _serve() -> Path | None:
    """Fork for each line of the standard input; return the program, in the process that is it."""
    for line in iter(sys.stdin.buffer.readline, b""):
        program = Path(os.fsdecode(line.rstrip(b"\n")))
        child = os.fork()
        if child == 0:
            _become(program)
            return program
        _, status = os.waitpid(child, 0)
        sys.stdout.buffer.write(b"%d\n" % os.waitstatus_to_exitcode(status))
        sys.stdout.buffer.flush()
    return None


def _become(program: Path) -> None:
    """Stand where a shell would have started it."""
    os.chdir(program.parent)
    for number, (name, mode) in enumerate(
        [(os.devnull, os.O_RDONLY), *((name, os.O_CREAT | os.O_WRONLY) for name in (_OUT, _ERR))]
    ):
        opened = os.open(name, mode, 0o600)
        os.dup2(opened, number)
        os.close(opened)
    sys.path[0] = str(program.parent)
    sys.argv[:] = [program.name]
    signal.alarm(_SECONDS)


if __name__ == "__main__":
    import anyio
    import httpcore
    import httpcore2
    import mcp

    from surefoot import testing

    anyio.run(anyio.sleep, 0)  # (its backend is imported at the first use)
    del httpcore, httpcore2, mcp, testing
    gc.freeze()
    _program = _serve()
    if _program is not None:
        runpy.run_path(_program.name, run_name="__main__")
