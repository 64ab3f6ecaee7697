"""The law of this file: a Python that the metadata names is one that the core tests pass with.

For each interpreter later than the lowest that can be had on this machine an environment is made
from the lock, and the core tests run in it. One that cannot be had is said to be missing.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

__all__ = ["interpreter"]

ROOT: Final = Path(__file__).resolve().parents[1]
LATER: Final = ("3.12", "3.13", "3.14")
PLACES: Final = ("~/.pyenv/versions", "/opt/python", "/opt/hostedtoolcache/Python")
"""Where interpreters often are that PATH does not lead to."""


TESTS: Final = (
    *("tests/credentials", "tests/errors", "tests/evidence", "tests/gateway"),
    *("tests/policy", "tests/session", "tests/sinks"),
)
"""What touches most of the interpreter: loops, contexts, frames, pickles, files."""


def interpreter(version: str) -> str | None:
    """A Python of this version that runs, or `None`."""
    kept = (found for place in PLACES for found in Path(place).expanduser().glob(f"{version}*"))
    candidates = (shutil.which(f"python{version}"), *(str(one / "bin" / "python") for one in kept))
    look = "import sys; print('.'.join(map(str, sys.version_info[:2])))"
    for candidate in candidates:
        if candidate is None or not Path(candidate).exists():
            continue
        said = subprocess.run(
            [candidate, "-c", look], capture_output=True, text=True, check=False, timeout=20
        )
        if said.stdout.strip() == version:
            return candidate
    return None


def _tried(version: str, python: str, uv: str, workers: str) -> bool:
    place = ROOT / f".venv-py{version}"
    environment = {
        **{name: value for name, value in os.environ.items() if name != "VIRTUAL_ENV"},
        "UV_PROJECT_ENVIRONMENT": str(place),
        "UV_PYTHON_DOWNLOADS": "never",
        "UV_LINK_MODE": "copy",
    }
    groups = ("--all-extras", "--no-default-groups", "--group", "mcp2", "--group", "test")
    tests = (*TESTS, "-q", "-n", workers, "-p", "no:cacheprovider", "-m", "not slow")
    for command in (
        [uv, "sync", "--frozen", "--quiet", "--python", python, *groups],
        [str(place / "bin" / "python"), "-m", "pytest", *tests],
    ):
        if subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode:
            return False
    return True


def main() -> int:
    """Try each."""
    parser = argparse.ArgumentParser(description="The core tests with each later Python.")
    parser.add_argument("--uv", default="uv", help="the uv to install with")
    parser.add_argument("--workers", default="2", help="processes for the tests")
    parser.add_argument("--only", help="one version")
    options = parser.parse_args()
    uv = str((ROOT / options.uv).resolve()) if "/" in options.uv else options.uv
    bad: list[str] = []
    for version in LATER if options.only is None else (options.only,):
        python = interpreter(version)
        if python is None:
            print(f"Python {version}: not on this machine", flush=True)
        elif _tried(version, python, uv, options.workers):
            print(f"Python {version}: good", flush=True)
        else:
            bad.append(version)
            print(f"Python {version}: NOT good", flush=True)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
