"""The gateway of the demo: busy for a time, not for a number of tries; and its books are true."""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import pytest

from surefoot import Replay, Retry, ToolRule
from surefoot.demo import WIDEST, twelve_calls
from surefoot.demo import _busy as busy_module
from surefoot.demo._books import Books
from surefoot.demo._busy import Busy, States
from surefoot.demo._calls import PAYMENTS_WANTED, fingerprint
from surefoot.demo._declaration import PRINTED, REPLAY, RETRY
from surefoot.demo._doors import PATIENCE
from surefoot.testing import Answer, Exchange, Throttle


class Played:
    """Notes which step answered, in the place of the wire."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 1_800_000_000.25
        self.steps: list[object] = []
        self.number = 0
        monkeypatch.setattr(busy_module, "time", SimpleNamespace(time=lambda: self.now))

        async def play(step: object, _: object) -> None:
            self.steps.append(step)

        monkeypatch.setattr(Answer, "play", play)
        monkeypatch.setattr(Throttle, "play", play)

    async def ask(self, step: Busy) -> object:
        self.number += 1
        exchange: Any = SimpleNamespace(number=self.number)
        given: Exchange = exchange
        await step.play(given)
        return self.steps[-1]


@pytest.mark.parametrize("states", ["seconds", "date", "nonsense", "nothing"])
async def test_a_busy_gateway_refuses_everyone_until_the_time_is_up(
    states: States, monkeypatch: pytest.MonkeyPatch
) -> None:
    played, step = Played(monkeypatch), Busy(1.5, states=states)
    assert all([isinstance(await played.ask(step), Throttle) for _ in range(10)])
    played.now += 1.4
    assert isinstance(await played.ask(step), Throttle)
    played.now += 1.4  # a date is whole seconds, so up to one second later
    assert isinstance(await played.ask(step), Answer)


@pytest.mark.parametrize(
    ("states", "stated"), [("seconds", 2.0), ("date", 1.75), ("nonsense", None), ("nothing", None)]
)
async def test_what_a_busy_gateway_states_is_noted_and_never_ends_before_the_time_is_up(
    states: States, stated: float | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    played, step = Played(monkeypatch), Busy(1.5, states=states)
    await played.ask(step)
    assert step.stated == ({} if stated is None else {1: pytest.approx(stated)})
    played.now += 1.5 if stated is None else stated
    assert isinstance(await played.ask(step), Answer)


def run(books: Books, tool: str, arguments: Mapping[str, object]) -> str:
    answer: Any = next(one for one in books.tools() if one.name == tool).answer
    return str(answer(arguments))


def test_a_charge_with_the_same_request_id_is_made_once_and_a_refund_as_often_as_it_is_asked() -> (
    None
):
    books = Books()
    charge = {"order": "W-1", "amount": 1, "request_id": "R-1"}
    receipts = [run(books, "charge", charge) for _ in range(2)]
    receipts += [run(books, "refund", {"order": "W-2"}) for _ in range(2)]
    assert len(set(receipts)) == 4
    assert (books.payments("charge"), books.payments("refund")) == (1, 2)
    assert (books.payments("refund", "W-1"), books.payments("refund", "W-2")) == (0, 2)
    assert "refunded 2 times" in run(books, "refund_status", {"order": "W-2"})
    assert "refunded 0 times" in run(books, "refund_status", {"order": "W-9"})


def test_the_table_has_twelve_calls_that_differ_on_the_wire_and_fresh_steps_for_each_run() -> None:
    calls = twelve_calls()
    assert [call.number for call in calls] == list(range(1, 13))
    assert len({call.fingerprint for call in calls}) == 12
    assert {tool.name for tool in Books().tools()} >= {call.tool for call in calls}
    first, second = calls[1].steps[0], twelve_calls()[1].steps[0]
    assert first is not second


def test_the_payments_that_are_wanted_are_those_of_the_table() -> None:
    money = [call.tool for call in twelve_calls() if call.changes]
    assert {tool: money.count(tool) for tool in money} == dict(PAYMENTS_WANTED)


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b'{"jsonrpc":"2.0","id":1,"method":"ping"}'])
def test_what_is_no_tool_call_has_no_fingerprint(body: bytes) -> None:
    assert fingerprint(body) == ""


def test_the_declaration_that_is_printed_is_the_one_that_is_used() -> None:
    declared: dict[str, object] = {}

    def gateway(_: object, **options: object) -> None:
        declared.update(options)

    names: dict[str, Any] = {
        "Gateway": gateway,
        "Replay": Replay,
        "Retry": Retry,
        "ToolRule": ToolRule,
        "url": None,
        "vault": "the vault",
    }
    exec(PRINTED, names)  # noqa: S102 - it is there to be copied and run
    assert declared == {
        "name": "billing",
        "credentials": "the vault",
        "retry": RETRY,
        "replay": REPLAY,
        "caller_timeout": PATIENCE,
    }
    assert max(map(len, PRINTED.splitlines())) <= WIDEST - 4
