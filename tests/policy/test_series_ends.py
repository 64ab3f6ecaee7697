"""R6, R10 to R13, R20, R21, R23 to R26, R28, R80, D3, D10, B11. What a fact leads to."""

from __future__ import annotations

import pytest

from support.series_play import (
    BUSY_RULE,
    CHANGES,
    LOST,
    MOVED,
    NEVER_LEFT,
    NO_CREDENTIAL,
    OK,
    REFUSED,
    REJECTED,
    REPEATABLE,
    THROTTLE_RULE,
    UNAVAILABLE,
    play,
    refused,
    series_of,
    tool_call,
    waits_of,
)
from surefoot.policy import (
    Answered,
    Call,
    Cause,
    Deliver,
    Fact,
    Fail,
    Limits,
    NotSent,
    Permission,
    Replay,
    ReplayPolicy,
    ToolRule,
    Unanswered,
    Wait,
)

AUTHORIZED = Replay(policy="app-authorized")
KEYED = Replay(
    tools={"t": ToolRule(makes_changes=True, idempotency_key="arguments.id", repeat_on={"network"})}
)
BUSY = refused(kind="session-busy", rule=1)
RULES = (THROTTLE_RULE, BUSY_RULE)


@pytest.mark.parametrize("status", [200, 202, 204, 301, 400, 403, 404, 409, 500, 502, 503, 504])
@pytest.mark.parametrize("replay", [Replay(), AUTHORIZED, REPEATABLE, CHANGES])
def test_an_answer_that_nobody_recognised_is_delivered_at_once(status: int, replay: Replay) -> None:
    """R11, R23, R24, R25. A 5xx is an answer; it is never repeated, whatever was declared."""
    series = series_of(replay=replay)
    assert series.after(Answered(status=status), now=0) == Deliver(why="final-answer")
    assert (series.attempts, series.waited, series.unanswered) == (1, 0.0, False)


@pytest.mark.parametrize("status", [401, 307, 308])
def test_a_status_alone_moves_nothing(status: int) -> None:
    """B11, D31. Whether a 401 was to our credential, and a target is in the origin, is a fact."""
    series = series_of()
    assert series.after(Answered(status=status), now=0) == Deliver(why="final-answer")


@pytest.mark.parametrize(
    ("replay", "carried", "fact", "assume", "authorized"),
    [
        ({}, False, REFUSED, "policy", "no-permission"),
        ({"repeat_on": {"throttle"}}, False, REFUSED, "app", "app"),
        ({"makes_changes": True}, False, REFUSED, "no-permission", "no-permission"),
        (
            {"makes_changes": True, "idempotency_key": "_meta.k"},
            True,
            REFUSED,
            "policy",
            "no-permission",
        ),
        ({}, False, NEVER_LEFT, "proof", "proof"),
        ({"makes_changes": True}, False, NEVER_LEFT, "proof", "proof"),
        ({}, False, LOST, "no-permission", "no-permission"),
        ({"repeat_on": {"network"}}, False, LOST, "app", "app"),
        ({"makes_changes": True}, False, LOST, "no-permission", "no-permission"),
        (
            {"makes_changes": True, "idempotency_key": "_meta.k", "repeat_on": {"network"}},
            True,
            LOST,
            "app",
            "app",
        ),
        ({}, False, BUSY, "adapter", "adapter"),
        ({"makes_changes": True}, False, BUSY, "no-permission", "no-permission"),
        (
            {"makes_changes": True, "idempotency_key": "_meta.k"},
            True,
            BUSY,
            "adapter",
            "adapter",
        ),
        ({}, False, refused(rule=1, status=200), "adapter", "no-permission"),
        ({"makes_changes": True}, False, refused(rule=1, status=200), "no-permission", None),
        ({}, False, REJECTED, "policy", "policy"),
        ({"repeat_on": {"network"}}, False, REJECTED, "policy", "policy"),
        ({"makes_changes": True}, False, REJECTED, "no-permission", "no-permission"),
        ({}, False, MOVED, "protocol", "protocol"),
        ({"makes_changes": True}, False, MOVED, "protocol", "protocol"),
        ({"repeat_on": {"throttle", "network"}}, False, UNAVAILABLE, "final-answer", None),
        ({"repeat_on": {"throttle", "network"}}, False, OK, "final-answer", None),
    ],
)
def test_the_decision_table_row_by_row(
    *, replay: dict[str, object], carried: bool, fact: Fact, assume: str, authorized: str | None
) -> None:
    """R6 to R13, R24, D3, D4, D17. A repeat names who granted it; an end names why."""
    tools = {"t": ToolRule(**replay)} if replay else {}  # type: ignore[arg-type]
    expectations: list[tuple[ReplayPolicy, str]] = [
        ("assume-refused", assume),
        ("app-authorized", authorized or assume),
    ]
    for policy, expected in expectations:
        series = series_of(
            call=tool_call(key_carried=carried),
            rules=RULES,
            replay=Replay(policy=policy, tools=tools),
        )
        decision = series.after(fact, now=0)
        if isinstance(decision, Wait):
            assert decision.permission.by == expected
        else:
            assert decision.why == expected
            assert isinstance(decision, Deliver if isinstance(fact, Answered) else Fail)


