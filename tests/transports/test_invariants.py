"""Invariants 1 to 10, 15 and 17 over the real shell. R20, R21, R26, R31, R37, R43, R45, R55, D5.

Any script of answers and failures, any limits, any declaration, any number of layers, either family
and either loop; what was sent, waited, filed and delivered is looked at afterwards.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import cycle
from typing import Any, Final

import anyio
import httpx
import hypothesis
import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.sending import DONE, ledger_into, message, post
from surefoot.credentials import Bearer, as_provider
from surefoot.policy import (
    AnswerView,
    RepeatOn,
    Replay,
    Retry,
    RetryNotice,
    Rule,
    ThrottleRule,
    ToolRule,
    Verdict,
)
from surefoot.testing import Fails, FakeClock, RecordingSink, Replies, ScriptedTransport
from surefoot.transports import RetryingTransport, VendingTransport, retrying

pytestmark = pytest.mark.unmeasured

httpx2: Final[Any] = pytest.importorskip("httpx2")

_EDGE: Final = 1e-9


class Busy:
    """An adapter's recogniser."""

    reads = 0

    def recognise(self, answer: AnswerView) -> Verdict | None:
        """Recognise a 409."""
        return Verdict(kind="session-busy") if answer.status == 409 else None


PLAYS: Final[dict[str, Any]] = {
    "done": DONE,
    "refused": Replies(429, headers={"x-which": "refused"}, body=b"refused"),
    "refused 0": Replies(429, headers={"retry-after": "0"}, body=b"refused 0"),
    "refused 2": Replies(429, headers={"retry-after": "2"}, body=b"refused 2"),
    "refused 30": Replies(429, headers={"retry-after": "30"}, body=b"refused 30"),
    "refused soon": Replies(429, headers={"retry-after": "soon"}, body=b"refused soon"),
    "busy": Replies(409, body=b"busy"),
    "failed": Replies(503, body=b"failed"),
    "rejected": Replies(401, body=b"rejected"),
    "moved": Replies(307, headers={"location": "/b"}, body=b"moved"),
    "moved away": Replies(307, headers={"location": "http://b.test/"}, body=b"moved away"),
    "lost": Fails("ReadError"),
    "unsent": Fails("ConnectError"),
}

_CAUSES: Final[tuple[frozenset[RepeatOn], ...]] = (
    frozenset(),
    frozenset[RepeatOn]({"throttle"}),
    frozenset[RepeatOn]({"network"}),
    frozenset[RepeatOn]({"throttle", "network"}),
)


@dataclass(frozen=True, slots=True)
class World:
    """All that is drawn."""

    plays: tuple[str, ...]
    retry: Retry
    replay: Replay
    key: bool
    proves: bool
    patience: float | None
    layers: int
    draws: tuple[float, ...]
    httpx: Any
    backend: str


@st.composite
def worlds(draw: st.DrawFn) -> World:
    """Any world; nothing that is drawn is endless."""
    changes = draw(st.booleans())
    causes = draw(st.sampled_from(_CAUSES))
    keyed = changes and (bool(causes) or draw(st.booleans()))
    rule = ToolRule(
        makes_changes=changes,
        repeat_on=causes,
        idempotency_key="arguments.key" if keyed else None,
    )
    retry = Retry(
        max_attempts=draw(st.sampled_from([1, 2, 3, 5, None])),
        max_wait=draw(st.sampled_from([0.0, 0.3, 2.0, 10.0, None])),
        max_elapsed=draw(st.sampled_from([None, None, 1.0, 2.0, 9.0])),
        base_delay=draw(st.sampled_from([0.0, 0.2, 1.5])),
        jitter=draw(st.sampled_from(["equal", "full", "none"])),
        spread=draw(st.sampled_from([0.0, 0.5])),
        reconnect=draw(st.booleans()),
    )
    return World(
        plays=tuple(draw(st.lists(st.sampled_from(sorted(PLAYS)), max_size=7))),
        retry=retry,
        replay=Replay(
            policy=draw(st.sampled_from(["assume-refused", "app-authorized"])),
            tools={"search": rule} if draw(st.booleans()) else {},
        ),
        key=draw(st.booleans()),
        proves=draw(st.booleans()),
        patience=draw(st.sampled_from([None, None, 2.0])),
        layers=draw(st.integers(0, 2)),
        draws=tuple(draw(st.lists(st.floats(0, 0.999), min_size=1, max_size=4))),
        httpx=draw(st.sampled_from([httpx, httpx2])),
        backend=draw(st.sampled_from(["asyncio", "trio"])),
    )


@dataclass(frozen=True, slots=True)
class Run:
    """What came of a world."""

    sent_at: tuple[float, ...]
    bodies: frozenset[bytes]
    played: tuple[str, ...]
    status: int | None
    content: bytes
    error: str | None
    record: Any
    open_responses: int


def _run(world: World, hook: Any = None) -> Run:
    return anyio.run(_play, world, hook, backend=world.backend)


