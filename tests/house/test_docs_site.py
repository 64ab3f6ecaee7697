"""The site: what is looked for in the built pages, and that it would be found."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from check_docs import BROWSERS, foreign_assets, too_wide

ROOT = Path(__file__).resolve().parents[2]
BROWSER = next(filter(None, map(shutil.which, BROWSERS)), None)

WORDS = "<p>Some words, so that a page which shows nothing would be noticed by whoever looks.</p>"

ASSETS = [
    ('<img src="_static/a.png">', 0),
    ('<a href="https://elsewhere.example/">a link is no asset</a>', 0),
    ('<link rel="canonical" href="https://elsewhere.example/">', 0),
    ('<img src="data:image/png;base64,AA==">', 0),
    ('<script src="https://cdn.example/a.js"></script>', 1),
    ('<script src="//cdn.example/a.js"></script>', 1),
    ('<link rel="stylesheet" href="https://cdn.example/a.css">', 1),
    ('<img srcset="https://cdn.example/a.png 2x">', 1),
]


@pytest.mark.parametrize(("html", "found"), ASSETS)
def test_what_a_page_would_fetch_from_elsewhere_is_found(
    html: str, found: int, tmp_path: Path
) -> None:
    (tmp_path / "page.html").write_text(html, "utf-8")
    assert len(foreign_assets(tmp_path)) == found


@pytest.mark.parametrize(
    ("css", "found"),
    [
        ("a { background: url(a.png) }", 0),
        ("a { background: url('https://cdn.example/a.png') }", 1),
        ("@import 'https://fonts.example/a.css';", 1),
    ],
)
def test_what_a_style_would_fetch_from_elsewhere_is_found(
    css: str, found: int, tmp_path: Path
) -> None:
    (tmp_path / "page.css").write_text(css, "utf-8")
    assert len(foreign_assets(tmp_path)) == found


@pytest.mark.slow
@pytest.mark.timeout(180)
@pytest.mark.skipif(BROWSER is None, reason="no Chromium on PATH")
def test_a_page_that_is_wider_than_a_phone_is_found(tmp_path: Path) -> None:
    assert BROWSER is not None
    wide = '<div style="width:700px">wide</div>'
    (tmp_path / "fits.html").write_text(f"<!doctype html>{WORDS}", "utf-8")
    (tmp_path / "wide.html").write_text(f"<!doctype html>{WORDS}{wide}", "utf-8")
    (tmp_path / "empty.html").write_text("<!doctype html>", "utf-8")
    found = list(too_wide(tmp_path, BROWSER))
    assert found[0] == "4 of 6 looks showed a page"
    assert [line.partition(":")[0] for line in found[1:]] == ["wide.html"]
    assert "in a window of 360 px" in found[1]


def test_every_page_can_be_reached_from_the_first_one() -> None:
    text = (ROOT / "docs" / "index.md").read_text("utf-8")
    entries = [
        line
        for block in re.findall(r"```\{toctree\}\n(.*?)```", text, re.DOTALL)
        for line in block.splitlines()
        if line and not line.startswith(":")
    ]
    listed = {
        path.relative_to(ROOT / "docs").as_posix()
        for entry in entries
        for path in (ROOT / "docs").glob(f"{entry}.md")
    }
    pages = {path.relative_to(ROOT / "docs").as_posix() for path in (ROOT / "docs").rglob("*.md")}
    assert pages - listed == {"index.md"}


def test_every_room_has_a_page_of_its_own() -> None:
    rooms = {
        path.parent.name
        for path in (ROOT / "src" / "surefoot").glob("*/__init__.py")
        if path.parent.name not in {"cli", "demo"}
    } | {"errors"}
    described = {
        found
        for page in (ROOT / "docs" / "reference" / "api").glob("*.md")
        for found in re.findall(r"automodule:: surefoot\.(\w+)", page.read_text("utf-8"))
    }
    assert described == rooms
