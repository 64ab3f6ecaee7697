"""What the demo prints: within the terminal, in colour for people alone, and to scale."""

from __future__ import annotations

import io
from typing import Any

import pytest

from surefoot.demo import NARROWEST, WIDEST, Terminal, twelve_calls
from surefoot.demo._happenings import Happening, Kind
from surefoot.demo._story import Story
from surefoot.demo._timeline import bar, draw


class Tty(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("stream", "environment", "coloured"),
    [
        (Tty(), {}, True),
        (Tty(), {"NO_COLOR": ""}, True),  # no-color.org: set, and not empty
        (Tty(), {"NO_COLOR": "1"}, False),
        (Tty(), {"TERM": "dumb"}, False),
        (io.StringIO(), {}, False),
    ],
)
def test_colour_is_for_a_terminal_whose_user_did_not_say_no(
    stream: io.StringIO,
    environment: dict[str, str],
    monkeypatch: pytest.MonkeyPatch,
    *,
    coloured: bool,
) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    Terminal(stream).line("plain ", ("bad", "red"))
    assert stream.getvalue().startswith("plain ")
    assert ("\x1b[31mred\x1b[0m" in stream.getvalue()) == coloured
    assert ("\x1b" in stream.getvalue()) == coloured


@pytest.mark.parametrize(("columns", "width"), [("20", NARROWEST), ("70", 70), ("200", WIDEST)])
def test_the_width_is_the_terminals_within_bounds(
    columns: str, width: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    assert Terminal(io.StringIO()).width == width


def test_a_line_ends_where_the_terminal_does_and_a_text_goes_on_below() -> None:
    stream = io.StringIO()
    terminal = Terminal(stream, width=60)
    terminal.line("x" * 30, ("bad", "y" * 70))
    terminal.text("", "word " * 30, indent=10, first="  1")
    cut, *wrapped = stream.getvalue().splitlines()
    assert len(cut) == 60
    assert cut.endswith("y..")
    assert all(len(line) <= 60 for line in wrapped)
    assert " ".join(line[10:] for line in wrapped).split() == ["word"] * 30
    assert wrapped[0].startswith("  1       word")
    assert wrapped[1].startswith(" " * 10 + "word")


def test_what_a_server_says_reaches_the_terminal_without_control_characters() -> None:
    stream = io.StringIO()
    Terminal(stream).line("a\x1b[31mb\rc\x00d\u2028\u00e9")
    assert stream.getvalue() == "a [31mb c d??\n"


def attempt(started: float, lasted: float, outcome: str, status: int | None) -> dict[str, Any]:
    return {
        "started_seconds": started,
        "duration_seconds": lasted,
        "outcome": outcome,
        "status": status,
        "retry_after_seconds": None,
        "wait_seconds": None,
        "permission": None,
    }


def event(*attempts: dict[str, Any], may_have_run: bool = False) -> dict[str, Any]:
    return {"attempts": attempts, "may_have_run": may_have_run}


@pytest.mark.parametrize(
    ("given", "drawn"),
    [
        (event(attempt(0, 0.01, "answered", 200)), "o"),
        (event(attempt(0, 0.5, "answered", 200)), "----o"),
        (event(attempt(0, 0.5, "answered", 503)), "----x"),
        (event(attempt(0, 0, "refused", 429), attempt(0.5, 0, "answered", 200)), "x====o"),
        (event(attempt(0, 0.2, "unanswered", None), attempt(0.4, 0.2, "answered", 200)), "-!==-o"),
        (event(attempt(0, 0.2, "unanswered", None), may_have_run=True), "-?"),
        (event(attempt(0, 0, "answered", 401), attempt(0, 0, "answered", 200)), "xo"),
        (event(), ""),
    ],
)
def test_attempts_and_waits_are_drawn_to_scale(given: dict[str, Any], drawn: str) -> None:
    assert bar(given, 0.1) == drawn


@pytest.mark.parametrize("width", [60, 80])
def test_the_timeline_says_who_permitted_what_on_which_assumption(width: int) -> None:
    call = twelve_calls()[1]
    tool, _, digest = call.fingerprint.partition(":")
    refused = attempt(0, 0, "refused", 429)
    refused |= {
        "retry_after_seconds": 1.0,
        "wait_seconds": 1.25,
        "permission": {"by": "policy", "assumes": "refused-before-execution"},
    }
    filed = {
        "type": "tool.request_attempts",
        "method": "tools/call",
        "tool": tool,
        "request": {"sha256": digest},
        "duration_seconds": 1.3,
        "waited_seconds": 1.25,
        "status": 200,
        **event(refused, attempt(1.25, 0.05, "answered", 200)),
    }
    stream = io.StringIO()
    draw(Terminal(stream, width=width), [call], [filed, {**filed, "method": "tools/list"}])
    text = stream.getvalue()
    assert max(map(len, text.splitlines())) <= width
    assert text.count(call.label) == 1
    assert ("1.25 s, asked 1.00" in text) == (width == 80)
    said = " ".join(text.split())
    assert "1 repeat by the default policy, assuming refused-before-execution" in said


def told(*happened: tuple[Kind, int | None, str]) -> list[str]:
    stream = io.StringIO()
    story = Story(Terminal(stream, width=80), twelve_calls())
    for kind, call, text in happened:
        story.tell(Happening(kind=kind, at=1.0, call=call, text=text))
    return [line.removeprefix("  1.00").strip() for line in stream.getvalue().splitlines()]


def test_an_error_is_told_in_full_once_and_the_call_that_a_session_took_down_says_so() -> None:
    assert told(
        ("call", 2, "429"),
        ("error", 2, "Server returned an error response"),
        ("error", 2, "Server returned an error response"),
        ("lost", 2, "3 tries"),
        ("session-lost", None, "ReadError for url 'http://127.0.0.1:1/mcp'"),
        ("error", 6, "ReadError for url 'http://127.0.0.1:1/mcp'"),
        ("error", 7, "ReadError for url 'http://127.0.0.1:1/mcp'"),
        ("answered", 6, "fine"),
        ("error", 7, "ReadError"),
    ) == [
        "2  find_order W-1002       429",
        "2    error: Server returned an error response",
        "2    the same error again",
        "2    LOST after 3 tries",
        "THE SESSION DIED: ReadError",
        "6    cut with it",
        "7    cut with it",
        "6    answered: fine",
        "7    the same error again",
    ]


def test_what_may_have_run_is_told_whole_where_it_matters_and_in_short_where_it_only_reads() -> (
    None
):
    sentence = "No answer came. It may have run. Do not send it again: it could be done twice."
    left = " ".join(told(("unknown", 9, sentence)))
    assert left.split() == f"9 told: {sentence} (The agent leaves it.)".split()
    asked_again = " ".join(told(("told", 10, sentence)))
    assert asked_again == (
        "10    told: No answer came. It may have run. (It only reads: asked again.)"
    )
