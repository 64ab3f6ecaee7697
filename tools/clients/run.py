"""The law of this file: what is claimed of a client was seen in an environment of its own.

    python -m clients.run --uv UV --smoke          four cells of each client, with surefoot
    python -m clients.run --uv UV --write          every cell, with and without; writes the page
    python -m clients.run --uv UV --compile        pins the requirements anew

Each client is driven by one process; two run at a time. What differs from the table of `expected`
is named with the client, the cell, what was expected and what was seen.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final

from clients.cells import CELLS, SMOKE
from clients.environments import compiled, environment
from clients.expected import judged, wrong_cells
from clients.page import RESULTS, write
from clients.roster import ROSTER, Client

ROOT: Final = Path(__file__).resolve().parents[2]
SECONDS: Final = 300
"""For one client with all its cells; the slowest takes two minutes on two busy cores."""


@dataclass(slots=True)
class Seen:
    """What one client's process told."""

    head: dict[str, Any] = field(default_factory=dict[str, Any])
    results: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    wrong: list[str] = field(default_factory=list[str])
    making: float = 0.0
    driving: float = 0.0


def drive(client: Client, options: argparse.Namespace) -> Seen:
    """Make the environment, drive the client, and judge what it told."""
    seen = Seen()
    cells = list(SMOKE) if options.smoke else [cell.key for cell in CELLS]
    started = time.monotonic()
    try:
        python = environment(client, uv=options.uv)
        seen.making = time.monotonic() - started
        _drive(python, client, cells, "with" if options.smoke else None, seen)
    except (RuntimeError, subprocess.TimeoutExpired) as error:
        seen.wrong.append(f"{client.key}: {error}")
        return seen
    seen.driving = time.monotonic() - started - seen.making
    return seen


def _drive(
    python: Path, client: Client, cells: Sequence[str], only: str | None, seen: Seen
) -> None:
    """Play the cells, and what differs once more by itself: the machine may have been busy."""
    seen.head, *seen.results = _told(python, client, cells, only)
    differs = wrong_cells(client.key, seen.results, cells)
    if differs:
        print(f"{client.title}: once more: {', '.join(differs)}", flush=True)
        _, *again = _told(python, client, differs, only)
        seen.results = [row for row in seen.results if row["cell"] not in differs] + again
        order = {key: place for place, key in enumerate(cells)}
        seen.results.sort(key=lambda row: order[row["cell"]])
    seen.wrong += judged(client.key, seen.results, cells)


def _told(
    python: Path, client: Client, cells: Sequence[str], only: str | None
) -> list[dict[str, Any]]:
    command = [str(python), "-m", "clients.drive", client.key, "--cells", ",".join(cells)]
    command += [] if only is None else ["--only", only]
    done = subprocess.run(
        command,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT / 'tools'}"},
        capture_output=True,
        text=True,
        check=False,
        timeout=SECONDS,
    )
    if done.returncode:
        raise RuntimeError(f"its driver failed:\n{done.stderr.strip()[-3000:]}")
    return [json.loads(line) for line in done.stdout.splitlines()]


def main() -> int:
    """Drive the clients that are asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--uv", required=True)
    parser.add_argument("--smoke", action="store_true", help="four cells, with surefoot alone")
    parser.add_argument("--write", action="store_true", help="keep the results and write the page")
    parser.add_argument("--compile", action="store_true", help="pin the requirements anew")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("clients", nargs="*", help="all, unless some are named")
    options = parser.parse_args()
    if options.compile:
        compiled(uv=options.uv)
        return 0
    wanted = [one for one in ROSTER if not options.clients or one.key in options.clients]
    seen: dict[str, Seen] = {}
    with ThreadPoolExecutor(options.workers) as pool:
        results = pool.map(partial(drive, options=options), wanted)
        for client, result in zip(wanted, results, strict=True):
            seen[client.key] = result
            kept = f"{result.head.get('version', '?')} (mcp {result.head.get('mcp', '?')})"
            print(
                f"{client.title:14} {kept:24} {len(result.results):3} cells,"
                f" environment {result.making:.0f} s, driven {result.driving:.0f} s,"
                f" {len(result.wrong)} wrong",
                flush=True,
            )
    wrong = [line for one in seen.values() for line in one.wrong]
    for line in wrong:
        print(line)
    if options.write and not options.smoke and not wrong:
        missing = write([(seen[one.key].head, seen[one.key].results) for one in wanted])
        print(f"wrote {RESULTS.relative_to(ROOT)}{'' if missing else ' and the page'}")
        if missing:
            print(f"the page waits for: {', '.join(missing)}")
    passed = sum(row["surefoot"] for one in seen.values() if not one.wrong for row in one.results)
    print(f"clients: {passed} passed, {len(wrong)} failed")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
