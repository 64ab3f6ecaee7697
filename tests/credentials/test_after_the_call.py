"""R107, R119, invariant 11. When a call is over, however it ended, nothing holds what it carried.

Searched are not texts that somebody printed, but all objects that the garbage collector knows, in a
program of its own: client, Gateway, answers and errors are alive there, and its provider keeps
nothing. A program can be asked for its heap; and what is not held cannot be printed by mistake.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import pytest

from support.canaries import ENDS, secret
from surefoot.testing import FaultyGateway, Tool

SRC: Final = Path(__file__).resolve().parents[2] / "src"

PROGRAM: Final = r"""
import gc, json, sys, types
from importlib import import_module
from pathlib import Path

import anyio

from surefoot import Bearer, Gateway, Retry
from surefoot.testing import tool_call

url, kept, *ends = sys.argv[1:]
family = import_module(ends.pop(0))


async def vend(_):
    await anyio.sleep(0)
    return Bearer(Path(kept).read_text())


def holders():
    # Whatever refers to a text with the secret's middle in it, but for what runs here and now.
    part = Path(kept).read_text()[8:20]
    found = []
    for one in gc.get_objects():
        if isinstance(one, types.FrameType) and one.f_code.co_filename == "<string>":
            continue
        if isinstance(one, types.ModuleType):
            continue  # (its names are a dict of their own; one of 3.12.1 has referents without end)
        for text in gc.get_referents(one):
            held = text if type(text) is str else ""
            held = bytes(text).decode("latin-1") if type(text) in (bytes, bytearray) else held
            if part in held:
                found.append(f"{type(one).__module__}.{type(one).__qualname__}")
    return found


async def call(end, alive):
    retry = Retry(max_elapsed=0.4) if "deadline" in end else Retry(base_delay=0.01)
    gateway = Gateway(url, credentials=vend, retry=retry)
    limit = 0.4 if "limit" in end else 10
    client = gateway.protect(family.AsyncClient(timeout=limit, verify=False))
    asked = tool_call(end, {"q": "W-7712"})
    answer = error = None
    with anyio.move_on_after(0.4 if "cancelled" in end else 20):
        try:
            answer = await client.post(url, content=asked.body, headers=dict(asked.headers))
        except Exception as raised:
            error = raised
    alive.append((gateway, client, answer, error))


async def main():
    alive = []
    async with anyio.create_task_group() as tasks:
        for end in ends:
            tasks.start_soon(call, end, alive)
    await anyio.sleep(0.05)
    gc.collect()
    told = {"after": holders(), "answers": sum(one[2] is not None for one in alive)}
    alive.append(Bearer(Path(kept).read_text()))
    told["control"] = holders()
    for _, client, *_ in alive[:-1]:
        await client.aclose()
    return told


print(json.dumps([anyio.run(main, backend=loop) for loop in ("asyncio", "trio")]))
"""


@pytest.mark.parametrize("library", ["httpx2", "httpx"])
def test_nothing_holds_what_a_call_carried_when_it_is_over(library: str, tmp_path: Path) -> None:
    """R107. Not the layers, the HTTP library or a cache; a credential that is kept: control."""
    kept = tmp_path / "kept"
    kept.write_text(secret("of the program"))
    with FaultyGateway(tools=[Tool(end) for end in ENDS]) as gateway:
        for end, step in ENDS.items():
            gateway.script(end, step, repeat=True)
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM, gateway.url, str(kept), library, *ENDS],
            env={"PYTHONPATH": str(SRC)},
            capture_output=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == 0, done.stderr.decode()
        received = [entry for end in ENDS for entry in gateway.requests(end)]
    assert all(secret("of the program") in str(entry.headers) for entry in received)
    told: list[dict[str, Any]] = json.loads(done.stdout)
    for loop in told:
        assert loop["after"] == []
        assert loop["answers"] == sum(not end.startswith("cancelled") for end in ENDS)
        assert loop["control"], "the search finds what is held"
