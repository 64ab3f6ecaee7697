"""Doubles to test an agent with: a gateway that fails as told, a clock, a transport and a sink.

`FaultyGateway` is an MCP endpoint on loopback; the steps (`Throttle`, `Reset`, `BadJson`, ...) say
how it answers. `AgentCoreStandIn` is AWS Bedrock AgentCore in the same manner. `FakeClock`,
`ScriptedTransport` and `RecordingSink` stand in for time, the network and the evidence.
"""

from surefoot.testing._agentcore import AGENTCORE_ROWS, AgentCoreStandIn
from surefoot.testing._agentcore_gateway_rows import GatewayThrottle
from surefoot.testing._agentcore_hop import RewritingHop
from surefoot.testing._agentcore_rows import AgentCoreRow
from surefoot.testing._agentcore_sigv4 import SigV4Keys
from surefoot.testing._agentcore_verifier import (
    SignatureRefusedError,
    SigV4Verifier,
    VerifiedSignature,
)
from surefoot.testing._answers import Answer, IsError, RpcError, SessionLost, Slow
from surefoot.testing._audit import (
    AuditChannel,
    Leak,
    SecretAudit,
    SecretLeakError,
    assert_no_secret,
)
from surefoot.testing._bodies import BadJson, GzipBomb, TruncatedGzip
from surefoot.testing._breaks import CutJson, Raw, Reset, Trickle, WrongLength
from surefoot.testing._clock import FakeClock
from surefoot.testing._exchange import Exchange
from surefoot.testing._gateway import Connections, FaultyGateway
from surefoot.testing._journal import Entry
from surefoot.testing._limits import ExpiringTokens, TokenBucket, TokenMint
from surefoot.testing._messages import McpRequest, mcp_request, tool_call
from surefoot.testing._refusals import Redirect, Status, Throttle
from surefoot.testing._request import Received, Reply
from surefoot.testing._scripted import Fails, Replies, ScriptedTransport, SentRequest
from surefoot.testing._sink import RecordingSink
from surefoot.testing._steps import Step
from surefoot.testing._streams import EndlessComments, EndlessStream, HeldStream, Sse, SseCut
from surefoot.testing._tools import Tool

__all__ = [
    "AGENTCORE_ROWS",
    "AgentCoreRow",
    "AgentCoreStandIn",
    "Answer",
    "AuditChannel",
    "BadJson",
    "Connections",
    "CutJson",
    "EndlessComments",
    "EndlessStream",
    "Entry",
    "Exchange",
    "ExpiringTokens",
    "Fails",
    "FakeClock",
    "FaultyGateway",
    "GatewayThrottle",
    "GzipBomb",
    "HeldStream",
    "IsError",
    "Leak",
    "McpRequest",
    "Raw",
    "Received",
    "RecordingSink",
    "Redirect",
    "Replies",
    "Reply",
    "Reset",
    "RewritingHop",
    "RpcError",
    "ScriptedTransport",
    "SecretAudit",
    "SecretLeakError",
    "SentRequest",
    "SessionLost",
    "SigV4Keys",
    "SigV4Verifier",
    "SignatureRefusedError",
    "Slow",
    "Sse",
    "SseCut",
    "Status",
    "Step",
    "Throttle",
    "TokenBucket",
    "TokenMint",
    "Tool",
    "Trickle",
    "TruncatedGzip",
    "VerifiedSignature",
    "WrongLength",
    "assert_no_secret",
    "mcp_request",
    "tool_call",
]
