"""R27, R46, R72, R108, R117, B8, B12, D26, D35. Errors carry facts, and tell no secret."""

from __future__ import annotations

import copy
import io
import logging
import pickle
import pprint
import traceback
from typing import Any

import pytest

import surefoot.errors as room
from surefoot.errors import (
    AnswerTooLargeError,
    AuthorizationRequiredError,
    CredentialError,
    DeadlineExceededError,
    InvalidCredentialError,
    MayHaveRunError,
    NotSentError,
    RateLimitedError,
    SessionLostError,
    SurefootError,
    ToolError,
    UnreadableAnswerError,
)
from surefoot.wire import OUTCOMES

URL = "https://consent.example/authorize?state=CANARY-0b7e&request_uri=urn:CANARY-0b7e"

SAMPLES: list[tuple[SurefootError, str, dict[str, Any]]] = [
    (SurefootError("anything"), "anything", {}),
    (
        RateLimitedError(attempts=3, waited=0.1 + 0.2, retry_after=86400),
        "rate limited: sent 3 times, 0.3 s waited; it asked for 86400 s more",
        {"attempts": 3, "waited": 0.1 + 0.2, "retry_after": 86400},
    ),
    (
        RateLimitedError(attempts=1),
        "rate limited: sent once, 0 s waited",
        {"attempts": 1, "waited": 0.0, "retry_after": None},
    ),
    (
        RateLimitedError(attempts=1, retry_after=2592000),
        "rate limited: sent once, 0 s waited; it asked for 2592000 s more",
        {"attempts": 1, "waited": 0.0, "retry_after": 2592000},
    ),
    (
        MayHaveRunError(cause="no-response", attempts=2, tool="refund", call_id="c-1"),
        "tool 'refund' may have run: no-response, sent 2 times, not sent again",
        {"cause": "no-response", "attempts": 2, "tool": "refund", "call_id": "c-1"},
    ),
    (
        MayHaveRunError(cause="deadline", attempts=1),
        "the request may have run: deadline, sent once, not sent again",
        {"cause": "deadline", "attempts": 1, "tool": None, "call_id": None},
    ),
    (
        NotSentError(cause="not-sent", tool="refund"),
        "tool 'refund' did not run: not-sent, the server could not be reached",
        {"cause": "not-sent", "tool": "refund"},
    ),
    (
        NotSentError(cause="no-answer"),
        "the request did not run: no-answer, no answer came back",
        {"cause": "no-answer", "tool": None},
    ),
    (
        NotSentError(cause="cancelled"),
        "the request did not run: cancelled",
        {"cause": "cancelled", "tool": None},
    ),
    (
        UnreadableAnswerError(rule="duplicate-key"),
        "unreadable answer: duplicate-key",
        {"rule": "duplicate-key"},
    ),
    (
        AnswerTooLargeError(rule="answer-bytes", limit=16 * 1024 * 1024),
        "answer too large: answer-bytes, the limit is 16777216",
        {"rule": "answer-bytes", "limit": 16777216},
    ),
    (
        AuthorizationRequiredError(
            service="calendar", authorization_url=URL, session_uri="urn:CANARY-0b7e"
        ),
        "ERR_GATEWAY_AUTHORIZATION_REQUIRED: a person must authorize 'calendar' first",
        {"service": "calendar", "authorization_url": URL, "session_uri": "urn:CANARY-0b7e"},
    ),
    (
        CredentialError("the provider failed", service="gateway"),
        "no credential for 'gateway': the provider failed",
        {"reason": "the provider failed", "service": "gateway"},
    ),
    (
        CredentialError("the provider failed"),
        "no credential: the provider failed",
        {"reason": "the provider failed", "service": None},
    ),
    (
        InvalidCredentialError("it is empty", service="gateway"),
        "no credential for 'gateway': it is empty",
        {"reason": "it is empty", "service": "gateway"},
    ),
    (
        DeadlineExceededError(max_elapsed=2.5),
        "the call's deadline of 2.5 s passed",
        {"max_elapsed": 2.5},
    ),
    (
        SessionLostError(tool="search"),
        "the MCP session is lost; nothing was replayed",
        {"tool": "search"},
    ),
    (
        ToolError(result={"isError": True}, tool="search"),
        "tool 'search' failed",
        {"result": {"isError": True}, "tool": "search"},
    ),
    (
        ToolError(result=["x"]),
        "the tool reported an error",
        {"result": ["x"], "tool": None},
    ),
]

each = pytest.mark.parametrize(
    ("error", "text", "facts"), SAMPLES, ids=lambda value: type(value).__name__
)


def test_every_error_has_a_sample() -> None:
    """R27. The positive control: one that is missing here would be tested by nothing below."""
    assert {type(error).__name__ for error, _, _ in SAMPLES} == set(room.__all__)


@each
def test_an_error_is_made_of_its_facts(
    error: SurefootError, text: str, facts: dict[str, Any]
) -> None:
    """R27, R46, B12, D35. Each is an attribute, and nothing else is."""
    assert vars(error) == facts
    assert str(error) == text
    assert error.args == (text,)
    assert repr(error) == f"{type(error).__name__}({text!r})"


