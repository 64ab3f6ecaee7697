"""The timeline says which call, how long, by whose word, and what may have run. R51, D32, B13."""

from __future__ import annotations

import io
import json
import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.recorded import APP, POLICY, Story, a_throttled_then_answered, shown
from support.records import an_attempt
from surefoot.cli._show_calls import steps
from surefoot.cli._show_html import HtmlView
from surefoot.cli._show_json import JsonView
from surefoot.cli._show_text import TextView, bar
from surefoot.cli._show_totals import Totals
from surefoot.policy import Permission


def told(*attempts: Any, **changes: Any) -> str:
    """One call, as the terminal shows it, on one line."""
    story = Story()
    is_error = changes.pop("is_error", False)
    story.call(*attempts, is_error=is_error, **changes)
    return " ".join(shown(story.end()).split())


LOST: dict[str, Any] = {"outcome": "unanswered", "error": "ReadError"}


@pytest.mark.parametrize(
    ("attempts", "changes", "says"),
    [
        # Throttled: which call, how long, who permitted the repeat, on which assumption.
        (
            a_throttled_then_answered(POLICY),
            {},
            [
                "search at billing answered 200; 2 attempts, 3.00 s, 2.50 s of it waiting",
                "1 refused 429, throttled",
                "waited 2.50 s; the server asked for 2.00 s",
                "repeat permitted by the default policy, ASSUMING that the server refused it",
                "1 throttled (search); waited 2.50 s in all",
                "no call may have run without a result",
            ],
        ),
        (
            a_throttled_then_answered(APP, retry_after_seconds=None),
            {},
            ["waited 2.50 s repeat permitted by the app's own declaration 2 answered 200"],
        ),
        (
            a_throttled_then_answered(retry_after_seconds=None, retry_after_malformed=True),
            {},
            ["waited 2.50 s; the server's Retry-After means nothing"],
        ),
        (
            a_throttled_then_answered(Permission(by="adapter"), kind="session-busy"),
            {},
            ["1 refused 429, session busy", "permitted by the service's adapter"],
        ),
        # Given up.
        (
            (an_attempt(outcome="refused", kind="throttle", status=429, retry_after_seconds=99.0),),
            {"ended": "refused", "why": "waiting-spent"},
            [
                "given up, refused 429: a longer wait would pass the budget; 1 attempt",
                "the server asked for 99.00 s",
                "0 answered, 1 failed",
            ],
        ),
        # May have run.
        (
            (an_attempt(**LOST),),
            {"ended": "unanswered", "why": "no-permission", "may_have_run": True, "tool": "refund"},
            [
                "given up, no answer: nobody permitted a repeat",
                "1 no answer (ReadError)",
                "MAY HAVE RUN: no result came, and nothing proves that it did not run",
                "MAY HAVE RUN without a result: refund",
            ],
        ),
        (
            (an_attempt(outcome="cut", status=200),),
            {"ended": "cut", "why": "stream-cut", "may_have_run": True},
            ["cut off: the stream ended before the reply", "MAY HAVE RUN"],
        ),
        # Never sent.
        (
            (
                an_attempt(
                    outcome="not_sent",
                    effect="not_sent",
                    error="ConnectError",
                    wait_seconds=0.1,
                    permission=Permission(by="proof"),
                ),
                an_attempt(number=2, reason="reconnect", started_seconds=0.4, status=200),
            ),
            {},
            [
                "1 never sent (ConnectError)",
                "repeat permitted because nothing was sent, which is proven",
                "no call may have run without a result",
            ],
        ),
        # An answer is not a success.
        ((an_attempt(status=503),), {}, ["answered 503; 1 attempt", "0 answered, 1 failed"]),
        (
            (an_attempt(status=200),),
            {"is_error": True},
            ["answered 200, and the tool says that it failed", "0 answered, 1 failed"],
        ),
        (
            (an_attempt(status=200, scrubbed_hits=3),),
            {"hook_failures": 2},
            ["a secret in an answer was replaced 3 times", "on_retry failed 2 times"],
        ),
        (
            (
                an_attempt(unsearched_secrets=2, wait_seconds=0.1),
                an_attempt(number=2, started_seconds=0.35, unsearched_secrets=1),
                an_attempt(number=3, started_seconds=0.6),
            ),
            {},
            ["a secret too short to search for was not sought in 2 answers"],
        ),
        (
            (an_attempt(status=200, credential="bearer"),),
            {"tool": None, "method": "tools/list"},
            ["tools/list at billing answered 200"],
        ),
    ],
)
def test_a_reader_can_tell_what_happened(
    attempts: Any, changes: dict[str, Any], says: list[str]
) -> None:
    """R27, R40, R51, D32. Which call, what was waited, by whose word, and what may have run."""
    text = told(*attempts, **changes)
    for words in says:
        assert words in text


