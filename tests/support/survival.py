"""The law of this file: after a fault four things are looked at, always the same four.

What the caller of the spoilt call reads; that a neighbour, in flight all the while, gets its
answer; that a later call on the same session works; and how often the tool ran and the request went
out, which the gateway counts. Beside them: one record for the call, and nothing left behind.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, cast

import anyio
import pytest

from support.sessions import Gate, Kind, Session, Told, nothing_left, opened
from surefoot import Gateway, Retry
from surefoot.testing import FaultyGateway, RecordingSink, Step, Tool
from surefoot.wire import Outcome, sentence

__all__ = ["Fault", "Reads", "survives"]

BUDGET: Final = Retry(max_attempts=2, base_delay=0.01)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reads:
    """What the caller reads after a fault."""

    words: Outcome | None = None
    """The outcome that surefoot puts into words."""
    status: int | None = None
    may_have_run: bool = False
    as_error: bool = False
    """The words stand in a JSON-RPC error and not in a result."""
    rule: str | None = None
    """The rule that an unreadable answer broke."""
    code: int | None = None
    """The code of a JSON-RPC error that is not ours."""
    text: str | None = None
    """A part of the text that is not ours: the server's or the SDK's."""
    is_error: bool = False
    """The tool's own failure."""

    def hold(self, read: Told, *, sends: int) -> None:
        """Compare."""
        if self.words is None:
            assert (read.kind, read.code, read.is_error) == (None, self.code, self.is_error), read
            assert self.text is not None
            assert self.text in read.text
            return
        assert read.kind == self.words, read
        assert (read.code is None) == (not self.as_error)
        assert read.is_error == (not self.as_error)
        told = sentence(
            self.words, status=self.status, retry_after=read.facts.get("retry_after_seconds"),
            attempts=sends,
        )  # fmt: skip
        assert read.text == told
        assert read.facts["attempts"] == sends
        assert read.facts.get("status") == self.status
        assert read.facts["may_have_run"] is self.may_have_run
        assert read.facts["effect"] == "unknown"
        if self.rule is not None:
            assert read.facts["rule"] == self.rule


_HANGS: Final = 30.0
"""Seconds after which a session that waits for an answer would hang."""
_PATIENCE: Final = (1, 4, 16)

SOUND: Final = Reads(text="found it")
"""What a later call reads."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One fault of the gateway, and what must come of it."""

    name: str
    step: Step
    reads: Reads | Mapping[Kind, Reads]
    ran: int | Mapping[Kind, int] = 0
    """How often the tool ran."""
    sends: int = 1
    """How often the call went out."""
    repeat: bool = False
    """The fault meets every attempt, and not the first alone."""
    patience: float | None = None
    """Seconds after which the caller of this call stops listening."""
    key: str = "charge"
    """What meets the fault: the spoilt call, or `connect`, each connection from then on."""
    reached: int | None = None
    """How often the call reached the gateway, where that is not as often as it went out."""
    neighbours: int = 1
    """Calls in flight beside it. With three of them no connection is left idle."""
    acquainted: bool = False
    """The session has listed the tools before, which the SDK else does after a first answer."""
    later: Mapping[Kind, Reads] = field(default_factory=dict["Kind", "Reads"])
    """What a later call reads where the session is not what it was; else it is answered."""

    def __str__(self) -> str:
        return self.name.replace(" ", "-")

    def reads_in(self, kind: Kind) -> Reads:
        """What a session of this kind reads."""
        return self.reads if isinstance(self.reads, Reads) else self.reads[kind]

    def ran_in(self, kind: Kind) -> int:
        """How often the tool ran for a session of this kind."""
        return self.ran if isinstance(self.ran, int) else self.ran[kind]


async def survives(fault: Fault, kind: Kind, *, sse: bool) -> None:
    """Bring the fault about beside a call in flight, and look at everything that must hold.

    A caller who leaves does so after the call met its fault; on a busy machine that takes longer.
    """
    for more in _PATIENCE:
        patience = None if fault.patience is None else fault.patience * more
        if await _lived_through(fault, kind, sse=sse, patience=patience):
            return
    pytest.fail("the caller left before the call met its fault")


async def _lived_through(fault: Fault, kind: Kind, *, sse: bool, patience: float | None) -> bool:
    """Whether the fault came about before the caller left, and then all was as it must be."""
    gate, sink = Gate(), RecordingSink()
    neighbour: list[Told] = []
    spoilt: list[Told] = []
    later: list[Told] = []
    met = False
    with FaultyGateway([Tool("held", answer=gate)], sse=sse) as gateway:
        ours = Gateway(gateway.url, name="faulty", retry=BUDGET, evidence=sink)
        async with (
            nothing_left(gateway),
            opened(ours.transport(), kind, patience=_HANGS, bound=_HANGS) as session,
        ):
            if fault.acquainted:
                await session.sdk.list_tools()
            async with anyio.create_task_group() as group:
                for count in range(1, fault.neighbours + 1):
                    group.start_soon(_into, neighbour, session, "held")
                    await gateway.until(lambda count=count: gateway.executions("held") == count)
                gateway.script(fault.key, fault.step, repeat=fault.repeat)
                spoilt.append(await session.call("charge", {"amount": 1}, patience=patience))
                met = bool(gateway.executions("charge")) or patience is None
                gate.open()
            gateway.clear_scripts()
            later.append(await session.call("search", {"q": "it"}))
        await gateway.until(lambda: not any(entry.in_flight for entry in gateway.journal))
        if not met:
            return False
        sends = len(gateway.requests("charge"))
        fault.reads_in(kind).hold(spoilt[0], sends=fault.sends)
        fault.later.get(kind, SOUND).hold(later[0], sends=1)
        assert [one.text for one in neighbour] == ["held a while"] * fault.neighbours
        assert sends == (fault.sends if fault.reached is None else fault.reached)
        assert gateway.executions("charge") == fault.ran_in(kind)
        assert gateway.executions("held") == fault.neighbours
        assert gateway.executions("search") == (0 if kind in fault.later else 1)
        _recorded_once(sink, fault)
        return True


async def _into(told: list[Told], session: Session, tool: str) -> None:
    told.append(await session.call(tool))


def _recorded_once(sink: RecordingSink, fault: Fault) -> None:
    records = [event for event in sink.of("tool.request_attempts") if event["tool"] == "charge"]
    assert len(records) == 1, records
    attempts = cast("list[dict[str, Any]]", records[0]["attempts"])
    assert len(attempts) == fault.sends
    assert {event["endpoint"] for event in sink.of("tool.request_attempts")} == {"faulty"}
