"""surefoot: the layer under any Python MCP client.

It waits when told, repeats only what may be repeated, vends fresh credentials and leaks none, keeps
the session alive, and keeps the evidence. One noun carries what is declared about a server,
``Gateway``; it opens through one door per kind of client.

The law of this file: it hands on the dozen names that most people need, and nothing else.
"""

from __future__ import annotations

from surefoot.credentials import ApiKey, Basic, Bearer, Headers, StaticCredentials
from surefoot.errors import (
    CredentialError,
    MayHaveRunError,
    NotSentError,
    RateLimitedError,
    SessionLostError,
    SurefootError,
    ToolError,
)
from surefoot.gateway import Gateway
from surefoot.policy import Replay, Retry, ToolRule
from surefoot.sinks import record
from surefoot.transports import quiet_loggers

__all__ = [
    "ApiKey",
    "Basic",
    "Bearer",
    "CredentialError",
    "Gateway",
    "Headers",
    "MayHaveRunError",
    "NotSentError",
    "RateLimitedError",
    "Replay",
    "Retry",
    "SessionLostError",
    "StaticCredentials",
    "SurefootError",
    "ToolError",
    "ToolRule",
    "quiet_loggers",
    "record",
]
