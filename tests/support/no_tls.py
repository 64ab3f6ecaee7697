"""The law of this file: where no test speaks TLS, no client reads certificates.

Reading them takes longer than a whole call over loopback. A folder's ``conftest.py`` imports the
fixture, and thereby says so of its tests.
"""

from __future__ import annotations

from collections.abc import Generator

import pytest

__all__ = ["no_certificates"]


@pytest.fixture(autouse=True, scope="module")
def no_certificates(tmp_path_factory: pytest.TempPathFactory) -> Generator[None]:
    """Point both HTTP libraries at an empty folder."""
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("SSL_CERT_FILE", raising=False)
        patch.setenv("SSL_CERT_DIR", str(tmp_path_factory.mktemp("no-certificates")))
        yield
