"""Events are carried by a thread of their own: no call waits, memory stays bounded. B13."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from textwrap import dedent
from time import monotonic
from typing import Any

import pytest

from surefoot.sinks._courier import Courier

pytestmark = pytest.mark.both_majors


class Door:
    """Takes batches; can be held shut."""

    def __init__(self) -> None:
        self.taken: list[Any] = []
        self.lost = 0
        self.open = threading.Event()
        self.open.set()
        self.threads: set[int] = set()

    def deliver(self, batch: Sequence[Any]) -> None:
        self.threads.add(threading.get_ident())
        assert self.open.wait(20)
        self.taken += batch

    def lose(self) -> None:
        self.lost += 1

    @contextmanager
    def courier(self, **options: Any) -> Generator[Courier]:
        courier = Courier(self.deliver, lost=self.lose, **options)
        try:
            yield courier
        finally:
            self.open.set()
            courier.close(5)


def test_what_is_offered_is_delivered_in_order_on_another_thread() -> None:
    """B13. In order, once, and not on the caller's thread."""
    door = Door()
    with door.courier() as courier:
        for number in range(1_000):
            assert courier.offer({"n": number})
        assert courier.flush(5)
        assert [event["n"] for event in door.taken] == list(range(1_000))
        assert threading.get_ident() not in door.threads
    assert door.lost == 0


def test_the_first_event_is_delivered_without_a_pause() -> None:
    """B13. A killed process has lost as little as may be."""
    door = Door()
    with door.courier(pause=30.0) as courier:
        began = monotonic()
        courier.offer({"n": 1})
        assert courier.flush(5)
        assert monotonic() - began < 5


def test_a_stalled_door_costs_events_and_no_time() -> None:
    """B13. No room: the new event is lost, counted, and the caller is back at once."""
    door = Door()
    with door.courier(room=10) as courier:
        door.open.clear()
        courier.offer({"n": 0})
        began = monotonic()
        taken = sum(courier.offer({"n": number}) for number in range(1, 1_000))
        assert monotonic() - began < 2
        assert taken <= 11
        assert door.lost == 999 - taken
        door.open.set()
        assert courier.flush(5)
        assert len(door.taken) == taken + 1


def test_flushing_a_stalled_door_gives_up_when_the_time_is_over() -> None:
    """B13. The end of a run is bounded."""
    door = Door()
    with door.courier() as courier:
        door.open.clear()
        courier.offer({"n": 1})
        began = monotonic()
        assert not courier.flush(0.05)
        assert monotonic() - began < 2


def test_closing_a_stalled_door_counts_what_is_left_behind() -> None:
    """B13. What was not delivered in time is lost, and said so."""
    door = Door()
    courier = Courier(door.deliver, lost=door.lose)
    door.open.clear()
    courier.offer({"n": 1})
    while not door.threads:
        pass
    courier.offer({"n": 2})
    courier.offer({"n": 3})
    assert not courier.close(0.05)
    assert door.lost == 2
    door.open.set()


def test_a_closed_courier_takes_nothing_and_its_thread_ends() -> None:
    """B13. Nothing is left behind."""
    door = Door()
    courier = Courier(door.deliver, lost=door.lose)
    courier.offer({"n": 1})
    thread = courier._thread
    assert courier.close(5)
    assert not courier.offer({"n": 2})
    assert door.lost == 1
    assert thread is not None
    thread.join(5)
    assert not thread.is_alive()


def test_a_courier_that_was_never_used_has_no_thread() -> None:
    """B13. Importing and building cost nothing."""
    door = Door()
    courier = Courier(door.deliver, lost=door.lose)
    assert courier._thread is None
    assert courier.flush(0)
    assert courier.close(0)


def test_where_no_thread_can_start_any_more_the_event_is_delivered_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """B13. As while the interpreter ends: late evidence is not lost for want of a thread."""
    door = Door()

    def refuse(_thread: threading.Thread) -> None:
        raise RuntimeError("can't create new thread at interpreter shutdown")

    with door.courier() as courier:
        monkeypatch.setattr(threading.Thread, "start", refuse)
        for number in range(3):
            assert courier.offer({"n": number})
        monkeypatch.undo()
    assert [event["n"] for event in door.taken] == [0, 1, 2]
    assert door.threads == {threading.get_ident()}


def test_flushing_from_inside_the_door_returns_at_once() -> None:
    """B13. A sink that flushes itself does not lock up."""
    answers: list[bool] = []

    def deliver(batch: Sequence[Any]) -> None:
        assert batch
        answers.append(courier.flush(5))

    courier = Courier(deliver, lost=lambda: None)
    courier.offer({"n": 1})
    assert courier.flush(5)
    assert answers == [False]
    courier.close(5)


