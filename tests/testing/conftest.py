"""The law of this file: every test of the doubles that has a loop runs on asyncio and on trio."""

from __future__ import annotations

import pytest


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    """The loop that a test runs on."""
    return str(request.param)
