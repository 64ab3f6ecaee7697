"""R14, R20, R29 to R34, R70, R75 to R86, D7: a call is one series, however often wrapped."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest

from support.sending import DONE, REFUSED, filed, ledger_into, lowest, post, refused
from surefoot.policy import (
    AnswerView,
    Limits,
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

pytestmark = pytest.mark.anyio

ON_NETWORK = Replay(tools={"search": ToolRule(repeat_on={"network"})})


class Wrapper:
    """Somebody else's transport around one of ours."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner
        self.seen = 0

    async def handle_async_request(self, request: Any) -> Any:
        """Count, and hand on."""
        self.seen += 1
        return await self._inner.handle_async_request(request)

    async def aclose(self) -> None:
        """Close."""
        await self._inner.aclose()


class SaysWhatItWraps(Wrapper):
    """Another, which shows what is below, and cannot be rebuilt."""

    @property
    def wrapped(self) -> Any:
        """What is below."""
        return self._inner


class Rebuildable(SaysWhatItWraps):
    """A layer that keeps to the protocol of a join: answers rewritten above the series (R84)."""

    def rewrapped(self, wrapped: Any) -> Rebuildable:
        """The same over something else."""
        return Rebuildable(wrapped)


def _clocked(**settings: Any) -> dict[str, Any]:
    return {"clock": FakeClock(), "draw": lowest, **settings}


async def test_switched_off_is_what_was_given_itself() -> None:
    """R57, R70, R75. Nothing included."""
    wire = ScriptedTransport()
    assert retrying(wire, None) is wire
    assert retrying(None, None) is None
    series = retrying(wire)
    assert retrying(series, None) is series


async def test_on_is_a_series_with_the_published_defaults(family: Any) -> None:
    """R57, R65, R77, R79. The identical behaviour for who builds the connection."""
    wire = ScriptedTransport(REFUSED, repeat=True)
    clock = FakeClock()
    response = await post(family, retrying(wire, clock=clock, draw=lowest))
    assert (response.status_code, len(wire.requests)) == (429, 3)
    assert clock.sleeps == pytest.approx((0.1, 0.2))


@pytest.mark.parametrize("wrapper", [None, Wrapper, SaysWhatItWraps, Rebuildable])
@pytest.mark.parametrize("layers", [2, 3])
async def test_layers_never_multiply_requests(family: Any, wrapper: Any, layers: int) -> None:
    """R20, R30, R31, invariant 7. Joined where it can be, and by the mark on the request elsewhere.

    The control is the same wire without the mark: two series that know nothing of each other.
    """
    wire = ScriptedTransport(REFUSED, repeat=True)
    transport: Any = RetryingTransport(wire, **_clocked())
    for _ in range(layers - 1):
        below = transport if wrapper is None else wrapper(transport)
        joins = wrapper in (None, Rebuildable)
        transport = retrying(below) if joins else RetryingTransport(below, **_clocked())
    response = await post(family, transport)
    assert (response.status_code, len(wire.requests)) == (429, 3)

    class Hides(Wrapper):
        async def handle_async_request(self, request: Any) -> Any:
            request.extensions = {}
            return await super().handle_async_request(request)

    wire = ScriptedTransport(REFUSED, repeat=True)
    hidden = Hides(RetryingTransport(wire, **_clocked()))
    await post(family, RetryingTransport(hidden, **_clocked()))
    assert len(wire.requests) == 9


async def test_a_rule_joins_inside_the_layers_that_lie_above_the_series(family: Any) -> None:
    """R29, R84. What rewrites answers still sees one answer of one series."""
    wire = ScriptedTransport(refused(1), DONE)
    top = Rebuildable(RetryingTransport(wire, **_clocked(rules=(), retry=None)))
    joined: Any = retrying(top)
    assert isinstance(joined, Rebuildable)
    assert isinstance(joined.wrapped, RetryingTransport)
    assert (await post(family, joined)).status_code == 200
    assert (joined.seen, len(wire.requests)) == (1, 2)


