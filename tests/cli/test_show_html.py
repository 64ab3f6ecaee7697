"""The page is one file that needs nothing, runs nothing, and shows a record as text. B13, R54."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from html import escape
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from support.recorded import Story, a_throttled_then_answered, written
from support.records import an_attempt
from surefoot.cli import _exit_codes as codes
from surefoot.cli import main

HOSTILE = [
    "<script>alert(1)</script>",
    "</p></section><img src=x onerror=alert(1)>",
    '"><svg onload=alert(1)>',
    "'onmouseover='alert(1)",
    "{{7*7}} ${7*7} &lt; &amp;",
    "javascript:alert(1)",
    "\u202etxt.exe\u2066",
    "\x00\x1b[31m\r\n",
    "]]><!--",
    "<style>*{display:none}</style>",
]


class Page(HTMLParser):
    """What a page holds: its tags with their attributes, and its text."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.text = ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag != "meta":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if "style" not in self.open:
            self.text += data


def a_page(tmp_path: Path, events: list[Any], expected: int = codes.OK) -> Page:
    target = tmp_path / "page.html"
    source = written(tmp_path / "run.jsonl", events)
    assert main(["show", "--html", str(target), str(source)]) == expected
    return Page(target.read_text("utf-8"))


def hostile_events() -> list[dict[str, Any]]:
    """Every text of a record is hostile."""
    story = Story(name="turn")
    for text in HOSTILE:
        story.call(
            *a_throttled_then_answered(error=text[:250]),
            tool=text,
            method=text,
            endpoint=text,
            family=text,
        )
    events = story.end()
    for number, event in enumerate(events):
        text = HOSTILE[number % len(HOSTILE)]
        for field in ("endpoint", "why", "ended", "name", "library", "error", "time"):
            if field in event and (field != "time" or number == 3):
                event[field] = text
        for attempt in event.get("attempts", ()):
            attempt |= {"kind": text, "outcome": text, "reason": text, "credential": text}
            attempt["permission"] = {"by": text, "assumes": text}
    for text in HOSTILE:
        events.insert(1, {"v": 1, "type": text, "run": text, "error": text})
    return events


def test_the_page_shows_the_timeline_and_its_totals(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """R51, R54. The same words as the terminal's."""
    story = Story()
    story.call(*a_throttled_then_answered())
    page = a_page(tmp_path, story.end())
    for words in (
        "Run A “turn”",
        "search",
        "answered 200; 2 attempts, 3.00 s, 2.50 s of it waiting",
        "refused 429, throttled",
        "waited 2.50 s; the server asked for 2.00 s",
        "repeat permitted by the default policy, ASSUMING that the server refused it before it ran",
        "the record is complete",
    ):
        assert words in page.text
    assert page.open == []
    assert capsys.readouterr().out == f"1 call written to {tmp_path / 'page.html'}\n"


def test_the_bars_of_the_page_are_to_scale(tmp_path: Path) -> None:
    """R51. In percent of what the call took."""
    story = Story()
    story.call(*a_throttled_then_answered())
    styles = [attrs["style"] for tag, attrs in a_page(tmp_path, story.end()).tags if tag == "i"]
    assert styles == [
        "left:0.00%;width:8.33%",
        "left:8.33%;width:83.33%",
        "left:91.67%;width:8.33%",
    ]


def test_nothing_in_a_record_becomes_markup_whatever_it_says(tmp_path: Path) -> None:
    """B13. The page of hostile texts has the same tags as one of harmless texts."""
    hostile = a_page(tmp_path, hostile_events(), codes.INCOMPLETE)
    allowed = {
        "html", "head", "meta", "title", "style", "body", "h1", "h2", "p", "section", "div",
        "span", "i",
    }  # fmt: skip
    assert {tag for tag, _ in hostile.tags} == allowed
    names = {name for tag, attrs in hostile.tags if tag != "meta" for name in attrs}
    assert names == {"lang", "class", "style"}
    for tag, attrs in hostile.tags:
        if tag in ("p", "span", "i", "div", "section"):
            assert re.fullmatch(r"[a-z -]*", attrs.get("class") or "")
            assert re.fullmatch(r"(left:[0-9.]+%;width:[0-9.]+%)?", attrs.get("style") or "")
    assert hostile.open == []


def test_what_a_hostile_record_says_is_shown_as_text(tmp_path: Path) -> None:
    """B13. The control: it is escaped, and not left out."""
    text = a_page(tmp_path, hostile_events(), codes.INCOMPLETE).text
    for word in HOSTILE:
        shown = word.encode("unicode_escape").decode() if not word.isprintable() else word
        assert shown in text
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", text)


def test_the_page_forbids_scripts_and_loads_nothing(tmp_path: Path) -> None:
    """B13. By its own policy, and because there is nothing to load."""
    page = a_page(tmp_path, hostile_events(), codes.INCOMPLETE)
    policies = [
        attrs["content"]
        for tag, attrs in page.tags
        if tag == "meta" and attrs.get("http-equiv") == "Content-Security-Policy"
    ]
    assert policies == [
        "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
    ]
    source = (tmp_path / "page.html").read_text("utf-8")
    style = source[source.index("<style>") : source.index("</style>")]
    assert "url(" not in style
    assert "@import" not in style


def test_the_page_is_for_its_owner_and_a_failure_leaves_no_half_of_one(tmp_path: Path) -> None:
    """B13. As the record itself; what was there before stays until a whole page is."""
    target = tmp_path / "page.html"
    target.write_text("before", "utf-8")
    bad = tmp_path / "bad.jsonl"
    bad.write_text("no record", "utf-8")
    assert main(["show", "--html", str(target), str(bad)]) == codes.FAILED
    assert target.read_text("utf-8") == "before"
    story = Story()
    story.call(an_attempt(status=200))
    a_page(tmp_path, story.end())
    assert target.stat().st_mode & 0o777 == 0o600
    assert len(list(tmp_path.iterdir())) == 3


def test_a_page_that_cannot_be_written_is_named_as_it_was_asked_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """R72. And not by the name of the file beside it that it is made in."""
    story = Story()
    story.call(*a_throttled_then_answered())
    run = written(tmp_path / "run.jsonl", story.end())
    page = tmp_path / "missing" / "run.html"
    assert main(["show", str(run), "--html", str(page)]) == codes.FAILED
    assert capsys.readouterr().err == f"surefoot: {page}: No such file or directory\n"


def test_an_incomplete_record_is_written_and_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """B13. By the exit code, on the terminal and on the page."""
    story = Story()
    story.call(an_attempt(status=200))
    page = a_page(tmp_path, story.end()[:-1], codes.INCOMPLETE)
    assert "its end is not recorded" in page.text
    assert capsys.readouterr().out.endswith("; the record is not complete\n")


BROWSER = shutil.which("chromium") or shutil.which("chromium-browser")


needs_chromium = pytest.mark.skipif(BROWSER is None, reason="chromium is not installed here")

FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--hide-scrollbars", "--virtual-time-budget=5000",
)  # fmt: skip


