"""B3. The fence, by itself: what may have run is not run again, memory is bounded, the app decides.

Pure: time is an argument. The model of the property is a plain dictionary of open calls.
"""

from __future__ import annotations

import threading
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from surefoot.policy import Blocked, Fence, FenceFull, Passed, fence_key


def _key(**changes: Any) -> bytes:
    fields: dict[str, Any] = {"scope": "", "principal": None, "tool": "charge", "arguments": b"{}"}
    return fence_key(**{**fields, **changes})


CHARGE = _key()


def _enter(
    fence: Fence, call_id: str, *, now: float = 0.0, key: bytes = CHARGE, changing: bool = True
) -> Passed | Blocked | FenceFull:
    return fence.enter(key, call_id, now=now, changing=changing)


@pytest.mark.parametrize(
    "other",
    [
        {"scope": "run-2"},
        {"principal": "ada"},
        {"principal": ""},
        {"tool": "refund"},
        {"arguments": b'{"a":1}'},
        {"scope": "c", "tool": "harge"},
        {"tool": "charg", "arguments": b"e{}"},
    ],
    ids=str,
)
def test_a_key_tells_every_part_apart(other: dict[str, Any]) -> None:
    """B3. Equal parts give equal keys; a part that moves into its neighbour does not."""
    assert _key() == CHARGE
    assert _key(**other) != CHARGE


def test_a_call_in_flight_and_one_that_may_have_run_stop_an_identical_one() -> None:
    """B3. The answer names the earlier call, says if it is under way, and how old it is."""
    fence = Fence()
    assert isinstance(_enter(fence, "one"), Passed)
    assert _enter(fence, "two", now=1.5) == Blocked(call_id="one", in_flight=True, seconds=1.5)
    fence.leave("one", "may-have-run")
    assert _enter(fence, "two", now=2) == Blocked(call_id="one", in_flight=False, seconds=2)
    assert isinstance(_enter(fence, "two", key=_key(arguments=b"1")), Passed)


def test_a_call_that_ended_in_something_sure_stops_nobody() -> None:
    """B3."""
    fence = Fence()
    _enter(fence, "one")
    fence.leave("one", "settled")
    assert len(fence) == 0
    assert isinstance(_enter(fence, "two"), Passed)


def test_a_later_round_follows_one_that_is_settled_and_none_that_is_not() -> None:
    """B3, D33. A round has the id of its call, and that alone opens no door."""
    fence = Fence()
    for _ in range(3):
        assert isinstance(_enter(fence, "one"), Passed)
        stopped = _enter(fence, "one")
        assert isinstance(stopped, Blocked)
        assert stopped.in_flight
        fence.leave("one", "settled")
    assert isinstance(_enter(fence, "one"), Passed)
    fence.leave("one", "may-have-run")
    assert isinstance(_enter(fence, "one"), Blocked)


@pytest.mark.parametrize("ran", [True, False])
def test_the_app_settles_an_open_call_once(ran: bool) -> None:
    """B3. Whatever its word is; a call that nobody knows is not settled."""
    fence = Fence()
    _enter(fence, "one")
    fence.leave("one", "may-have-run")
    assert not fence.settle("nobody", ran=ran)
    assert fence.settle("one", ran=ran)
    assert not fence.settle("one", ran=ran)
    assert isinstance(_enter(fence, "two"), Passed)
    fence.leave("one", "may-have-run")  # a late word of the settled one changes nothing
    fence.leave("two", "settled")
    assert len(fence) == 0


def test_an_open_call_is_forgotten_after_its_lifetime_and_not_before() -> None:
    """B3. The last moment still counts, also behind a crowd that is older than one sweep takes."""
    fence = Fence(ttl=100)
    for number in range(200):
        _enter(fence, f"old-{number}", key=_key(arguments=b"%d" % number))
        fence.leave(f"old-{number}", "may-have-run")
    last = _key(arguments=b"199")
    assert isinstance(_enter(fence, "two", now=99.9, key=last), Blocked)
    assert isinstance(_enter(fence, "two", now=100, key=last), Passed)
    while len(fence) > 1:
        before = len(fence)
        _enter(fence, "two", now=100, key=last)
        assert before - 32 <= len(fence) < before


def test_a_full_fence_refuses_changing_calls_and_forgets_none() -> None:
    """B3. Others pass unremembered; room comes from a settled call."""
    fence = Fence(max_entries=2)
    for name in ("one", "two"):
        _enter(fence, name, key=_key(arguments=name.encode()))
        fence.leave(name, "may-have-run")
    third = _key(arguments=b"three")
    assert _enter(fence, "three", key=third) == FenceFull(entries=2)
    assert isinstance(_enter(fence, "three", key=third, changing=False), Passed)
    fence.leave("three", "may-have-run")
    assert len(fence) == 2
    assert isinstance(_enter(fence, "again", key=_key(arguments=b"one")), Blocked)
    fence.settle("one", ran=True)
    assert isinstance(_enter(fence, "three", key=third), Passed)


@pytest.mark.parametrize("bad", [{"max_entries": 0}, {"ttl": 0}, {"ttl": float("nan")}])
def test_a_bound_that_cannot_mean_anything_is_refused(bad: dict[str, Any]) -> None:
    """R71."""
    with pytest.raises(ValueError, match=next(iter(bad))):
        Fence(**bad)


def test_of_many_threads_one_gets_through() -> None:
    """B3. Asking and remembering are one step."""
    fence, through = Fence(), list[int]()
    start = threading.Barrier(8)

    def race(number: int) -> None:
        start.wait(5)
        if isinstance(_enter(fence, str(number)), Passed):
            through.append(number)

    threads = [threading.Thread(target=race, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(5)
    assert len(through) == 1


_STEPS = st.lists(
    st.tuples(
        st.sampled_from(["enter", "settled", "may-have-run", "settle", "wait"]),
        st.integers(0, 3),
        st.booleans(),
    ),
    max_size=40,
)


@given(_STEPS)
def test_it_agrees_with_a_plain_model_of_open_calls(steps: list[tuple[str, int, bool]]) -> None:
    """B3. Of one key there is never a second call beside an open one, whatever happens."""
    fence = Fence(max_entries=3, ttl=10)
    now, made = 0.0, 0
    known: dict[int, tuple[str, float]] = {}
    for what, number, changing in steps:
        known = {one: entry for one, entry in known.items() if now - entry[1] < 10}
        if what == "wait":
            now += 4
        elif what == "enter":
            made += 1
            answer = _enter(
                fence, f"c{made}", now=now, key=_key(arguments=b"%d" % number), changing=changing
            )
            if number in known:
                assert isinstance(answer, Blocked)
                assert answer.call_id == known[number][0]
            elif len(known) == 3:
                assert isinstance(answer, FenceFull if changing else Passed)
            else:
                assert isinstance(answer, Passed)
                known[number] = (f"c{made}", now)
        elif number in known:
            name = known[number][0]
            if what == "settle":
                assert fence.settle(name, ran=changing)
                del known[number]
            else:
                fence.leave(name, what)  # type: ignore[arg-type]
                if what == "settled":
                    stopped = _enter(fence, "probe", now=now, key=_key(arguments=b"%d" % number))
                    if isinstance(stopped, Passed):
                        fence.leave("probe", "settled")
                        del known[number]
        assert len(fence) <= 3