class Busy:
    """Recognises a status of its own."""

    reads = 0

    def recognise(self, answer: AnswerView) -> Verdict | None:
        """Recognise a 409."""
        return Verdict(kind="session-busy") if answer.status == 409 else None


@pytest.mark.parametrize(
    ("limits", "sends", "why"),
    [
        (None, 5, "attempts-spent"),
        (Limits(max_attempts=9, max_wait=99), 5, "attempts-spent"),
        (Limits(max_attempts=2), 2, "attempts-spent"),
        (Limits(max_attempts=9, max_wait=0.1, base_delay=0.2), 2, "waiting-spent"),
        (Limits(max_attempts=9, max_elapsed=0.05), 1, "no-time"),
    ],
)
async def test_a_joining_rules_limits_end_its_own_repeats_sooner_and_lengthen_nothing(
    family: Any, limits: Limits | None, sends: int, why: str
) -> None:
    """R32, R33, R34, D7."""
    sink = RecordingSink()
    wire = ScriptedTransport(Replies(409), repeat=True)
    series = RetryingTransport(
        wire, **_clocked(retry=Retry(max_attempts=5), ledger=ledger_into(sink))
    )
    joined = series.joined(
        Rule(recognise=Busy(), limits=limits, assumes="refused-before-execution")
    )
    assert (await post(family, joined)).status_code == 409
    record = filed(sink)
    assert (len(wire.requests), record["why"]) == (sends, why)


async def test_a_joined_rule_is_held_to_the_totals_of_the_call(family: Any) -> None:
    """R34, D7. Two attempts of another kind leave it none."""
    rules = [Rule(recognise=ThrottleRule())]
    wire = ScriptedTransport(REFUSED, REFUSED, Replies(409))
    series = RetryingTransport(wire, **_clocked(retry=Retry(max_attempts=9), rules=rules))
    joined = series.joined(
        Rule(recognise=Busy(), limits=Limits(max_attempts=3), assumes="refused-before-execution")
    )
    assert (await post(family, joined)).status_code == 409
    assert len(wire.requests) == 3


async def test_each_rule_tells_its_own_hook_after_a_join(family: Any) -> None:
    """R29, R30, D8. The first rule that recognises has it (R69)."""
    first: list[RetryNotice] = []
    second: list[RetryNotice] = []
    wire = ScriptedTransport(REFUSED, DONE)
    series = RetryingTransport(wire, **_clocked(retry=Retry(on_retry=first.append)))
    joined = retrying(series, Retry(on_retry=second.append))
    await post(family, joined)
    assert (len(first), second) == (1, [])


@pytest.mark.parametrize(
    ("replay", "plays", "sends"),
    [
        (ON_NETWORK, [Fails("ReadError"), DONE], 2),
        (ON_NETWORK, [REFUSED], 1),
        (Replay(policy="app-authorized"), [REFUSED], 1),
        (Replay(), [Fails("ReadError")], 1),
    ],
)
async def test_an_inert_series_recognises_nothing_and_still_keeps_the_declaration(
    family: Any, replay: Replay, plays: list[Any], sends: int
) -> None:
    """R80. Off switches the 429 rule off and nothing else; the default budget holds."""
    sink = RecordingSink()
    wire = ScriptedTransport(*plays)
    transport = RetryingTransport(
        wire, **_clocked(retry=None, replay=replay, ledger=ledger_into(sink))
    )
    with suppress(family.ReadError):
        await post(family, transport)
    assert len(wire.requests) == sends
    assert len(filed(sink)["attempts"]) == sends


async def test_an_inert_series_joins_and_is_joined(family: Any) -> None:
    """R81. A throttle rule joins it; and it spends the default budget."""
    wire = ScriptedTransport(Fails("ReadError"), REFUSED, REFUSED)
    inert = RetryingTransport(wire, **_clocked(retry=None, replay=ON_NETWORK))
    joined: Any = retrying(inert, Retry(max_attempts=9))
    assert isinstance(joined, RetryingTransport)
    assert joined.wrapped is wire
    assert (await post(family, joined)).status_code == 429
    assert len(wire.requests) == 3