@each
@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_an_error_survives_pickle_with_its_facts(
    error: SurefootError, text: str, facts: dict[str, Any], protocol: int
) -> None:
    """R27, R46. Workers, queues and process pools get the same error."""
    again = pickle.loads(pickle.dumps(error, protocol))  # noqa: S301 - our own bytes
    assert type(again) is type(error)
    assert vars(again) == facts
    assert (str(again), again.args) == (text, (text,))
    twice = pickle.loads(pickle.dumps(again, protocol))  # noqa: S301 - our own bytes
    assert (type(twice), vars(twice), twice.args) == (type(error), facts, (text,))


@each
def test_an_error_survives_copy(error: SurefootError, text: str, facts: dict[str, Any]) -> None:
    """R27, R46. Frameworks copy what they keep."""
    for again in (copy.copy(error), copy.deepcopy(error)):
        assert (type(again), vars(again), str(again)) == (type(error), facts, text)


@each
def test_neither_a_cause_nor_a_traceback_travels(
    error: SurefootError, text: str, facts: dict[str, Any]
) -> None:
    """R108. What led to it may hold a request; the pickled error holds its own facts only."""
    fresh = copy.copy(error)
    with pytest.raises(type(error)) as caught:
        raise fresh from ConnectionError("CANARY-0b7e in a cause")
    caught.value.add_note("CANARY-0b7e in a note")
    assert caught.value.__cause__ is not None
    again = pickle.loads(pickle.dumps(caught.value))  # noqa: S301 - our own bytes
    assert again.__cause__ is again.__context__ is again.__traceback__ is None
    assert vars(again) == facts
    assert str(again) == text


def test_the_address_of_a_consent_is_a_field_and_never_text() -> None:
    """R108, R117. Not in what any log, console or traceback shows of the error."""
    error = AuthorizationRequiredError(
        service="calendar", authorization_url=URL, session_uri="urn:CANARY-0b7e"
    )
    shown: list[str] = [str(error), repr(error), f"{error}", f"{error!r}", repr(error.args)]
    shown.append(pprint.pformat(error))
    try:
        raise error
    except AuthorizationRequiredError as caught:
        shown.extend(traceback.format_exception(caught))
        stream = io.StringIO()
        logger = logging.getLogger("surefoot.test.errors")
        handler = logging.StreamHandler(stream)
        logger.addHandler(handler)
        try:
            logger.exception("failed")
            logger.warning("failed: %s %r", caught, caught)
        finally:
            logger.removeHandler(handler)
        shown.append(stream.getvalue())
    assert "calendar" in "".join(shown)
    assert "CANARY" not in "".join(shown)
    assert "consent.example" not in "".join(shown)
    # The positive control: it is there for whoever asks for it by name, after a pickle too.
    again = pickle.loads(pickle.dumps(error))  # noqa: S301 - our own bytes
    assert error.authorization_url == again.authorization_url == URL
    assert again.session_uri == "urn:CANARY-0b7e"


def test_consent_has_its_code() -> None:
    """R117. A fixed word to branch on, the same on the class and on each error."""
    error = AuthorizationRequiredError(service="s", authorization_url=URL)
    assert error.code == AuthorizationRequiredError.code == "ERR_GATEWAY_AUTHORIZATION_REQUIRED"
    assert error.session_uri is None


def test_our_deadline_is_caught_as_a_timeout() -> None:
    """R44, R46, D26. And it is no operating system error with a number."""
    with pytest.raises(TimeoutError) as caught:
        raise DeadlineExceededError(max_elapsed=3)
    assert isinstance(caught.value, DeadlineExceededError)
    assert caught.value.max_elapsed == 3
    assert caught.value.errno is None


def test_a_broken_credential_is_caught_as_a_value_error() -> None:
    """B8. It names the rule that was broken."""
    with pytest.raises(ValueError, match=r"^no credential: it is empty$"):
        raise InvalidCredentialError("it is empty")


@pytest.mark.parametrize(
    ("number", "text"),
    [(16777216, "16777216"), (500000, "500000"), (0.1 + 0.2, "0.3"), (0.0004, "0.0004")],
)
def test_a_bound_is_written_as_people_read_it(number: float, text: str) -> None:
    """B12. 16 MiB is not 1.67772e+07."""
    assert str(AnswerTooLargeError(rule="x", limit=number)).endswith(f" {text}")
    assert str(DeadlineExceededError(max_elapsed=number)).endswith(f" {text} s passed")


def test_every_reason_that_is_explained_is_one_that_exists() -> None:
    """D3. A cause that changes its name would lose its explanation unseen."""
    explained = [cause for cause in OUTCOMES if ", " in str(NotSentError(cause=cause))]
    assert len(explained) == len(room._WHY)


@pytest.mark.parametrize("name", sorted(set(room.__all__) - {"SurefootError"}))
def test_facts_are_named_where_the_error_is_raised(name: str) -> None:
    """R72. A value in the wrong place would end up in the message."""
    kind: Any = getattr(room, name)
    with pytest.raises(TypeError, match="positional argument"):
        kind("a", "b", "c")


class _OfAnAppError(MayHaveRunError):
    """An error that an app derived from one of ours, with a constructor of its own."""

    def __init__(self, ticket: str) -> None:
        super().__init__(cause="no-response", attempts=1)
        self.ticket = ticket


def test_an_error_that_an_app_derives_pickles_too() -> None:
    """R27. It is rebuilt without its constructor, whose arguments nobody kept."""
    error = _OfAnAppError("T-1")
    facts, text = vars(error), str(error)
    again = copy.copy(error)
    assert (type(again), vars(again), str(again)) == (_OfAnAppError, facts, text)
