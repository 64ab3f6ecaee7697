"""The law of this file: the site is built strictly, needs no other host, and fits a phone.

Sphinx builds it with warnings as errors. Then every file is searched for what a browser would fetch
from elsewhere. Then, where there is a Chromium, every page is opened in it at the width of a phone
and of a desk, without a network, and must not be wider than its window.
"""

from __future__ import annotations

import argparse
import functools
import http.server
import json
import re
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from html import unescape
from html.parser import HTMLParser
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

__all__ = ["foreign_assets", "harness", "too_wide"]

ROOT: Final = Path(__file__).resolve().parents[1]
BROWSERS: Final = ("chromium", "chromium-browser", "google-chrome")
WIDTHS: Final = (360, 1280)
"""A small phone, and a desk."""

FLAGS: Final = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
    *("--no-proxy-server", "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"),
)
SECONDS: Final = 150
_FETCHED: Final = {"src", "srcset", "poster", "data", "action", "background"}
_CSS_URL: Final = re.compile(r"url\(\s*['\"]?(?:https?:)?//|@import\s+['\"](?:https?:)?//")
_RESULT: Final = re.compile(r"<pre id=\"found\">(.*?)</pre>", re.DOTALL)


class _Assets(HTMLParser):
    """Finds what a browser would fetch for a page, as it stands in the page."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        links = tag == "link" and given.get("rel") not in ("canonical", "next", "prev", "search")
        names = {*_FETCHED, "href"} if links else _FETCHED
        self.found += [value for name, value in given.items() if name in names]


def foreign_assets(site: Path) -> list[str]:
    """What the pages and their styles would fetch from another host."""
    found: list[str] = []
    for path in sorted(site.rglob("*.html")):
        assets = _Assets()
        assets.feed(path.read_text("utf-8"))
        found += [
            f"{path.relative_to(site)}: {asset}"
            for asset in assets.found
            if urlsplit(asset).netloc or urlsplit(asset).scheme not in ("", "data")
        ]
    for path in sorted(site.rglob("*.css")):
        if _CSS_URL.search(path.read_text("utf-8")):
            found.append(f"{path.relative_to(site)}: a url() or @import of another host")
    return found


def harness(pages: list[str], widths: tuple[int, ...]) -> str:
    """A page that opens each page in a frame of each width, and says which are wider than it."""
    return f"""<!doctype html><meta charset="utf-8"><pre id="found"></pre><script>
const pages = {json.dumps(pages)}, widths = {json.dumps(widths)};
(async () => {{
  const frame = document.createElement("iframe");
  frame.style.height = "800px";
  document.body.append(frame);
  const wide = [];
  let opened = 0;
  for (const width of widths) for (const page of pages) {{
    frame.style.width = width + "px";
    await new Promise(done => {{ frame.onload = done; frame.src = page; }});
    const root = frame.contentDocument.documentElement;
    opened += root.innerText.length > 40 ? 1 : 0;
    if (root.scrollWidth > root.clientWidth)
      wide.push([page, width, root.scrollWidth]);
  }}
  document.getElementById("found").textContent = JSON.stringify({{opened, wide}});
}})();
</script>
"""


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its name there
        """Say nothing."""


def too_wide(site: Path, browser: str, *, widths: tuple[int, ...] = WIDTHS) -> Iterator[str]:
    """Every page that is wider than its window; what cannot be looked at is a finding, too."""
    pages = [path.relative_to(site).as_posix() for path in sorted(site.rglob("*.html"))]
    (site / "_harness.html").write_text(harness(pages, widths), "utf-8")
    handler = functools.partial(_Quiet, directory=str(site))
    with (
        http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server,
        tempfile.TemporaryDirectory() as profile,
    ):
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            done = subprocess.run(
                [
                    *(browser, *FLAGS, f"--user-data-dir={profile}", "--window-size=1400,900"),
                    *("--virtual-time-budget=120000", "--timeout=120000", "--dump-dom"),
                    f"http://127.0.0.1:{server.server_address[1]}/_harness.html",
                ],
                capture_output=True,
                text=True,
                check=False,
                timeout=SECONDS,
            )
        except subprocess.TimeoutExpired:
            yield f"the browser was not done after {SECONDS} s"
            return
        finally:
            server.shutdown()
            (site / "_harness.html").unlink(missing_ok=True)
    said = _RESULT.search(done.stdout)
    if said is None or not said[1]:
        yield f"the browser said nothing: {done.stderr[-300:]}"
        return
    found = json.loads(unescape(said[1]))
    if found["opened"] != len(pages) * len(widths):
        yield f"{found['opened']} of {len(pages) * len(widths)} looks showed a page"
    for page, width, wanted in found["wide"]:
        yield f"{page}: {wanted} px wide in a window of {width} px"


def _build(sphinx: str, site: Path) -> int:
    shutil.rmtree(site, ignore_errors=True)
    options = ("--quiet", "--fail-on-warning", "--keep-going", "--builder", "html")
    return subprocess.run(
        [sphinx, "-m", "sphinx", *options, str(ROOT / "docs"), str(site)], check=False, cwd=ROOT
    ).returncode


def main() -> int:
    """Build the site and judge it."""
    parser = argparse.ArgumentParser(description="Build the documentation, strictly.")
    parser.add_argument("--site", default="build/docs", help="where it is put")
    parser.add_argument("--browser", help="a Chromium; by default the first on PATH, if any")
    options = parser.parse_args()
    site = (ROOT / options.site).resolve()
    if _build(sys.executable, site):
        return 1
    wrong = foreign_assets(site)
    browser = options.browser or next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser is None:
        print("no Chromium on PATH: the pages were not looked at in a browser")
    else:
        wrong += too_wide(site, browser)
    for line in wrong:
        print(line)
    pages = len(list(site.rglob("*.html")))
    print(f"{pages} pages in {site.relative_to(ROOT)}/index.html" if not wrong else "not good")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
