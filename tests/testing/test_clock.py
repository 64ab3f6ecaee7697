"""FakeClock: virtual time, on asyncio and on trio."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta, timezone

import anyio
import anyio.lowlevel
import pytest

from surefoot.testing import FakeClock
from surefoot.transports import Clock

pytestmark = pytest.mark.anyio


async def test_it_is_the_clock_that_surefoot_asks_for() -> None:
    """The protocol of `surefoot.transports`, whole."""
    clock: Clock = FakeClock()
    before, moment = clock.monotonic(), clock.now()
    await clock.sleep(1)
    assert (clock.monotonic() - before, clock.now() - moment) == (1, timedelta(seconds=1))


async def test_a_sleep_returns_at_once_and_moves_time_by_its_length() -> None:
    """The default suits one sleeper: a wait costs nothing and is still seen."""
    clock = FakeClock()
    before = (clock.monotonic(), clock.now())
    with anyio.fail_after(1):
        await clock.sleep(3600)
    assert clock.monotonic() - before[0] == 3600
    assert clock.now() - before[1] == timedelta(hours=1)
    assert clock.sleeps == (3600,)


@pytest.mark.parametrize("seconds", [0, -1, -0.5])
async def test_a_sleep_of_nothing_moves_no_time_but_gives_way(seconds: float) -> None:
    """A wait that is over before it begins is no wait."""
    clock = FakeClock()
    before = clock.monotonic()
    turns: list[str] = []

    async def other() -> None:
        turns.append("other")

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(other)
        await anyio.lowlevel.checkpoint()
        await clock.sleep(seconds)
        turns.append("sleeper")
    assert turns == ["other", "sleeper"]
    assert clock.monotonic() == before


@pytest.mark.parametrize("seconds", [math.nan, math.inf, -math.inf])
async def test_a_sleep_without_an_end_is_refused_loudly(seconds: float) -> None:
    """Asyncio sleeps on NaN for ever; a double that did so would hide it."""
    clock = FakeClock()
    with pytest.raises(ValueError, match="never end"):
        await clock.sleep(seconds)
    assert clock.sleeps == ()


async def test_sleepers_wake_in_the_order_in_which_they_are_due() -> None:
    """With auto=False time moves by hand, and each sleeper wakes at its own moment."""
    clock = FakeClock(auto=False)
    woken: list[tuple[str, float]] = []
    started = clock.monotonic()

    async def sleeper(name: str, seconds: float) -> None:
        await clock.sleep(seconds)
        woken.append((name, clock.monotonic() - started))

    async with anyio.create_task_group() as tasks:
        for name, seconds in (("c", 3.0), ("a", 1.0), ("b", 2.0)):
            tasks.start_soon(sleeper, name, seconds)
        await clock.until_sleeping(3)
        await clock.advance(0.5)
        assert woken == []
        await clock.advance(10)
    assert woken == [("a", 1.0), ("b", 2.0), ("c", 3.0)]
    assert clock.monotonic() - started == 10.5


async def test_who_sleeps_again_on_the_way_is_woken_again_on_the_way() -> None:
    """One advance over several waits of a series is several waits, not one."""
    clock = FakeClock(auto=False)
    moments: list[float] = []
    started = clock.monotonic()

    async def series() -> None:
        for _ in range(3):
            await clock.sleep(1)
            moments.append(clock.monotonic() - started)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(series)
        await clock.until_sleeping(1)
        await clock.advance(3)
    assert moments == [1.0, 2.0, 3.0]


async def test_sums_of_tenths_reach_what_they_should() -> None:
    """A sleeper is not left behind by the last bit of a float."""
    clock = FakeClock(auto=False)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(clock.sleep, 0.3)
        await clock.until_sleeping(1)
        await clock.advance(0.1)
        await clock.advance(0.2)
        assert clock.sleeping == 0


async def test_a_sleeper_that_is_cancelled_is_forgotten() -> None:
    """Cancelled sleepers leave nothing behind that a later advance could wake."""
    clock = FakeClock(auto=False)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(clock.sleep, 5)
        tasks.start_soon(clock.sleep, 6)
        await clock.until_sleeping(2)
        tasks.cancel_scope.cancel()
    assert clock.sleeping == 0
    await clock.advance(10)


async def test_one_clock_may_be_built_outside_any_loop() -> None:
    """Nothing belongs to a loop before somebody sleeps (the module built this one)."""
    before = _BUILT_AT_IMPORT.monotonic()
    await _BUILT_AT_IMPORT.sleep(1)
    assert _BUILT_AT_IMPORT.monotonic() == before + 1


_BUILT_AT_IMPORT = FakeClock()


async def test_the_wall_clock_may_jump_and_nobody_wakes() -> None:
    """A date is measured against the wall clock, a wait against the other one."""
    clock = FakeClock(
        auto=False, start=datetime(2026, 3, 1, 12, tzinfo=timezone(timedelta(hours=2)))
    )
    assert clock.now() == datetime(2026, 3, 1, 10, tzinfo=UTC)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(clock.sleep, 1)
        await clock.until_sleeping(1)
        before = clock.monotonic()
        clock.set_wall(3600)
        await anyio.lowlevel.checkpoint()
        assert clock.sleeping == 1
        assert clock.monotonic() == before
        assert clock.now() == datetime(2026, 3, 1, 11, tzinfo=UTC)
        await clock.advance(1)


async def test_waiting_for_sleepers_is_bounded() -> None:
    """Every wait of a double ends."""
    clock = FakeClock(auto=False)
    with pytest.raises(TimeoutError, match="0 tasks sleep"):
        await clock.until_sleeping(1, timeout=0.01)


@pytest.mark.parametrize(
    ("options", "error", "names"),
    [
        ({"start": datetime(2026, 1, 1)}, ValueError, "start"),  # noqa: DTZ001
        ({"start": "2026-01-01"}, TypeError, "start"),
        ({"auto": 1}, TypeError, "auto"),
        ({"monotonic": -1}, ValueError, "monotonic"),
        ({"monotonic": True}, TypeError, "monotonic"),
    ],
)
async def test_what_cannot_mean_anything_is_refused_when_built(
    options: dict[str, object], error: type[Exception], names: str
) -> None:
    """The error names the option."""
    with pytest.raises(error, match=names):
        FakeClock(**options)  # pyright: ignore[reportArgumentType]
