"""The law of this file: the words of `surefoot show` say what is known, assumed and not recorded.

One table for the terminal and the page. A word that a later version writes is shown as it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal

from ._show_calls import Call, RunEnd
from ._show_fields import Fields, fields_in, flag, plain, seconds, text, whole

__all__ = [
    "NOT_RECORDED",
    "Style",
    "attempt_words",
    "call_facts",
    "call_words",
    "counted",
    "duration",
    "endpoint_of",
    "grant_words",
    "may_have_run",
    "may_have_run_words",
    "name_of",
    "repeat_grants",
    "repeat_words",
    "run_end_words",
    "waited",
]

Style = Literal["", "bold", "dim", "good", "bad", "wait"]

NOT_RECORDED: Final = "not recorded"

_KINDS: Final = {"throttle": "throttled", "session-busy": "session busy"}

_WHY: Final = {
    "attempts-spent": "all attempts are spent",
    "waiting-spent": "a longer wait would pass the budget",
    "no-time": "no time was left for the wait",
    "no-permission": "nobody permitted a repeat",
    "body-not-resendable": "its body could not be sent again",
    "reconnect-off": "reconnecting is switched off",
    "credential-failed": "no credential could be had",
    "cancelled": "the caller cancelled it",
    "deadline": "its deadline passed",
    "stream-cut": "the stream ended before the reply",
    "unreadable": "the answer could not be read in exactly one way",
    "fenced": "an identical earlier call may have run",
}

_BY: Final = {
    "app": "by the app's own declaration",
    "policy": "by the default policy",
    "adapter": "by the service's adapter",
    "protocol": "by the protocol itself",
    "hint": "by the server's own hint",
    "proof": "because nothing was sent, which is proven",
}

_ASSUMES: Final = {
    "refused-before-execution": "that the server refused it before it ran",
    "auth-rejected-before-execution": "that the server rejected the credential before it ran",
}


def counted(number: int, noun: str) -> str:
    """A number and its noun, in the right form."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def duration(value: float | None) -> str:
    """Seconds for people."""
    if value is None:
        return NOT_RECORDED
    if value < 1_000:
        return f"{value:.2f} s"
    return f"{value:.0f} s" if value < 1_000_000 else f"{value:.1e} s"


def name_of(call: Call) -> str:
    """The tool, or the method of a request that calls none."""
    for fields in (call.started, *call.requests):
        if fields is not None and (tool := text(fields, "tool")) is not None:
            return plain(tool)
    if call.requests and (method := text(call.requests[0], "method")) is not None:
        return plain(method)
    return NOT_RECORDED


def endpoint_of(call: Call) -> str:
    """The label or the origin that it went to."""
    for fields in (call.started, *call.requests):
        if fields is not None and text(fields, "endpoint"):
            return plain(text(fields, "endpoint") or "")
    return NOT_RECORDED


def waited(call: Call) -> float:
    """Seconds of waiting, all requests together."""
    return sum(seconds(request, "waited_seconds") or 0.0 for request in call.requests)


def may_have_run(call: Call) -> bool:
    """Whether the last word on it is that it may have run, or there is no word on it at all."""
    return call.unrecorded or (bool(call.requests) and flag(call.requests[-1], "may_have_run"))


def may_have_run_words(call: Call) -> str:
    """Why it may have run."""
    if call.unrecorded:
        return f"MAY HAVE RUN: what became of it is {NOT_RECORDED}"
    return "MAY HAVE RUN: no result came, and nothing proves that it did not run"


def attempt_words(attempt: Fields) -> tuple[Style, str]:
    """How one attempt ended."""
    status = whole(attempt, "status")
    number = "" if status is None else f" {status}"
    error = text(attempt, "error")
    because = "" if error is None else f" ({plain(error)})"
    match text(attempt, "outcome"):
        case "answered":
            return "good" if status is not None and status < 400 else "bad", f"answered{number}"
        case "refused":
            kind = text(attempt, "kind") or "refused"
            return "wait", f"refused{number}, {_KINDS.get(kind, plain(kind))}"
        case "unanswered":
            return "bad", f"no answer{because}"
        case "not_sent":
            return "bad", f"never sent{because}"
        case "cut":
            return "bad", f"cut{number}{because}"
        case None:
            return "bad", NOT_RECORDED
        case other:
            return "", plain(other) + number


