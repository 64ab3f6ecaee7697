"""R1, R2, R20, R21, R32, R35 to R37, R43 to R49, D5, D6, D11, D15: one budget for a call."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from typing import Any

import anyio
import pytest

from support.sending import (
    DONE,
    REFUSED,
    lowest,
    message,
    post,
    refused,
    sent_through,
)
from surefoot.errors import DeadlineExceededError, MayHaveRunError
from surefoot.policy import Replay, Retry, ToolRule
from surefoot.testing import Fails, FakeClock, Replies, ScriptedTransport
from surefoot.transports import RetryingTransport

pytestmark = pytest.mark.anyio


async def test_a_refusal_is_waited_out_and_the_same_request_sent_again(family: Any) -> None:
    """R1, R2, R21, R35. The caller sees the answer, and each send carried the same bytes."""
    wire = ScriptedTransport(refused(2), DONE)
    outcome = await sent_through(family, wire, retry=Retry(spread=0))
    assert (outcome.status, outcome.sends, outcome.slept) == (200, 2, (2.0,))
    assert outcome.record["waited_seconds"] == 2.0
    first, second = wire.requests
    assert (first.body, first.headers, first.url) == (second.body, second.headers, second.url)


@pytest.mark.parametrize(
    ("retry", "plays", "sends", "slept", "why"),
    [
        (Retry(), [REFUSED] * 3, 3, (0.1, 0.2), "attempts-spent"),
        (Retry(max_attempts=1), [REFUSED], 1, (), "attempts-spent"),
        (Retry(max_attempts=0), [REFUSED], 1, (), "attempts-spent"),
        (Retry(max_wait=0), [REFUSED], 1, (), "waiting-spent"),
        (Retry(max_wait=-1), [REFUSED], 1, (), "waiting-spent"),
        (Retry(max_wait=0.1), [REFUSED] * 2, 2, (0.1,), "waiting-spent"),
        (Retry(jitter="none"), [REFUSED] * 3, 3, (0.2, 0.4), "attempts-spent"),
        (Retry(spread=0, max_attempts=None), [refused(5)] * 3, 3, (5.0, 5.0), "waiting-spent"),
        (Retry(spread=0, max_wait=5), [refused(5.0)] * 3, 3, (0.1, 0.2), "attempts-spent"),
        (Retry(spread=0, max_wait=5), [refused(5)] * 2, 2, (5.0,), "waiting-spent"),
        (Retry(spread=0), [refused(11)], 1, (), "waiting-spent"),
        (Retry(max_elapsed=4), [refused(4)], 1, (), "no-time"),
        (Retry(max_elapsed=4, spread=0), [refused(3), refused(1)], 2, (3.0,), "no-time"),
        (Retry(max_delay=0.05), [REFUSED] * 3, 3, (0.025, 0.025), "attempts-spent"),
        (Retry(max_delay=0.05, spread=0), [refused(2)] * 3, 3, (2.0, 2.0), "attempts-spent"),
    ],
)
async def test_a_wait_is_taken_whole_or_the_refusal_is_delivered(  # noqa: PLR0917 - a row
    family: Any, retry: Retry, plays: list[Any], sends: int, slept: tuple[float, ...], why: str
) -> None:
    """R26, R34, R36, R37, R43, R45, D5. The last refusal comes as the server sent it."""
    wire = ScriptedTransport(*plays)
    outcome = await sent_through(family, wire, retry=retry)
    assert (outcome.status, outcome.sends) == (429, sends)
    assert outcome.slept == pytest.approx(slept)
    assert (outcome.record["ended"], outcome.record["why"]) == ("refused", why)


async def test_a_final_refusal_can_still_be_read(family: Any) -> None:
    """D11, R26. Permission and limits are decided before the body is let go of."""
    body = b'{"error":"slow down"}'
    wire = ScriptedTransport(Replies(429, body=b"first"), Replies(429, body=body))
    transport = RetryingTransport(wire, retry=Retry(max_attempts=2), clock=FakeClock(), draw=lowest)
    response = await post(family, transport)
    assert (response.status_code, response.content) == (429, body)
    assert wire.open_responses == 0


async def test_a_deadline_cuts_what_is_in_flight(family: Any) -> None:
    """R46, R12, D26. A tool call may have run, and its cause is the deadline; a read may not."""

    async def never(_: Any) -> Replies:
        await anyio.sleep(30)
        return DONE

    for method, kind in (("tools/call", MayHaveRunError), ("tools/list", DeadlineExceededError)):
        wire = ScriptedTransport(never)
        transport = RetryingTransport(wire, retry=Retry(max_elapsed=0.05))
        with anyio.fail_after(5), pytest.raises(kind) as caught:
            await post(family, transport, message(method))
        assert len(wire.requests) == 1
        if kind is MayHaveRunError:
            error: Any = caught.value
            assert (error.cause, error.tool, error.attempts) == ("deadline", "search", 1)
            assert isinstance(error.__cause__, DeadlineExceededError)


async def test_a_deadline_covers_a_json_body_that_a_rule_reads(family: Any) -> None:
    """D26, R62. A rule that waits for a body is stopped, and the answer let go of."""
    from surefoot.policy import AnswerView, Rule

    class Reads:
        reads = 64

        def recognise(self, answer: AnswerView) -> None:
            raise AssertionError(answer)

    async def slow() -> AsyncIterator[bytes]:
        yield b'{"a":'
        await anyio.sleep(30)

    wire = ScriptedTransport(Replies(headers={"content-type": "application/json"}, chunks=slow))
    transport = RetryingTransport(
        wire, retry=Retry(max_elapsed=0.05), rules=[Rule(recognise=Reads())]
    )
    with anyio.fail_after(5), pytest.raises(MayHaveRunError):
        await post(family, transport)
    assert wire.open_responses == 0


async def test_a_deadline_that_passes_while_vending_is_no_call_that_may_have_run(
    family: Any,
) -> None:
    """R46, D3. Nothing had left."""
    from surefoot.credentials import as_provider
    from surefoot.transports import VendingTransport

    async def slow(_: object) -> Any:
        await anyio.sleep(30)

    wire = ScriptedTransport(DONE)
    vending = VendingTransport(wire, credentials=as_provider(slow))
    transport = RetryingTransport(vending, retry=Retry(max_elapsed=0.05))
    with anyio.fail_after(5), pytest.raises(DeadlineExceededError):
        await post(family, transport)
    assert wire.requests == []


class Oversleeps(FakeClock):
    """A clock on a busy machine: every sleep takes two seconds more."""

    async def sleep(self, seconds: float) -> None:
        """Sleep too long."""
        await super().sleep(seconds + 2.0)


@pytest.mark.parametrize(
    "bound", [{"retry": Retry(max_elapsed=3.0, spread=0)}, {"caller_timeout": 3.0}]
)
async def test_a_wait_that_overslept_sends_nothing_more(family: Any, bound: dict[str, Any]) -> None:
    """R12, R45, B2, B6. No send at or after the deadline, nor for a caller who has left."""
    bound = {"retry": Retry(spread=0), **bound}
    wire = ScriptedTransport(refused(2))
    outcome = await sent_through(family, wire, clock=Oversleeps(), **bound)
    assert outcome.sends == 1
    assert isinstance(outcome.error, DeadlineExceededError)
    assert (outcome.record["ended"], outcome.record["why"]) == ("cut", "deadline")
    punctual = await sent_through(family, ScriptedTransport(refused(2), DONE), **bound)
    assert punctual.status == 200


async def test_no_wait_outlasts_the_callers_own_patience(family: Any) -> None:
    """B6. The control is a wait that fits."""
    wire = ScriptedTransport(refused(5))
    outcome = await sent_through(family, wire, retry=Retry(spread=0), caller_timeout=5.0)
    assert (outcome.status, outcome.sends, outcome.record["why"]) == (429, 1, "no-time")
    wire = ScriptedTransport(refused(4), DONE)
    outcome = await sent_through(family, wire, retry=Retry(spread=0), caller_timeout=5.0)
    assert (outcome.status, outcome.sends) == (200, 2)


async def test_one_count_for_every_reason_to_repeat(family: Any) -> None:
    """R31, R32. A lost connection and a refusal spend the same budget."""
    wire = ScriptedTransport(Fails("ReadError"), REFUSED, Fails("ReadError"))
    replay = Replay(tools={"search": ToolRule(repeat_on={"network", "throttle"})})
    outcome = await sent_through(family, wire, replay=replay)
    assert outcome.sends == 3
    assert type(outcome.error).__name__ == "ReadError"
    assert [one["reason"] for one in outcome.attempts] == ["first", "network", "throttle"]


async def test_a_malformed_wait_degrades_to_our_own_backoff_and_is_recorded(family: Any) -> None:
    """R87, D14, D34. A date is measured from the server's own clock."""
    dated = Replies(
        429,
        headers={
            "date": "Sun, 06 Nov 1994 08:49:37 GMT",
            "retry-after": "Sun, 06 Nov 1994 08:49:40 GMT",
        },
    )
    wire = ScriptedTransport(refused("soon"), dated, DONE)
    outcome = await sent_through(family, wire, retry=Retry(spread=0))
    assert outcome.slept == (0.1, 3.0)
    assert [one["retry_after_malformed"] for one in outcome.attempts] == [True, False, False]
    assert [one["retry_after_seconds"] for one in outcome.attempts] == [None, 3.0, None]


