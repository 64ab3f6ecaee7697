"""What a credential costs an attempt that finds it kept.

    python benchmarks/credentials.py [--rounds 25]

Targets: a kept token under 5 microseconds for each attempt, building the scrub of a fresh one under
20. "Asking" is the await of ``vend`` alone, as the transport makes it; "a bare coroutine" is what
awaiting anything costs.
"""

from __future__ import annotations

import argparse
import base64
from collections.abc import Callable, Coroutine
from hashlib import shake_256
from typing import Any

from figures import figure
from wire_rounds import compare

from surefoot.credentials import (
    Bearer,
    CredentialRequest,
    Issued,
    SharedCredentials,
    StaticCredentials,
)
from surefoot.wire import Scrub


def run(coroutine: Coroutine[Any, Any, object]) -> None:
    """Run a coroutine that never waits, without an event loop to measure along."""
    try:
        coroutine.send(None)
    except StopIteration:
        return
    raise RuntimeError("it waited")


async def bare(request: CredentialRequest) -> None:
    """Nothing."""


def main() -> None:
    """Print one table for asking, and one for building."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=25)
    rounds = parser.parse_args().rounds
    token = base64.urlsafe_b64encode(shake_256(b"the same in every run").digest(525)).decode()

    async def vend(request: CredentialRequest) -> Issued:
        del request
        return Issued(Bearer(token), expires_in=3600)

    plain = CredentialRequest(service="billing", scopes=("read",))
    shared, static = SharedCredentials(vend), StaticCredentials(Bearer(token))
    run(shared.vend(plain))
    asked = compare(
        "asking for a token that is kept",
        {
            "a bare coroutine": lambda: run(bare(plain)),
            "StaticCredentials": lambda: run(static.vend(plain)),
            "SharedCredentials": lambda: run(shared.vend(plain)),
        },
        rounds=rounds,
    )
    kept = Issued(Bearer(token))
    rows: dict[str, Callable[[], object]] = {
        "a kept token, 700 bytes": kept.scrub,
        "a fresh token, 700 bytes": lambda: Scrub([token.encode()]),
        "a fresh token, 40 bytes": lambda: Scrub([token[:40].encode()]),
    }
    laid = compare("laying out the scrub", rows, rounds=rounds)
    kept_token = asked.least["SharedCredentials"] + laid.least["a kept token, 700 bytes"]
    figure("a kept token, asked for and laid out", kept_token, "us", at_most=5)
    fresh = laid.least["a fresh token, 700 bytes"]
    figure("laying out the scrub of a fresh token", fresh, "us", at_most=20)


if __name__ == "__main__":
    main()
