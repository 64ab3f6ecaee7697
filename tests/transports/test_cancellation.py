"""R12, R62, R121 to R125, B2, D27, invariant 16: cancelled at any await, nothing follows it.

One call is driven through everything that a series can do: a body that is uploaded in parts, a
vend, a signature, a refusal with a body, a hook, waits, a lost connection, a rejected credential, a
redirect, an answer that a rule looks into. It is cancelled at each of its awaits in turn.
"""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncIterator, Callable
from typing import Any, Final

import anyio
import anyio.lowlevel
import pytest

from support.sending import DONE, URL, filed, ledger_into, lowest, message, post
from surefoot.credentials import Bearer, as_provider
from surefoot.errors import SurefootError
from surefoot.policy import AnswerView, Replay, Retry, RetryNotice, Rule, ThrottleRule, ToolRule
from surefoot.testing import Fails, FakeClock, RecordingSink, Replies, ScriptedTransport
from surefoot.transports import RetryingTransport, VendingTransport

pytestmark = pytest.mark.anyio

BODY: Final = message().body
MARK: Final = "surefoot.record"


class Steps:
    """Every await of the world below goes through here, and one of them is where it ends."""

    def __init__(self, at: int | None = None, cancel: Callable[[], object] | None = None) -> None:
        self.names: list[str] = []
        self.sends_then: int | None = None
        self._at = at
        self._cancel = cancel
        self.wire: ScriptedTransport | None = None

    async def step(self, name: str) -> None:
        """One await."""
        self.names.append(name)
        if len(self.names) == self._at and self._cancel is not None:
            assert self.wire is not None
            self.sends_then = len(self.wire.requests)
            self._cancel()
        await anyio.lowlevel.checkpoint()

    def chunks(self, *parts: bytes) -> Callable[[], AsyncIterator[bytes]]:
        """A body, one await a part."""

        async def body() -> AsyncIterator[bytes]:
            for part in parts:
                await self.step("body")
                yield part

        return body

    def plays(self, answer: Any) -> Callable[[Any], Any]:
        """An answer that takes an await."""

        async def play(_: Any) -> Any:
            await self.step("wire")
            return answer

        return play


class Clock(FakeClock):
    """A clock whose sleeps are awaits like the others."""

    def __init__(self, steps: Steps) -> None:
        super().__init__()
        self._steps = steps

    async def sleep(self, seconds: float) -> None:
        """Sleep."""
        await self._steps.step("sleep")
        await super().sleep(seconds)


class Reads:
    """A rule that looks at bodies."""

    reads = 64

    def recognise(self, answer: AnswerView) -> None:
        """Nothing."""
        del answer


def _world(steps: Steps, sink: RecordingSink) -> RetryingTransport:
    json = {"content-type": "application/json"}
    steps.wire = ScriptedTransport(
        steps.plays(Replies(429, chunks=steps.chunks(b"slow", b"down"))),
        steps.plays(Fails("ReadError")),
        steps.plays(Replies(401, chunks=steps.chunks(b"who"))),
        steps.plays(Replies(307, headers={"location": "/b"}, chunks=steps.chunks(b"there"))),
        steps.plays(Replies(headers=json, chunks=steps.chunks(b'{"a":', b'"b"}'))),
    )

    async def vend(_: object) -> Any:
        await steps.step("vend")
        return Bearer("token-of-the-test")

    async def sign(request: Any) -> Any:
        await steps.step("sign")
        return request

    async def hook(_: RetryNotice) -> None:
        await steps.step("hook")

    vending = VendingTransport(steps.wire, credentials=as_provider(vend), signer=sign)
    return RetryingTransport(
        vending,
        retry=Retry(max_attempts=9, on_retry=hook),
        rules=[Rule(recognise=ThrottleRule(), on_retry=hook), Rule(recognise=Reads())],
        replay=Replay(tools={"search": ToolRule(repeat_on={"throttle", "network"})}),
        ledger=ledger_into(sink),
        clock=Clock(steps),
        draw=lowest,
        redirects=True,
    )


