"""R58 to R63, R66, R69, D14, D17: a rule sees plain values, and cannot take a call down."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from support.sending import DONE, REFUSED, sent_through
from surefoot.policy import AnswerView, Rule, ThrottleRule, Verdict
from surefoot.testing import Replies, ScriptedTransport

pytestmark = pytest.mark.anyio


class Recogniser:
    """A function as a recogniser."""

    def __init__(self, function: Any, reads: Any) -> None:
        self._function = function
        self.reads = reads

    def recognise(self, answer: AnswerView) -> Verdict | None:
        """Ask the function."""
        return self._function(answer)


def _rule(recognise: Any, reads: Any = 0) -> Rule:
    return Rule(recognise=Recogniser(recognise, reads), assumes="refused-before-execution")


def _says(word: Any) -> Any:
    def recognise(_: AnswerView) -> Any:
        return word

    return recognise


def _raises(_: AnswerView) -> Verdict:
    raise RuntimeError("canary-in-the-rule")


class BadReads:
    """Cannot even say what it reads."""

    @property
    def reads(self) -> int:
        """Raise, but not while it is looked at when the rule is built."""
        self.asked = getattr(self, "asked", 0) + 1
        if self.asked > 1:
            raise RuntimeError("canary-in-the-rule")
        return 0

    def recognise(self, answer: AnswerView) -> None:
        """Nothing."""
        del answer


@pytest.mark.parametrize(
    "broken",
    [
        _rule(_raises),
        _rule(_says(True)),
        _rule(_says("throttle")),
        _rule(_says(None), reads=-5),
        _rule(_says(None), reads="many"),
        Rule(recognise=BadReads()),
    ],
    ids=["raises", "says true", "says a word", "reads less than nothing", "reads a word",
         "cannot say what it reads"],
)  # fmt: skip
async def test_a_rule_that_is_broken_recognises_nothing_and_the_others_are_asked(
    family: Any, broken: Rule, caplog: pytest.LogCaptureFixture
) -> None:
    """R58, R69. What it raises is named by its class; its text may hold anything and is not."""
    caplog.set_level(logging.DEBUG, logger="surefoot")
    wire = ScriptedTransport(Replies(503))
    outcome = await sent_through(family, wire, rules=[broken])
    assert (outcome.status, outcome.sends) == (503, 1)
    wire = ScriptedTransport(REFUSED, DONE)
    outcome = await sent_through(family, wire, rules=[broken, Rule(recognise=ThrottleRule())])
    assert (outcome.status, outcome.sends) == (200, 2)
    assert "canary" not in caplog.text


async def test_rules_are_asked_in_order_and_the_first_verdict_counts(family: Any) -> None:
    """R69. Those behind it are not asked."""
    asked: list[str] = []

    def say(name: str, verdict: Verdict | None) -> Any:
        def recognise(_: AnswerView) -> Verdict | None:
            asked.append(name)
            return verdict

        return recognise

    rules = [
        _rule(say("one", None)),
        _rule(say("two", Verdict(kind="session-busy", retry_after=2.0))),
        _rule(say("three", Verdict(kind="throttle"))),
    ]
    wire = ScriptedTransport(Replies(503), Replies(503), Replies(503))
    outcome = await sent_through(family, wire, rules=rules)
    assert asked == ["one", "two"] * 3
    assert [one["kind"] for one in outcome.attempts] == ["session-busy"] * 3
    assert [one["retry_after_seconds"] for one in outcome.attempts] == [2.0] * 3


async def test_a_rule_sees_status_lines_and_our_time_and_nothing_else(family: Any) -> None:
    """R58, R62, D34. Header names in lower case, in order, several of one name included."""
    seen: list[AnswerView] = []

    def look(answer: AnswerView) -> None:
        seen.append(answer)

    lines = [("X-A", "1"), ("x-a", "2"), ("Content-Type", "application/json")]
    wire = ScriptedTransport(Replies(418, headers=lines, body=b"{}"))
    await sent_through(family, wire, rules=[_rule(look)])
    (view,) = seen
    assert (view.status, view.body) == (418, b"")
    assert view.headers == [("x-a", "1"), ("x-a", "2"), ("content-type", "application/json")]
    assert view.now.utcoffset() is not None
    assert view.values("x-a") == ["1", "2"]


@pytest.mark.parametrize("stated", [float("nan"), float("inf"), -1.0])
async def test_a_wait_that_means_nothing_is_our_own_backoff(family: Any, stated: float) -> None:
    """D14, D17. A sleep on it would never end; the record says so."""
    wire = ScriptedTransport(Replies(299), DONE)

    def busy(answer: AnswerView) -> Verdict | None:
        return Verdict(kind="throttle", retry_after=stated) if answer.status == 299 else None

    outcome = await sent_through(family, wire, rules=[_rule(busy)])
    assert outcome.slept == (0.1,)
    assert outcome.attempts[0]["retry_after_malformed"] is True


async def test_no_rule_at_all_delivers_everything(family: Any) -> None:
    """R69, R70. Also the 429."""
    wire = ScriptedTransport(REFUSED)
    outcome = await sent_through(family, wire, rules=[])
    assert (outcome.status, outcome.record["ended"]) == (429, "answered")
