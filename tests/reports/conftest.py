"""The law of this file: no test here speaks TLS, so no client here reads certificates.

Reading them takes longer than a whole call over loopback.
"""

from __future__ import annotations

from collections.abc import Generator

import pytest


@pytest.fixture(autouse=True, scope="module")
def _no_certificates(tmp_path_factory: pytest.TempPathFactory) -> Generator[None]:
    """Point both HTTP libraries at an empty folder."""
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("SSL_CERT_FILE", raising=False)
        patch.setenv("SSL_CERT_DIR", str(tmp_path_factory.mktemp("no-certificates")))
        yield
