"""R107 to R109, R112, R117, R119, invariant 11. Every source of a credential, every end of a call.

One audit hears all of them at once: logs at DEBUG, spans, warnings, streams, hooks, what the client
reads and what is raised at it, events with content, and whatever is alive afterwards.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import anyio
import pytest

from support.canaries import CANARY, ENDS, SOURCES, World, carried, gateway_with, secret, token_for
from support.leaks import traced
from support.oauth_server import oauth_server
from surefoot import Retry
from surefoot.sinks import record
from surefoot.testing import FaultyGateway, McpRequest, SecretAudit, SecretLeakError, tool_call

pytestmark = [pytest.mark.anyio, pytest.mark.unmeasured]

OTHERS: Final = ("httpcore", "httpcore2")
"""They print what a server sends, before anybody can read it: `quiet_loggers()` is for them."""


LIMIT: Final = 1.5
"""Seconds in which a busy machine sends a dozen calls."""


@pytest.fixture
def world(tmp_path: Path, family: Any) -> Iterator[World]:
    """An issuer and a gateway."""
    with oauth_server(answer=token_for) as issuer, FaultyGateway() as gateway:
        yield World(tmp_path, issuer, gateway, family)


async def send(client: Any, world: World, heard: SecretAudit, place: str) -> None:
    """One call; what the client is handed, or is raised at it, is searched."""
    asked: McpRequest = tool_call("search", {"q": "W-7712"})
    try:
        response = await client.post(world.url, headers=dict(asked.headers), content=asked.body)
    except BaseException as error:
        heard.add(place, error)
        raise
    heard.add(f"{place}: answer", response)
    heard.add(f"{place}: text", response.text)


async def one_call(world: World, name: str, end: str, audit: SecretAudit) -> None:
    """A call with the credential of one source, to its end."""
    deadline = Retry(max_elapsed=LIMIT) if end == "the call's deadline" else Retry(base_delay=0.01)
    gateway = await gateway_with(world, name, retry=deadline)
    wire = world.family.AsyncHTTPTransport(verify=False)
    limit = LIMIT if end == "the client's limit" else 10
    client = gateway.protect(world.family.AsyncClient(transport=wire, timeout=limit))
    async with client, anyio.create_task_group() as tasks:
        tasks.start_soon(send, client, world, audit, name)
        if end.startswith("cancelled"):
            await world.gateway.until(lambda: arrived(world, name))
            await anyio.sleep(0.1)  # into what it is answered
            tasks.cancel_scope.cancel()
    assert tasks.cancel_scope.cancelled_caught is end.startswith("cancelled"), name
    audit.add(f"{name}: gateway", gateway)
    await gateway.aclose()


def arrived(world: World, name: str) -> bool:
    """The gateway has seen the credential of this source."""
    return any(secret(name) in carried(entry) for entry in world.gateway.requests("search"))


def in_turn(end: str, loop: str) -> list[str]:
    """Half of the sources: each meets every end on one of the loops, and each loop at some ends."""
    first = list(ENDS).index(end) + (loop == "trio")
    return list(SOURCES)[first % 2 :: 2]


@pytest.mark.parametrize("end", ENDS)
async def test_no_end_of_a_call_shows_where_its_credential_is_from(
    end: str, world: World, anyio_backend: str
) -> None:
    """R107 to R109. The server has seen each of them, and nobody else has."""
    names = in_turn(end, anyio_backend)
    events = world.folder / "events.jsonl"
    world.gateway.script("search", ENDS[end], repeat=True)
    with traced() as spans, SecretAudit(CANARY, files=[events], without_loggers=OTHERS) as audit:
        with record(events, content="full"):
            async with anyio.create_task_group() as tasks:
                for name in names:
                    tasks.start_soon(one_call, world, name, end, audit)
        await anyio.wait_all_tasks_blocked()
    missing = [name for name in names if not arrived(world, name)]
    assert missing == [], "what was never sent could not leak"
    for channel in ("artefacts", "files", "logs", "objects", "spans"):
        assert audit.looked[channel], channel
    assert len(spans.get_finished_spans()) >= len(names)
    if end in ("answered with an echo", "events with an echo"):
        assert hits_in(events) >= 2 * len(names), "the echoes were not there to be found"


def hits_in(events: Path) -> int:
    """How often a secret was found in an answer and taken out of it."""
    filed = [json.loads(line) for line in events.read_text("utf-8").splitlines()]
    attempts = [one for event in filed for one in event.get("attempts", ())]
    return sum(one["scrubbed_hits"] for one in attempts)


async def bare(world: World, end: str, audit: SecretAudit) -> None:
    """The same call by a client that puts the credential on by itself."""
    limit = LIMIT if end == "the client's limit" else 10
    wire = world.family.AsyncHTTPTransport(verify=False)
    headers = {"authorization": f"Bearer {secret('bare')}"}
    client = world.family.AsyncClient(transport=wire, timeout=limit, headers=headers)
    async with client:
        with anyio.move_on_after(0.4 if limit == 10 else 20):
            with suppress(world.family.HTTPError):
                await send(client, world, audit, "bare")


@pytest.mark.parametrize(("anyio_backend", "family"), [("asyncio", "httpx2")], indirect=True)
@pytest.mark.parametrize("end", ENDS)
async def test_each_end_would_show_it(end: str, world: World) -> None:
    """R109. The control: a client without us shows its credential, however the call ends."""
    world.gateway.script("search", ENDS[end], repeat=True)
    audit = SecretAudit(CANARY, skip=("objects", "tasks", "requests"), without_loggers=OTHERS)
    with pytest.raises(SecretLeakError), audit:
        await bare(world, end, audit)
    assert {leak.channel for leak in audit.leaks} & {"artefacts", "exceptions"}
