"""The law of this room: credentials are asked for per attempt, and shown to nobody (R105, R107).

The port is ``CredentialProvider``; what it hands out is one of four kinds behind a blind wrapper.
"""

from __future__ import annotations

from surefoot.credentials._adopt import AdoptedCredentials, adopt
from surefoot.credentials._blind import Blind, Secret, sealed
from surefoot.credentials._client_credentials import Assertion, ClientCredentials
from surefoot.credentials._command import CommandCredentials
from surefoot.credentials._failures import TransientCredentialError
from surefoot.credentials._file import FileCredentials, FilePermissions
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
    Generation,
    Issued,
)
from surefoot.credentials._reading import CredentialOf
from surefoot.credentials._retrying import RetryingCredentials
from surefoot.credentials._shared import SharedCredentials
from surefoot.credentials._simple import EnvironmentCredentials, MissingCredentials
from surefoot.credentials._static import StaticCredentials, as_issued, as_provider
from surefoot.credentials._unseen import unseen

__all__ = [
    "AdoptedCredentials",
    "ApiKey",
    "Assertion",
    "AuthorizationRequired",
    "Basic",
    "Bearer",
    "Blind",
    "ClientCredentials",
    "CommandCredentials",
    "Credential",
    "CredentialKind",
    "CredentialOf",
    "CredentialProvider",
    "CredentialRequest",
    "EnvironmentCredentials",
    "FileCredentials",
    "FilePermissions",
    "Generation",
    "HeaderLines",
    "Headers",
    "Issued",
    "MissingCredentials",
    "RetryingCredentials",
    "Secret",
    "SharedCredentials",
    "StaticCredentials",
    "TransientCredentialError",
    "adopt",
    "as_issued",
    "as_provider",
    "sealed",
    "unseen",
]