def test_many_threads_lose_nothing_and_double_nothing() -> None:
    """B13. Idle and busy by turns, from eight threads."""
    door = Door()
    with door.courier(pause=0.001) as courier:

        def work(name: int) -> None:
            for number in range(500):
                courier.offer({"n": (name, number)})
                if number % 100 == 0:
                    courier.flush(5)

        workers = [threading.Thread(target=work, args=(name,)) for name in range(8)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join(20)
        assert courier.flush(5)
    taken = [event["n"] for event in door.taken]
    assert len(taken) == len(set(taken)) == 4_000
    for name in range(8):
        assert [number for who, number in taken if who == name] == list(range(500))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks")
def test_a_forked_child_starts_a_thread_of_its_own_and_repeats_nothing() -> None:
    """B13. What waited in the parent is the parent's; what the child offers is delivered."""
    program = """
    import os, sys, threading
    from surefoot.sinks._courier import Courier
    gate = threading.Event()
    def deliver(batch):
        gate.wait(20)
        os.write(1, "".join(f"{os.getpid() == parent} {e['n']}\\n" for e in batch).encode())
    parent = os.getpid()
    courier = Courier(deliver, lost=lambda: None)
    courier.offer({"n": "before"})
    child = os.fork()
    gate.set()
    if not child:
        courier.offer({"n": "child"})
        courier.flush(5)
        os._exit(0)
    os.waitpid(child, 0)
    courier.offer({"n": "parent"})
    courier.flush(5)
    """
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", dedent(program)],
        capture_output=True,
        text=True,
        timeout=30,
        check=True,
    )
    assert sorted(done.stdout.splitlines()) == ["False child", "True before", "True parent"]


def test_a_process_that_ends_without_flushing_still_delivers() -> None:
    """B13. The end of the process is the last chance, and it is taken."""
    program = """
    import os
    from surefoot.sinks._courier import Courier
    def deliver(batch):
        os.write(1, "".join(e["n"] + "\\n" for e in batch).encode())
    courier = Courier(deliver, lost=lambda: None, pause=30)
    courier.offer({"n": "first"})
    courier.flush(5)
    for n in "abc":
        courier.offer({"n": n})
    """
    done = subprocess.run(
        [sys.executable, "-c", dedent(program)],
        capture_output=True,
        text=True,
        timeout=30,
        check=True,
    )
    assert done.stdout.split() == ["first", "a", "b", "c"]


def test_a_process_ends_within_two_seconds_of_a_sink_that_stalls() -> None:
    """B13. However many sinks stall, the bound is for all of them."""
    program = """
    import threading
    from surefoot.sinks._courier import Courier
    couriers = [Courier(lambda batch: threading.Event().wait(60), lost=print) for _ in range(3)]
    for courier in couriers:
        courier.offer({"n": 1})
    print("end")
    """
    began = monotonic()
    done = subprocess.run(
        [sys.executable, "-c", dedent(program)],
        capture_output=True,
        text=True,
        timeout=30,
        check=True,
    )
    assert done.stdout.split() == ["end"]
    assert monotonic() - began < 10


def test_who_closes_or_flushes_again_waits_for_nobody() -> None:
    """B13. Its thread has ended, and everything is delivered: that is an answer, at once."""
    door = Door()
    with door.courier() as courier:
        courier.offer({"n": 1})
        assert courier.close(5)
        assert courier._thread is not None
        courier._thread.join(5)
        began = monotonic()
        assert courier.flush(10)
        assert courier.close(10)
        assert monotonic() - began < 5
    assert len(door.taken) == 1
    assert door.lost == 0


def test_what_a_stalled_door_did_not_take_is_counted_once() -> None:
    """B13. However often it is closed."""
    door = Door()
    with door.courier() as courier:
        courier.offer({"n": 0})
        assert courier.flush(5)
        door.open.clear()
        for number in range(1, 4):
            courier.offer({"n": number})
        assert not courier.close(0.3)
        lost = door.lost
        assert lost <= 3
        assert not courier.close(0.1)
        assert door.lost == lost


def test_a_process_whose_sink_is_closed_ends_at_once() -> None:
    """B13. The last chance of what is closed already was when it was closed."""
    program = """
    import time
    from surefoot.sinks import _courier
    courier = _courier.Courier(lambda batch: None, lost=lambda: None)
    courier.offer({"n": 1})
    assert courier.close(5)
    courier._thread.join(5)
    _courier.AT_EXIT_SECONDS = 20.0
    """
    began = monotonic()
    command = [sys.executable, "-c", dedent(program)]
    subprocess.run(command, capture_output=True, timeout=30, check=True)
    assert monotonic() - began < 15