@pytest.mark.parametrize("fact", [LOST, NEVER_LEFT])
def test_what_failed_without_an_answer_fails_with_its_own_error(
    fact: Unanswered | NotSent,
) -> None:
    """R12, R24. The transport's error, as it was raised; it is never dressed as an answer."""
    last = play(series_of(Limits(max_attempts=1)), [fact])[-1].decision
    assert isinstance(last, Fail)
    assert last.error is fact.error


@pytest.mark.parametrize(
    ("script", "unanswered"),
    [
        ([OK], False),
        ([REFUSED], False),
        ([REJECTED, OK], False),
        ([NEVER_LEFT], False),
        ([NEVER_LEFT, OK], False),
        ([NO_CREDENTIAL], False),
        ([LOST], True),
        ([LOST, OK], True),
        ([LOST, REFUSED], True),
        ([REFUSED, LOST, UNAVAILABLE], True),
        ([LOST, NEVER_LEFT], True),
    ],
)
def test_it_is_kept_whether_any_attempt_lacked_an_answer(
    script: list[Fact], unanswered: bool
) -> None:
    """R27, R28, R61. A refusal is an answer, and what never left cannot have run."""
    series = series_of(replay=REPEATABLE)
    play(series, script)
    assert series.unanswered is unanswered


def test_a_credential_that_cannot_be_had_ends_the_series() -> None:
    """R24. Asking the provider again is the provider's affair; nothing was sent."""
    for replay in (Replay(), REPEATABLE):
        decision = series_of(replay=replay).after(NO_CREDENTIAL, now=0)
        assert decision == Fail(error=NO_CREDENTIAL.error, why="credential-failed")


@pytest.mark.parametrize(
    ("fact", "why"),
    [
        (REFUSED, "body-not-resendable"),
        (LOST, "body-not-resendable"),
        (NEVER_LEFT, "body-not-resendable"),
        (REJECTED, "body-not-resendable"),
        (MOVED, "body-not-resendable"),
        (OK, "final-answer"),
        (UNAVAILABLE, "final-answer"),
    ],
)
def test_a_body_that_cannot_be_sent_again_is_sent_once(fact: Fact, why: str) -> None:
    """D10. Whatever was permitted: a one-shot body would go out empty."""
    series = series_of(call=tool_call(resendable=False), replay=REPEATABLE)
    decision = series.after(fact, now=0)
    assert isinstance(decision, Deliver if isinstance(fact, Answered) else Fail)
    assert decision.why == why
    whole = series_of(replay=REPEATABLE).after(fact, now=0)
    assert isinstance(whole, Wait) is (why == "body-not-resendable")


def test_permission_is_asked_before_anything_else() -> None:
    """R6. What may not be repeated ends for that reason, also with the budget spent."""
    for limits in (Limits(max_attempts=1), Limits(max_wait=0), Limits(max_elapsed=1e-9)):
        call = tool_call(resendable=False)
        series = series_of(limits, call=call, replay=CHANGES)
        assert series.after(REFUSED, now=1) == Deliver(why="no-permission")


def test_a_rejected_credential_is_replaced_once_at_no_wait() -> None:
    """R18, B9, D32. One forced vend and one re-send; the second 401 is the answer."""
    sends = play(series_of(), [REJECTED])
    assert [send.decision for send in sends] == [
        Wait(
            seconds=0.0,
            permission=Permission(by="policy", assumes="auth-rejected-before-execution"),
            cause="auth",
            attempt=2,
            max_attempts=3,
        ),
        Deliver(why="final-answer"),
    ]


def test_a_credential_rejected_after_other_repeats_is_still_replaced_once() -> None:
    """B9. Once a series, not once in a row."""
    sends = play(series_of(Limits(max_attempts=9)), [REFUSED, REJECTED, REFUSED, REJECTED, OK])
    assert [wait.cause for wait in waits_of(sends)] == ["throttle", "auth", "throttle"]
    assert sends[-1].decision == Deliver(why="final-answer")
    assert sends[-1].fact is REJECTED


def test_a_rule_that_knows_a_401_goes_first() -> None:
    """R59, R69. A recognised refusal is a refusal, whatever its status."""
    fact = Answered(status=401, verdict=refused().verdict, rejected=True)
    assert [wait.cause for wait in waits_of(play(series_of(), [fact]))] == ["throttle"] * 2


