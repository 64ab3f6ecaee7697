"""The law of this file: every cell of one client in one process, each with an end, told as JSON.

Runs in the client's own environment: `python -m clients.drive pydantic-ai [--cells 429,403]`. Each
line that it prints is one cell, with surefoot or without: what the model read, whether a call in
flight beside it and a later one were answered, how often the tool ran by the server's count, and
what the run's evidence holds.
"""

from __future__ import annotations

import argparse
import asyncio
import importlib
import json
import logging
import os
import re
import sys
import time
import warnings
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager, suppress
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final, cast

from clients.cells import CELLS, Cell
from clients.model import Script, in_one_line
from clients.roster import ROSTER
from surefoot import Bearer, Gateway, Replay, Retry, ToolRule, record
from surefoot.testing import FaultyGateway, RecordingSink, Tool

__all__ = ["Setting"]

Converse = Callable[[Script], Awaitable[None]]

BOUND: Final = 15.0
"""Seconds for one cell. The slowest takes five; a client that hangs is told as one that hangs."""
QUIET: Final = 0.4
"""Seconds without news of the spoilt call, after which the call beside it may be answered."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """What a driver is told."""

    url: str
    billing: Gateway | None
    """The Gateway, or `None` for the client without surefoot."""
    patience: float | None
    retries: int | None


async def vend(request: object) -> Bearer:
    """A credential that the gateway does not look at; a 401 asks for it once more."""
    del request
    return Bearer("a-token-for-the-matrix")


def declared(url: str, max_elapsed: float | None) -> Gateway:
    """The one Gateway of every cell."""
    return Gateway(
        url,
        name="billing",
        credentials=vend,
        retry=Retry(max_attempts=2, base_delay=0.05, max_elapsed=max_elapsed),
        replay=Replay(tools={"refund": ToolRule(makes_changes=True)}),
    )


class Neighbour:
    """The body of the tool that is in flight while the fault happens."""

    def __init__(self, cell: Cell) -> None:
        self._cell = cell
        self.gateway: FaultyGateway | None = None

    async def __call__(self, arguments: object) -> str:
        """Answer when the spoilt call has been over for a while; soon, where patience is tried."""
        del arguments
        end = time.monotonic() + 8
        quiet = time.monotonic()
        seen: tuple[int, bool] = (0, False)
        while time.monotonic() < end and time.monotonic() - quiet < self._wait():
            await asyncio.sleep(0.02)
            now = self._news()
            if now != seen or (now[1] and self._cell.patience is None):
                seen, quiet = now, time.monotonic()
        return "held a while"

    def _wait(self) -> float:
        return QUIET if self._cell.patience is None else self._cell.patience / 8

    def _news(self) -> tuple[int, bool]:
        if self.gateway is None:
            return 0, False
        entries = self.gateway.requests(self._cell.tool)
        return len(entries), any(entry.in_flight for entry in entries)


async def play(driver: Any, cell: Cell, *, with_surefoot: bool) -> dict[str, Any]:
    """One cell."""
    body = Neighbour(cell)
    first = Script([("held", {}), (cell.tool, dict(cell.arguments))], cell.insists)
    second = Script([("search", {"q": "it"})])
    told: list[str] = []
    hung = False
    with FaultyGateway([Tool("held", answer=body)], eras=cell.eras) as gateway:
        body.gateway = gateway
        setting = Setting(
            url=gateway.url,
            billing=declared(gateway.url, cell.max_elapsed) if with_surefoot else None,
            patience=cell.patience,
            retries=cell.retries,
        )
        sink = RecordingSink()

        async def scene() -> None:
            opened: AbstractAsyncContextManager[Converse] = driver.session(setting)
            async with opened as converse:
                gateway.script(cell.tool, cell.step, repeat=cell.repeat)
                if cell.gets is not None:
                    gateway.script("GET", cell.gets, repeat=True)
                await _noting(told, "run", converse(first))
                gateway.clear_scripts()
                await _noting(told, "later", converse(second))

        with record(sink, name=cell.key):
            task = asyncio.ensure_future(scene())
            await asyncio.wait([task], timeout=BOUND)
            if hung := not task.done():
                task.cancel()
                await asyncio.wait([task], timeout=3)
            if task.done():
                await _noting(told, "close", task)
        with suppress(TimeoutError):
            await gateway.until(lambda: not any(e.in_flight for e in gateway.requests(cell.tool)))
        records = [e for e in sink.of("tool.request_attempts") if e.get("tool") == cell.tool]
        return {
            "cell": cell.key,
            "surefoot": with_surefoot,
            "read": [_plain(text, gateway) for tool, text in first.read if tool == cell.tool],
            "raised": [_plain(text, gateway) for text in told],
            "neighbour": ("held", "held a while") in first.read,
            "later": ("search", "found it") in second.read,
            "hung": hung,
            "executions": gateway.executions(cell.tool),
            "sends": len(gateway.requests(cell.tool)),
            "records": [_kept(event) for event in records] if with_surefoot else None,
        }


async def _noting(told: list[str], where: str, work: Awaitable[None]) -> None:
    """Note what is raised, and go on."""
    try:
        await work
    except asyncio.CancelledError:
        told.append(f"{where}: CancelledError")
        current = asyncio.current_task()
        if where != "close" and current is not None:
            raise
    except BaseException as error:  # noqa: BLE001 - frameworks raise groups of all kinds
        told.append(f"{where}: {_flat(error)}")


def _flat(error: BaseException) -> str:
    if isinstance(error, BaseExceptionGroup):
        group = cast("BaseExceptionGroup[BaseException]", error)
        inner = ", ".join(_flat(one) for one in group.exceptions)
        return f"{type(group).__name__}[{inner}]"
    return in_one_line(f"{type(error).__name__}: {error}")


def _plain(text: str, gateway: FaultyGateway) -> str:
    """The text without what differs from run to run."""
    text = text.replace(gateway.url, "URL").replace(gateway.origin, "ORIGIN")
    return re.sub(r"\b[0-9a-f]{32}\b", "ID", text)[:600]


def _kept(event: dict[str, Any]) -> list[str]:
    """The outcome of each attempt that the evidence holds."""
    return [str(attempt.get("outcome")) for attempt in event["attempts"]]


def line_of(file: str, piece: str) -> int:
    """The number of the first line of an installed file that holds a piece of text.

    Raises:
        LookupError: it is there no longer; the roster has to be looked at.
    """
    for folder in sys.path:
        path = Path(folder) / file
        if path.is_file():
            for number, line in enumerate(path.read_text("utf-8").splitlines(), start=1):
                if piece in line:
                    return number
    raise LookupError(f"{piece!r} is in no {file} of this environment")


def chosen(names: str | None) -> list[Cell]:
    """The cells that were asked for."""
    wanted = None if names is None else names.split(",")
    return [cell for cell in CELLS if wanted is None or cell.key in wanted]


def main() -> None:
    """Play the cells, and end the process whatever threads a framework left behind."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("client")
    parser.add_argument("--cells")
    parser.add_argument("--only", choices=["with", "without"])
    parser.add_argument("--loud", action="store_true")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    if not options.loud:
        logging.disable(logging.CRITICAL)
    (client,) = (one for one in ROSTER if one.key == options.client)
    out = os.fdopen(os.dup(sys.stdout.fileno()), "w")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # frameworks print; a result stands alone
    started = time.monotonic()
    driver = importlib.import_module(client.module)
    head = {
        "client": client.key,
        "version": version(client.package),
        "mcp": version("mcp"),
        "line": line_of(*client.where),
        "start": round(time.monotonic() - started, 1),
    }
    print(json.dumps(head), file=out, flush=True)
    for cell in chosen(options.cells):
        for with_surefoot in (True, False):
            if options.only not in {None, "with" if with_surefoot else "without"}:
                continue
            began = time.monotonic()
            result = asyncio.run(play(driver, cell, with_surefoot=with_surefoot))
            result["seconds"] = round(time.monotonic() - began, 2)
            print(json.dumps({"client": client.key, **result}), file=out, flush=True)
    out.flush()
    os._exit(0)


if __name__ == "__main__":
    main()
