"""R58 to R60, R63, R66, R67, R71, R72, R74, D14, D17, D34. What recognises a refusal."""

from __future__ import annotations

import dataclasses
import math
import sys
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.http_dates import asctime, imf_fixdate, rfc850
from surefoot.policy import AnswerView, Limits, RefusalRule, Rule, ThrottleRule, Verdict

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)
CANARY = "CANARY-c4aa"


def answer(
    *headers: tuple[str, str], status: int = 429, now: datetime = NOW, body: bytes = b""
) -> AnswerView:
    return AnswerView(status=status, headers=headers, now=now, body=body)


def verdict_of(*headers: tuple[str, str]) -> Verdict:
    verdict = ThrottleRule().recognise(answer(*headers))
    assert verdict is not None
    return verdict


def verdict(**facts: Any) -> Verdict:
    return Verdict(**facts)


def rule(**parts: Any) -> Rule:
    parts.setdefault("recognise", ThrottleRule())
    return Rule(**parts)


@pytest.mark.parametrize("status", [status for status in range(100, 600) if status != 429])
def test_no_other_status_is_a_throttle(status: int) -> None:
    """R11, R23, R63. Not a 503 with a Retry-After either, and not a body that says so."""
    view = answer(("retry-after", "1"), status=status, body=b"429 too many requests")
    assert ThrottleRule().recognise(view) is None


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ([], Verdict(kind="throttle")),
        ([("retry-after", "7")], Verdict(kind="throttle", retry_after=7)),
        ([("retry-after", " 7\t")], Verdict(kind="throttle", retry_after=7)),
        ([("retry-after", "0")], Verdict(kind="throttle", retry_after=0)),
        ([("retry-after", "soon")], Verdict(kind="throttle", malformed=True)),
        ([("retry-after", "")], Verdict(kind="throttle", malformed=True)),
        ([("retry-after", "nan")], Verdict(kind="throttle", malformed=True)),
        ([("retry-after", "-1")], Verdict(kind="throttle", malformed=True)),
        ([("retry-after", "7, 7")], Verdict(kind="throttle", malformed=True)),
        (
            [("retry-after", "7"), ("retry-after", "7")],
            Verdict(kind="throttle", malformed=True),
        ),
        (
            [("retry-after", "7"), ("x", "y"), ("retry-after", "nonsense")],
            Verdict(kind="throttle", malformed=True),
        ),
        ([("x-retry-after", "7"), ("retry-after-ms", "7")], Verdict(kind="throttle")),
        ([("x", "y"), ("retry-after", "8")], Verdict(kind="throttle", retry_after=8)),
    ],
    ids=lambda value: ascii(value)[:60],
)
def test_a_429_is_a_throttle_with_the_servers_own_wait(
    headers: list[tuple[str, str]], expected: Verdict
) -> None:
    """R63, R87, D14. One readable line states a wait; anything else is said to be malformed."""
    assert verdict_of(*headers) == expected


def test_the_body_says_nothing() -> None:
    """R60, R63. Two headers and the status: the body is not even asked for."""
    throttle = ThrottleRule()
    assert throttle.reads == 0
    assert throttle.recognise(answer(body=b'{"retry_after": 5}')) == Verdict(kind="throttle")


@pytest.mark.parametrize("skew", [-86400 * 365, -3600, -1, 0, 1, 3600, 86400 * 365])
@pytest.mark.parametrize("form", [imf_fixdate, rfc850, asctime])
def test_a_date_is_measured_from_the_answers_own_date(skew: int, form: Any) -> None:
    """D34. A server whose clock is wrong is wrong in both headers, so the wait is right."""
    theirs = NOW + timedelta(seconds=skew)
    until = form(theirs + timedelta(seconds=9))
    for dated in (imf_fixdate(theirs), f" {imf_fixdate(theirs)}\t", asctime(theirs)):
        assert verdict_of(("date", dated), ("retry-after", until)).retry_after == 9


@pytest.mark.parametrize(
    "dates",
    [
        [],
        [""],
        ["nonsense"],
        ["Mon, 30 Nov 2026 13:00:00 CET"],
        ["Tue, 30 Nov 2026 11:00:00 GMT"],
        ["Mon, 30 Nov 2026 11:00:00 GMT", "Mon, 30 Nov 2026 11:00:00 GMT"],
        ["1796040000"],
    ],
)
def test_without_one_well_formed_date_our_clock_counts(dates: list[str]) -> None:
    """D34. A date that cannot be read in one way is no date."""
    headers = [("date", value) for value in dates]
    found = verdict_of(*headers, ("retry-after", imf_fixdate(NOW + timedelta(seconds=9))))
    assert (found.retry_after, found.malformed) == (9, False)


def test_seconds_are_seconds_whatever_the_date() -> None:
    """D34. Only a date is measured from anything."""
    headers = [("date", imf_fixdate(NOW - timedelta(days=9))), ("retry-after", "9")]
    assert verdict_of(*headers).retry_after == 9


def test_a_date_that_has_passed_is_stated_and_zero() -> None:
    """D14. It is a stated wait, not a malformed one."""
    headers = [("date", imf_fixdate(NOW)), ("retry-after", imf_fixdate(NOW - timedelta(1)))]
    assert verdict_of(*headers) == Verdict(kind="throttle", retry_after=0)