async def test_a_ledger_and_its_declaration_join_together(family: Any) -> None:
    """R22, R83, R85. One record in the ledger that joined; the rules stay."""
    sink = RecordingSink()
    wire = ScriptedTransport(REFUSED, Fails("ReadError"), DONE)
    series = RetryingTransport(wire, **_clocked())
    joined = series.joined(ledger=ledger_into(sink), replay=ON_NETWORK)
    assert (await post(family, joined)).status_code == 200
    record = filed(sink)
    assert [one["reason"] for one in record["attempts"]] == ["first", "throttle", "network"]


async def test_a_series_that_stands_aside_still_has_its_ledger_filed_into(family: Any) -> None:
    """R22, R30. Where whoever hides it has none; the record is of the one series there is."""
    sink = RecordingSink()
    wire = ScriptedTransport(REFUSED, DONE)
    hidden = Wrapper(RetryingTransport(wire, **_clocked(ledger=ledger_into(sink))))
    assert (await post(family, RetryingTransport(hidden, **_clocked()))).status_code == 200
    assert [one["status"] for one in filed(sink)["attempts"]] == [429, 200]


def test_two_declarations_that_differ_are_refused_and_equal_ones_are_not() -> None:
    """R83, R71, D29. The message says where to declare, and shows neither."""
    series = RetryingTransport(ScriptedTransport(), replay=ON_NETWORK)
    with pytest.raises(ValueError, match="declare it once") as caught:
        series.joined(replay=Replay(policy="app-authorized"))
    assert "search" not in str(caught.value)
    same = Replay(tools={"search": ToolRule(repeat_on={"network"})})
    assert series.joined(replay=same).replay == ON_NETWORK
    assert series.joined(replay=None).replay == ON_NETWORK
    silent = RetryingTransport(ScriptedTransport())
    assert silent.joined(replay=ON_NETWORK).replay == ON_NETWORK


async def test_without_a_transport_below_the_familys_own_is_made_at_the_first_call(
    family: Any,
) -> None:
    """R78. Neither earlier nor twice, and it is closed with the series."""
    made: list[Any] = []

    class Own(ScriptedTransport):
        def __init__(self) -> None:
            super().__init__(DONE, DONE)
            made.append(self)

    transport = RetryingTransport(None)
    assert transport.proves_not_sent is None
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(family, "AsyncHTTPTransport", Own)
        assert made == []
        for _ in range(2):
            assert (await post(family, transport)).status_code == 200
    (own,) = made
    assert not own.closed
    await transport.aclose()
    assert own.closed


async def test_a_series_is_entered_left_and_closed_with_what_is_below(family: Any) -> None:
    """R73, R120. Whatever a client does to its transport reaches the one that has a pool."""
    events: list[str] = []

    class Entered(ScriptedTransport):
        async def __aenter__(self) -> Any:
            events.append("entered")
            return self

        async def __aexit__(self, *exc: object) -> None:
            events.append("left")

        async def aclose(self) -> None:
            events.append("closed")

    for layer in (RetryingTransport, VendingTransport):
        events.clear()
        async with family.AsyncClient(transport=layer(Entered(Replies()))) as client:
            assert (await client.get("http://gateway.test/")).status_code == 200
        assert events == ["entered", "left"], layer
        await layer(Entered()).aclose()
        assert events[-1] == "closed"


async def test_a_layer_over_a_bare_duck_is_entered_and_closed_too(family: Any) -> None:
    """R73. Two methods are all that is asked of a transport below."""
    for layer in (RetryingTransport, VendingTransport):
        wire = ScriptedTransport(Replies())
        async with family.AsyncClient(transport=layer(Wrapper(wire))) as client:
            await client.get("http://gateway.test/")
        assert wire.closed