def _drawn(page: Path, folder: Path) -> str:
    """The document as a browser has it once it has drawn the page; nothing is fetched for it."""
    done = subprocess.run(
        [str(BROWSER), *FLAGS, f"--user-data-dir={folder / 'profile'}", "--dump-dom", str(page)],
        capture_output=True,
        text=True,
        timeout=50,
        check=True,
    )
    return done.stdout


@pytest.mark.slow
@needs_chromium
def test_a_real_browser_draws_the_page_and_runs_nothing(tmp_path: Path) -> None:
    """B13. A script in a record would change the title; the totals stand above the calls."""
    events = hostile_events()
    events[1]["type"] = "<script>document.title='canary-ran'</script><img src=x onerror=alert(1)>"
    a_page(tmp_path, events, codes.INCOMPLETE)
    control = tmp_path / "control.html"
    control.write_text("<title>t</title><script>document.title='canary-ran'</script>", "utf-8")
    drawn = {name: _drawn(tmp_path / name, tmp_path) for name in ("page.html", "control.html")}
    assert "<title>canary-ran</title>" in drawn["control.html"]
    assert "<title>surefoot: what was sent</title>" in drawn["page.html"]
    assert Page(drawn["page.html"]).text.count("run A, +") == len(HOSTILE)


MEASURES = """<!doctype html><title>waits</title>
<iframe style="border:0;width:{width}px;height:3000px" srcdoc="{page}"></iframe>
<script>
onload = () => {{
  const page = document.querySelector("iframe").contentDocument;
  const top = (kind) => page.querySelector(kind).getBoundingClientRect().top;
  const bars = [...page.querySelectorAll(".track i")].map((bar) => bar.getBoundingClientRect());
  const beside = [...page.querySelectorAll(".attempt")].every((one) => {{
    const [number, took] = [one.firstElementChild, one.querySelector(".took")].map(
      (part) => part.getBoundingClientRect());
    return took.right <= {width} && took.top < number.bottom && took.height < 2 * number.height;
  }});
  document.title = JSON.stringify({{
    beside,
    wide: page.documentElement.scrollWidth,
    totals_first: top(".totals") < top(".call") && top("h1") < top(".totals"),
    bars: bars.filter((bar) => bar.width > 0 && bar.height > 0 && bar.right <= {width}).length,
  }});
}};
</script>
"""


@pytest.mark.slow
@needs_chromium
@pytest.mark.parametrize("width", [380, 1200])
def test_a_real_browser_lays_the_page_out_on_a_telephone_and_on_a_desk(
    width: int, tmp_path: Path
) -> None:
    """R54. Nothing is wider than the window, the totals stand first, and every bar is drawn."""
    story = Story(name="a turn with a name that is long enough to need two lines on a telephone")
    for tool in ("search", "a_tool_with_a_name_that_nobody_can_break_" * 3):
        story.call(*a_throttled_then_answered(), tool=tool, endpoint="https://gateway.example.com")
    a_page(tmp_path, story.end())
    page = escape((tmp_path / "page.html").read_text("utf-8"))
    (tmp_path / "frame.html").write_text(MEASURES.format(width=width, page=page), "utf-8")
    title = re.search(r"<title>(.*?)</title>", _drawn(tmp_path / "frame.html", tmp_path))
    assert title is not None
    assert json.loads(title[1]) == {
        "beside": True, "wide": width, "totals_first": True, "bars": 6,
    }  # fmt: skip