def test_what_did_not_happen_is_not_said() -> None:
    """R51. The control: a plain answer has none of the words of the table above."""
    text = told(an_attempt(status=200))
    for words in (
        "throttled (",
        "waited 0.25",
        "ASSUMING",
        "MAY HAVE RUN",
        "permitted",
        "given up",
    ):
        assert words not in text
    assert "0 throttled; waited 0.00 s in all" in text


WHYS = [
    ("attempts-spent", "all attempts are spent"),
    ("no-time", "no time was left for the wait"),
    ("body-not-resendable", "its body could not be sent again"),
    ("reconnect-off", "reconnecting is switched off"),
    ("credential-failed", "no credential could be had"),
    ("cancelled", "the caller cancelled it"),
    ("deadline", "its deadline passed"),
    ("unreadable", "the answer could not be read in exactly one way"),
    ("fenced", "an identical earlier call may have run"),
]


@pytest.mark.parametrize(("why", "words"), WHYS)
def test_every_reason_to_end_has_its_words(why: str, words: str) -> None:
    """R51. The closed set, in English."""
    assert words in told(an_attempt(**LOST), ended="failed", why=why)


def test_a_word_of_a_later_version_is_shown_as_it_is() -> None:
    """B13. Not hidden, not an error."""
    story = Story()
    story.call(*a_throttled_then_answered())
    events = json.loads(json.dumps(story.end()))
    request = events[2]
    request["why"], request["ended"] = "new-why", "new-end"
    request["attempts"][0] |= {"kind": "new-kind", "permission": {"by": "new-who", "assumes": "hm"}}
    request["attempts"][1]["outcome"] = "new-outcome"
    text = " ".join(shown(events).split())
    for words in ("new-end", "new-why", "new-kind", "by new-who, ASSUMING hm", "new-outcome"):
        assert words in text


def test_what_is_absent_is_not_recorded() -> None:
    """B13. Absent is not the same as none."""
    event: dict[str, Any] = {"v": 1, "type": "tool.request_attempts", "run": "r"}
    event["attempts"] = [{}]
    text = " ".join(shown([event]).split())
    assert "its start is not recorded" in text
    assert "not recorded at not recorded its end is not recorded" in text
    assert "? not recorded" in text
    assert "run A: its end is not recorded" in text


def test_calls_of_several_runs_carry_their_runs_letter() -> None:
    """R22. Interleaved runs can be told apart."""
    one, two = Story("r1", "first"), Story("r2", "second")
    one.call(an_attempt(status=200), tool="a")
    two.call(an_attempt(status=200), tool="b")
    one.call(an_attempt(status=200), tool="c")
    first, second = one.end(), two.end()
    text = shown([*first[:4], *second[:4], *first[4:], *second[4:]])
    lines = [re.sub(r" +", " ", line).strip() for line in text.splitlines()]
    assert 'run A "first", began 2026-11-30 12:00:00 UTC, surefoot 0.1.0' in lines
    assert 'run B "second", began 2026-11-30 12:00:00 UTC, surefoot 0.1.0' in lines
    assert "+0.00 s a at billing" in lines
    assert "B +0.00 s b at billing" in lines
    assert "A +0.25 s c at billing" in lines
    assert "run A ended after 0.50 s: complete" in lines
    assert "3 calls in 2 runs, 3 attempts: 3 answered, 0 failed" in lines


SECONDS = st.floats(0, 1e4).map(lambda value: round(value, 6))