async def _call(family: Any, transport: Any, steps: Steps, requests: list[Any]) -> Any:
    async def upload() -> AsyncIterator[bytes]:
        for start in range(0, len(BODY), 60):
            await steps.step("upload")
            yield BODY[start : start + 60]

    async with family.AsyncClient(transport=transport) as client:
        request = client.build_request("POST", URL, content=upload())
        requests.append(request)
        return await client.send(request)


async def _awaits(family: Any) -> list[str]:
    """The awaits of an undisturbed call."""
    steps = Steps()
    response = await _call(family, _world(steps, RecordingSink()), steps, [])
    assert response.status_code == 200
    return steps.names


async def test_the_world_that_is_cancelled_below_has_every_kind_of_await(family: Any) -> None:
    """The control of this file: undisturbed, the call goes through all of it."""
    names = await _awaits(family)
    assert set(names) == {"upload", "vend", "sign", "wire", "body", "hook", "sleep"}
    assert names.count("wire") == 5
    assert 25 <= len(names) <= 60


def _nothing_follows(steps: Steps, sink: RecordingSink, requests: list[Any]) -> None:
    assert steps.wire is not None
    assert len(steps.wire.requests) == steps.sends_then
    assert steps.wire.open_responses == 0
    (request,) = requests
    assert MARK not in request.extensions
    assert request.headers.get("authorization") is None
    if steps.names[-1] == "upload":
        assert sink.events == []
        return
    record = filed(sink)
    assert (record["ended"], record["why"]) == ("cut", "cancelled")
    # One that was cancelled before it left is an attempt, too.
    assert len(record["attempts"]) in (steps.sends_then, (steps.sends_then or 0) + 1)


async def test_cancelled_at_each_await_in_turn_nothing_is_sent_and_nothing_is_left(
    family: Any,
) -> None:
    """R12, R62, R123, B2, D27. On both loops, by the scope around the call."""
    total = len(await _awaits(family))
    for at in range(1, total + 1):
        sink, requests = RecordingSink(), list[Any]()
        scope = anyio.CancelScope()
        steps = Steps(at, scope.cancel)
        with anyio.fail_after(5), scope:
            await _call(family, _world(steps, sink), steps, requests)
        assert scope.cancelled_caught, at
        assert len(steps.names) == at
        _nothing_follows(steps, sink, requests)
    gc.collect()


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_so_it_is_where_a_task_is_cancelled_by_asyncio_itself(family: Any) -> None:
    """B2, D27. That comes once, and does not come again at the next await; no task is left."""
    total = len(await _awaits(family))
    before = asyncio.all_tasks()
    for at in range(1, total + 1):
        sink, requests = RecordingSink(), list[Any]()
        tasks: list[asyncio.Task[Any]] = []
        steps = Steps(at, lambda tasks=tasks: tasks[0].cancel())
        tasks.append(asyncio.ensure_future(_call(family, _world(steps, sink), steps, requests)))
        with pytest.raises(asyncio.CancelledError):
            await asyncio.wait_for(asyncio.shield(tasks[0]), 5)
        assert len(steps.names) == at
        _nothing_follows(steps, sink, requests)
        assert asyncio.all_tasks() == before


async def test_what_may_have_run_when_it_was_cancelled_is_recorded_and_not_raised(
    family: Any,
) -> None:
    """D27. Cancellation stays cancellation; before anything left, nothing may have run."""
    for where, may_have_run in (("wire", True), ("vend", False), ("sign", False)):
        sink = RecordingSink()
        names = await _awaits(family)
        scope = anyio.CancelScope()
        steps = Steps(names.index(where) + 1, scope.cancel)
        with scope:
            await _call(family, _world(steps, sink), steps, [])
        assert scope.cancelled_caught
        assert filed(sink)["may_have_run"] is may_have_run, where


# ------------------------------------------------------------------ those who swallow cancellation


def _stubborn(result: Any, inside: anyio.Event, finished: list[str]) -> Callable[[Any], Any]:
    """Goes on with its own work after it was cancelled (R125)."""

    async def vend(given: Any) -> Any:
        inside.set()
        try:
            await anyio.sleep(30)
        except BaseException:  # noqa: BLE001 - this is the fault that is played
            finished.append("late")
        return given if result is None else result

    return vend


