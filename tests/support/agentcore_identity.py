"""The law of this file: a provider of AgentCore Identity asks the stand-in, which has a journal."""

from __future__ import annotations

import json
from typing import Any, Final

from support.agentcore import library, session_of
from surefoot.agentcore import AgentCoreIdentity
from surefoot.credentials import CredentialRequest, Secret
from surefoot.testing import AgentCoreStandIn

__all__ = [
    "ANA",
    "BY_JWT",
    "JWT",
    "MACHINE",
    "RETURN",
    "TOKENS",
    "WORKLOAD",
    "Asked",
    "identity",
    "stubbed",
]

JWT: Final = "canaryheader.canarybody.canarysignature"
RETURN: Final = "https://app.example.com/back"
TOKENS: Final = "/identities/oauth2/token"
WORKLOAD: Final = "/identities/GetWorkloadAccessToken"

MACHINE: Final = CredentialRequest(service="tools", scopes=("read", "write"))
ANA: Final = CredentialRequest(service="tools", scopes=("read",), mode="user", principal="ana")
BY_JWT: Final = CredentialRequest(
    service="tools", scopes=("read",), mode="user", principal="a-digest", user_token=Secret(JWT)
)


def identity(stand_in: AgentCoreStandIn, **options: Any) -> AgentCoreIdentity:
    """A provider that asks the stand-in."""
    given: dict[str, Any] = {
        "region": "us-west-2", "workload_name": "agent", "aws": session_of(stand_in),
        "endpoint": stand_in.origin, "return_url": RETURN,
    }  # fmt: skip
    return AgentCoreIdentity(**given | options)


def stubbed(one: AgentCoreIdentity) -> tuple[Any, Any]:
    """The provider's own client, and botocore's Stubber around it."""
    client = one._calls._connected()
    return client, library("botocore.stub").Stubber(client)


class Asked:
    """What the stand-in was asked in a block."""

    def __init__(self, stand_in: AgentCoreStandIn) -> None:
        self._stand_in = stand_in
        self._before = len(stand_in.journal)

    @property
    def bodies(self) -> list[dict[str, Any]]:
        """What was sent."""
        return [json.loads(entry.body) for entry in self._stand_in.journal[self._before :]]

    @property
    def paths(self) -> list[str]:
        """Where it was sent."""
        return [entry.path for entry in self._stand_in.journal[self._before :]]
