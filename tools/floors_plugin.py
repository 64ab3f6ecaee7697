"""The law of this file: an older anyio runs the same tests: an async one needs no mark."""

from __future__ import annotations

import inspect

import pytest

__all__ = ["pytest_addoption", "pytest_pycollect_makeitem"]


def pytest_addoption(parser: pytest.Parser) -> None:
    """Know the option by which a newer anyio is told so."""
    parser.addini("anyio_mode", "as in newer versions of anyio", default="strict")


@pytest.hookimpl(tryfirst=True)
def pytest_pycollect_makeitem(name: str, obj: object) -> None:
    """Mark an async test."""
    bare = inspect.unwrap(obj) if callable(obj) else obj
    if name.startswith("test_") and inspect.iscoroutinefunction(bare):
        pytest.mark.anyio(obj)
        pytest.mark.usefixtures("anyio_backend")(obj)
