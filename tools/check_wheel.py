"""The law of this file: what is judged is the wheel as a user gets it, not the tree it came from.

The wheel is built once and installed without extras into two fresh environments, one for each
major of mcp, with the versions of the lock. There every room is imported with warnings as errors,
the command answers `--help`, and what an extra would have brought is shown to be absent.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[1]

MAJORS: Final = {
    "mcp2": ("mcp>=2.3,<3", ("botocore", "httpx")),
    "mcp1": ("mcp==1.30.*", ("botocore", "httpx2")),
}
"""Each group of the lock, the mcp that it stands for, and what must be absent beside it."""

IMPORT_ROOMS: Final = """
import importlib.util, pkgutil, sys, surefoot
assert "site-packages" in str(surefoot.__file__), "surefoot is not the installed one"
present = [name for name in sys.argv[1:] if importlib.util.find_spec(name)]
assert not present, f"not a plain environment: {present}"
rooms = sorted(info.name for info in pkgutil.iter_modules(surefoot.__path__, "surefoot."))
for room in rooms:
    if not room.rpartition(".")[2].startswith("_"):
        module = importlib.import_module(room)
        for name in module.__all__:
            getattr(module, name)
print(f"{len(rooms)} rooms imported")
"""


def _run(*command: str | Path, cwd: Path = ROOT) -> str:
    """Run one command to its end; its output is shown only when it fails."""
    environment = {name: value for name, value in os.environ.items() if name != "VIRTUAL_ENV"}
    done = subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    if done.returncode != 0:
        sys.exit(f"$ {' '.join(map(str, command[:4]))} ...\n{done.stdout}{done.stderr}")
    return done.stdout


def _check_contents(wheel: Path) -> None:
    """The wheel holds the package, all of it and nothing beside it, with its type marker."""
    with zipfile.ZipFile(wheel) as archive:
        packed = {name for name in archive.namelist() if ".dist-info/" not in name}
    package = ROOT / "src" / "surefoot"
    wanted = {
        path.relative_to(package.parent).as_posix()
        for path in package.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    if packed != wanted:
        sys.exit(f"the wheel and src/ differ in: {sorted(packed ^ wanted)}")
    if "surefoot/py.typed" not in packed:
        sys.exit("the wheel has no py.typed: type checkers would ignore its annotations")


def _check_install(uv: str, wheel: Path, group: str, place: Path) -> None:
    """Install the wheel beside one major of mcp, import every room and ask the command for help."""
    requirement, absent = MAJORS[group]
    constraints = place / "constraints.txt"
    environment = place / "environment"
    only = ("--no-default-groups", "--group", group, "--no-emit-project", "--no-hashes")
    exported = _run(uv, "export", "--frozen", "--quiet", *only)
    constraints.write_text(exported, "utf-8")
    _run(uv, "venv", "--quiet", "--python", sys.executable, environment)
    python = environment / "bin" / "python"
    _run(
        *(uv, "pip", "install", "--quiet", "--python", python),
        *("--constraint", constraints, wheel, requirement),
    )
    said = _run(python, "-I", "-W", "error", "-c", IMPORT_ROOMS, *absent, cwd=place)
    usage = _run(environment / "bin" / "surefoot", "--help", cwd=place)
    if "usage" not in usage.lower():
        sys.exit(f"surefoot --help does not show how it is used:\n{usage}")
    print(f"{wheel.name} with {requirement}: {said.strip()}, --help answers")


def main() -> int:
    """Build the wheel and judge it."""
    parser = argparse.ArgumentParser(
        description="Build the wheel and try it in fresh environments."
    )
    parser.add_argument("--uv", default="uv", help="the uv to build and install with")
    uv: str = parser.parse_args().uv
    if "/" in uv:
        uv = str((ROOT / uv).resolve())
    with tempfile.TemporaryDirectory(prefix="surefoot-wheel-") as scratch:
        place = Path(scratch)
        _run(uv, "build", "--quiet", "--wheel", "--python", sys.executable, "--out-dir", place)
        (wheel,) = place.glob("*.whl")
        _check_contents(wheel)
        for group in MAJORS:
            room = place / group
            room.mkdir()
            _check_install(uv, wheel, group, room)
    return 0


if __name__ == "__main__":
    sys.exit(main())