def test_redirects_and_the_401_are_counted_as_sends() -> None:
    """R31, B11. All of them together are held by the one count."""
    for script in ([MOVED], [REJECTED, MOVED], [MOVED, REJECTED, MOVED], [MOVED, REFUSED]):
        sends = play(series_of(Limits(max_attempts=3)), script)
        assert len(sends) == 3
        assert sends[-1].decision == Deliver(why="attempts-spent")
    once = play(series_of(Limits(max_attempts=1)), [MOVED])
    assert [send.decision for send in once] == [Deliver(why="attempts-spent")]


def test_a_circle_of_redirects_ends_where_nothing_counts_attempts() -> None:
    """B11. It costs no waiting, so neither waiting nor, on a fast machine, time would end it."""
    sends = play(series_of(Limits(max_attempts=None, max_wait=None)), [MOVED])
    assert len(sends) == 21
    assert sends[-1].decision == Deliver(why="attempts-spent")


@pytest.mark.parametrize("policy", ["assume-refused", "app-authorized"])
@pytest.mark.parametrize("tool", [None, ToolRule(makes_changes=True)])
def test_what_never_left_is_sent_again_under_every_policy(
    policy: ReplayPolicy, tool: ToolRule | None
) -> None:
    """D3. Within the same budget, and permitted by proof."""
    replay = Replay(policy=policy, tools={} if tool is None else {"t": tool})
    sends = play(series_of(replay=replay), [NEVER_LEFT])
    assert [wait.permission for wait in waits_of(sends)] == [Permission(by="proof")] * 2
    assert [wait.cause for wait in waits_of(sends)] == ["reconnect"] * 2
    assert sends[-1].decision == Fail(error=NEVER_LEFT.error, why="attempts-spent")


@pytest.mark.parametrize(
    ("call", "replay", "granted"),
    [
        (tool_call(), Replay(), None),
        (tool_call(), AUTHORIZED, None),
        (tool_call(), CHANGES, None),
        (tool_call(), KEYED, None),
        (tool_call(key_carried=True), KEYED, "app"),
        (tool_call(), REPEATABLE, "app"),
        (tool_call(hinted=True), Replay(trust_hints=True), "hint"),
        (Call(method="tools/list"), Replay(), "protocol"),
        (Call(method="notifications/initialized"), Replay(), None),
    ],
)
def test_with_reconnect_off_proof_is_no_permission_but_the_apps_word_still_is(
    call: Call, replay: Replay, granted: str | None
) -> None:
    """R10, R24, R80, D2, D3. What surely did not run is never worse off than what may have."""
    decision = series_of(call=call, replay=replay, reconnect=False).after(NEVER_LEFT, now=0)
    lost = series_of(call=call, replay=replay, reconnect=False).after(LOST, now=0)
    if granted is None:
        assert decision == Fail(error=NEVER_LEFT.error, why="reconnect-off")
        assert lost == Fail(error=LOST.error, why="no-permission")
    else:
        assert isinstance(decision, Wait)
        assert (decision.cause, decision.permission.by) == ("network", granted)
        assert isinstance(lost, Wait)


def test_reconnect_off_touches_nothing_else() -> None:
    """D3, R80. A refusal, a rejection and a redirect are repeated as before."""
    causes: list[tuple[Fact, Cause]] = [
        (REFUSED, "throttle"),
        (REJECTED, "auth"),
        (MOVED, "redirect"),
    ]
    for fact, cause in causes:
        decision = series_of(reconnect=False).after(fact, now=0)
        assert isinstance(decision, Wait)
        assert decision.cause == cause


@pytest.mark.parametrize("script", [[OK], [LOST], [REFUSED], [NO_CREDENTIAL], [MOVED]])
def test_a_series_that_has_ended_stays_ended(script: list[Fact]) -> None:
    """R12, R20. Nothing is sent after the last word; the shell that asks again has a mistake."""
    series = series_of()
    sends = play(series, script)
    before = (series.attempts, series.waited, series.unanswered)
    for fact in (REFUSED, OK, LOST):
        with pytest.raises(RuntimeError, match=r"^the series has ended"):
            series.after(fact, now=sends[-1].asked)
    assert series.ended
    assert (series.attempts, series.waited, series.unanswered) == before


def test_a_series_has_not_ended_while_it_waits() -> None:
    """R20. The positive control of the test above."""
    series = series_of()
    assert not series.ended
    assert isinstance(series.after(REFUSED, now=0), Wait)
    assert not series.ended
    assert series.after(OK, now=1) == Deliver(why="final-answer")
    assert series.ended
