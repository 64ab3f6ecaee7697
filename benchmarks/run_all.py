"""Every benchmark, one after the other, into one table: RESULTS.md beside this file.

    python benchmarks/run_all.py [--only peers,fence] [--write benchmarks/RESULTS.md]

Peers are measured in the same run, in the same rounds. Targets are those that were set for a figure
when it was built, on a machine that did nothing else; where one was missed, the table says so. A
script that fails or takes too long is named, the others go on, and the exit code is 1.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Final

__all__ = ["Ran", "page", "rows_in"]

HERE: Final = Path(__file__).resolve().parent

SCRIPTS: Final[dict[str, tuple[str, ...]]] = {
    "transport_overhead": ("--rounds", "10"),
    "stack_overhead": ("--rounds", "20", "--requests", "100"),
    "peers": ("--rounds", "60"),
    "recording": ("--rounds", "15", "--requests", "100"),
    "parked_calls": ("--rounds", "1"),
    "stated_wait": ("--calls", "1000"),
    "credentials": ("--rounds", "9"),
    "signing": ("--rounds", "9"),
    "fence": (),
    "wire_json": ("--rounds", "7"),
    "wire_scrub": ("--rounds", "7"),
    "wire_sse": ("--rounds", "9"),
}
"""Each script, and how long it is run here: all of them together take under five minutes."""

SECONDS: Final = 150
PACKAGES: Final = ("surefoot", "mcp", "httpx2", "httpx", "anyio", "jiter")
PEERS: Final = ("httpx-retries", "tenacity", "orjson")


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """What one script came to."""

    script: str
    seconds: float
    figures: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    failed: str | None = None


def run(script: str, options: Sequence[str], *, quiet: bool) -> Ran:
    """Run one script in a process of its own, and take its figures."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "figures.jsonl"
        started = time.monotonic()
        failed = None
        try:
            done = subprocess.run(  # noqa: S603 - our own scripts
                [sys.executable, str(HERE / f"{script}.py"), *options],
                env={**os.environ, "SUREFOOT_FIGURES": str(file)},
                stdout=subprocess.DEVNULL if quiet else None,
                check=False,
                timeout=SECONDS,
            )
            failed = f"exit code {done.returncode}" if done.returncode else None
        except subprocess.TimeoutExpired:
            failed = f"not done after {SECONDS} s"
        lines = file.read_text("utf-8").splitlines() if file.exists() else []
        return Ran(
            script=script,
            seconds=time.monotonic() - started,
            figures=[json.loads(line) for line in lines],
            failed=failed,
        )


def missed(row: dict[str, Any]) -> bool:
    """Whether a figure missed its target."""
    most, least = row["at_most"], row["at_least"]
    return (most is not None and row["value"] > most) or (
        least is not None and row["value"] < least
    )


def rows_in(ran: Sequence[Ran]) -> list[str]:
    """The rows of the table."""
    rows = ["| benchmark | what | figure | compared with | target |", "|---|---|---|---|---|"]
    for one in ran:
        for row in one.figures:
            most, least = row["at_most"], row["at_least"]
            target = ""
            if most is not None:
                target = f"at most {_plain(most)}"
            elif least is not None:
                target = f"at least {_plain(least)}"
            if target:
                target += ", **missed**" if missed(row) else ", kept"
            unit = row["unit"]
            shown = f"{_plain(row['value'])}{'x' if unit == 'x' else ' ' + unit}"
            rows.append(f"| {one.script} | {row['what']} | {shown} | {row['against']} | {target} |")
        if one.failed is not None:
            rows.append(f"| {one.script} | | **failed**: {one.failed} | | |")
    return rows


def _plain(number: float) -> str:
    """A figure with as many digits as it deserves."""
    return f"{number:,.0f}" if abs(number) >= 100 else f"{number:.3g}"


def page(ran: Sequence[Ran], *, when: datetime, machine: str, versions: str) -> str:
    """The page, whole."""
    total = sum(one.seconds for one in ran)
    return "\n".join(
        [
            "# Results",
            "",
            f"Written by `make bench` on {when:%Y-%m-%d}, {when:%H:%M} UTC; it took {total:.0f} s.",
            f"Machine: {machine}. Versions: {versions}.",
            "",
            "Figures are CPU time of this process unless they say otherwise; `us` is microseconds,",
            "`x` a ratio to what is named beside it, measured in the same rounds. Rows take turns",
            "within a round, and the median of the rounds' ratios counts, or the least of what",
            "noise can only add to. A script says what its rows do: `python benchmarks/NAME.py`.",
            "",
            *rows_in(ran),
            "",
        ]
    )


def _machine() -> str:
    name = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text("utf-8").splitlines():
            if line.startswith("model name"):
                name = line.partition(":")[2].strip()
                break
    load = f"{os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else "not known"
    cores = os.cpu_count()
    return f"{name}, {cores} cores, {platform.system()}, load {load} when it began"


def _versions() -> str:
    found = [f"Python {platform.python_version()}"]
    for name in (*PACKAGES, *PEERS):
        try:
            found.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            found.append(f"{name} not installed")
    return ", ".join(found)


def main() -> int:
    """Run them, and write the page."""
    parser = argparse.ArgumentParser(description="Every benchmark, in one table.")
    parser.add_argument("--only", default="", help="scripts to run, with commas between")
    parser.add_argument("--write", metavar="FILE", help="where the page goes; else it is printed")
    options = parser.parse_args()
    wanted = set(filter(None, options.only.split(",")))
    machine, versions = _machine(), _versions()
    ran: list[Ran] = []
    for script, settings in SCRIPTS.items():
        if wanted and script not in wanted:
            continue
        print(f"{script} ...", file=sys.stderr, flush=True)
        ran.append(run(script, settings, quiet=True))
        print(f"{script}: {ran[-1].seconds:.0f} s", file=sys.stderr, flush=True)
    text = page(ran, when=datetime.now(UTC), machine=machine, versions=versions)
    if options.write:
        Path(options.write).write_text(text, "utf-8")
        print("\n".join(rows_in(ran)))
    else:
        print(text)
    late = sum(missed(row) for one in ran for row in one.figures)
    if late:
        print(f"{late} targets missed", file=sys.stderr)
    return 1 if any(one.failed for one in ran) else 0


if __name__ == "__main__":
    sys.exit(main())
