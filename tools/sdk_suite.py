"""The law of this file: the SDK's own tests pass over our layers, or are named with a reason.

The source distribution of the installed ``mcp`` carries its tests. They are downloaded once, run
with every HTTP transport wrapped (``tests/sdk/inject_surefoot.py``), and compared with
``tests/sdk/differences.toml`` both ways: a failure that is not named there is an error, and so is a
named one that passes or is not there. What fails once is tried again alone, and then without us: a
test that a busy machine or the SDK itself fails is shown, and is no fault of ours.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import xml.etree.ElementTree as ET
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Final

__all__ = ["Outcome", "judged", "named_differences", "read_report"]

ROOT: Final = Path(__file__).resolve().parents[1]
STORE: Final = ROOT / "build" / "sdk-suite"
DIFFERENCES: Final = ROOT / "tests" / "sdk" / "differences.toml"

FOLDERS: Final = ("tests/client", "tests/interaction", "tests/shared")
FEWEST_TESTS: Final = 2000
FEWEST_REQUESTS: Final = 1000
"""Less than this, and what passed is not what was meant to be run."""

SECONDS: Final = 900
TIMEOUT: Final = 30
"""Seconds for one test: most of them take milliseconds, the slowest five seconds."""

FLAGS: Final = (
    *("-q", "--color=no", "-o", "filterwarnings=ignore", "-o", "log_cli=false"),
    *("-o", "junit_family=xunit1", "-p", "no:pretty", "-p", "no:cacheprovider"),
    *("--timeout", str(TIMEOUT), "--tb=short"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What one run of the tests came to."""

    passed: frozenset[str] = frozenset()
    failed: Mapping[str, str] = field(default_factory=dict[str, str])
    """The tests that failed, each with the first line of what it said."""


def named_differences(text: str) -> dict[str, str]:
    """The tests that are named with a reason.

    Raises:
        ValueError: a group has no reason, or a test is named twice.
    """
    found: dict[str, str] = {}
    for group in tomllib.loads(text)["difference"]:
        why = str(group["why"]).strip()
        if not why:
            raise ValueError(f"no reason: {group['tests']}")
        for name in group["tests"]:
            if name in found:
                raise ValueError(f"named twice: {name}")
            found[name] = why
    return found


def judged(outcome: Outcome, named: Iterable[str]) -> list[str]:
    """What is wrong: a failure nobody named, and a name that no failure stands behind."""
    expected = set(named)
    wrong = [
        f"fails, and is not named: {name}\n    {said}"
        for name, said in sorted(outcome.failed.items())
        if name not in expected
    ]
    wrong += [
        f"named as different, and passes: {name}" for name in sorted(expected & outcome.passed)
    ]
    gone = expected - outcome.passed - outcome.failed.keys()
    return wrong + [f"named as different, and did not run: {name}" for name in sorted(gone)]


def read_report(text: str) -> Outcome:
    """Read a JUnit report into node ids as pytest takes them."""
    passed: set[str] = set()
    failed: dict[str, str] = {}
    for case in ET.fromstring(text).iter("testcase"):  # noqa: S314 - written by our own run
        file = case.get("file", "")
        module = file.removesuffix(".py").replace("/", ".")
        inside = case.get("classname", "").removeprefix(module).strip(".").split(".")
        name = "::".join([file, *filter(None, inside), case.get("name", "")])
        bad = case.find("failure")
        bad = case.find("error") if bad is None else bad
        if bad is not None:
            failed[name] = (bad.get("message") or "").partition("\n")[0][:160]
        elif case.find("skipped") is None:
            passed.add(name)
    return Outcome(passed=frozenset(passed - failed.keys()), failed=failed)


