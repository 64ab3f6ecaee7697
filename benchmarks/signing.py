"""What a signature costs an attempt, with keys that lie in memory.

    python benchmarks/signing.py [--rounds 25]

Target: under 250 microseconds for each attempt at the median. A row is the await of the signer as
the transport makes it, over a fresh copy of the request; what the copy costs is a row of its own.
"botocore's own" is ``add_auth`` over the same headers, as most signers call it. Keys that have to
be fetched are fetched in a thread, and a body above 1 MiB is hashed in one: neither is measured.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from figures import figure
from httpx2 import Request
from wire_rounds import compare

from surefoot.agentcore import SigV4Signer, runtime
from surefoot.transports._family import copy_request

ARN = "arn:aws:bedrock-agentcore:us-west-2:123456789012:runtime/orders-Ab12"
KEYS = Credentials("ASIAEXAMPLE", "a-secret-key-of-the-benchmark", "a-session-token/" * 60)
HEADERS = {
    "accept": "application/json, text/event-stream",
    "content-type": "application/json",
    "mcp-method": "tools/call",
    "mcp-name": "search",
    "mcp-protocol-version": "2026-07-28",
    "mcp-session-id": "5f0c7f6e-0d0a-4a53-9a3e-0f1f6d2a7b11",
}
SIGNED = (
    "content-type",
    "host",
    "mcp-method",
    "mcp-name",
    "mcp-protocol-version",
    "mcp-session-id",
)


def signing(signer: SigV4Signer, request: Request) -> Callable[[], object]:
    """Sign a copy of a request, without an event loop to measure along."""

    def run() -> None:
        steps: Any = signer(copy_request(request))
        try:
            steps.send(None)
        except StopIteration:
            return
        raise RuntimeError("it waited")

    return run


def by_botocore(request: Request) -> Callable[[], object]:
    """The same by botocore's own way."""

    def run() -> None:
        copy = copy_request(request)
        twin = AWSRequest(
            copy.method,
            str(copy.url),
            {name: copy.headers[name] for name in SIGNED},
            data=copy.content,
        )
        SigV4Auth(KEYS.get_frozen_credentials(), "bedrock-agentcore", "us-west-2").add_auth(twin)
        for name in ("Authorization", "X-Amz-Date", "X-Amz-Security-Token"):
            copy.headers[name] = twin.headers[name]

    return run


def main() -> None:
    """Print one table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=25)
    rounds = parser.parse_args().rounds
    url = runtime(ARN, aws=KEYS).url
    small, large = (
        Request("POST", url, headers=HEADERS, content=b"x" * size) for size in (400, 64 * 1024)
    )
    signer = SigV4Signer(region="us-west-2", aws=KEYS)
    found = compare(
        "signing one attempt",
        {
            "a body of 400 bytes": signing(signer, small),
            "a body of 64 KiB": signing(signer, large),
            "400 bytes, botocore's own": by_botocore(small),
            "the copy alone": lambda: copy_request(small),
        },
        rounds=rounds,
    )
    mine = found.typical["a body of 400 bytes"]
    print(f"\n  at the median: {mine:.0f} us")
    figure("signing an attempt, 400 bytes, median", mine, "us", at_most=250)
    figure(
        "botocore's own way of signing it", found["400 bytes, botocore's own"], "x",
        against="ours",
    )  # fmt: skip


if __name__ == "__main__":
    main()
