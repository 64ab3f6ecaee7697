"""The law of this room: what AWS Bedrock AgentCore does differently is known here, nowhere else.

``runtime()`` and ``gateway()`` return a ``Gateway`` that signs, that recognises the service's own
refusals and that hands on nothing of a failure's own words. Importing this room needs no AWS
library; using what needs one says what to install: ``pip install 'surefoot[agentcore]'``.
"""

from __future__ import annotations

from ._doors import DEFAULT_RETRY, gateway, runtime
from ._identity import AgentCoreIdentity
from ._rules import SessionBusyRule, StatedThrottleRule
from ._sigv4 import SigV4Signer

__all__ = [
    "DEFAULT_RETRY",
    "AgentCoreIdentity",
    "SessionBusyRule",
    "SigV4Signer",
    "StatedThrottleRule",
    "gateway",
    "runtime",
]
