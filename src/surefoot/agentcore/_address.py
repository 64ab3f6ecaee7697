"""The law of this file: where a request goes is built from checked parts, in the right partition.

A runtime's ARN stands in the path as one segment, percent-encoded with its colons and slashes. The
signature covers these very bytes, so nothing behind this file decodes or encodes them again. Plain
http is for loopback alone: whoever reads it on the way has the session token (SigV4 signs, and
hides nothing).
"""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import quote

from surefoot.evidence import origin
from surefoot.wire import is_private, origin_of

__all__ = [
    "DNS_SUFFIXES",
    "SERVICE",
    "checked_endpoint",
    "checked_region",
    "gateway_region",
    "runtime_url",
]

SERVICE: Final = "bedrock-agentcore"
"""The signing name, and the first label of every public host."""

DNS_SUFFIXES: Final = (
    ("aws-cn", "cn-", "amazonaws.com.cn"),
    ("aws-us-gov", "us-gov-", "amazonaws.com"),
    ("aws-iso", "us-iso-", "c2s.ic.gov"),
    ("aws-iso-b", "us-isob-", "sc2s.sgov.gov"),
    ("aws-iso-e", "eu-isoe-", "cloud.adc-e.uk"),
    ("aws-iso-f", "us-isof-", "csp.hci.ic.gov"),
    ("aws-eusc", "eusc-", "amazonaws.eu"),
    ("aws", "", "amazonaws.com"),
)
"""Partition, how its regions begin, and what its hosts end with; the first that fits counts."""

_REGION: Final = re.compile(r"[a-z]{2,4}(?:-[a-z]+)+-[0-9]{1,2}")
_ARN: Final = re.compile(
    r"arn:(?P<partition>aws[a-z-]*):bedrock-agentcore:(?P<region>[a-z0-9-]+):"
    r"(?P<account>[0-9]{12}):runtime/[A-Za-z][A-Za-z0-9_-]{0,127}"
)
_AGENT_ID: Final = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,127}")
_ACCOUNT: Final = re.compile(r"[0-9]{12}")
_NO_HOST: Final = frozenset(" /\\?#")
_PLAIN: Final = "{}: must be https; plain http is for loopback alone"
_QUALIFIER: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")


def runtime_url(
    agent: object,
    *,
    region: object = None,
    account_id: object = None,
    qualifier: object = None,
    endpoint: object = None,
) -> tuple[str, str]:
    """Return the URL of a runtime's MCP endpoint, and its region.

    Raises:
        TypeError: a part has the wrong type.
        ValueError: a part cannot be one, or two contradict each other. No part is echoed.
    """
    if not isinstance(agent, str):
        raise TypeError("agent: must be a str: a runtime's ARN, or its id")
    if account_id is not None and not isinstance(account_id, str):
        raise TypeError("account_id: must be a str of 12 digits, or None")
    wanted = None if region is None else checked_region(region)
    if agent.startswith("arn:"):
        place, account = _place_of(agent, wanted, account_id), ""
    else:
        if _AGENT_ID.fullmatch(agent) is None:
            raise ValueError("agent: must be a runtime's ARN, or its id such as orders-Ab12")
        if wanted is None:
            raise ValueError("region: is needed beside a runtime's id; an ARN says it itself")
        if account_id is None or _ACCOUNT.fullmatch(account_id) is None:
            raise ValueError("account_id: is needed beside a runtime's id: 12 digits, as a str")
        place, account = wanted, f"&accountId={account_id}"
    if not isinstance(qualifier, str) or _QUALIFIER.fullmatch(qualifier) is None:
        kind = ValueError if isinstance(qualifier, str) else TypeError
        raise kind("qualifier: must be the name of a runtime's endpoint, such as DEFAULT")
    base = f"https://{SERVICE}.{place}.{_partition(place)[1]}"
    if endpoint is not None:
        base = checked_endpoint(endpoint)
    path = f"/runtimes/{quote(agent, safe='')}/invocations"
    return f"{base}{path}?qualifier={quote(qualifier, safe='')}{account}", place


def _place_of(arn: str, region: str | None, account_id: str | None) -> str:
    """The region of an ARN that nothing beside it contradicts."""
    found = _ARN.fullmatch(arn)
    if found is None:
        raise ValueError(
            "agent: is no ARN of a runtime; give one such as "
            "arn:aws:bedrock-agentcore:us-west-2:123456789012:runtime/orders-Ab12"
        )
    place = checked_region(found["region"])
    if region not in {None, place}:
        raise ValueError("region: contradicts the ARN; leave it out")
    if account_id not in {None, found["account"]}:
        raise ValueError("account_id: contradicts the ARN; leave it out")
    if _partition(place)[0] != found["partition"]:
        raise ValueError("agent: its region lies in another partition than the ARN says")
    return place


def gateway_region(scheme: str, host: str) -> str | None:
    """Return the region that a gateway's public host names; ``None`` for a custom domain.

    Args:
        scheme: Of its URL, in lower case.
        host: Of its URL, in lower case.

    Raises:
        ValueError: it is plain http beyond loopback.
    """
    if not is_private(scheme, host):
        raise ValueError(_PLAIN.format("url"))
    labels = host.split(".")
    if labels[1:3] != ["gateway", SERVICE] or len(labels) < 5:
        return None
    region, suffix = labels[3], ".".join(labels[4:])
    return region if _REGION.fullmatch(region) and _partition(region)[1] == suffix else None


def checked_region(region: object) -> str:
    """Hold a region to its form.

    Raises:
        TypeError: it is no ``str``.
        ValueError: it has not the form of one.
    """
    if not isinstance(region, str):
        raise TypeError("region: must be a str such as us-west-2")
    if _REGION.fullmatch(region) is None:
        raise ValueError("region: must be one such as us-west-2")
    return region


def _partition(region: str) -> tuple[str, str]:
    """The partition of a region, and the suffix of its hosts."""
    return next(
        (name, suffix) for name, begins, suffix in DNS_SUFFIXES if region.startswith(begins)
    )


def checked_endpoint(endpoint: object) -> str:
    """Hold another origin than the public one to https: a VPC endpoint, or one on loopback.

    Raises:
        TypeError: it is no ``str``.
        ValueError: it is no origin, or plain http beyond loopback.
    """
    if not isinstance(endpoint, str):
        raise TypeError("endpoint: must be a str such as https://vpce-1.example.com, or None")
    where = origin_of(endpoint)
    host = endpoint.partition("://")[2].rstrip("/")
    base = "" if where is None else origin(*where)
    if where is None or not base or set(host) & _NO_HOST or not host.isprintable():
        raise ValueError("endpoint: must be an origin such as https://vpce-1.example.com")
    if not is_private(where[0], where[1]):
        raise ValueError(_PLAIN.format("endpoint"))
    return base