async def _play(world: World, hook: Any) -> Run:
    clock, sink = FakeClock(), RecordingSink()
    started = clock.monotonic()
    sent_at: list[float] = []
    script = iter(world.plays)
    played: list[str] = []

    def answer(_: Any) -> Any:
        sent_at.append(clock.monotonic() - started)
        played.append(next(script, "done"))
        return PLAYS[played[-1]]

    async def vend(_: object) -> Any:
        return Bearer("token-of-the-test")

    wire = ScriptedTransport(answer, repeat=True, proves_not_sent=world.proves)
    draws = cycle(world.draws)
    settings: dict[str, Any] = {
        "clock": clock,
        "draw": lambda: next(draws),
        "ledger": ledger_into(sink),
    }
    retry = replace(world.retry, on_retry=hook)
    transport: Any = RetryingTransport(
        VendingTransport(wire, credentials=as_provider(vend)),
        retry=retry,
        replay=world.replay,
        rules=[
            Rule(recognise=ThrottleRule(), on_retry=hook),
            Rule(recognise=Busy(), on_retry=hook, assumes="refused-before-execution"),
        ],
        caller_timeout=world.patience,
        redirects=True,
        **settings,
    )
    for layer in range(world.layers):
        transport = retrying(transport) if layer % 2 else RetryingTransport(transport, **settings)
    request = message(**({"key": "k"} if world.key else {}))
    status, content, error = None, b"", None
    try:
        response = await post(world.httpx, transport, request)
        status, content = response.status_code, response.content
    except Exception as raised:  # noqa: BLE001 - whatever it is, it is looked at
        error = type(raised).__name__
    (record,) = sink.of("tool.request_attempts")
    return Run(
        sent_at=tuple(sent_at),
        bodies=frozenset(sent.body for sent in wire.requests),
        played=tuple(played),
        status=status,
        content=content,
        error=error,
        record=record,
        open_responses=wire.open_responses,
    )


_PLAIN: Final = hypothesis.settings(max_examples=150)


@_PLAIN
@given(worlds())
def test_a_call_keeps_its_budget_whatever_happens(world: World) -> None:
    """Invariants 1, 2, 3, 4, 7 and 17. Layers included: the outermost series is the only one."""
    world = replace(world, layers=0)
    run = _run(world)
    retry, record = world.retry, run.record
    assert len(run.sent_at) <= (retry.max_attempts or 30)
    if retry.max_wait is not None:
        assert record["waited_seconds"] <= retry.max_wait + _EDGE
    ends = [end for end in (retry.max_elapsed, world.patience) if end is not None]
    assert all(at < min(ends) for at in run.sent_at if ends)
    assert len(record["attempts"]) == len(run.sent_at)
    assert len(run.bodies) == 1
    assert run.open_responses == 0


@_PLAIN
@given(worlds())
def test_every_repeat_has_one_grant_and_the_last_attempt_has_none(world: World) -> None:
    """Invariant 5, R5, R6, R24. And what was not repeatable was sent once (invariant 6)."""
    world = replace(world, layers=0)
    run = _run(world)
    *repeated, last = run.record["attempts"]
    assert all(one["permission"] is not None for one in repeated)
    assert last["permission"] is None
    final = {"done", "failed", "moved away"}
    assert not final & set(run.played[:-1])
    declared = world.replay.tools.get("search", ToolRule())
    for play, one in zip(run.played, repeated, strict=False):
        if play == "lost":
            assert one["permission"]["by"] == "app"
            assert "network" in declared.repeat_on
        if declared.makes_changes and not (declared.idempotency_key and world.key):
            assert play not in ("lost", "busy")
            assert not play.startswith("refused")


@_PLAIN
@given(worlds())
def test_a_stated_wait_is_taken_whole_or_not_at_all(world: World) -> None:
    """Invariant 9, R36, R37, D15. With at most half of it, and five seconds, on top."""
    run = _run(replace(world, layers=0))
    for one in run.record["attempts"]:
        stated, taken = one["retry_after_seconds"], one["wait_seconds"]
        if stated is not None and taken is not None:
            most = stated + min(world.retry.spread * stated, 5.0)
            floor = stated or world.retry.base_delay / 2
            assert floor - _EDGE <= taken <= max(most, floor) + _EDGE
    pairs = zip(run.record["attempts"], run.record["attempts"][1:], strict=False)
    for one, after in pairs:
        left = one["started_seconds"] + (one["wait_seconds"] or 0.0)
        assert after["started_seconds"] >= left - 1e-6


@_PLAIN
@given(worlds())
def test_what_is_delivered_is_what_the_wire_returned(world: World) -> None:
    """Invariant 10, R26, R23. The last answer, as it came; or the last failure, unchanged."""
    run = _run(world)
    last = PLAYS[run.played[-1]]
    if run.error is not None:
        assert isinstance(last, Fails) or run.error == "DeadlineExceededError"
        return
    assert run.status == last.status
    if last is not DONE:
        assert run.content == last.body


@_PLAIN
@given(worlds())
def test_a_hook_that_raises_changes_nothing(world: World) -> None:
    """Invariant 15, R55. But for the count of its failures."""

    def hook(_: RetryNotice) -> None:
        raise RuntimeError("a fault of the app's")

    world = replace(world, layers=0)
    plain, hooked = _run(world), _run(world, hook)
    assert (plain.sent_at, plain.status, plain.error) == (
        hooked.sent_at,
        hooked.status,
        hooked.error,
    )
    waits = [one["reason"] for one in plain.record["attempts"][1:]]
    told = [reason for reason in waits if reason not in ("auth", "redirect")]
    assert hooked.record["hook_failures"] == len(told)


@_PLAIN
@given(worlds())
def test_layers_send_no_more_than_the_outermost_series_allows(world: World) -> None:
    """Invariants 1 and 7, R30, R31. A series hidden below another one stands aside."""
    world = replace(world, layers=1)
    run = _run(world)
    assert len(run.sent_at) <= 3
    assert len(run.record["attempts"]) == len(run.sent_at)
    assert run.open_responses == 0
