"""The law of this file: a dozen lines that a person reads at 80 columns, or one JSON object."""

from __future__ import annotations

import shutil
import textwrap
from collections.abc import Iterator
from importlib.metadata import version
from typing import Any, Final

from surefoot.policy import Retry

from ._check_look import Look, ToolSeen
from ._show_fields import plain
from ._show_words import counted

__all__ = ["advice_for", "as_json", "as_text"]

_NARROWEST: Final = 60
_WIDEST: Final = 120
_LABEL: Final = 11
_MOST_TOOLS: Final = 12
_SAFE_NAME: Final = 40


def as_text(seen: Look) -> str:
    """The lines for people."""
    columns = max(_NARROWEST, min(_WIDEST, shutil.get_terminal_size((80, 24)).columns))
    lines = [
        line
        for label, words in _rows(seen)
        for line in textwrap.wrap(
            plain(words, ascii_only=True, most=600),
            width=columns,
            initial_indent=f"  {label}".ljust(_LABEL + 2),
            subsequent_indent=" " * (_LABEL + 2),
            break_on_hyphens=False,
        )
    ]
    return "\n".join([seen.origin, *lines])


def as_json(seen: Look, *, exit_code: int) -> dict[str, Any]:
    """The same as one object."""
    return {
        "v": 1,
        "origin": seen.origin,
        "encrypted": seen.encrypted,
        "connected": seen.connected,
        "failed": seen.failed,
        "mcp": version("mcp"),
        "surefoot": version("surefoot"),
        "protocol": seen.protocol,
        "era": seen.era,
        "server": seen.server,
        "auth": {
            "demanded": seen.demands,
            "oauth_metadata": seen.metadata,
            "credential": seen.credential,
        },
        "throttle": {"refusals": seen.throttled, "headers": seen.throttle_headers},
        "tools": None
        if seen.tools is None
        else [
            {"name": tool.name, "hints": dict(tool.hints), "declare": advice_for(tool)}
            for tool in seen.tools
        ],
        "call": None
        if seen.called is None
        else {
            "tool": seen.called.tool,
            "answered": seen.called.answered,
            "words": seen.called.words,
        },
        "answers": {
            "read": 0 if seen.strictly is None else seen.strictly.answers,
            "problems": [
                {"method": one.method, "rule": one.rule, "means": one.means}
                for one in seen.problems
            ],
            "unjudged": [
                {"method": one.method, "why": one.why, "means": one.means} for one in seen.unjudged
            ],
        },
        "exit_code": exit_code,
    }


def advice_for(tool: ToolSeen) -> str:
    """The declaration that fits what the server says of a tool; the app knows if it is true."""
    if tool.hints.get("readOnly"):
        return 'ToolRule(repeat_on={"throttle", "network"})'
    return "ToolRule(makes_changes=True)"


def _rows(seen: Look) -> Iterator[tuple[str, str]]:
    if seen.failed is not None:
        yield ("stopped" if seen.connected else "no entry"), seen.failed
    yield "protocol", _protocol(seen)
    if seen.server is not None:
        yield "server", f"calls itself {seen.server}"
    yield "auth", _auth(seen)
    yield "throttle", _throttle(seen)
    yield from _tools(seen)
    if seen.called is not None:
        tool = "" if seen.called.tool is None else f"{plain(seen.called.tool, most=_SAFE_NAME)}: "
        yield "called", f"{tool}{seen.called.words}"
    yield from _would(seen)
    yield from _wrong(seen)


def _protocol(seen: Look) -> str:
    by = f"asked by mcp {version('mcp')}"
    if seen.protocol is None:
        return f"not known, {by}"
    eras = {"stateless": ", without sessions", "sessions": ", with sessions", None: ""}
    return f"{seen.protocol}{eras[seen.era]}; {by}"


def _auth(seen: Look) -> str:
    given = {
        "none": "none was given",
        "accepted": "the one that was given was accepted",
        "rejected": "the one that was given was refused",
        "unused": "the one that was given was never sent",
    }[seen.credential]
    if not seen.demands:
        return f"no credential was asked for; {given}"
    if seen.credential == "none":
        given += ": name one with --token-env or --token-file"
    where = "; it says where its OAuth metadata is" if seen.metadata else ""
    return f"asks for a credential ({', '.join(seen.demands)}){where}; {given}"


def _throttle(seen: Look) -> str:
    refused = f"it answered 429 ({counted(seen.throttled, 'time')})" if seen.throttled else "no 429"
    headers = ", ".join(seen.throttle_headers) or "none"
    return f"{refused}; headers about limits: {headers}"


def _tools(seen: Look) -> Iterator[tuple[str, str]]:
    if seen.tools is None:
        yield "tools", "not known"
        return
    yield "tools", f"{len(seen.tools)}, with what the server says of them (hints, no promises)"
    for tool in seen.tools[:_MOST_TOOLS]:
        yield "", f"{plain(tool.name, most=_SAFE_NAME)}: {_says(tool)} -> {advice_for(tool)}"
    more = len(seen.tools) - _MOST_TOOLS
    if more > 0:
        yield "", f"and {more} more; --json lists all"


def _says(tool: ToolSeen) -> str:
    hints = tool.hints
    if not hints:
        return "no hint"
    if hints.get("readOnly"):
        return "reads"
    changes = "changes, may destroy" if hints.get("destructive", True) else "changes, adds only"
    return f"{changes}, the same twice as once" if hints.get("idempotent") else changes


def _would(seen: Look) -> Iterator[tuple[str, str]]:
    retry = Retry()
    words = (
        f"waits out a 429: at most {retry.max_attempts} attempts and {retry.max_wait:g} s of waits "
        f"a call; repeats a lost call only of a tool that you declare, as after ->"
    )
    yield "surefoot", words
    if not seen.encrypted:
        yield "", "plain http: whoever is on the way reads the credentials"


def _wrong(seen: Look) -> Iterator[tuple[str, str]]:
    if not seen.problems:
        answers = 0 if seen.strictly is None else seen.strictly.answers
        nothing = "nothing, read strictly" if answers else "nothing was read"
        yield "wrong", f"{nothing} ({counted(answers, 'answer')})"
    for number, one in enumerate(seen.problems):
        method = plain(one.method, most=_SAFE_NAME)
        yield "" if number else "wrong", f"{method}: {one.means} [{one.rule}]"
    for number, one in enumerate(seen.unjudged):
        method = plain(one.method, most=_SAFE_NAME)
        yield "" if number else "unjudged", f"{method}: {one.means} [{one.why}]"
