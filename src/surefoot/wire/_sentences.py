"""The law of this file: every way a call can be given up on has one sentence, and all are here.

A language model reads these. Each says what happened, whether the call may have run, and what to do
now, in that order and in plain words. None invites a blind repeat; a wait that the server stated is
in the text (B5). A sentence is made of numbers and fixed words, and at most of an AWS error type:
no other text of a server, no URL, no name and no secret can get into one, so that it may be shown,
logged and kept.

What a sentence says about having run is what ``MAY_HAVE_RUN`` says, and a test holds them together.
"""

from __future__ import annotations

import re
from functools import cache
from math import ceil
from types import MappingProxyType
from typing import Final, Literal, get_args

__all__ = ["ERROR_TYPE", "MAY_HAVE_RUN", "OUTCOMES", "Outcome", "is_sentence", "sentence"]

Outcome = Literal[
    "rate-limited",
    "session-busy",
    "not-sent",
    "not-sent-in-time",
    "credentials-failed",
    "consent-needed",
    "unauthorized",
    "forbidden",
    "not-found",
    "session-lost",
    "rejected",
    "redirected",
    "server-failure",
    "server-error",
    "no-answer",
    "cut-stream",
    "deadline",
    "unreadable",
    "too-large",
    "in-flight",
    "fenced",
    "already-ran",
    "fence-full",
]
"""Every outcome that a sentence exists for; ``kind`` in ``_meta["surefoot/outcome"]``."""

OUTCOMES: Final[tuple[Outcome, ...]] = get_args(Outcome)

_NOT_SENT: Final = "This {it} was not sent, so it did not run"
_FIND_OUT: Final = (
    "It may have run{often}. Do not send it again: it could be done twice. First find out, in a "
    "way that only reads, whether it took effect; if you cannot, say that the outcome is unknown."
)
_TOO_LARGE: Final = (
    "It may have run{often}. Do not send the same again: the answer would be as large, and the "
    "work could be done twice. If it only reads, ask for less at a time; otherwise find out first, "
    "in a way that only reads, whether it took effect."
)
_ASK_LATER: Final = (
    "It only reads, so nothing was changed by it. Do not ask again at once: ask once more later, "
    "or say that the server does not answer."
)
_ASK_FOR_LESS: Final = (
    "It only reads, so nothing was changed by it. Asking for the same again will not help: ask for "
    "less at a time."
)
_REFUSED: Final = "The server refused this {it}{status}"

# {it}: call or request. {status}: nothing or " (HTTP 503)". {tries}, {often}: nothing, or how often
# it was sent. {wait}: how long to wait. {unsure}: what to do where it may have run. Nothing else is
# ever put in.
_TABLE: Final[MappingProxyType[Outcome, str]] = MappingProxyType(
    {
        "rate-limited": (
            "The server is limiting how often it may be asked and refused this "
            "{it}{status}{tries}. It most likely did not run, but the server does not promise "
            "that. {wait}"
        ),
        "session-busy": (
            "The server was still busy starting or stopping this session and refused this "
            "{it}{status}{tries}. It most likely did not run, but the server does not promise "
            "that. {wait}"
        ),
        "not-sent": (
            _NOT_SENT
            + ": the server could not be reached{tries}. Trying again at once will not help. "
            "Go on without it, or say that the server cannot be reached."
        ),
        "not-sent-in-time": (
            _NOT_SENT
            + ": the time allowed for it ran out first. Go on without it, or say that it was "
            "not done."
        ),
        "credentials-failed": (
            _NOT_SENT
            + ": no valid credential could be had for the server. Trying again will not help. "
            "Say that access to this server has to be repaired."
        ),
        "consent-needed": (
            _NOT_SENT
            + ": a person has to allow access to this service first. Trying again before that "
            "will not help. Say that access has to be allowed, and wait until it is."
        ),
        "unauthorized": (
            _REFUSED
            + ": it did not accept the credential. Such a refusal comes before anything runs. "
            "Trying again will not help. Say that access to this server has to be renewed."
        ),
        "forbidden": (
            _REFUSED
            + ": access is not permitted. Such a refusal comes before anything runs. Trying "
            "again will not help. Use something that is permitted, or say that permission is "
            "missing."
        ),
        "not-found": (
            _REFUSED
            + ": it does not know what was asked for. Such a refusal comes before anything "
            "runs. Trying the same again will not help. Check the name, or say that it is "
            "missing."
        ),
        "session-lost": (
            _REFUSED
            + ": it no longer knows this session. Such a refusal comes before anything runs. "
            "Trying again in this session will not help. Say that the connection has to be "
            "opened anew."
        ),
        "rejected": (
            _REFUSED + ": it does not accept it in this form. Such a refusal comes before anything "
            "runs. Trying the same again will not help. Change what is asked for, or say that "
            "the server rejects it."
        ),
        "redirected": (
            "The server pointed to another address{status}, which is not followed. {unsure} Say, "
            "too, that the address of this server has to be corrected."
        ),
        "server-failure": "The server failed while it handled this {it}{status}. {unsure}",
        "server-error": (
            "The server reported an error for this {it}{status}; its own words are not shown, "
            "because they are not known to be safe. {unsure}"
        ),
        "no-answer": "No answer to this {it} came back{status}. {unsure}",
        "cut-stream": (
            "The connection was cut while the answer to this {it} was under way. {unsure}"
        ),
        "deadline": "The time allowed for this {it} ran out before an answer came. {unsure}",
        "unreadable": (
            "The server answered this {it}{status}, but the answer cannot be read in exactly "
            "one way, so it is not shown. {unsure}"
        ),
        "too-large": (
            "The server answered this {it}{status}, but the answer is larger than what is "
            "allowed, so it is not shown. {unsure}"
        ),
        "in-flight": (
            _NOT_SENT
            + ": an identical call is still under way. Do not send it again. Wait for the "
            "answer of that call."
        ),
        "fenced": (
            _NOT_SENT
            + ". An identical call was made earlier, and that one may have run. Do not send it "
            "again. First find out, in a way that only reads, whether the earlier one took "
            "effect; if you cannot, say that the outcome is unknown."
        ),
        "already-ran": (
            "This {it} was not sent, because it is done: an identical call was made earlier, and "
            "that one took effect, although its answer was lost. Do not send it again. If its "
            "result is needed, read it in a way that changes nothing, or say that it is done."
        ),
        "fence-full": (
            _NOT_SENT + ": too many earlier calls have an unknown outcome, and another that makes "
            "changes is not allowed until they are settled. Trying again will not help. Say "
            "that they have to be settled first."
        ),
    }
)

