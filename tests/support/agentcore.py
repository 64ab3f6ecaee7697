"""The law of this file: a test of AgentCore says what it is about; the rest is built in one way."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import Any, Final

from surefoot import Gateway, agentcore
from surefoot.testing import AgentCoreStandIn

__all__ = [
    "ARN",
    "KEYS",
    "TOKEN_KEYS",
    "aws_of",
    "gateway_of",
    "keys",
    "library",
    "runtime_of",
    "session_of",
]


def library(name: str) -> Any:
    """A module of botocore or boto3, which have no types."""
    return import_module(name)


def keys(access_key: str, secret_key: str, token: str | None = None) -> Any:
    """Keys in memory, as botocore holds them."""
    return library("botocore.credentials").Credentials(access_key, secret_key, token)


ARN: Final = "arn:aws:bedrock-agentcore:us-west-2:123456789012:runtime/orders-Ab12"

KEYS: Final = keys("AKIDEXAMPLE", "a-secret-key-of-the-test")
"""Keys that live long, without a session token."""

TOKEN_KEYS: Final = keys("ASIAEXAMPLE", "another-secret-key", "canary-session-token+/==")
"""Keys with a session token."""


def aws_of(stand_in: AgentCoreStandIn) -> Any:
    """The stand-in's own keys, as botocore holds them."""
    held = stand_in.keys
    return keys(held.access_key_id, held.secret_access_key, held.session_token)


@cache
def _models() -> Any:
    """Reads the service's model from its file once, and not for every session."""
    return library("botocore.loaders").create_loader()


def session_of(stand_in: AgentCoreStandIn) -> Any:
    """A boto3 session with the stand-in's own keys."""
    bare = library("botocore.session").Session()
    bare.register_component("data_loader", _models())
    held = stand_in.keys
    return library("boto3").Session(
        held.access_key_id, held.secret_access_key, held.session_token, botocore_session=bare
    )


def runtime_of(stand_in: AgentCoreStandIn, *, by_id: bool = False, **options: Any) -> Gateway:
    """The stand-in's runtime, by ARN or by id."""
    if by_id:
        options |= {"region": "us-west-2", "account_id": stand_in.account_id}
    if "credentials" not in options:
        options.setdefault("aws", aws_of(stand_in))
    agent = stand_in.runtime_id if by_id else stand_in.runtime_arn
    return agentcore.runtime(agent, endpoint=stand_in.origin, **options)


def gateway_of(stand_in: AgentCoreStandIn, **options: Any) -> Gateway:
    """The stand-in's gateway."""
    if "credentials" not in options:
        options.setdefault("aws", aws_of(stand_in))
    return agentcore.gateway(stand_in.gateway_url, region="us-west-2", **options)