def call_words(call: Call) -> tuple[Style, str]:
    """How a call ended, and why."""
    if not call.requests:
        return "bad", "its requests are " + NOT_RECORDED
    last = call.requests[-1]
    style, words = _ended_words(last)
    why = text(last, "why")
    if why is not None and why != "final-answer":
        words += f": {_WHY.get(why, plain(why))}"
    if call.ended is not None and flag(call.ended, "is_error") and style == "good":
        style, words = "bad", words + ", and the tool says that it failed"
    return style, words


def call_facts(call: Call) -> str:
    """How many attempts a call took, how long it was, and how much of that was waiting."""
    count = sum(len(fields_in(request, "attempts")) for request in call.requests)
    facts = [counted(count, "attempt"), duration(_lasted(call))]
    if waited(call):
        facts.append(f"{duration(waited(call))} of it waiting")
    return ", ".join(facts)


def _lasted(call: Call) -> float | None:
    if call.ended is not None:
        return seconds(call.ended, "duration_seconds")
    found = [seconds(request, "duration_seconds") for request in call.requests]
    known = [one for one in found if one is not None]
    return sum(known) if known else None


def _ended_words(request: Fields) -> tuple[Style, str]:
    status = whole(request, "status")
    number = "" if status is None else f" {status}"
    match text(request, "ended"):
        case "answered":
            return "good" if status is None or status < 400 else "bad", f"answered{number}"
        case "refused":
            return "bad", f"given up, refused{number}"
        case "unanswered":
            return "bad", "given up, no answer"
        case "not_sent":
            return "bad", "given up, never sent"
        case "cut":
            return "bad", "cut off"
        case "failed":
            return "bad", "not sent"
        case None:
            return "bad", "its end is " + NOT_RECORDED
        case other:
            return "", plain(other) + number


def run_end_words(end: RunEnd) -> tuple[Style, str]:
    """How a run ended, and whether all of it is there."""
    run, found = end.run, end.run.found
    if end.ended is None:
        return "bad", f"run {run.label}: its end is {NOT_RECORDED}"
    error = text(end.ended, "error")
    raised = "" if error is None else f" by {plain(error)}"
    lasted = duration(seconds(end.ended, "duration_seconds"))
    missing = f"{counted(found.missing, 'event')} {NOT_RECORDED}"
    if run.unrecorded and not found.missing:
        missing = f"what became of {counted(run.unrecorded, 'call')} is {NOT_RECORDED}"
    state = "complete" if run.complete else missing
    style: Style = "dim" if run.complete else "bad"
    return style, f"run {run.label} ended after {lasted}{raised}: {state}"


def repeat_words(attempt: Fields) -> list[tuple[Style, str]]:
    """The wait after an attempt, and who permitted the repeat that followed; often nothing."""
    lines: list[tuple[Style, str]] = []
    wait, stated = seconds(attempt, "wait_seconds"), seconds(attempt, "retry_after_seconds")
    malformed = flag(attempt, "retry_after_malformed")
    asked = "" if stated is None else f"the server asked for {duration(stated)}"
    if malformed:
        asked = "the server's Retry-After means nothing"
    if wait == 0 and not asked:
        lines.append(("", "sent again at once"))
    elif wait is not None:
        lines.append(("wait", f"waited {duration(wait)}" + (f"; {asked}" if asked else "")))
    elif asked:
        lines.append(("dim", asked))
    for grant in repeat_grants(attempt):
        assumes = text(grant, "assumes")
        words = grant_words(text(grant, "by") or NOT_RECORDED, assumes)
        lines.append(("wait" if assumes else "", f"repeat {words}"))
    return lines


def repeat_grants(attempt: Fields) -> Sequence[Fields]:
    """The permission of the repeat that followed an attempt: one, or none."""
    return fields_in({"permission": [attempt.get("permission")]}, "permission")


def grant_words(by: str, assumes: str | None) -> str:
    """Who permitted a repeat, and what that takes for granted."""
    words = f"permitted {_BY.get(by, f'by {plain(by)}')}"
    if assumes is None:
        return words
    return f"{words}, ASSUMING {_ASSUMES.get(assumes, plain(assumes))}"