@given(
    lasts=st.lists(SECONDS, min_size=1, max_size=6),
    waits=st.lists(SECONDS, min_size=6, max_size=6),
    room=st.integers(20, 100),
)
def test_waits_are_drawn_to_scale(lasts: list[float], waits: list[float], room: int) -> None:
    """R51. Each stretch has its share of the columns, give or take one."""
    attempts: list[dict[str, Any]] = []
    at = 0.0
    for last, wait in zip(lasts, waits, strict=False):
        attempts.append({"started_seconds": at, "duration_seconds": last, "wait_seconds": wait})
        at += last + wait
    attempts[-1]["wait_seconds"] = None
    total = attempts[-1]["started_seconds"] + attempts[-1]["duration_seconds"]
    for attempt in attempts:
        drawn = bar({"attempts": attempts}, attempt, room)
        assert len(drawn) <= room
        if total > 0:
            share = (attempt["wait_seconds"] or 0.0) / total * (room - 1)
            assert abs(drawn.count("=") - share) <= 1
            share = attempt["duration_seconds"] / total * (room - 1)
            assert abs(drawn.count("-") - share) <= 1
        assert len(drawn.strip(" -=")) == 1


NASTY: list[Any] = [
    None, True, False, 0, 1, -1, 429, 10**30, 10**400, 0.25, -0.5, 1e300, 5e-324, 2.9e16,
    "", "r1", "c1", "answered", "refused", "unanswered", "not_sent", "cut", "throttle", "app",
    "2026-11-30T12:00:00+00:00", "2026-11-30", "\x1b[2J\r\n", "<b>", "ü", "漢" * 80, "\u202e",
    "x" * 500, "two words", [], {}, [1], [{}], {"by": "app"}, {"by": 7, "assumes": "x" * 200},
    [None, {"by": []}], {"length": 1, "sha256": "00"},
]  # fmt: skip
FIELDS = [
    "run", "call", "seq", "time", "tool", "method", "endpoint", "ended", "why", "status", "name",
    "waited_seconds", "duration_seconds", "may_have_run", "events", "dropped", "error", "is_error",
    "library", "hook_failures", "attempts",
]  # fmt: skip
TYPES = [
    "run.started", "run.ended", "call.started", "call.ended", "tool.request_attempts",
    "credential.vended", "sink.failed", "tool.dream",
]  # fmt: skip
VALUE = st.sampled_from(NASTY)
ATTEMPTS = st.lists(
    st.dictionaries(st.sampled_from(list(an_attempt().body())), VALUE, max_size=8), max_size=3
)


@st.composite
def foreign_events(draw: st.DrawFn) -> dict[str, Any]:
    """An event whose fields hold anything."""
    event: dict[str, Any] = {"v": 1, "type": draw(st.sampled_from(TYPES))}
    if draw(st.booleans()):
        event["attempts"] = draw(ATTEMPTS)
    return {**event, **draw(st.dictionaries(st.sampled_from(FIELDS), VALUE, max_size=8))}


@settings(max_examples=80)
@given(events=st.lists(foreign_events(), max_size=8), width=st.sampled_from([60, 80, 120]))
def test_whatever_the_fields_hold_every_view_shows_it_within_its_width_and_in_plain_letters(
    events: list[dict[str, Any]], width: int
) -> None:
    """B13. A record may come from anybody: nothing raises, nothing moves the cursor."""
    text = shown(events, width=width)
    for line in text.splitlines():
        assert len(line) <= width
        assert line.isprintable()
        assert line.isascii()
    for view in (HtmlView, JsonView):
        totals = Totals()
        made = view(io.StringIO())
        for step in steps(events):
            totals.take(step)
            made.take(step)
        made.close(totals)


class Screen(io.StringIO):
    """A terminal."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("terminal", "environment", "coloured"),
    [
        (True, {}, True),
        (False, {}, False),
        (True, {"NO_COLOR": "1"}, False),
        (True, {"NO_COLOR": ""}, True),
        (True, {"TERM": "dumb"}, False),
    ],
)
def test_colour_is_for_terminals_and_for_those_who_want_it(
    terminal: bool, environment: dict[str, str], coloured: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R54. As no-color.org has it."""
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    stream = Screen() if terminal else io.StringIO()
    view = TextView(stream, width=80)
    story = Story()
    story.call(*a_throttled_then_answered(), tool="\x1b[31m")
    for step in steps(story.end()):
        view.take(step)
    view.close(Totals())
    text = stream.getvalue()
    assert ("\x1b[" in text) is coloured
    plain = re.sub(r"\x1b\[[0-9]+m", "", text)
    assert "\x1b" not in plain
    assert all(len(line) <= 80 for line in plain.splitlines())


def test_the_width_is_that_of_the_terminal_within_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    """R54. 80 columns where nobody says."""
    for columns, expected in (("70", 70), ("300", 120), ("20", 60)):
        monkeypatch.setenv("COLUMNS", columns)
        assert TextView(io.StringIO())._width == expected
