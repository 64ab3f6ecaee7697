"""What an older version wrote is read and shown by this one. B13, D33."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.records import validator
from surefoot.cli import _exit_codes as codes
from surefoot.cli import main
from surefoot.sinks import Unreadable, read_events

DATA = Path(__file__).parents[1] / "data"

SHOWN = {
    "record_v1.jsonl": [
        'run A "golden", began 2026-11-30 12:00:00 UTC, surefoot 0.1.0',
        "a sink failed (OSError) and lost 1 event here",
        "+0.00 s search at billing answered 200; 2 attempts, 3.00 s, 2.50 s of it waiting",
        "waited 2.50 s; the server asked for 2.00 s repeat permitted by the default policy",
        "ASSUMING that the server refused it before it ran",
        "+3.00 s refund at billing given up, no answer: all attempts are spent; 2 attempts",
        "repeat permitted by the app's own declaration",
        "+3.70 s tools/list at billing answered 200",
        "run A ended after 3.95 s: 1 event not recorded",
        "2 calls and 1 other request in 1 run, 5 attempts: 2 answered, 1 failed",
        "MAY HAVE RUN without a result: refund",
        "NOT RECORDED: 1 event missing (1 lost by a sink)",
    ],
}


@pytest.mark.parametrize("name", SHOWN)
def test_a_record_of_that_version_is_shown_as_it_was(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """B13. The file never changes; a field that changes its meaning takes a new version."""
    assert main(["show", str(DATA / name)]) == codes.INCOMPLETE
    text = " ".join(capsys.readouterr().out.split())
    for words in SHOWN[name]:
        assert words in text


def test_a_record_of_version_1_is_what_the_schema_of_version_1_says() -> None:
    """B13. The schema in the package describes what is on disk."""
    with (DATA / "record_v1.jsonl").open("rb") as file:
        events = list(read_events(file))
    assert len(events) == 10
    for event in events:
        assert not isinstance(event, Unreadable)
        validator.validate(event)
