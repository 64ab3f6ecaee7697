"""The law of this file: every name that a span carries stands in this one table.

The conventions' names are theirs, as of 1.43 (HTTP: stable; MCP and gen_ai: development), written
out because the package of constants would be a dependency of its own. Ours begin with ``surefoot.``
and keep outcome, effect, permission and assumption apart, as the events do.
"""

from __future__ import annotations

from typing import Final

__all__ = [
    "ASSUMES",
    "CREDENTIAL",
    "EFFECT",
    "ENDPOINT",
    "ERROR_TYPE",
    "HTTP_METHOD",
    "HTTP_RESEND_COUNT",
    "HTTP_STATUS",
    "MAY_HAVE_RUN",
    "MCP_METHOD",
    "OUTCOME",
    "PERMITTED_BY",
    "REASON",
    "REFUSAL",
    "RETRY_AFTER",
    "RETRY_AFTER_MALFORMED",
    "SCOPE",
    "SCRUBBED",
    "SERVER_ADDRESS",
    "SERVER_PORT",
    "TOOL_NAME",
    "UNSEARCHED",
    "WAIT",
]

SCOPE: Final = "surefoot"
"""The instrumentation scope."""

# HTTP client spans: one for each time on the wire.
HTTP_METHOD: Final = "http.request.method"
HTTP_RESEND_COUNT: Final = "http.request.resend_count"
HTTP_STATUS: Final = "http.response.status_code"
SERVER_ADDRESS: Final = "server.address"
SERVER_PORT: Final = "server.port"
ERROR_TYPE: Final = "error.type"

# MCP and its tools.
MCP_METHOD: Final = "mcp.method.name"
TOOL_NAME: Final = "gen_ai.tool.name"

# Ours.
ENDPOINT: Final = "surefoot.endpoint"
REASON: Final = "surefoot.attempt.reason"
OUTCOME: Final = "surefoot.attempt.outcome"
EFFECT: Final = "surefoot.attempt.effect"
REFUSAL: Final = "surefoot.refusal.kind"
RETRY_AFTER: Final = "surefoot.refusal.retry_after_seconds"
RETRY_AFTER_MALFORMED: Final = "surefoot.refusal.retry_after_malformed"
WAIT: Final = "surefoot.wait_seconds"
PERMITTED_BY: Final = "surefoot.permission.by"
ASSUMES: Final = "surefoot.permission.assumes"
CREDENTIAL: Final = "surefoot.credential.kind"
SCRUBBED: Final = "surefoot.scrubbed_hits"
UNSEARCHED: Final = "surefoot.unsearched_secrets"
MAY_HAVE_RUN: Final = "surefoot.may_have_run"
