"""The law of this room: credentials are asked for per attempt, and shown to nobody (R105, R107).

The port is ``CredentialProvider``; what it hands out is one of four kinds behind a blind wrapper.
"""

from __future__ import annotations

from surefoot.credentials._blind import Blind, Secret
from surefoot.credentials._kinds import (
    ApiKey,
    Basic,
    Bearer,
    Credential,
    CredentialKind,
    HeaderLines,
    Headers,
)
from surefoot.credentials._port import (
    AuthorizationRequired,
    CredentialProvider,
    CredentialRequest,
    Issued,
)
from surefoot.credentials._static import StaticCredentials, as_issued, as_provider

__all__ = [
    "ApiKey",
    "AuthorizationRequired",
    "Basic",
    "Bearer",
    "Blind",
    "Credential",
    "CredentialKind",
    "CredentialProvider",
    "CredentialRequest",
    "HeaderLines",
    "Headers",
    "Issued",
    "Secret",
    "StaticCredentials",
    "as_issued",
    "as_provider",
]
