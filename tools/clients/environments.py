"""The law of this file: each client has an environment of its own, made once from a pinned list.

The lists are in `requirements/`: `NAME.in` says what is wanted, `NAME.txt` what that came to, and
the environment is made anew whenever that changes. surefoot itself is not installed there: it runs
from `src`, and the lists hold what it needs.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path
from typing import Final

from clients.roster import ROSTER, Client

__all__ = ["compiled", "environment", "requirements"]

ROOT: Final = Path(__file__).resolve().parents[2]
LISTS: Final = Path(__file__).parent / "requirements"
STORE: Final = ROOT / ".venv-clients"
SECONDS: Final = 600


def requirements(client: Client) -> Path:
    """The pinned list of one client."""
    return LISTS / f"{client.key}.txt"


def environment(client: Client, *, uv: str) -> Path:
    """The interpreter of a client's environment, which is made where it is missing or out of date.

    Raises:
        RuntimeError: it could not be made; the message is what uv said.
    """
    folder = STORE / client.key
    python = folder / "bin" / "python"
    stamp = folder / ".ready"
    wanted = hashlib.sha256(requirements(client).read_bytes() + sys.version.encode()).hexdigest()
    if python.exists() and stamp.exists() and stamp.read_text("utf-8") == wanted:
        return python
    _run(uv, "venv", "--quiet", "--clear", "--python", sys.executable, str(folder))
    _run(
        uv, "pip", "sync", "--quiet", "--python", str(python), str(requirements(client))
    )  # fmt: skip
    stamp.write_text(wanted, "utf-8")
    return python


def compiled(*, uv: str) -> None:
    """Pin every list anew, at the newest versions that fit together."""
    for client in ROSTER:
        lists = (f"{LISTS / client.key}.in", str(ROOT / "pyproject.toml"))
        _run(
            uv, "pip", "compile", "--quiet", "--upgrade", "--no-header", "--no-annotate",
            "--no-emit-index-url", "--python-version", "3.11", "--output-file",
            str(requirements(client)), *lists,
        )  # fmt: skip


def _run(*command: str) -> None:
    done = subprocess.run(
        command,
        env={**os.environ, "UV_PYTHON_DOWNLOADS": "never"},
        capture_output=True,
        text=True,
        check=False,
        timeout=SECONDS,
    )
    if done.returncode:
        raise RuntimeError(f"{' '.join(command[1:3])} failed:\n{done.stderr.strip()}")
