"""An event becomes one log record that reads well and carries the whole event. R54, B13."""

from __future__ import annotations

import logging

import pytest

from support.records import a_request, an_attempt, filed
from surefoot.sinks import LoggingSink, record


def logged(caplog: pytest.LogCaptureFixture, *entries: object, level: int = logging.INFO) -> None:
    sink = LoggingSink(level=level)
    with caplog.at_level(logging.DEBUG, logger="surefoot.evidence"):
        for event in filed(*entries):
            sink.emit(event)


def test_a_record_says_what_people_want_to_know_first(caplog: pytest.LogCaptureFixture) -> None:
    """R54. Type, tool, how it ended and why, on one line; the event hangs on the record."""
    logged(caplog, a_request(tool="two words", attempts=(an_attempt(), an_attempt(number=2))))
    (one,) = (r for r in caplog.records if "request_attempts" in r.getMessage())
    text = one.getMessage()
    assert text.startswith("type=tool.request_attempts seq=2 run=r1 ")
    assert "tool='two words'" in text
    assert "ended=answered why=final-answer" in text
    assert "attempts=2" in text
    assert "may_have_run=false" in text
    assert one.surefoot["type"] == "tool.request_attempts"  # type: ignore[attr-defined]
    assert (one.name, one.levelno) == ("surefoot.evidence", logging.INFO)


def test_what_may_have_run_is_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    """R27, B13. It stands out from what went well."""
    logged(caplog, a_request(may_have_run=True), a_request())
    levels = [r.levelno for r in caplog.records if "request_attempts" in r.getMessage()]
    assert levels == [logging.WARNING, logging.INFO]


@pytest.mark.parametrize("text", ["a\nlevel=CRITICAL forged", "\x1b[31m", 'a "b"', "a=b", ""])
def test_a_tools_name_cannot_forge_a_second_record(
    text: str, caplog: pytest.LogCaptureFixture
) -> None:
    """B13. One line, whatever the name."""
    logged(caplog, a_request(tool=text))
    for one in caplog.records:
        message = one.getMessage()
        assert message.isprintable()
        assert " level=" not in message or "'" in message


def test_a_logger_that_is_off_costs_and_says_nothing(caplog: pytest.LogCaptureFixture) -> None:
    """R54. The control is the test above."""
    with caplog.at_level(logging.ERROR, logger="surefoot.evidence"):
        for event in filed(a_request()):
            LoggingSink(level=logging.DEBUG).emit(event)
    assert not caplog.records


def test_it_is_a_sink_for_record(caplog: pytest.LogCaptureFixture) -> None:
    """B13. A handler that stalls stalls a thread, and no call."""
    logger = logging.getLogger("my.app")
    with (
        caplog.at_level(logging.INFO, logger="my.app"),
        record(LoggingSink(logger, level=logging.INFO)),
    ):
        pass
    assert [r.name for r in caplog.records] == ["my.app", "my.app"]
