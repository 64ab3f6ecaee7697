"""R71, R72: where an AgentCore endpoint is, built from checked parts in the right partition."""

from __future__ import annotations

import re
from typing import Any, Final

import pytest

from support.agentcore import ARN, KEYS, library
from surefoot import Bearer, Gateway, agentcore
from surefoot.agentcore._address import DNS_SUFFIXES, gateway_region
from surefoot.transports import Endpoint

BEARER: Final = Bearer("a-token")
BY_BEARER: Final = {"credentials": BEARER, "aws": None}
ENCODED: Final = "arn%3Aaws%3Abedrock-agentcore%3Aus-west-2%3A123456789012%3Aruntime%2Forders-Ab12"
ACCOUNT: Final = "123456789012"


def _arn(partition: str, region: str) -> str:
    return f"arn:{partition}:bedrock-agentcore:{region}:{ACCOUNT}:runtime/orders-Ab12"


def test_an_arn_stands_in_the_path_as_one_encoded_segment() -> None:
    """The service's own form: colons and slashes percent-encoded, the endpoint as a qualifier."""
    made = agentcore.runtime(ARN, aws=KEYS)
    assert isinstance(made, Gateway)
    assert made.url == (
        f"https://bedrock-agentcore.us-west-2.amazonaws.com/runtimes/{ENCODED}/invocations"
        "?qualifier=DEFAULT"
    )


def test_an_id_brings_its_account() -> None:
    """An id says neither where nor whose it is."""
    made = agentcore.runtime(
        "orders-Ab12", region="eu-central-1", account_id=ACCOUNT, qualifier="prod_2", aws=KEYS
    )
    assert made.url == (
        "https://bedrock-agentcore.eu-central-1.amazonaws.com/runtimes/orders-Ab12/invocations"
        f"?qualifier=prod_2&accountId={ACCOUNT}"
    )


@pytest.mark.parametrize(
    ("partition", "region", "host"),
    [
        ("aws", "us-west-2", "bedrock-agentcore.us-west-2.amazonaws.com"),
        ("aws-cn", "cn-north-1", "bedrock-agentcore.cn-north-1.amazonaws.com.cn"),
        ("aws-us-gov", "us-gov-west-1", "bedrock-agentcore.us-gov-west-1.amazonaws.com"),
        ("aws-iso", "us-iso-east-1", "bedrock-agentcore.us-iso-east-1.c2s.ic.gov"),
        ("aws-eusc", "eusc-de-east-1", "bedrock-agentcore.eusc-de-east-1.amazonaws.eu"),
    ],
)
def test_each_partition_has_hosts_of_its_own(partition: str, region: str, host: str) -> None:
    """China and GovCloud included; by ARN and by id alike."""
    by_arn = agentcore.runtime(_arn(partition, region), aws=KEYS)
    by_id = agentcore.runtime("orders-Ab12", region=region, account_id=ACCOUNT, aws=KEYS)
    for made in (by_arn, by_id):
        assert made.url.startswith(f"https://{host}/runtimes/")


def test_the_partitions_are_those_that_botocore_knows() -> None:
    """The control: every region of every partition is put where botocore puts it."""
    known: Any = library("botocore.loaders").create_loader().load_data("partitions")
    regions = 0
    for partition in known["partitions"]:
        suffix = partition["outputs"]["dnsSuffix"]
        for region in partition["regions"]:
            if not re.fullmatch(partition["regionRegex"], region):
                continue  # aws-global and its kind
            regions += 1
            found = next(one for one in DNS_SUFFIXES if region.startswith(one[1]))
            assert (found[0], found[2]) == (partition["id"], suffix), region
    assert regions > 30


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"agent": 3}, "agent: must be a str"),
        ({"agent": "arn:aws:s3:::canary-bucket"}, "agent: is no ARN of a runtime"),
        ({"agent": ARN + "/canary"}, "agent: is no ARN of a runtime"),
        ({"agent": ARN.replace("123456789012", "12")}, "agent: is no ARN of a runtime"),
        ({"agent": "canary/../x", "region": "us-west-2"}, "agent: must be a runtime's ARN"),
        ({"agent": "orders"}, "region: is needed beside a runtime's id"),
        ({"agent": "orders", "region": "us-west-2"}, "account_id: is needed beside"),
        ({"agent": "orders", "region": "us-west-2", "account_id": 1}, "account_id: must be a str"),
        ({"agent": "orders", "region": "us-west-2", "account_id": "1"}, "account_id: is needed"),
        ({"agent": ARN, "region": "us-east-1"}, "region: contradicts the ARN"),
        ({"agent": ARN, "region": 3}, "region: must be a str such as us-west-2"),
        ({"agent": ARN, "region": "canary.example.com"}, "region: must be one such as us-west-2"),
        ({"agent": ARN, "account_id": "999999999999"}, "account_id: contradicts the ARN"),
        ({"agent": _arn("aws", "cn-north-1")}, "agent: its region lies in another partition"),
        ({"agent": ARN, "qualifier": "canary&x=1"}, "qualifier: must be the name of"),
        ({"agent": ARN, "qualifier": None}, "qualifier: must be the name of"),
        ({"agent": ARN, "endpoint": "https://a.example/canary"}, "endpoint: must be an origin"),
        ({"agent": ARN, "endpoint": "https://a.example?q=canary"}, "endpoint: must be an origin"),
        ({"agent": ARN, "endpoint": "ftp://canary.example"}, "endpoint: must be an origin"),
        ({"agent": ARN, "endpoint": "https://canary@a.example"}, "endpoint: must be an origin"),
        ({"agent": ARN, "endpoint": "https://canary.example?"}, "endpoint: must be an origin"),
        ({"agent": ARN, "endpoint": "https://canary.example\n"}, "endpoint: must be an origin"),
        ({"agent": ARN, "endpoint": "https://canary .example"}, "endpoint: must be an origin"),
        ({"agent": ARN, "endpoint": "http://127.canary.example"}, "endpoint: must be https"),
        ({"agent": ARN, "endpoint": 3}, "endpoint: must be a str"),
        ({"agent": ARN, "endpoint": "http://canary.example"}, "endpoint: must be https"),
        ({"agent": ARN, "headers": {"X-Amzn-Bedrock-AgentCore-Runtime-Session-Id": "canary"}},
         "must have 33 to 256 characters"),
        ({"agent": ARN, "headers": {"Mcp-Session-Id": "canary"}}, "mcp-session-id belongs to"),
        ({"agent": ARN, "aws": "canary-key"}, "aws: must be a botocore or boto3 session"),
        ({"agent": ARN, "credentials": "canary", "aws": None}, "credentials: must be a Cred"),
    ],
)  # fmt: skip
def test_what_is_no_runtime_is_refused_by_name(options: dict[str, Any], says: str) -> None:
    """R71, R72. When it is built, with the way out, and without an echo."""
    agent = options.pop("agent")
    options.setdefault("aws", KEYS)
    with pytest.raises((TypeError, ValueError), match=re.escape(says)) as caught:
        agentcore.runtime(agent, **options)
    assert "canary" not in str(caught.value)


