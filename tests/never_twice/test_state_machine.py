"""B2, B3, R6, R13, R20, R24, D3, D17. In whatever order, a tool runs no more often than it may.

A state machine draws scripts: a declaration, callers who call at once and again, rounds, callers
who leave, time, what the server does to each request, and an app that finds out. The whole stack is
real; the server counts, and a model that is written from the rules says what it may be asked.
"""

from __future__ import annotations

from collections.abc import Generator
from itertools import product
from typing import Any, ClassVar, Final

import pytest
from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    precondition,
    rule,
    run_state_machine_as_test,
)

from support.told_loop import Loop
from support.tool_rows import EXPECTED, FAULTS, RULES, Rows
from support.tool_world import Setting, World
from surefoot.policy import ReplayPolicy

pytestmark = pytest.mark.unmeasured

SCRIPTS: Final = 2_000
POLICIES: Final[tuple[ReplayPolicy, ...]] = ("assume-refused", "app-authorized")
OPENINGS: Final[tuple[tuple[str, ...], ...]] = (
    *((fault,) for fault in FAULTS),
    ("lost", "done"),
    ("lost", "429 in 60 s"),
    ("lost", "503"),
    ("never-sent", "never-sent", "never-sent"),
)
_MOST_CALLERS: Final = 8
SETTINGS: Final = settings(
    max_examples=5,
    stateful_step_count=8,
    deadline=None,
    derandomize=False,
    database=None,
    phases=[Phase.generate, Phase.shrink],
    suppress_health_check=(
        HealthCheck.too_slow,
        HealthCheck.filter_too_much,
        HealthCheck.data_too_large,
    ),
)
"""A few scripts from each beginning, the same ones each time: hypothesis varies what it has drawn,
and so two thousand from one beginning would be few.
"""


def _has_room(script: Scripts) -> bool:
    return len(script.world.asked) < _MOST_CALLERS


def _has_answered(script: Scripts) -> bool:
    return _has_room(script) and bool(script.world.over())


def _has_pending(script: Scripts) -> bool:
    return bool(script.world.pending)


class Scripts(RuleBasedStateMachine):
    """One script."""

    loop: ClassVar[Loop]
    rows: ClassVar[Rows]
    aim: ClassVar[tuple[str, ReplayPolicy, tuple[str, ...]]]
    """The declaration, the policy, and what the first attempts of the first call meet."""
    played: ClassVar[int]

    def __init__(self) -> None:
        super().__init__()
        self.world: Any = None

    @initialize(
        vault=st.sampled_from([None, "up", "up", "down"]),
        attempts=st.sampled_from([3, 3, 2]),
        deadline=st.sampled_from([None, None, 5.0]),
        keyed=st.sampled_from([True, True, False]),
        long=st.sampled_from([False, False, False, True]),
        seconds=st.sampled_from([0.0, 0.5, 3.0, 6.0]),
        then=st.lists(st.sampled_from(list(FAULTS)), max_size=1),
    )
    def begin(
        self, *, keyed: bool, long: bool, seconds: float, then: list[str], **drawn: Any
    ) -> None:
        """A declaration, and a first call with what befalls it."""
        type(self).played += 1
        rule, policy, opening = self.aim
        if opening == ("401",):
            drawn["vault"] = "up"
        self.world = World(self.loop, Setting(rule=rule, policy=policy, **drawn), self.rows)
        self.world.ask(0, keyed=keyed, principal=None, run=None, long=long)
        for one in (*opening, *then):
            if self.world.pending:
                self.world.answer(0, one)
            self.world.pass_time(seconds)

    @precondition(_has_room)
    @rule(
        amount=st.sampled_from([0, 0, 0, 1]),
        keyed=st.booleans(),
        principal=st.sampled_from([None, None, None, "ada"]),
        run=st.sampled_from([None, None, 0, 1]),
        long=st.sampled_from([False, False, False, True]),
        first=st.sampled_from(("", *FAULTS)),
    )
    def ask(self, first: str, **drawn: Any) -> None:
        """A caller calls, and may be answered at once."""
        self.world.ask(**drawn)
        if first and self.world.pending:
            self.world.answer(-1, first)

    @precondition(_has_answered)
    @rule(which=st.integers(0, 7), first=st.sampled_from(("", *FAULTS)))
    def ask_again(self, which: int, first: str) -> None:
        """A call that was answered is made again: by a framework, or as its next round."""
        over = self.world.over()
        one = over[which % len(over)]
        self.world.ask(
            one.arguments["amount"],
            keyed="key" in one.arguments,
            principal=one.principal,
            run=one.run,
            state=one.next_state,
        )
        if first and self.world.pending:
            self.world.answer(-1, first)

    @precondition(_has_pending)
    @rule(which=st.integers(0, 7), fault=st.sampled_from(list(FAULTS)))
    def answer(self, which: int, fault: str) -> None:
        """The server answers one of the requests that it has."""
        self.world.answer(which, fault)

    @rule(
        seconds=st.sampled_from([0.2, 3.0, 3.0, 70.0]),
        then=st.sampled_from(("", "429", "lost", "lost, and ran", "never-sent", "done")),
    )
    def pass_time(self, seconds: float, then: str) -> None:
        """Waits and deadlines end, and what is sent after them is answered, too."""
        self.world.pass_time(seconds)
        if then and self.world.pending:
            self.world.answer(-1, then)

    @rule(which=st.integers(0, 7), how=st.sampled_from(["leaves", "says so", "settles"]))
    def end(self, which: int, how: str) -> None:
        """A caller leaves, or says that it no longer listens; or the app found out about it."""
        one = self.world.asked[which % len(self.world.asked)]
        if how == "settles":
            self.world.settle(one)
        elif one.over:
            return
        elif how == "leaves":
            self.world.leave(one)
        else:
            self.world.cancel_by_message(one)

    def teardown(self) -> None:
        """Everybody leaves, and the books are compared."""
        if self.world is not None:
            self.world.close()


@pytest.fixture
def loop() -> Generator[Loop]:
    """The loop of all scripts."""
    made = Loop()
    yield made
    made.close()


@pytest.mark.timeout(300)  # two thousand scripts, on a machine that may be doing other things
def test_no_script_runs_a_tool_more_often_than_it_may(
    loop: Loop, caplog: pytest.LogCaptureFixture
) -> None:
    """B3, R13. And every row of both tables is met, under both policies, and says what it says."""
    caplog.set_level("CRITICAL", logger="surefoot")
    rows, played = Rows(), 0
    for number, aim in enumerate(product(RULES, POLICIES, OPENINGS)):
        facts: dict[str, Any] = {"loop": loop, "rows": rows, "aim": aim, "played": 0}
        machine = seed(number)(type("Scripts", (Scripts,), facts))
        run_state_machine_as_test(machine, settings=SETTINGS)
        played += machine.played
    assert played >= SCRIPTS
    wanted = {(row, policy) for row in EXPECTED for policy in POLICIES}
    assert not wanted - rows.counted.keys()
