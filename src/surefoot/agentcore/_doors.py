"""The law of this file: an AgentCore endpoint is a Gateway that knows its service, and no more.

It adds a signer where nothing else authenticates, the adapter's rules with a budget that a session
create fits into, and the strict reading of answers. Doors, series, evidence and words are the
Gateway's own. No session id is ever invented: the service gives one, and the client sends it back.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from surefoot.credentials import unseen
from surefoot.gateway import Gateway, with_rules
from surefoot.transports import Endpoint, chance

from ._address import checked_region, gateway_region, runtime_url
from ._options import one_way
from ._rules import DEFAULT_RETRY, adapter_rules
from ._sigv4 import SigV4Signer

if TYPE_CHECKING:
    from surefoot.credentials import Credential, CredentialProvider
    from surefoot.errors import AuthorizationRequiredError
    from surefoot.evidence import SpanSource
    from surefoot.gateway import Answers, Mode
    from surefoot.policy import Replay, Retry
    from surefoot.sinks import Target
    from surefoot.transports import Clock

__all__ = ["DEFAULT_RETRY", "gateway", "runtime"]

_SESSION: Final = "x-amzn-bedrock-agentcore-runtime-session-id"
_SESSION_LENGTH: Final = range(33, 257)


@unseen
def runtime(
    agent: str,
    *,
    region: str | None = None,
    account_id: str | None = None,
    qualifier: str = "DEFAULT",
    endpoint: str | None = None,
    aws: object = None,
    credentials: CredentialProvider | Credential | Callable[..., Any] | None = None,
    name: str | None = None,
    service: str = "gateway",
    scopes: Sequence[str] = (),
    mode: Mode = "machine",
    headers: Mapping[str, str] | None = None,
    retry: Retry | None = DEFAULT_RETRY,
    replay: Replay | None = None,
    answers: Answers = "strict",
    caller_timeout: float | None = None,
    on_authorization: Callable[[AuthorizationRequiredError], object] | None = None,
    evidence: Target | SpanSource | None = None,
    clock: Clock | None = None,
    draw: Callable[[], float] = chance,
) -> Gateway:
    """Return a Gateway to an MCP server that runs on AgentCore Runtime.

    A runtime takes either signatures or bearer tokens. Without ``credentials`` every attempt is
    signed with AWS keys (SigV4); with them it carries what they vend, and nothing is signed.

    Args:
        agent: The runtime's ARN, or its id beside ``region`` and ``account_id``.
        region: The region; an ARN says it itself.
        account_id: The account, 12 digits; an ARN says it itself.
        qualifier: The runtime's endpoint.
        endpoint: Another origin than the region's public one, such as a VPC endpoint.
        aws: A botocore or boto3 session, botocore credentials, or ``None`` for the default chain;
            not beside ``credentials``.
        credentials: For a runtime that takes bearer tokens: as of ``Gateway``.
        name: As of ``Gateway``, like the options after it.
        service: What the provider of ``credentials`` is asked for.
        scopes: The scopes that it is asked for.
        mode: ``"machine"`` or ``"user"``.
        headers: Static headers; AgentCore's own among them are signed.
        retry: The budget of one call; ``None`` switches all repeats off.
        replay: What may be repeated, per tool.
        answers: ``"strict"`` or ``"checked"``.
        caller_timeout: Seconds after which the caller stops listening.
        on_authorization: Told when a person must consent first.
        evidence: Where evidence goes outside any run.
        clock: Time; for tests.
        draw: Chance; for tests.

    Raises:
        ImportError: it would be signed, and botocore is not installed.
        TypeError: an option has the wrong type.
        ValueError: an option is out of range or contradicts another. No text is echoed.
    """
    url, place = runtime_url(
        agent, region=region, account_id=account_id, qualifier=qualifier, endpoint=endpoint
    )
    _check_session(headers)
    one_way(credentials, aws)
    signer = None if credentials is not None else SigV4Signer(region=place, aws=aws, clock=clock)
    made = Gateway(
        url,
        name=name,
        credentials=credentials,
        signer=signer,
        service=service,
        scopes=scopes,
        mode=mode,
        headers=headers,
        retry=retry,
        replay=replay,
        answers=answers,
        caller_timeout=caller_timeout,
        on_authorization=on_authorization,
        evidence=evidence,
        clock=clock,
        draw=draw,
    )
    return with_rules(made, adapter_rules(retry))


@unseen
def gateway(
    url: str,
    *,
    region: str | None = None,
    aws: object = None,
    credentials: CredentialProvider | Credential | Callable[..., Any] | None = None,
    name: str | None = None,
    service: str = "gateway",
    scopes: Sequence[str] = (),
    mode: Mode = "machine",
    headers: Mapping[str, str] | None = None,
    retry: Retry | None = DEFAULT_RETRY,
    replay: Replay | None = None,
    answers: Answers = "strict",
    caller_timeout: float | None = None,
    on_authorization: Callable[[AuthorizationRequiredError], object] | None = None,
    evidence: Target | SpanSource | None = None,
    clock: Clock | None = None,
    draw: Callable[[], float] = chance,
) -> Gateway:
    """Return a Gateway to an AgentCore Gateway.

    With ``credentials`` every attempt carries what they vend (inbound JWT); without, it is signed
    with AWS keys (inbound IAM).

    Args:
        url: The gateway's MCP endpoint, https.
        region: Its region; the public host names it, a custom domain does not.
        aws: As of ``runtime``, like the options after it.
        credentials: For a gateway that takes bearer tokens: as of ``Gateway``.
        name: The label that notices, logs and evidence use.
        service: What the provider of ``credentials`` is asked for.
        scopes: The scopes that it is asked for.
        mode: ``"machine"`` or ``"user"``.
        headers: Static headers without secrets.
        retry: The budget of one call; ``None`` switches all repeats off.
        replay: What may be repeated, per tool.
        answers: ``"strict"`` or ``"checked"``.
        caller_timeout: Seconds after which the caller stops listening.
        on_authorization: Told when a person must consent first.
        evidence: Where evidence goes outside any run.
        clock: Time; for tests.
        draw: Chance; for tests.

    Raises:
        ImportError: it would be signed, and botocore is not installed.
        TypeError: an option has the wrong type.
        ValueError: an option is out of range or contradicts another. No text is echoed.
    """
    # First: what is wrong with the URL is told before what is missing beside it.
    scheme, host, _ = Endpoint(url).parts
    said = gateway_region(scheme, host)
    wanted = None if region is None else checked_region(region)
    if said is not None and wanted not in {None, said}:
        raise ValueError("region: contradicts the URL; leave it out")
    one_way(credentials, aws)
    made = Gateway(
        url,
        name=name,
        credentials=credentials,
        signer=None if credentials is not None else _signer(wanted or said, aws, clock),
        service=service,
        scopes=scopes,
        mode=mode,
        headers=headers,
        retry=retry,
        replay=replay,
        answers=answers,
        caller_timeout=caller_timeout,
        on_authorization=on_authorization,
        evidence=evidence,
        clock=clock,
        draw=draw,
    )
    return with_rules(made, adapter_rules(retry))


def _signer(region: str | None, aws: object, clock: Clock | None) -> SigV4Signer:
    if region is None:
        raise ValueError("region: is needed to sign for a custom domain; pass region=...")
    return SigV4Signer(region=region, aws=aws, clock=clock)


def _check_session(headers: object) -> None:
    """Refuse a runtime session id that the service would refuse at every call."""
    if not isinstance(headers, Mapping):
        return
    for name, value in headers.items():  # pyright: ignore[reportUnknownVariableType]
        named = str(name).lower() == _SESSION  # pyright: ignore[reportUnknownArgumentType]
        if named and isinstance(value, str) and len(value) not in _SESSION_LENGTH:
            raise ValueError(f"headers: {_SESSION} must have 33 to 256 characters")
