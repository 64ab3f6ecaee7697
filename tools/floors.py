"""The law of this file: what is declared as the lowest version is a version that works.

An environment is made with the lowest version of each dependency that pyproject.toml allows, beside
the test tools of the lock, and the core tests run in it. `mcp` is then 1.x, so that the files run
which say that they serve both majors.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any, Final

__all__ = ["floors_in", "pinned"]

ROOT: Final = Path(__file__).resolve().parents[1]
PLACE: Final = ROOT / ".venv-floors"
TOOLS: Final = ("hypothesis", "pytest", "pytest-timeout", "pytest-xdist", "trio")
TESTS: Final = (
    *("tests/answering", "tests/credentials", "tests/errors", "tests/evidence", "tests/gateway"),
    *("tests/mcp1", "tests/never_twice", "tests/policy", "tests/reading", "tests/session"),
    *("tests/sinks", "tests/survival", "tests/transports", "tests/wire"),
)

_LOOK: Final = "from importlib.metadata import version"


def floors_in(project: dict[str, Any]) -> dict[str, str]:
    """Each dependency's lowest version, as it is declared.

    Raises:
        ValueError: a dependency has none.
    """
    found: dict[str, str] = {}
    for line in project["project"]["dependencies"]:
        match = re.match(r"([A-Za-z0-9_.-]+)\s*>=\s*([0-9.]+)", line)
        if match is None:
            message = f"{line}: a dependency has a lowest version"
            raise ValueError(message)
        found[match[1]] = match[2]
    return found


def pinned(lock: dict[str, Any], names: tuple[str, ...]) -> list[str]:
    """The test tools, each at the version of the lock."""
    return [
        f"{package['name']}=={package['version']}"
        for package in lock["package"]
        if package["name"] in names
    ]


def _run(*command: str | Path, environment: dict[str, str] | None = None) -> int:
    return subprocess.run(
        [str(part) for part in command], cwd=ROOT, env=environment, check=False
    ).returncode


def _knows_the_mode(python: Path) -> bool:
    """Whether the anyio that was installed knows the option `anyio_mode`."""
    look = "import sys, anyio.pytest_plugin as p; text = open(p.__file__).read()"
    look += "; sys.exit('anyio_mode' not in text)"
    return _run(python, "-c", look) == 0


def main() -> int:
    """Make the environment, and run the tests in it."""
    parser = argparse.ArgumentParser(description="The core tests with the lowest versions.")
    parser.add_argument("--uv", default="uv", help="the uv to install with")
    parser.add_argument("--python", default=sys.executable, help="the interpreter")
    parser.add_argument("--workers", default="2", help="processes for the tests")
    options = parser.parse_args()
    uv = str((ROOT / options.uv).resolve()) if "/" in options.uv else options.uv
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    lock = tomllib.loads((ROOT / "uv.lock").read_text("utf-8"))
    environment = {
        **{name: value for name, value in os.environ.items() if name != "VIRTUAL_ENV"},
        "UV_PYTHON_DOWNLOADS": "never",
        "UV_LINK_MODE": "copy",
    }
    python = PLACE / "bin" / "python"
    lowest = [f"{name}>={low}" for name, low in floors_in(project).items()]
    made = _run(
        *(uv, "venv", "--quiet", "--clear", "--python", options.python, PLACE),
        environment=environment,
    ) or _run(
        *(uv, "pip", "install", "--quiet", "--python", python, "--resolution", "lowest-direct"),
        *("--editable", ".[otel]", *lowest, *pinned(lock, TOOLS)),
        environment=environment,
    )
    if made:
        return made
    for name, low in floors_in(project).items():
        got = subprocess.run(
            [str(python), "-c", f"{_LOOK}; print(version({name!r}))"],
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()
        print(f"{name} {got}", flush=True)
        if not f"{got}.".startswith(f"{low}."):
            print(f"  {low} is declared; what else is declared needs {got}", flush=True)
    environment["PYTHONPATH"] = str(ROOT / "tools")
    older = () if _knows_the_mode(python) else ("-p", "floors_plugin")
    tests = (
        *TESTS,
        *older,
        "-q",
        "-n",
        options.workers,
        "-p",
        "no:cacheprovider",
        "-m",
        "not slow",
    )
    return _run(python, "-m", "pytest", *tests, environment=environment)


if __name__ == "__main__":
    sys.exit(main())
