"""Records of attempts keep outcome, effect, permission apart. R5, R22, R23, R51, R68, D32, D33."""

from __future__ import annotations

import json
import math
import pickle
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.records import a_request, an_attempt
from surefoot.policy import Permission


def test_a_503_is_recorded_as_answered_with_its_status_and_not_as_a_success() -> None:
    """R23. There is no word for success: an answer is an answer."""
    body = an_attempt(status=503).body()
    assert (body["outcome"], body["status"]) == ("answered", 503)
    assert not {"ok", "success"} & set(body)


def test_a_grant_and_its_assumption_stand_beside_an_effect_that_stays_unknown() -> None:
    """R5, R68, D32. Permission says nothing about what ran."""
    grant = Permission(by="policy", assumes="refused-before-execution")
    body = an_attempt(outcome="refused", status=429, kind="throttle", permission=grant).body()
    assert body["permission"] == {"by": "policy", "assumes": "refused-before-execution"}
    assert body["effect"] == "unknown"


@pytest.mark.parametrize(
    ("outcome", "effect", "may"),
    [
        ("unanswered", "unknown", True),
        ("cut", "unknown", True),
        ("unanswered", "not_sent", False),
        ("not_sent", "not_sent", False),
        ("cut", "not_sent", False),
        ("answered", "unknown", False),
        ("refused", "unknown", False),
        ("answered", "ran", False),
    ],
)
def test_only_an_attempt_without_an_answer_and_without_proof_may_have_run(
    outcome: str, effect: str, may: bool
) -> None:
    """R27, D3. Neither an answer nor proof that nothing left."""
    assert an_attempt(outcome=outcome, effect=effect).may_have_run is may


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("number", 0),
        ("outcome", "success"),
        ("effect", "maybe"),
        ("reason", "because"),
        ("kind", "busy"),
        ("started_seconds", -0.001),
        ("started_seconds", math.nan),
        ("duration_seconds", -1.0),
        ("duration_seconds", math.inf),
        ("wait_seconds", math.nan),
        ("wait_seconds", -1.0),
        ("wait_seconds", math.inf),
    ],
)
def test_an_attempt_outside_its_words_and_numbers_is_refused_by_name(
    option: str, value: object
) -> None:
    """R51. The sets are closed; a value that JSON has no form for never gets in."""
    with pytest.raises(ValueError, match=f"^{option}: "):
        an_attempt(**{option: value})


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("ended", "fine"),
        ("why", "tired"),
        ("answer_form", "xml"),
        ("waited_seconds", -1.0),
        ("waited_seconds", math.nan),
        ("duration_seconds", math.inf),
    ],
)
def test_a_request_outside_its_words_and_numbers_is_refused_by_name(
    option: str, value: object
) -> None:
    """R51. How a request ended, and why, are closed sets."""
    with pytest.raises(ValueError, match=f"^{option}: "):
        a_request(**{option: value})


def test_a_refused_word_is_not_echoed() -> None:
    """R72. The message names the option and the set."""
    with pytest.raises(ValueError, match="outcome") as caught:
        an_attempt(outcome="canary-word")
    assert "canary-word" not in str(caught.value)


def test_records_are_values_and_pickle() -> None:
    """R51. What is filed is what is kept, and no field can be added to it."""
    one = a_request(attempts=(an_attempt(),))
    with pytest.raises(AttributeError):
        one.more = "words"  # type: ignore[attr-defined]
    assert pickle.loads(pickle.dumps(one)) == one  # noqa: S301 - our own bytes


def test_a_stated_wait_that_no_clock_could_hold_is_still_a_number_in_json() -> None:
    """D14. No value of Retry-After raises or overflows, here either."""
    for stated in (sys.float_info.max, math.inf):
        text = json.dumps(an_attempt(retry_after_seconds=stated).body(), allow_nan=False)
        assert json.loads(text)["retry_after_seconds"] == sys.float_info.max


def test_names_that_somebody_else_chose_are_bounded() -> None:
    """B13. A tool's name of a megabyte does not make an event of a megabyte."""
    one = a_request(
        tool="t" * 1_000_000, method="m" * 1_000, attempts=(an_attempt(error="E" * 9_999),)
    )
    event = one.body()
    assert len(json.dumps(event)) < 4_000
    assert event["tool"].endswith("…")
    assert a_request(tool="t" * 256).body()["tool"] == "t" * 256


def test_the_event_of_a_request_says_everything_about_it() -> None:
    """R22, R51, R52, D33. Once per request: every attempt, and how and why it ended."""
    grant = Permission(by="app")
    one = a_request(
        tool="refund",
        attempts=(
            an_attempt(
                status=429,
                outcome="refused",
                kind="throttle",
                retry_after_seconds=2.0,
                wait_seconds=2.5,
                permission=grant,
                credential="bearer",
                scrubbed_hits=3,
                unsearched_secrets=1,
            ),
            an_attempt(number=2, reason="throttle", started_seconds=2.75, status=200),
        ),
        status=200,
        waited_seconds=2.5,
        duration_seconds=3.0,
        answer_form="json",
        answer_length=17,
        answer_sha256="ab" * 32,
        request_length=2,
        request_sha256="cd" * 32,
        family="httpx2",
        hook_failures=1,
        call_id="c1",
    )
    event = one.body()
    assert (one.type, event["call"]) == ("tool.request_attempts", "c1")
    assert [one["reason"] for one in event["attempts"]] == ["first", "throttle"]
    first = event["attempts"][0]
    assert (first["retry_after_seconds"], first["wait_seconds"]) == (2.0, 2.5)
    assert event["answer"] == {"form": "json", "length": 17, "sha256": "ab" * 32}
    assert event["request"] == {"length": 2, "sha256": "cd" * 32}
    assert event["hook_failures"] == 1
    assert (first["scrubbed_hits"], first["unsearched_secrets"]) == (3, 1)


@given(
    seconds=st.floats(min_value=0, max_value=1e12, allow_nan=False),
    stated=st.one_of(st.none(), st.floats(min_value=0)),
)
def test_every_record_is_json_and_keeps_its_seconds_to_the_microsecond(
    seconds: float, stated: float | None
) -> None:
    """D14, D15. Records keep what was stated and what was taken."""
    body = an_attempt(
        started_seconds=seconds, wait_seconds=seconds, retry_after_seconds=stated
    ).body()
    back = json.loads(json.dumps(body, allow_nan=False))
    assert back == body
    assert abs(back["wait_seconds"] - seconds) <= 1e-6 + seconds * 1e-12
