"""The law of this file: one line says which interpreter and packages an environment really has."""

from __future__ import annotations

import platform
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Final

SHOWN: Final = ("mcp", "httpx", "httpx2", "anyio", "trio", "jiter", "pydantic-core", "pytest")


def present(names: tuple[str, ...]) -> list[str]:
    """Each package that is installed, with its version."""
    found: list[str] = []
    for name in names:
        try:
            found.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            continue
    return found


if __name__ == "__main__":
    print(
        f"{Path(sys.prefix).name}: Python {platform.python_version()}, {', '.join(present(SHOWN))}"
    )