def _tests_of(installed: str) -> Path:
    """The unpacked tests of one version of the SDK, without its sources, which are installed."""
    place = STORE / f"mcp-{installed}"
    if (place / "pyproject.toml").exists():
        return place
    STORE.mkdir(parents=True, exist_ok=True)
    archive = STORE / f"mcp-{installed}.tar.gz"
    if not archive.exists():
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
        command += ["--disable-pip-version-check", "--no-binary", "mcp", f"mcp=={installed}"]
        subprocess.run([*command, "--dest", STORE], check=True, timeout=300)
    with tempfile.TemporaryDirectory(dir=STORE) as scratch, tarfile.open(archive) as packed:
        packed.extractall(scratch, filter="data")
        unpacked = Path(scratch) / place.name
        shutil.rmtree(unpacked / "src")
        unpacked.rename(place)
    return place


def _run(place: Path, tests: Sequence[str], *, workers: int, over: bool) -> tuple[Outcome, int]:
    """Run tests, over our layers or without; also how many requests went through us."""
    with tempfile.TemporaryDirectory(dir=STORE) as scratch:
        report, counts = Path(scratch) / "report.xml", Path(scratch) / "counts"
        counts.mkdir()
        environment = {name: value for name, value in os.environ.items() if name != "VIRTUAL_ENV"}
        environment["PYTHONPATH"] = os.pathsep.join([str(ROOT / "src"), str(ROOT / "tests/sdk")])
        environment["SUREFOOT_SDK_COUNTS"] = str(counts)
        command = [sys.executable, "-m", "pytest", *tests, *FLAGS, f"--junitxml={report}"]
        command += ["-n", str(workers)] if workers > 1 else []
        command += ["-p", "inject_surefoot"] if over else []
        done = subprocess.run(
            command,
            cwd=place,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=SECONDS,
        )
        if not report.exists():
            sys.exit(f"the tests did not run\n{done.stdout[-4000:]}{done.stderr[-4000:]}")
        seen = sum(json.loads(path.read_text("utf-8"))["ours"] for path in counts.iterdir())
        return read_report(report.read_text("utf-8")), seen


def _tried_again(place: Path, outcome: Outcome, named: Iterable[str]) -> Outcome:
    """The same outcome, without the failures that are nobody's or the SDK's own."""
    doubtful = sorted(outcome.failed.keys() - set(named))
    if not doubtful or len(doubtful) > 100:
        return outcome
    again, _ = _run(place, doubtful, workers=1, over=True)
    for name in sorted(again.passed):
        print(f"passed when tried again alone: {name}")
    without, _ = (
        _run(place, sorted(again.failed), workers=1, over=False)
        if again.failed
        else (
            Outcome(),
            0,
        )
    )
    for name in sorted(without.failed):
        print(f"fails without us, too: {name}")
    excused = again.passed | without.failed.keys()
    return Outcome(
        passed=outcome.passed | again.passed,
        failed={name: said for name, said in outcome.failed.items() if name not in excused},
    )


def main() -> int:
    """Download, run, compare."""
    parser = argparse.ArgumentParser(description="Run the SDK's own tests over our layers.")
    parser.add_argument("--workers", type=int, default=2, help="processes (default: 2)")
    parser.add_argument("tests", nargs="*", help="only these, and then no name need stand")
    options = parser.parse_args()
    installed = version("mcp")
    named = named_differences(DIFFERENCES.read_text("utf-8"))
    place = _tests_of(installed)
    outcome, seen = _run(
        place, options.tests or FOLDERS, workers=max(1, options.workers), over=True
    )
    outcome = _tried_again(place, outcome, named)
    if options.tests:
        known = outcome.passed | outcome.failed.keys()
        named = {name: why for name, why in named.items() if name in known}
    wrong = judged(outcome, named)
    if not options.tests:
        if len(outcome.passed) < FEWEST_TESTS:
            wrong.append(f"only {len(outcome.passed)} tests passed")
        if seen < FEWEST_REQUESTS:
            wrong.append(f"only {seen} requests went through our layers")
    for line in wrong:
        print(line)
    print(
        f"mcp {installed}: {len(outcome.passed)} of its tests pass over surefoot "
        f"({seen} requests), {len(named)} are named as different, {len(wrong)} are wrong"
    )
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
