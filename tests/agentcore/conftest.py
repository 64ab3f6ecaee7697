"""The law of this file: no test here asks a metadata service, or finds keys around."""

from __future__ import annotations

from collections.abc import Generator
from importlib.util import find_spec

import pytest

from surefoot.testing import AgentCoreStandIn

__all__ = ["stand_in"]

collect_ignore_glob = [] if find_spec("botocore") and find_spec("boto3") else ["test_*.py"]
"""The extra: without it nothing here can run."""


@pytest.fixture(autouse=True, scope="module")
def _no_world(tmp_path_factory: pytest.TempPathFactory) -> Generator[None]:
    """No profile, no keys in the environment, no instance to ask."""
    folder = tmp_path_factory.mktemp("nothing")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AWS_CONFIG_FILE", str(folder / "config"))
        patch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(folder / "credentials"))
        patch.setenv("AWS_EC2_METADATA_DISABLED", "true")
        yield


@pytest.fixture
def stand_in() -> Generator[AgentCoreStandIn]:
    """A stand-in that nobody has asked yet.

    What Identity is asked in one second has one signature, which a slow machine brings late.
    """
    with AgentCoreStandIn(reuse_after=None) as opened:
        yield opened
