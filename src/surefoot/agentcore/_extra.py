"""The law of this file: an AWS library is loaded when it is needed, and one that lacks is named.

They are an extra, because most users of surefoot need none and they are slow to import. Who builds
something that needs one is told at once, and not at the first call.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

__all__ = ["load"]


def load(name: str) -> Any:
    """Return a module of an AWS library.

    Raises:
        ImportError: it is not installed; the message says what to install.
    """
    try:
        return import_module(name)
    except ModuleNotFoundError:
        root = name.partition(".")[0]
    msg = f"surefoot.agentcore needs {root} for this: pip install 'surefoot[agentcore]'"
    raise ImportError(msg, name=root)