MAY_HAVE_RUN: Final[frozenset[Outcome]] = frozenset(
    {
        "rate-limited",
        "session-busy",
        "redirected",
        "server-failure",
        "server-error",
        "no-answer",
        "cut-stream",
        "deadline",
        "unreadable",
        "too-large",
    }
)
"""The outcomes after which the effect of what was sent is unknown (section 4, "May have run")."""

_REFUSALS: Final = frozenset({"rate-limited", "session-busy"})

ERROR_TYPE: Final = re.compile(r"[A-Za-z](?![A-Za-z0-9]{64})[A-Za-z0-9]*(?:Exception|Error|Fault)")
"""The form of an AWS error type: the one text of a server that a sentence may hold (D24)."""

_WAIT: Final = (
    "Do not send it again now: the server asks to wait {about} first. Until then go on with "
    "something else, or say that the server is busy."
)
_NO_WAIT: Final = (
    "Do not send it again now: give the server time first, go on with something else, or say that "
    "the server is busy."
)
_NEVER: Final = 1e9  # a wait of thirty years is no instruction that a reader can act on


def sentence(
    outcome: Outcome,
    *,
    status: int | None = None,
    retry_after: float | None = None,
    attempts: int = 1,
    error_type: str | None = None,
    what: Literal["call", "request", "read"] = "call",
) -> str:
    """Word one outcome for the model that reads it.

    Args:
        outcome: which one.
        status: the HTTP status, where the server answered with one that says something.
        retry_after: the seconds that the server asked to wait, where it stated any.
        attempts: how many times it was sent.
        error_type: the AWS error type; left out unless it has the form of one.
        what: ``call`` for a tool call, ``read`` for a request that the specification defines as a
            read, ``request`` for anything else.
    """
    more = attempts > 1
    facts = [] if status is None else [f"HTTP {status}"]
    if error_type is not None and ERROR_TYPE.fullmatch(error_type):
        facts.append(error_type)
    often = f", and more than once, because it was sent {attempts} times" if more else ""
    return _TABLE[outcome].format(
        it="call" if what == "call" else "request",
        status=f" ({', '.join(facts)})" if facts else "",
        unsure=_unsure(outcome, reads=what == "read").format(often=often),
        tries=f" {attempts} times" if more else "",
        wait=_wait(outcome, retry_after),
    )


def _unsure(outcome: Outcome, *, reads: bool) -> str:
    """What to do where nobody knows how far it came; a read can be asked for again."""
    if outcome == "too-large":
        return _ASK_FOR_LESS if reads else _TOO_LARGE
    return _ASK_LATER if reads else _FIND_OUT


def is_sentence(text: str) -> bool:
    """Tell whether a text is one of ours, word for word, whatever numbers stand in it."""
    return _ours().fullmatch(text) is not None


@cache
def _ours() -> re.Pattern[str]:
    """Match every sentence that can be made."""
    number = "[0-9]{1,12}"
    often = f"(?:, and more than once, because it was sent {number} times)?"
    unsure = [re.escape(text) for text in (_FIND_OUT, _TOO_LARGE, _ASK_LATER, _ASK_FOR_LESS)]
    wait = re.escape(_WAIT).replace(r"\{about\}", f"about {number} (?:second|minute|hour|day)s?")
    holes = {
        "it": "(?:call|request)",
        "status": rf"(?: \((?:HTTP {number})?(?:, )?(?:{ERROR_TYPE.pattern})?\))?",
        "unsure": f"(?:{'|'.join(unsure)})".replace(r"\{often\}", often),
        "tries": f"(?: {number} times)?",
        "wait": f"(?:{wait}|{re.escape(_NO_WAIT)})",
    }
    texts = [re.escape(text) for text in _TABLE.values()]
    for name, pattern in holes.items():
        texts = [text.replace(rf"\{{{name}\}}", pattern) for text in texts]
    return re.compile("|".join(texts))


def _wait(outcome: Outcome, seconds: float | None) -> str:
    """Say how long to wait, if the outcome is one that clears by itself."""
    if outcome not in _REFUSALS:
        return ""
    if seconds is None or not 0 < seconds < _NEVER:
        return _NO_WAIT
    return _WAIT.format(about=_about(seconds))


def _about(seconds: float) -> str:
    """Round a wait up to what a reader can act on; never below what was stated."""
    whole, unit = ceil(seconds), "second"
    for size, name in ((60, "minute"), (3600, "hour"), (86400, "day")):
        if seconds > 2 * size:
            whole, unit = ceil(seconds / size), name
    return f"about {whole} {unit}{'' if whole == 1 else 's'}"
