"""R18, R19, R113: every attempt carries its own signature, over real sockets.

A retry inside a transport never re-enters an auth flow above it, so it sends the first signature
again and again; a signature depends on time and a nonce, and a service refuses one that it has
seen, or that is old. The peer that most people use is shown to do just that.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import AsyncGenerator
from hashlib import sha256
from typing import Any

import pytest

from surefoot.policy import Retry
from surefoot.testing import FaultyGateway, Throttle, tool_call
from surefoot.transports import RetryingTransport, VendingTransport

pytestmark = pytest.mark.anyio


class Signer:
    """Signs as services ask it to: time, a nonce, and a digest over both and the body."""

    def __init__(self) -> None:
        self._nonces = itertools.count(1)

    def sign(self, request: Any) -> Any:
        """Put the signature on."""
        what = f"ts={time.time_ns()} nonce={next(self._nonces)}"
        mac = sha256(what.encode() + request.content).hexdigest()[:12]
        request.headers["authorization"] = f"SIG {what} mac={mac}"
        return request

    async def __call__(self, request: Any) -> Any:
        """The same, as a signer below vending is called."""
        return self.sign(request)


def _flow(httpx: Any, signer: Signer) -> Any:
    """The same signer as an auth flow of a client."""

    class Flow(httpx.Auth):
        async def async_auth_flow(self, request: Any) -> AsyncGenerator[Any, Any]:
            await request.aread()
            yield signer.sign(request)

    return Flow()


def _signatures(gateway: FaultyGateway) -> list[str]:
    found = [
        value.decode()
        for entry in gateway.requests("search")
        for name, value in entry.headers
        if name.lower() == b"authorization"
    ]
    assert all(one.startswith("SIG ") for one in found)
    return found


async def test_three_attempts_carry_three_signatures(family: Any) -> None:
    """R18, R113. Each made for its attempt, each over the same body."""
    with FaultyGateway() as gateway:
        gateway.script("search", Throttle(0), Throttle(0))
        wire = VendingTransport(family.AsyncHTTPTransport(), signer=Signer())
        retry = Retry(max_attempts=3, base_delay=0.01)
        asked = tool_call("search", {"q": "W-7712"})
        async with family.AsyncClient(transport=RetryingTransport(wire, retry=retry)) as client:
            response = await client.post(
                gateway.url, content=asked.body, headers=dict(asked.headers)
            )
        assert response.status_code == 200
        signatures = _signatures(gateway)
        assert len(signatures) == len(set(signatures)) == 3
        assert [one.split("nonce=")[1].split()[0] for one in signatures] == ["1", "2", "3"]
        assert "authorization" not in response.request.headers
        assert gateway.executions("search") == 1


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_the_peer_sends_one_signature_three_times() -> None:
    """R18. The control: the trap is real, and the test above would see it."""
    httpx = pytest.importorskip("httpx")
    httpx_retries = pytest.importorskip("httpx_retries")
    with FaultyGateway() as gateway:
        gateway.script("search", Throttle(0), Throttle(0))
        policy = httpx_retries.Retry(
            total=2, allowed_methods=["POST"], status_forcelist=[429], backoff_factor=0.01
        )
        asked = tool_call("search", {"q": "W-7712"})
        async with httpx.AsyncClient(
            transport=httpx_retries.RetryTransport(retry=policy), auth=_flow(httpx, Signer())
        ) as client:
            response = await client.post(
                gateway.url, content=asked.body, headers=dict(asked.headers)
            )
        assert response.status_code == 200
        signatures = _signatures(gateway)
        assert (len(signatures), len(set(signatures))) == (3, 1)
