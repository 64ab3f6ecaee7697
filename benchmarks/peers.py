"""What a POST that needs nothing costs with surefoot and with other ways to repeat, over httpx.

    python benchmarks/peers.py [--rounds 25] [--requests 20]

All rows take turns within a round, over loopback against the same responder; each is compared with
the bare client of its own round. The second row is the first one again (A/A): what differs there is
noise. `httpx-retries` and `tenacity` only look at the status; `all layers of a Gateway` also vends
a credential, reads the answer strictly, scrubs it and keeps the record, so that it costs more.
"""

from __future__ import annotations

import argparse
import asyncio
import time
from typing import Any

import httpx
from figures import figure
from httpx_retries import Retry as TheirRetry
from httpx_retries import RetryTransport
from tenacity import AsyncRetrying, retry_if_result, stop_after_attempt, wait_exponential_jitter
from transport_overhead import (
    ANSWER,
    BODY,
    HEADERS,
    TOKEN,
    Row,
    against_the_first,
    credentials,
    measure,
    posting,
    responder,
)

from surefoot import Gateway
from surefoot.transports import RetryingTransport


def with_tenacity(client: Any, url: str, headers: Any) -> Row:
    """Post as `posting` does, each time inside a retry loop of tenacity's."""

    async def row(count: int) -> float:
        started = time.process_time()
        for _ in range(count):
            again = AsyncRetrying(
                stop=stop_after_attempt(3),
                wait=wait_exponential_jitter(multiplier=0.2),
                retry=retry_if_result(lambda answer: answer.status_code == 429),
            )
            answer = await again(client.post, url, content=BODY, headers=headers)
            assert answer.content == ANSWER
        return (time.process_time() - started) / count

    return row


async def over_loopback(rounds: int, count: int) -> None:
    """Print the table."""
    own = {**HEADERS, "authorization": f"Bearer {TOKEN}"}
    theirs = TheirRetry(total=3, status_forcelist=[429], allowed_methods=["POST"])
    with responder() as url:
        gateway = Gateway(url, credentials=credentials())
        clients: dict[str, Any] = {
            "bare httpx": httpx.AsyncClient(),
            "bare httpx (A/A)": httpx.AsyncClient(),
            "httpx-retries": httpx.AsyncClient(transport=RetryTransport(retry=theirs)),
            "tenacity": httpx.AsyncClient(),
            "surefoot, retrying alone": httpx.AsyncClient(
                transport=RetryingTransport(httpx.AsyncHTTPTransport())
            ),
            "surefoot, all layers": gateway.protect(httpx.AsyncClient()),
        }
        rows: dict[str, Row] = {}
        for name, client in clients.items():
            headers = HEADERS if name == "surefoot, all layers" else own
            make = with_tenacity if name == "tenacity" else posting
            rows[name] = make(client, url, headers)
        seconds = await measure(rows, rounds, count)
        for client in clients.values():
            await client.aclose()
    print(f"over loopback: {rounds} rounds of {count} POSTs, medians, CPU of the client")
    for name, ratio in against_the_first({name: seconds[name] for name in rows}).items():
        figure(f"a POST over httpx: {name}", ratio, "x", against="bare httpx")


def main() -> None:
    """Read the command line, and print the table."""
    parser = argparse.ArgumentParser(description="What other ways to repeat cost.")
    parser.add_argument("--rounds", type=int, default=25)
    parser.add_argument("--requests", type=int, default=20)
    options = parser.parse_args()
    asyncio.run(over_loopback(options.rounds, options.requests))


if __name__ == "__main__":
    main()
