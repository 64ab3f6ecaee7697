"""R103, B5. Every way to give up has one sentence; a language model reads it."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from surefoot.wire import (
    MAY_HAVE_RUN,
    OUTCOMES,
    Outcome,
    failure_sentence,
    is_sentence,
    outcome_of_status,
    sentence,
)

NOT_SENT = {
    "not-sent",
    "not-sent-in-time",
    "credentials-failed",
    "consent-needed",
    "in-flight",
    "fenced",
    "fence-full",
}
DONE = {"already-ran"}
REFUSED_FIRST = {"unauthorized", "forbidden", "not-found", "session-lost", "rejected"}
WAITS = {"rate-limited", "session-busy"}

# What would invite a blind repeat: an order to do it again that no condition stands before.
INVITES = re.compile(r"(?i)(?<!not )\b(try|call|send)( it| this| the \w+)? again[.!]|retry")


@pytest.mark.parametrize("outcome", OUTCOMES)
def test_a_sentence_says_whether_it_may_have_run(outcome: Outcome) -> None:
    """B5; section 4, "May have run". The four kinds cover every outcome."""
    text = sentence(outcome)
    kinds = (NOT_SENT, DONE, REFUSED_FIRST, MAY_HAVE_RUN)
    assert sum(outcome in kind for kind in kinds) == 1
    if outcome in DONE:
        assert "was not sent, because it is done" in text
        assert "may have run" not in text
        assert "Do not send it again." in text
    elif outcome in NOT_SENT:
        assert "was not sent, so it did not run" in text
        assert "It may have run" not in text
    elif outcome in REFUSED_FIRST:
        assert "comes before anything runs" in text
        assert "may have run" not in text
    elif outcome in WAITS:
        assert "does not promise that" in text
    else:
        assert "It may have run" in text
        assert "Do not send" in text


@pytest.mark.parametrize("outcome", OUTCOMES)
def test_no_sentence_invites_a_blind_repeat(outcome: Outcome) -> None:
    """B5."""
    for retry_after in (None, 0.0, 30.0):
        text = sentence(outcome, retry_after=retry_after)
        assert not INVITES.search(text), text


def test_the_search_for_an_invitation_finds_one() -> None:
    """B5. The positive control; the first is what one framework says after every fault."""
    assert INVITES.search("An error occurred while running the tool. Please try again.")
    assert INVITES.search("Server busy, retry later")
    assert INVITES.search("Call it again!")


@pytest.mark.parametrize("outcome", OUTCOMES)
def test_a_sentence_says_what_to_do_now(outcome: Outcome) -> None:
    """B5."""
    assert re.search(
        r"\b(say that|Wait for the answer)\b|\bSay that\b|ask for less", sentence(outcome)
    )


@pytest.mark.parametrize("outcome", OUTCOMES)
def test_a_sentence_is_plain_text_of_a_bearable_length(outcome: Outcome) -> None:
    """B5."""
    text = sentence(outcome, status=503, retry_after=30, attempts=3)
    assert text.isascii()
    assert text.isprintable()
    assert len(text) < 500
    assert text.endswith(".")
    assert "{" not in text
    assert "  " not in text


def test_every_outcome_has_a_sentence_of_its_own() -> None:
    """B5."""
    assert len({sentence(outcome) for outcome in OUTCOMES}) == len(OUTCOMES)
    assert set(OUTCOMES) >= MAY_HAVE_RUN


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.2, "about 1 second first"),
        (1, "about 1 second first"),
        (1.5, "about 2 seconds"),
        (29.2, "about 30 seconds"),
        (30, "about 30 seconds"),
        (120, "about 120 seconds"),
        (121, "about 3 minutes"),
        (3600, "about 60 minutes"),
        (7201, "about 3 hours"),
        (172_801, "about 3 days"),
    ],
)
@pytest.mark.parametrize("outcome", sorted(WAITS))
def test_a_stated_wait_is_in_the_text_and_never_shortened(
    outcome: Outcome, seconds: float, text: str
) -> None:
    """B5, R36."""
    assert text in sentence(outcome, retry_after=seconds)


@pytest.mark.parametrize("seconds", [None, 0.0, -1.0, 1e9, 1e300, float("inf"), float("nan")])
def test_without_a_wait_that_means_something_none_is_named(seconds: float | None) -> None:
    """B5."""
    text = sentence("rate-limited", retry_after=seconds)
    assert "about" not in text
    assert "give the server time first" in text


def test_only_what_clears_by_itself_names_a_wait() -> None:
    """B5."""
    for outcome in set(OUTCOMES) - WAITS:
        assert sentence(outcome, retry_after=30) == sentence(outcome)


def test_several_sends_are_said_where_they_may_have_run_twice() -> None:
    """B5, R27."""
    assert "more than once, because it was sent 3 times" in sentence("no-answer", attempts=3)
    assert "once" not in sentence("no-answer", attempts=1).replace("at once", "")
    assert "3 times" in sentence("rate-limited", attempts=3)


def test_a_request_is_not_called_a_call() -> None:
    """B5."""
    for outcome in set(OUTCOMES) - {
        "redirected", "already-ran", "fence-full", "fenced", "in-flight",
    }:  # fmt: skip
        assert "this request" in sentence(outcome, what="request").lower()


@pytest.mark.parametrize(
    ("error_type", "shown"),
    [
        ("AccessDeniedException", True),
        ("InternalServerError", True),
        ("ClientFault", True),
        ("x" * 60 + "Fault", False),
        ("Access-Denied-Exception", False),
        ("CANARY", False),
        ("Exception ", False),
        ("a\nException", False),
        ("1Exception", False),
        ("\u00c9Exception", False),
    ],
)
def test_only_what_has_the_form_of_an_error_type_is_shown(error_type: str, shown: bool) -> None:
    """D24."""
    text = sentence("forbidden", status=403, error_type=error_type)
    assert (error_type in text) is shown
    assert ("(HTTP 403)" in text) is not shown


types = st.none() | st.sampled_from(["ThrottlingException", "x", "Error"]) | st.text(max_size=12)


@given(
    st.sampled_from(OUTCOMES),
    st.fixed_dictionaries(
        {},
        optional={
            "status": st.integers(100, 599),
            "retry_after": st.floats(),
            "attempts": st.integers(0, 10**6),
            "error_type": types,
            "what": st.sampled_from(["call", "request"]),
        },
    ),
)
def test_every_sentence_that_can_be_made_is_known_as_ours(
    outcome: Outcome, facts: dict[str, Any]
) -> None:
    """R90, R103. So that an answer that was rewritten is not rewritten again."""
    text = sentence(outcome, **facts)
    assert is_sentence(text)
    assert not is_sentence(text + " CANARY")
    assert not is_sentence("CANARY " + text)


@pytest.mark.parametrize(
    ("status", "error_type", "outcome"),
    [
        (400, None, "rejected"),
        (401, None, "unauthorized"),
        (402, None, "server-error"),
        (403, None, "forbidden"),
        (404, None, "not-found"),
        (405, None, "rejected"),
        (406, None, "rejected"),
        (408, None, "server-error"),
        (409, None, "server-error"),
        (409, "ConflictException", "server-error"),
        (409, "RetryableConflictException", "session-busy"),
        (413, None, "rejected"),
        (415, None, "rejected"),
        (422, None, "rejected"),
        (424, "RuntimeClientError", "server-error"),
        (429, None, "rate-limited"),
        (429, "ThrottlingException", "rate-limited"),
        (400, "ThrottlingException", "rate-limited"),
        (400, "ExpiredTokenException", "unauthorized"),
        (403, "InvalidSignatureException", "unauthorized"),
        (403, "AccessDeniedException", "forbidden"),
        (500, None, "server-failure"),
        (500, "InternalServerException", "server-failure"),
        (503, "ThrottlingException", "rate-limited"),
        (599, None, "server-failure"),
        (302, None, "redirected"),
        (308, None, "redirected"),
    ],
)
def test_a_status_and_a_type_name_an_outcome(
    status: int, error_type: str | None, outcome: str
) -> None:
    """R103, D17."""
    assert outcome_of_status(status, error_type) == outcome
    text = failure_sentence(status, error_type)
    assert f"HTTP {status}" in text
    assert is_sentence(text)


def test_a_404_in_a_session_is_a_session_that_is_gone() -> None:
    """D35."""
    assert outcome_of_status(404, in_session=True) == "session-lost"
    assert outcome_of_status(404) == "not-found"
    assert outcome_of_status(403, in_session=True) == "forbidden"


@pytest.mark.parametrize("outcome", sorted(MAY_HAVE_RUN - {"rate-limited", "session-busy"}))
def test_a_read_is_not_said_to_be_done_twice(outcome: Outcome) -> None:
    """B5, D36. Whoever only wanted to read may ask again, and is told so."""
    text = sentence(outcome, what="read", status=500, attempts=3)
    assert "nothing was changed" in text
    assert "twice" not in text
    assert "may have run" not in text
    assert "twice" in sentence(outcome, what="request", status=500, attempts=3)
    assert is_sentence(text)
