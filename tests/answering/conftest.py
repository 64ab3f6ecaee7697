"""The law of this file: what holds for one HTTP family holds for the other."""

from __future__ import annotations

from typing import Any

import pytest


@pytest.fixture(params=["httpx2", "httpx"])
def family(request: pytest.FixtureRequest) -> Any:
    """Each HTTP family that is installed."""
    return pytest.importorskip(request.param)
