"""B12. Whatever comes, a call holds less than three times what an answer may take.

Each in a process of its own, over a real connection: the gateway sends from here, the peak is that
of the process that reads.
"""

from __future__ import annotations

import subprocess
import sys
from typing import Final

import pytest

from support.memory import PEAK, needs_peak
from surefoot.testing import Answer, EndlessStream, FaultyGateway, GzipBomb, Raw, Step

pytestmark = [
    pytest.mark.unmeasured,
    pytest.mark.slow,
    needs_peak,
]

CAP: Final = 16 * 1024 * 1024
READ: Final = f"""{PEAK}
import asyncio, sys
import httpx2, mcp
from surefoot import Gateway
from mcp.client.streamable_http import streamable_http_client

async def main(url, how):
    opened = Gateway(url).transport() if how == "ours" else streamable_http_client(url)
    async with mcp.Client(opened) as client:
        await client.call_tool("search", {{"q": "warm"}})
        before = peak()
        result = await client.call_tool("search", {{"q": "large"}})
        facts = (result.meta or {{}}).get("surefoot/outcome", {{}})
        print(facts.get("kind"), peak() - before)

asyncio.run(main(*sys.argv[1:]))
"""


def sent(body: bytes) -> bytes:
    """A whole answer with this body, as it goes over the wire."""
    head = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n"
    return head % len(body) + body


def containers(rpc_id: bytes) -> bytes:
    """Eight megabytes of empty lists in a sound answer."""
    lists = b"[" + b"[]," * 2_666_666 + b"[]]"
    return sent(b'{"jsonrpc":"2.0","id":%b,"result":{"content":%b}}' % (rpc_id, lists))


LARGE: Final[dict[str, tuple[Step, str]]] = {
    "a bomb of 400 MiB": (GzipBomb(400 << 20), "too-large"),
    "a body without an end": (EndlessStream("json"), "too-large"),
    "an event without an end": (EndlessStream("event"), "too-large"),
    "a line without an end": (EndlessStream("line"), "too-large"),
    "empty containers": (Raw(containers, close=False), "too-large"),
}


def peak_after(step: Step, how: str = "ours") -> tuple[str, int]:
    """What a call that met the step was told, and how much its process grew by it."""
    with FaultyGateway() as gateway:
        gateway.script("search", Answer(), step)
        done = subprocess.run(
            [sys.executable, "-c", READ, gateway.url, how],
            capture_output=True,
            text=True,
            timeout=50,
            check=True,
        )
    kind, grown = done.stdout.split()
    return kind, int(grown)


@pytest.mark.parametrize(("step", "told"), LARGE.values(), ids=LARGE)
def test_a_call_holds_less_than_three_times_the_cap(step: Step, told: str) -> None:
    """B12. And it is told what was wrong with its answer."""
    kind, grown = peak_after(step)
    assert kind == told
    assert grown < 3 * CAP


def test_the_bare_client_holds_what_it_is_sent() -> None:
    """B12. The control: the same measure sees a bomb of 64 MiB go off."""
    kind, grown = peak_after(GzipBomb(64 << 20), "bare")
    assert kind == "None"
    assert grown > 3 * CAP
