"""Events are what the schema in the package says. R22, R51, D32, D33, B13."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.records import DIGEST, SCHEMA, a_request, an_attempt, filed, validator
from surefoot import evidence
from surefoot.evidence import (
    AnswerForm,
    CallEnded,
    CallStarted,
    CredentialVended,
    Effect,
    Ended,
    Outcome,
    Reason,
    RefusalKind,
    Why,
    sink_failed,
)
from surefoot.policy import Permission


def test_the_schema_is_a_schema() -> None:
    """B13. Draft 2020-12, by its own metaschema."""
    validator.check_schema(SCHEMA)


def every_event() -> list[dict[str, Any]]:
    return [
        *filed(
            CallStarted(call_id="c", endpoint="e"),
            CallStarted(
                call_id="c",
                endpoint="e",
                tool="t",
                arguments_length=2,
                arguments_sha256=DIGEST,
                arguments=b"{}",
            ),
            CredentialVended(service="gateway", kind="bearer", call_id="c"),
            a_request(),
            CallEnded(call_id="c", duration_seconds=1.0, is_error=None, effect="unknown"),
            CallEnded(
                call_id="c",
                duration_seconds=1.0,
                is_error=True,
                effect="ran",
                answer_form="json",
                answer_length=1,
                answer_sha256=DIGEST,
                answer=b"1",
            ),
        ),
        sink_failed({"time": "2026-01-01T00:00:00.000000+00:00", "run": "r"}, sink="S",
                    error="OSError", dropped=3),
    ]  # fmt: skip


def test_every_kind_of_event_is_as_the_schema_says_and_the_schema_has_no_other() -> None:
    """B13. Both ways: no event without a schema, and no schema without an event."""
    events = every_event()
    for event in events:
        validator.validate(event)
    described = {branch["$ref"].removeprefix("#/$defs/") for branch in SCHEMA["oneOf"]}
    assert described == {event["type"] for event in events}


@pytest.mark.parametrize("event", every_event(), ids=lambda event: event["type"])
def test_the_schema_refuses_a_field_too_many_a_field_too_few_and_another_version(
    event: dict[str, Any],
) -> None:
    """B13. The control: what is not an event of this version does not pass as one."""
    assert not validator.is_valid({**event, "stowaway": 1})
    assert not validator.is_valid({**event, "v": 2})
    assert not validator.is_valid({**event, "run": None})
    for field in event:
        assert not validator.is_valid(
            {name: value for name, value in event.items() if name != field}
        )


def each_word() -> Iterator[tuple[str, Any]]:
    yield from (("outcome", word) for word in get_args(Outcome))
    yield from (("effect", word) for word in get_args(Effect))
    yield from (("reason", word) for word in get_args(Reason))
    yield from (("kind", word) for word in (*get_args(RefusalKind), None))
    grants = ("app", "policy", "adapter", "protocol", "hint", "proof")
    yield from (("permission", Permission(by=by)) for by in grants)
    for assumed in ("refused-before-execution", "auth-rejected-before-execution"):
        yield "permission", Permission(by="policy", assumes=assumed)


@pytest.mark.parametrize(("field", "value"), list(each_word()))
def test_every_word_that_an_attempt_takes_is_in_the_schema(field: str, value: object) -> None:
    """D32, R51. The closed sets of the code and of the schema are the same."""
    (event,) = (
        one
        for one in filed(a_request(attempts=(an_attempt(**{field: value}),)))
        if one["type"] == "tool.request_attempts"
    )
    assert list(validator.iter_errors(event)) == []


def test_the_closed_sets_of_a_request_are_the_same_in_code_and_schema() -> None:
    """R51. A word that only one of the two knows is found here."""
    fields = SCHEMA["$defs"]["tool.request_attempts"]["properties"]
    attempt = SCHEMA["$defs"]["attempt"]["properties"]
    assert fields["ended"]["enum"] == list(get_args(Ended))
    assert fields["why"]["enum"] == list(get_args(Why))
    assert fields["answer"]["properties"]["form"]["enum"] == [*get_args(AnswerForm), None]
    assert attempt["outcome"]["enum"] == list(get_args(Outcome))
    assert attempt["reason"]["enum"] == list(get_args(Reason))
    assert attempt["effect"]["enum"] == list(get_args(Effect))
    assert attempt["kind"]["enum"] == [*get_args(RefusalKind), None]


SECONDS = st.floats(min_value=0, max_value=1e9)


@given(
    attempts=st.lists(
        st.fixed_dictionaries(
            {
                "status": st.none() | st.integers(100, 599),
                "started_seconds": SECONDS,
                "duration_seconds": SECONDS,
                "retry_after_seconds": st.none() | st.floats(min_value=0),
                "retry_after_malformed": st.booleans(),
                "wait_seconds": st.none() | SECONDS,
                "error": st.none() | st.text(max_size=300),
                "scrubbed_hits": st.integers(0, 10**6),
                "unsearched_secrets": st.integers(0, 100),
            }
        ),
        max_size=3,
    ),
    tool=st.none() | st.text(max_size=300),
)
def test_whatever_is_filed_is_as_the_schema_says(
    attempts: list[dict[str, Any]], tool: str | None
) -> None:
    """B13, D14. For any values that the constructors take."""
    made = tuple(an_attempt(**fields) for fields in attempts)
    for event in filed(a_request(attempts=made, tool=tool)):
        said = json.loads(json.dumps(event, allow_nan=False))
        assert list(validator.iter_errors(said)) == []


def test_content_in_clear_is_bounded_and_says_where_it_was_cut() -> None:
    """B13. Only where the app asked; at most 64 KiB; a cut character is no error."""
    long = ("ü" * 40_000).encode()
    events = filed(
        CallStarted(call_id="c", endpoint="e", arguments=b'{"q":1}'),
        CallEnded(call_id="c", duration_seconds=0.0, is_error=False, effect="ran", answer=long),
    )
    started, ended = events[1], events[2]
    assert (started["arguments"]["text"], started["arguments"]["cut"]) == ('{"q":1}', False)
    assert ended["answer"]["cut"] is True
    assert len(ended["answer"]["text"].encode()) <= 65_536
    for event in events:
        validator.validate(event)


def test_without_content_no_text_of_arguments_or_answer_is_there() -> None:
    """B13, R53. Digests and lengths only."""
    event = filed(
        CallStarted(call_id="c", endpoint="e", arguments_length=9, arguments_sha256=DIGEST)
    )[1]
    assert event["arguments"] == {"length": 9, "sha256": DIGEST}


def test_the_version_of_the_schema_is_the_version_that_is_written() -> None:
    """B13. One number."""
    assert all(event["v"] == evidence.VERSION for event in every_event())
