"""What the conformance suite asks of a client, and what it says of it, is read as it is written."""

from __future__ import annotations

from conformance import failures_in, required_by

REQUIREMENTS = """# about this list
server:
  - tools-list

client:
  - initialize
  # a note
  - auth/metadata-default

not_scored:
  - scenario: auth/dpop
    leg: client
"""


def test_the_scenarios_of_a_client_are_those_in_its_own_list() -> None:
    assert required_by(REQUIREMENTS) == ["initialize", "auth/metadata-default"]
    assert required_by("server:\n  - tools-list\n") == []


def test_a_check_that_failed_is_named_and_what_is_only_told_is_not() -> None:
    said = [{"id": "a", "status": "INFO"}, {"id": "b", "status": "FAILURE"}]
    assert failures_in([*said, {"id": "c", "status": "SUCCESS"}]) == ["b"]
    assert failures_in([]) == []
