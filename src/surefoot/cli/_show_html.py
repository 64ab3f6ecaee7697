"""The law of this file: one page that needs nothing else, and nothing in a record becomes markup.

Every text goes through one function that escapes it. The page has no script, and its policy forbids
any; it loads nothing from anywhere. It is written as the record is read, so that it may be of any
length, and each call is drawn to its own scale.
"""

from __future__ import annotations

from html import escape
from typing import Final, TextIO

from surefoot.sinks import Unreadable

from ._show_calls import Call, Run, RunEnd, Step
from ._show_fields import Fields, fields_in, flag, plain, seconds, text, whole
from ._show_totals import Totals
from ._show_words import (
    NOT_RECORDED,
    Style,
    attempt_words,
    call_facts,
    call_words,
    counted,
    duration,
    endpoint_of,
    may_have_run,
    may_have_run_words,
    name_of,
    repeat_words,
    run_end_words,
)

__all__ = ["HtmlView"]

_POLICY: Final = (
    "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
)

_HEAD: Final = f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{_POLICY}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="referrer" content="no-referrer">
<title>surefoot: what was sent</title>
<style>
:root {{ color-scheme: light dark; --good: #1a7f37; --bad: #c0282d; --wait: #b35900;
  --line: #8885; --wire: #4a78c2; }}
@media (prefers-color-scheme: dark) {{
  :root {{ --good: #4cc26a; --bad: #ff7b72; --wait: #e3a04f; --wire: #79a8f0; }} }}
body {{ font: 15px/1.45 system-ui, sans-serif; margin: 1.5rem auto; padding: 0 1rem;
  max-width: 62rem; display: flex; flex-direction: column; overflow-wrap: anywhere; }}
h1 {{ font-size: 1.3rem; order: -2; margin: 0 0 .5rem; }}
p.legend {{ order: -2; margin: 0 0 .6rem; font-size: .85rem; }}
h2 {{ font-size: 1.05rem; margin: 1.6rem 0 .2rem; }}
.totals {{ order: -1; border: 1px solid var(--line); border-radius: .4rem; padding: .6rem 1rem; }}
.totals p {{ margin: .15rem 0; }}
.call {{ border-top: 1px solid var(--line); padding: .55rem 0; }}
.call p {{ margin: .1rem 0; }}
.name {{ font-weight: 600; }}
.dim, .at {{ opacity: .7; font-weight: 400; }}
.good {{ color: var(--good); }} .bad {{ color: var(--bad); }} .wait {{ color: var(--wait); }}
.bold {{ font-weight: 600; }}
.attempt {{ display: grid; grid-template-columns: 1.6rem 15rem minmax(0, 1fr) 5rem; gap: .5rem;
  align-items: center; }}
.attempt .took {{ text-align: right; font-variant-numeric: tabular-nums; }}
.call .after {{ margin-left: 2.1rem; }}
.track {{ position: relative; height: .9rem; background: #8881; border-radius: .2rem; }}
.track i {{ position: absolute; top: 0; bottom: 0; min-width: 2px; border-radius: .2rem; }}
.wire-good {{ background: var(--good); }} .wire-wait {{ background: var(--wait); }}
.wire-bad {{ background: var(--bad); }} .wire-plain {{ background: var(--wire); }}
.pause {{ background: repeating-linear-gradient(90deg, var(--wait) 0 3px, #0000 3px 6px); }}
@media (max-width: 40rem) {{ .attempt {{ grid-template-columns: 1.6rem minmax(0, 1fr) 5rem; }}
  .attempt .took {{ grid-row: 1; grid-column: 3; white-space: nowrap; }}
  .track {{ grid-column: 1 / -1; }} }}
</style>
</head>
<body>
<h1>What was sent, waited for and answered</h1>
<p class="legend dim">Each call is drawn to its own scale: full bars were on the wire (green:
answered, orange: refused, red: failed or without an answer), striped bars are waits.</p>
"""


class HtmlView:
    """Writes the page while the record is read."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        stream.write(_HEAD)

    def take(self, step: Step) -> None:
        """Write one step."""
        match step:
            case Run():
                self._run(step)
            case Call():
                self._call(step)
            case RunEnd():
                self._words(*run_end_words(step))
            case Unreadable(line=line, why=why):
                self._words("bad", f"line {line} cannot be read: {why}")
            case _:
                kind = text(step, "type") or "?"
                lost = whole(step, "dropped")
                more = "" if lost is None else f", {counted(lost, 'event')} lost here"
                self._words("bad" if kind == "sink.failed" else "dim", f"event {kind}{more}")

    def close(self, totals: Totals) -> None:
        """Write the totals, which the page shows first, and its end."""
        self._stream.write('<section class="totals">\n')
        for style, words in totals.lines():
            self._words(style, words)
        self._stream.write("</section>\n</body>\n</html>\n")

    def _run(self, run: Run) -> None:
        name = None if run.started is None else text(run.started, "name")
        called = "" if name is None else f" “{name}”"
        when = NOT_RECORDED if run.began is None else f"{run.began:%Y-%m-%d %H:%M:%S} UTC"
        began = "began" if run.started is not None else f"start {NOT_RECORDED}, first event"
        self._stream.write(
            f"<h2>Run {run.label}{_shown(called)} "
            f'<span class="dim">{_shown(f"{began} {when}")}</span></h2>\n'
        )

    def _call(self, call: Call) -> None:
        at = call.at
        when = "?" if at is None else f"+{at:.2f} s"
        style, words = call_words(call)
        self._stream.write(
            '<section class="call">\n'
            f'<p><span class="name">{_shown(name_of(call))}</span> at '
            f"{_shown(endpoint_of(call))} "
            f'<span class="at">run {call.run.label}, {_shown(when)}</span></p>\n'
        )
        self._words(style, f"{words}; {call_facts(call)}")
        for request in call.requests:
            self._request(request)
        if may_have_run(call):
            self._words("bad", may_have_run_words(call))
        if call.started is not None and call.ended is None:
            self._words("dim", f"the end of this call is {NOT_RECORDED}")
        self._stream.write("</section>\n")

    def _request(self, request: Fields) -> None:
        attempts = fields_in(request, "attempts")
        total = max(
            [1e-9, *(_end_of(one) + (seconds(one, "wait_seconds") or 0.0) for one in attempts)]
        )
        for index, attempt in enumerate(attempts):
            style, words = attempt_words(attempt)
            if index == len(attempts) - 1 and flag(request, "may_have_run"):
                words += ", may have run"
            number = whole(attempt, "number")
            begins, ends = seconds(attempt, "started_seconds") or 0.0, _end_of(attempt)
            bars = _bar(f"wire-{_class(style)}", begins, ends, total)
            if wait := seconds(attempt, "wait_seconds"):
                bars += _bar("pause", ends, ends + wait, total)
            self._stream.write(
                f'<div class="attempt"><span class="dim">{"?" if number is None else number}</span>'
                f'<span class="{_class(style)}">{_shown(words)}</span>'
                f'<span class="track">{bars}</span>'
                f'<span class="took dim">{_shown(duration(seconds(attempt, "duration_seconds")))}'
                "</span></div>\n"
            )
            for style, words in repeat_words(attempt):
                self._words(style, words, kind="after")

    def _words(self, style: Style, words: str, *, kind: str = "") -> None:
        self._stream.write(f'<p class="{_class(style)} {kind}">{_shown(words)}</p>\n')


def _shown(words: str) -> str:
    """A text as the page may hold it: printable, bounded, and no markup."""
    return escape(plain(words, most=400), quote=True)


def _class(style: Style) -> str:
    return style or "plain"


def _end_of(attempt: Fields) -> float:
    return (seconds(attempt, "started_seconds") or 0.0) + (
        seconds(attempt, "duration_seconds") or 0.0
    )


def _bar(kind: str, begins: float, ends: float, total: float) -> str:
    left, width = 100 * begins / total, 100 * (ends - begins) / total
    return f'<i class="{kind}" style="left:{min(left, 99.8):.2f}%;width:{width:.2f}%"></i>'