def _shielded(result: Any, inside: anyio.Event, finished: list[str]) -> Callable[[Any], Any]:
    """Does not let itself be cancelled at all."""

    async def vend(given: Any) -> Any:
        inside.set()
        with anyio.CancelScope(shield=True):
            await anyio.sleep(0.02)
        finished.append("late")
        return given if result is None else result

    return vend


@pytest.mark.parametrize("kind", [_stubborn, _shielded])
@pytest.mark.parametrize("who", ["provider", "signer"])
async def test_a_late_credential_is_never_used_and_a_late_signature_never_sent(
    family: Any, kind: Any, who: str
) -> None:
    """R121 to R125. Whoever ignores cancellation may finish its own work, and that is all."""
    inside, finished = anyio.Event(), list[str]()
    wire = ScriptedTransport(DONE)
    settings: dict[str, Any] = (
        {"credentials": as_provider(kind(Bearer("late-credential"), inside, finished))}
        if who == "provider"
        else {"signer": kind(None, inside, finished)}
    )
    transport = RetryingTransport(VendingTransport(wire, **settings))
    with anyio.fail_after(5):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(post, family, transport)
            await inside.wait()
            tasks.cancel_scope.cancel()
    assert finished == ["late"]
    assert wire.requests == []


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
@pytest.mark.parametrize("kind", [_stubborn, _shielded])
async def test_nor_where_asyncios_own_cancellation_was_swallowed(family: Any, kind: Any) -> None:
    """R124. It comes once; the task has counted it, and the count is looked at."""
    inside, finished = anyio.Event(), list[str]()
    wire = ScriptedTransport(DONE)
    vending = VendingTransport(
        wire, credentials=as_provider(kind(Bearer("late-credential"), inside, finished))
    )
    call = asyncio.ensure_future(post(family, RetryingTransport(vending)))
    await inside.wait()
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(asyncio.shield(call), 5)
    assert wire.requests == []


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_a_cancellation_from_before_the_call_stops_nothing(family: Any) -> None:
    """R124. A request in a clean-up, such as the end of a session, is sent: it is the control."""
    wire = ScriptedTransport(DONE)

    async def slow(_: object) -> Any:
        await anyio.lowlevel.checkpoint()
        return Bearer("token-of-the-test")

    transport = RetryingTransport(VendingTransport(wire, credentials=as_provider(slow)))

    async def cleans_up() -> int:
        try:
            await anyio.sleep(30)
        except asyncio.CancelledError:
            return (await post(family, transport)).status_code
        return 0

    task = asyncio.ensure_future(cleans_up())
    await anyio.lowlevel.checkpoint()
    task.cancel()
    assert await asyncio.wait_for(task, 5) == 200
    assert len(wire.requests) == 1


async def test_a_timeout_of_the_caller_sends_nothing_later(family: Any) -> None:
    """B2, R124. The wait ends with the caller's patience, on either loop."""
    wire = ScriptedTransport(Replies(429, headers={"retry-after": "5"}))
    with anyio.move_on_after(0.05) as scope:
        await post(family, RetryingTransport(wire))
    assert scope.cancelled_caught
    assert len(wire.requests) == 1
    assert wire.open_responses == 0


async def test_cancellation_is_never_turned_into_an_error_of_ours(family: Any) -> None:
    """D27. What leaves is the loop's own class."""
    caught: list[BaseException] = []
    inside = anyio.Event()

    async def never(_: Any) -> Any:
        inside.set()
        await anyio.sleep(30)

    async def call() -> None:
        try:
            await post(family, RetryingTransport(ScriptedTransport(never)))
        except BaseException as error:
            caught.append(error)
            raise

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(call)
        await inside.wait()
        tasks.cancel_scope.cancel()
    (error,) = caught
    assert isinstance(error, anyio.get_cancelled_exc_class())
    assert not isinstance(error, SurefootError)