@given(lines=st.lists(st.tuples(st.sampled_from(["retry-after", "date"]), st.text()), max_size=4))
def test_no_header_makes_the_rule_raise(lines: list[tuple[str, str]]) -> None:
    """R87, D14, D34. It is a throttle, and its wait is finite or absent."""
    found = verdict_of(*lines)
    assert found.kind == "throttle"
    assert found.retry_after is None or 0 <= found.retry_after <= sys.float_info.max
    sent = any(name == "retry-after" for name, _ in lines)
    assert found.malformed is (sent and found.retry_after is None)


def test_a_verdict_says_what_and_how_long_and_grants_nothing() -> None:
    """R58, R59. There is no word in it by which a rule could authorise."""
    assert {field.name for field in dataclasses.fields(Verdict)} == {
        "kind",
        "retry_after",
        "malformed",
    }


@pytest.mark.parametrize(
    "stated", [math.nan, math.inf, -math.inf, -1, -0.001, -(10**400), True, False, "5", b"5", [5]]
)
def test_a_wait_that_cannot_be_waited_is_malformed_whatever_rule_states_it(stated: Any) -> None:
    """D14, D17. NaN passes every clamp, and a sleep on it never ends."""
    assert verdict(kind="throttle", retry_after=stated) == Verdict(kind="throttle", malformed=True)


@pytest.mark.parametrize(
    ("stated", "kept"),
    [(0, 0.0), (-0.0, 0.0), (5, 5.0), (0.25, 0.25), (10**400, sys.float_info.max)],
)
def test_a_wait_from_a_body_may_be_a_whole_number_or_a_fraction(stated: Any, kept: float) -> None:
    """D17. Seconds, int or float; a number that no float holds fits into no budget."""
    found = verdict(kind="throttle", retry_after=stated)
    assert (found.retry_after, found.malformed) == (kept, False)
    assert isinstance(found.retry_after, float)


@pytest.mark.parametrize("kind", ["network", "quota", "", "Throttle", CANARY])
def test_the_kinds_of_refusal_are_a_closed_set(kind: str) -> None:
    """R60, R74. Two kinds; network exists only in reports."""
    for known in ("throttle", "session-busy"):
        assert verdict(kind=known).kind == known
    with pytest.raises(ValueError, match=r'^kind: must be "throttle" or "session-busy"$'):
        verdict(kind=kind)


class Busy:
    """A rule of somebody's own."""

    reads = 64

    def recognise(self, answer: AnswerView) -> Verdict | None:
        return Verdict(kind="session-busy") if b"busy" in answer.body else None


class Deaf:
    """It says how much it reads, and recognises nothing at all."""

    reads = 0


def test_any_object_of_the_right_shape_is_a_rule() -> None:
    """R58, R66. No base class is asked for."""
    assert isinstance(ThrottleRule(), RefusalRule)
    assert isinstance(Busy(), RefusalRule)
    assert not isinstance(Deaf(), RefusalRule)
    assert Rule(recognise=Busy()).recognise.recognise(answer(body=b"busy")) is not None


@pytest.mark.parametrize(
    ("parts", "wrong", "says"),
    [
        ({"recognise": None}, TypeError, "recognise: must be an object with reads and"),
        ({"recognise": CANARY}, TypeError, "recognise: must be an object with reads and"),
        ({"recognise": Deaf()}, TypeError, "recognise: must be an object with reads and"),
        ({"recognise": Busy().recognise}, TypeError, "recognise: must be an object with reads"),
        ({"limits": 3}, TypeError, "limits: must be a Limits, or None"),
        ({"limits": CANARY}, TypeError, "limits: must be a Limits, or None"),
        ({"limits": {"max_attempts": 3}}, TypeError, "limits: must be a Limits, or None"),
        ({"on_retry": CANARY}, TypeError, "on_retry: must be a callable"),
        ({"on_retry": 1}, TypeError, "on_retry: must be a callable"),
        ({"assumes": CANARY}, ValueError, "assumes: must be"),
        ({"assumes": "auth-rejected-before-execution"}, ValueError, "assumes: must be"),
        ({"assumes": True}, TypeError, "assumes: must be"),
    ],
    ids=lambda value: ascii(value)[:40],
)
def test_a_rule_that_could_only_fail_later_is_refused_when_built(
    parts: dict[str, Any], wrong: type[Exception], says: str
) -> None:
    """R67, R71, R72. Not at the first refusal, which may be weeks away."""
    with pytest.raises(wrong) as caught:
        rule(**parts)
    assert type(caught.value) is wrong
    assert str(caught.value).startswith(says)
    assert "CANARY" not in f"{caught.value!r}"


def test_a_rule_needs_no_more_than_how_to_recognise() -> None:
    """R66, R67. Its own limits, its hook and its assumption are all left out by default."""
    plain = rule()
    assert (plain.limits, plain.on_retry, plain.assumes) == (None, None, None)
    full = rule(limits=Limits(max_attempts=2), on_retry=print, assumes="refused-before-execution")
    assert full.limits == Limits(max_attempts=2)
    assert "print" not in repr(full)


def test_the_lines_of_one_header_are_given_in_order() -> None:
    """R63. Names in lower case, every line apart."""
    view = answer(("a", "1"), ("b", "2"), ("a", "3"))
    assert view.values("a") == ["1", "3"]
    assert view.values("c") == []