async def test_a_wait_and_a_give_up_are_logged_by_label_alone(
    family: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """R41, R53. INFO a wait, WARNING a give-up; never a path, an argument or an answer."""
    caplog.set_level(logging.DEBUG, logger="surefoot")
    wire = ScriptedTransport(refused(2), Replies(429, body=b"in-the-answer"))
    request = message(secret="in-the-arguments")
    for name in ("billing", None):
        caplog.clear()
        wire = ScriptedTransport(refused(2), Replies(429, body=b"in-the-answer"))
        await sent_through(
            family, wire, retry=Retry(max_attempts=2, spread=0), name=name, request=request
        )
        lines = [(one.levelname, one.getMessage()) for one in caplog.records]
        label = name or "http://gateway.test"
        assert lines == [
            ("INFO", f"{label}: throttle, attempt 2 in 2.000 s"),
            ("WARNING", f"{label}: gave up on a refusal: attempts-spent"),
        ]


async def test_an_unthrottled_call_is_sent_once_and_says_nothing(
    family: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """R21, R51. One attempt, no wait, no log line, and a record."""
    caplog.set_level(logging.DEBUG, logger="surefoot")
    outcome = await sent_through(family, ScriptedTransport(DONE), name="billing")
    assert (outcome.sends, outcome.slept, outcome.status) == (1, (), 200)
    assert caplog.records == []
    assert outcome.record["endpoint"] == "billing"
    assert (outcome.record["ended"], outcome.record["why"]) == ("answered", "final-answer")
    assert (outcome.record["method"], outcome.record["tool"]) == ("tools/call", "search")
