"""This environment is what it says: mcp 1.x on httpx, and nothing of the other family."""

from __future__ import annotations

import importlib.util
import inspect
from importlib.metadata import version

from mcp.client import streamable_http


def test_the_sdk_is_of_the_first_major_and_its_family_is_httpx() -> None:
    assert version("mcp").startswith("1.")
    assert importlib.util.find_spec("httpx") is not None
    assert importlib.util.find_spec("httpx2") is None


def test_the_sdk_takes_a_client_of_ours() -> None:
    """The door `http_client` rests on this parameter."""
    taken = inspect.signature(streamable_http.streamable_http_client).parameters
    assert "http_client" in taken
