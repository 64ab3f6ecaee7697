"""The law of this file: what is judged is what a user gets, not the tree it came from.

The source distribution is built once, and the wheel from it. The wheel is installed without extras
into two fresh environments, one for each major of mcp, with the versions of the lock. There every
room is imported with warnings as errors, the command answers, what an extra would have brought is
shown to be absent, a type checker reads the annotations, and some of the tests run.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tarfile
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


TYPED: Final = """
from surefoot import Gateway, RateLimitedError, Retry
from surefoot.testing import FaultyGateway

gateway = Gateway("https://gateway.example.com/mcp", retry=Retry(max_wait=5))
name: str | None = gateway.name
server: FaultyGateway = FaultyGateway()
error: RateLimitedError = RateLimitedError(attempts=1)
waited: float = error.waited
"""
MISTYPED: Final = 'wrong: int = Gateway("https://gateway.example.com/mcp").name'

SHIPPED: Final = (
    *("CHANGELOG.md", "CONTRIBUTING.md", "LICENSE", "Makefile", "README.md", "SECURITY.md"),
    *("pyproject.toml", "uv.lock", "docs", "src", "tests", "tools", "benchmarks"),
)
"""What the source distribution holds: enough to check it, and to build it again."""

TESTED: Final = ("tests/errors", "tests/session", "tests/cli/test_check.py", "tests/mcp1")
TOOLS: Final = ("hypothesis", "pytest", "pytest-timeout", "trio")


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


def _check_source(archive: Path) -> None:
    """The source distribution holds every tracked file of what it ships, and nothing else."""
    with tarfile.open(archive) as packed:
        names = {name.partition("/")[2] for name in packed.getnames()}
    listed = _run("git", "ls-files", *SHIPPED).splitlines()
    wanted = {name for name in listed if (ROOT / name).is_file()}
    missing = sorted(wanted - names)
    if missing:
        sys.exit(f"the source distribution lacks: {missing[:10]}")
    known = {*SHIPPED, "PKG-INFO", ".gitignore"}
    strange = sorted(name for name in names if name and name.split("/")[0] not in known)
    if strange:
        sys.exit(f"the source distribution also holds: {strange[:10]}")
    print(f"{archive.name}: {len(wanted)} files")


def _check_types(python: Path, place: Path) -> None:
    """A type checker takes the annotations of what was installed, and finds a mistake by them."""
    for text, good in ((TYPED, True), (TYPED + MISTYPED, False)):
        user = place / "user.py"
        user.write_text(f"# pyright: strict\n{text}", "utf-8")
        done = subprocess.run(
            [sys.executable, "-m", "pyright", "--pythonpath", str(python), str(user)],
            cwd=place,
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
        )
        if (done.returncode == 0) != good:
            sys.exit(f"py.typed does not do its work:\n{done.stdout}")
    print("its annotations are read")


def _check_tests(uv: str, python: Path, constraints: Path, place: Path) -> None:
    """Some of the tests run over what was installed."""
    _run(uv, "pip", "install", "--quiet", "--python", python, "--constraint", constraints, *TOOLS)
    shutil.copytree(ROOT / "tests", place / "tests", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(ROOT / "tools", place / "tools", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", place)
    said = _run(python, "-m", "pytest", "-q", "-p", "no:cacheprovider", *TESTED, cwd=place)
    print(f"its tests: {said.strip().splitlines()[-1]}")


def _check_install(uv: str, wheel: Path, group: str, place: Path) -> None:
    """Install the wheel beside one major of mcp, import every room and ask the command for help."""
    requirement, absent = MAJORS[group]
    constraints = place / "constraints.txt"
    environment = place / "environment"
    only = ("--no-default-groups", "--group", group, "--no-emit-project", "--no-hashes")
    exported = _run(uv, "export", "--frozen", "--quiet", *only, "--group", "test")
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
    if group == "mcp2":
        _check_types(python, place)
    _check_tests(uv, python, constraints, place)


def main() -> int:
    """Build both, and judge them."""
    parser = argparse.ArgumentParser(
        description="Build the wheel and try it in fresh environments."
    )
    parser.add_argument("--uv", default="uv", help="the uv to build and install with")
    parser.add_argument("--out", help="a folder in which what was judged good is left")
    options = parser.parse_args()
    uv: str = options.uv
    if "/" in uv:
        uv = str((ROOT / uv).resolve())
    with tempfile.TemporaryDirectory(prefix="surefoot-wheel-") as scratch:
        place = Path(scratch)
        _run(uv, "build", "--quiet", "--python", sys.executable, "--out-dir", place)
        (archive,) = place.glob("*.tar.gz")
        _check_source(archive)
        (wheel,) = place.glob("*.whl")
        _check_contents(wheel)
        for group in MAJORS:
            room = place / group
            room.mkdir()
            _check_install(uv, wheel, group, room)
        if options.out:
            kept = ROOT / options.out
            kept.mkdir(exist_ok=True)
            for built in (archive, wheel):
                shutil.copy(built, kept)
    return 0


if __name__ == "__main__":
    sys.exit(main())