@pytest.mark.parametrize(
    ("url", "region"),
    [
        ("https://gw-1.gateway.bedrock-agentcore.us-west-2.amazonaws.com/mcp", "us-west-2"),
        ("https://GW-1.gateway.bedrock-agentcore.us-west-2.AmazonAWS.com/mcp", "us-west-2"),
        ("https://gw.gateway.bedrock-agentcore.cn-north-1.amazonaws.com.cn/mcp", "cn-north-1"),
        ("https://gw.gateway.bedrock-agentcore.cn-north-1.amazonaws.com/mcp", None),
        ("https://gw.gateway.bedrock-agentcore.us-west-2.amazonaws.com.example/mcp", None),
        ("https://gateway.bedrock-agentcore.us-west-2.amazonaws.com/mcp", None),
        ("https://tools.example.com/mcp", None),
        ("http://127.0.0.1:8080/mcp", None),
    ],
)
def test_a_public_host_names_its_region(url: str, region: str | None) -> None:
    """A host that only looks like one names none."""
    scheme, host, _ = Endpoint(url).parts
    assert gateway_region(scheme, host) == region


@pytest.mark.parametrize(
    ("url", "options", "says"),
    [
        ("https://tools.example.com/mcp", {}, "region: is needed to sign for a custom domain"),
        ("http://tools.example.com/mcp", {"region": "us-west-2"}, "url: must be https"),
        ("http://127.canary.example/mcp", {"region": "us-west-2"}, "url: must be https"),
        ("http://tools.example.com/mcp", BY_BEARER, "url: must be https"),
        ("https://gw.gateway.bedrock-agentcore.us-west-2.amazonaws.com/mcp",
         {"region": "us-east-1"}, "region: contradicts the URL"),
        ("ftp://tools.example.com/mcp", {}, "url: must be http or https"),
        ("https://[canary/mcp", {}, "url: is not a URL"),
        (3, {}, "url: must be a str"),
    ],
)  # fmt: skip
def test_what_is_no_gateway_is_refused_by_name(
    url: Any, options: dict[str, Any], says: str
) -> None:
    """R71, R72. Plain http is for loopback alone: whoever reads it has the session token."""
    with pytest.raises((TypeError, ValueError), match=re.escape(says)) as caught:
        agentcore.gateway(url, **{"aws": KEYS, **options})
    assert "canary" not in str(caught.value)


def test_with_a_bearer_no_region_and_no_keys_are_needed() -> None:
    """A runtime or a gateway takes either; what vends is not signed."""
    made = agentcore.gateway("https://tools.example.com/mcp", credentials=BEARER)
    assert made.url == "https://tools.example.com/mcp"
    assert agentcore.runtime(ARN, credentials=BEARER).url.startswith("https://bedrock-agentcore.")


@pytest.mark.parametrize(
    "origin", ["http://127.0.0.1:8080", "http://localhost:8080/", "http://[::1]:8"]
)
def test_a_stand_in_on_loopback_may_be_plain(origin: str) -> None:
    """Nobody else is on the way there."""
    made = agentcore.runtime(ARN, endpoint=origin, aws=KEYS)
    assert made.url.startswith(f"{origin.rstrip('/')}/runtimes/arn%3A")
