"""No public name changes unseen: a difference to the committed list is a change for users.

Where it is meant, `make api` writes the list anew, and CHANGELOG.md says what a user notices.
"""

from __future__ import annotations

import difflib

import pytest

from public_api import SNAPSHOT, public_api

pytestmark = pytest.mark.both_majors


def test_the_public_names_and_their_signatures_are_those_of_the_list() -> None:
    kept = SNAPSHOT.read_text("utf-8")
    changes = difflib.unified_diff(kept.splitlines(), public_api().splitlines(), lineterm="", n=0)
    assert list(changes) == [], "make api, and a line in CHANGELOG.md"


@pytest.mark.parametrize(
    "line",
    [
        "[surefoot.gateway]",
        "    def settle(call_id, *, ran)",
        "    async def call(name, arguments=None, *, timeout=None, meta=None)",
        "def parse_retry_after(value, *, now)",
        "class FaultyGateway (tools=(), *, ",
    ],
)
def test_the_list_says_names_kinds_and_defaults(line: str) -> None:
    assert line in SNAPSHOT.read_text("utf-8")
