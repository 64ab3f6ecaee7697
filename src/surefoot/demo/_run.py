"""The law of this file: both runs meet the same gateway, made anew, and differ in how they connect.

What only one of them has stands here side by side: the token that is fixed when the program starts,
and the declaration of a Gateway with its vault.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, contextmanager
from dataclasses import dataclass, replace
from random import Random  # noqa: TID251 - this is where chance enters; the seed repeats it
from typing import Any, Final, Literal

from surefoot.credentials import Bearer, CredentialRequest, Issued
from surefoot.gateway import Gateway
from surefoot.policy import RetryNotice
from surefoot.testing import ExpiringTokens, FaultyGateway, RecordingSink, TokenMint

from ._agent import Agent, Task, grouped
from ._books import Books
from ._busy import Busy
from ._calls import Call, twelve_calls
from ._counts import Counts, Sends, counted, sends_of
from ._declaration import REPLAY, RETRY
from ._doors import PATIENCE, Session, plain, protected
from ._happenings import Happening, Kind, Tell

__all__ = ["CLIENTS", "Client", "Run", "run_once", "without_proxies"]

Client = Literal["plain", "surefoot"]

CLIENTS: Final[tuple[Client, ...]] = ("plain", "surefoot")

_HOUR: Final = 3600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One run, and what is known of it."""

    client: Client
    seconds: float
    tasks: tuple[Task, ...]
    sends: Mapping[int, Sends]
    counts: Counts
    happenings: tuple[Happening, ...]
    evidence: tuple[Mapping[str, Any], ...]
    """The events that surefoot filed; none in the plain run."""


class _Log:
    """Keeps what happens, and hands it on at once."""

    def __init__(self, show: Callable[[Happening], None]) -> None:
        self.all: list[Happening] = []
        self._show = show
        self._began = time.monotonic()

    @property
    def seconds(self) -> float:
        return time.monotonic() - self._began

    def tell(self, kind: Kind, call: int | None, text: str) -> None:
        happening = Happening(kind=kind, at=self.seconds, call=call, text=text)
        self.all.append(happening)
        self._show(happening)


class _Hours:
    """The gateway's clock, which hours can be put on."""

    def __init__(self) -> None:
        self._ahead = 0.0

    def __call__(self) -> float:
        return time.monotonic() + self._ahead

    def pass_by(self, hours: int) -> None:
        self._ahead += hours * _HOUR


class _Vault:
    """Where tokens come from: the same one, until it is told that it was rejected."""

    def __init__(self, mint: TokenMint, tell: Tell) -> None:
        self._mint = mint
        self._tell = tell
        self._issued: Issued | None = None

    async def vend(self, request: CredentialRequest) -> Issued:
        """Hand out a token for one attempt."""
        if self._issued is None or request.force:
            if request.force:
                self._tell("vended", None, "the token was rejected; a fresh one is vended")
            self._issued = Issued(Bearer(self._mint.mint()))
        return self._issued


async def run_once(client: Client, *, seed: int, show: Callable[[Happening], None]) -> Run:
    """Let the agent make the twelve calls, through one of the two clients.

    Args:
        client: which one.
        seed: for the chance that spreads waits.
        show: told what happens, when it happens.

    Raises:
        OSError: nothing can listen on loopback.
    """
    log = _Log(show)
    hours = _Hours()
    books = Books()
    sink = RecordingSink()
    calls = twelve_calls()
    groups = grouped(calls)
    tasks = tuple(task for group in groups for task in group)
    with FaultyGateway(books.tools(), tokens=ExpiringTokens(_HOUR), clock=hours) as gateway:

        async def prepare(call: Call) -> None:
            if call.hours_before:
                hours.pass_by(call.hours_before)
                log.tell("hour", None, "an hour passes")
            if call.steps:
                gateway.script(call.tool, *call.steps, repeat=call.lasting)

        agent = Agent(
            _door(client, gateway, tasks=tasks, sink=sink, tell=log.tell, seed=seed),
            prepare=prepare,
            tell=log.tell,
        )
        await agent.work(groups)
        seconds = log.seconds
    return Run(
        client=client,
        seconds=seconds,
        tasks=tasks,
        sends=sends_of(tasks, gateway.journal, books),
        counts=counted(
            tasks,
            gateway.journal,
            books,
            _stated(calls),
            closed_soundly=agent.closed_soundly,
        ),
        happenings=tuple(log.all),
        evidence=tuple(sink.events),
    )


def _door(
    client: Client,
    gateway: FaultyGateway,
    *,
    tasks: Sequence[Task],
    sink: RecordingSink,
    tell: Tell,
    seed: int,
) -> Callable[[], AbstractAsyncContextManager[Session]]:
    """How a session is opened; the only thing in which the runs differ."""
    if client == "plain":
        token = gateway.tokens.mint()
        return lambda: plain(gateway.url, token)

    def on_retry(notice: RetryNotice) -> None:
        met = (task for task in tasks if task.under_way and _meets(task.call, notice))
        task = next(met, None)
        stated = notice.retry_after_seconds
        asked = "on its own" if stated is None else f"asked for {stated:.2f} s"
        text = f"waits {notice.wait_seconds:.2f} s ({asked})"
        tell("waits", None if task is None else task.call.number, text)

    billing = Gateway(
        gateway.url,
        name="billing",
        credentials=_Vault(gateway.tokens, tell),
        caller_timeout=PATIENCE,
        retry=replace(RETRY, on_retry=on_retry),
        replay=REPLAY,
        evidence=sink,
        draw=Random(seed).random,  # noqa: S311 - it spreads waits, and is no secret
    )
    return lambda: protected(billing)


def _meets(call: Call, notice: RetryNotice) -> bool:
    return call.repeated_on == notice.kind


def _stated(calls: Sequence[Call]) -> dict[int, float]:
    busy = [step for call in calls for step in call.steps if isinstance(step, Busy)]
    return {place: seconds for step in busy for place, seconds in step.stated.items()}


@contextmanager
def without_proxies() -> Generator[None]:
    """Set the environment's proxies aside: everything here stays on this machine."""
    kept = {name: value for name, value in os.environ.items() if name.lower().endswith("_proxy")}
    for name in kept:
        del os.environ[name]
    try:
        yield
    finally:
        os.environ.update(kept)
