"""What `surefoot check` makes of an answer that it did not read to its end, and who is blamed.

R92 to R98, B12: what the check itself left, or did not keep, is no fault of the gateway's, and is
never taken for sound.
"""

from __future__ import annotations

import gzip
from typing import Any, Final, Literal

import pytest

from support.checking import Check, seen
from surefoot.cli import _exit_codes as codes
from surefoot.cli._check_answers import Read, read_strictly
from surefoot.cli._check_look import Plan
from surefoot.cli._check_tap import MOST_BYTES, MOST_EXCHANGES, Exchange, Tape
from surefoot.testing import FaultyGateway, Sse, Step, Tool
from surefoot.wire import encode_event, read_request

pytestmark = pytest.mark.both_majors

REPLY: Final = b'{"jsonrpc":"2.0","id":7,"result":{}}'
TWICE: Final = b'{"jsonrpc":"2.0","id":7,"id":7,"result":{}}'
NOTE: Final = b'{"jsonrpc":"2.0","method":"notifications/message","params":{}}'
EVENTS: Final = b"text/event-stream"
ORIGIN: Final = ("https", "gateway.example.com", 443)

Ended = Literal["whole", "broken", "left"]


def _exchange(
    body: bytes,
    ended: Ended,
    *,
    status: int | None = 200,
    kept: bool = True,
    kind: bytes = b"application/json",
    coding: bytes = b"",
    more: tuple[tuple[bytes, bytes], ...] = (),
) -> Exchange:
    return Exchange(
        http_method="POST",
        outgoing=read_request(b'{"jsonrpc":"2.0","id":7,"method":"tools/list"}'),
        version=None,
        in_session=False,
        signed=False,
        status=status,
        lines=(
            (b"content-type", kind),
            *(((b"content-encoding", coding),) if coding else ()),
            *more,
        ),
        body=bytearray(body),
        ended=ended,
        kept=kept,
    )


def _read(*exchanges: Exchange) -> Read:
    tape = Tape()
    for one in exchanges:
        tape.add(one)
    return read_strictly(tape, ORIGIN)


def _said(read: Read) -> tuple[list[str], list[str]]:
    return [one.rule for one in read.problems], [one.why for one in read.unjudged]


BOMB: Final = gzip.compress(b" " * (MOST_BYTES + 1))
EVENT: Final = encode_event(REPLY)
OTHER: Final = encode_event(NOTE)


@pytest.mark.parametrize(
    ("exchange", "rules", "unjudged"),
    [
        # JSON: the control, then each way to end before it.
        (_exchange(REPLY, "whole"), [], []),
        (_exchange(REPLY[:9], "broken"), ["cut"], []),
        (_exchange(REPLY[:9], "left"), [], ["left"]),
        (_exchange(REPLY[:9], "whole", kept=False), [], ["too-large"]),
        (_exchange(REPLY[:9], "left", kept=False), [], ["too-large"]),
        (_exchange(TWICE, "whole"), ["duplicate-key"], []),
        # Nothing came at all.
        (_exchange(b"", "broken", status=None), ["no-answer"], []),
        (_exchange(b"", "left", status=None), [], ["left"]),
        # What the head says wrong stays wrong, whoever left.
        (_exchange(b"", "left", kind=b"text/html"), ["content-type"], []),
        (
            _exchange(b"", "left", kind=b"application/json; charset=x"),
            ["content-type-parameter"],
            [],
        ),
        (_exchange(b"", "left", status=429), ["no-retry-after"], ["left"]),
        (_exchange(b"", "left", status=500), [], ["left"]),
        (_exchange(b"", "broken", status=500), ["cut"], []),
        # A stream is read up to the reply, and no further.
        (_exchange(EVENT, "whole", kind=EVENTS), [], []),
        (_exchange(EVENT, "left", kind=EVENTS), [], []),
        (_exchange(EVENT, "broken", kind=EVENTS), [], []),
        (_exchange(EVENT, "whole", kind=EVENTS, kept=False), [], []),
        (_exchange(OTHER, "whole", kind=EVENTS), ["unanswered"], []),
        (_exchange(OTHER, "broken", kind=EVENTS), ["cut"], []),
        (_exchange(OTHER, "left", kind=EVENTS), [], ["left"]),
        (_exchange(OTHER, "whole", kind=EVENTS, kept=False), [], ["too-large"]),
        (_exchange(OTHER + b"data: {", "left", kind=EVENTS), [], ["left"]),
        (_exchange(encode_event(TWICE), "left", kind=EVENTS), ["duplicate-key"], []),
        (_exchange(b"\xef\xbb\xbf" + EVENT, "left", kind=EVENTS), ["byte-order-mark"], []),
        # Packed: the end of the packing is part of the answer, and what unfolds has a bound.
        (_exchange(gzip.compress(REPLY), "whole", coding=b"gzip"), [], []),
        (_exchange(gzip.compress(REPLY)[:-8], "whole", coding=b"gzip"), ["compressed"], []),
        (_exchange(gzip.compress(REPLY)[:-8], "left", coding=b"gzip"), [], ["left"]),
        (_exchange(gzip.compress(REPLY)[:-8], "broken", coding=b"gzip"), ["cut"], []),
        (_exchange(b"no gzip", "whole", coding=b"gzip"), ["compressed"], []),
        (_exchange(REPLY, "whole", coding=b"br"), ["compressed"], []),
        (_exchange(BOMB, "whole", coding=b"gzip"), [], ["too-large"]),
    ],
    ids=range(31),
)
def test_who_ended_an_answer_decides_who_is_blamed(
    exchange: Exchange, rules: list[str], unjudged: list[str]
) -> None:
    """R92 to R98, B12."""
    assert _said(_read(exchange)) == (rules, unjudged)


CHALLENGE: Final = b"www-authenticate"
BASIC: Final = ((CHALLENGE, b'Basic realm="x"'),)
HOME: Final = ((CHALLENGE, b'Bearer resource_metadata="https://gateway.example.com/m"'),)
AWAY: Final = ((CHALLENGE, b'Bearer resource_metadata="https://elsewhere.example/m"'),)


@pytest.mark.parametrize(
    ("status", "more", "rules"),
    [
        (200, ((b"mcp-session-id", b"a-session"),), []),
        (200, ((b"mcp-session-id", b"a session\x7f"),), ["session-id"]),
        (429, ((b"retry-after", b"3"),), []),
        (429, ((b"retry-after", b"Mon, 30 Nov 2026 14:00:00 GMT"),), []),
        (429, ((b"retry-after", b"3.5 s"),), ["retry-after"]),
        (429, (), ["no-retry-after"]),
        (503, ((b"retry-after", b"soon"),), ["retry-after"]),
        (307, ((b"location", b"/other"),), ["redirect"]),
        (401, (), ["no-challenge"]),
        (401, BASIC, []),
        (401, HOME, []),
        (401, AWAY, ["challenge"]),
        (403, AWAY, ["challenge"]),
        (403, (), []),
    ],
    ids=range(14),
)
def test_what_a_head_states_is_held_to_its_grammar(
    status: int, more: tuple[tuple[bytes, bytes], ...], rules: list[str]
) -> None:
    """D14, D23, R35: also where the body says nothing wrong."""
    error = b'{"jsonrpc":"2.0","id":7,"error":{"code":-32603,"message":"Internal error"}}'
    body = REPLY if status == 200 else error
    assert _said(_read(_exchange(body, "whole", status=status, more=more))) == (rules, [])


def test_each_thing_is_said_once_and_in_words() -> None:
    left = _exchange(b"", "left")
    read = _read(left, left, _exchange(REPLY, "whole"))
    assert read.answers == 3
    assert [(one.method, one.why) for one in read.unjudged] == [("tools/list", "left")]
    assert read.unjudged[0].means.startswith("the check was over before its answer was")


def test_what_is_not_kept_is_named_and_a_call_always_is() -> None:
    """B12. An endless list does not fill the memory, and does not hide that a tool was called."""
    tape = Tape()
    for _ in range(MOST_EXCHANGES + 5):
        tape.add(_exchange(REPLY, "whole"))
    call = _exchange(REPLY, "whole")
    call.outgoing = read_request(
        b'{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"x","arguments":{}}}'
    )
    tape.add(call)
    assert len(tape.kept) == MOST_EXCHANGES + 1
    assert tape.kept[-1] is call
    read = read_strictly(tape, ORIGIN)
    assert [(one.method, one.why) for one in read.unjudged] == [("tools/list", "too-many")]
    assert read.problems == ()


PADDED: Final = Sse([{"jsonrpc": "2.0", "method": "x"}] * 5, comments=["c" * (900 << 10)])
SHORT: Final = Sse([{"jsonrpc": "2.0", "method": "x"}] * 5, comments=["c"])


@pytest.mark.parametrize(
    ("tool", "step", "unjudged"),
    [
        (Tool("large", answer="x" * (MOST_BYTES >> 1)), None, []),
        (Tool("large", answer="x" * MOST_BYTES), None, ["too-large"]),
        (Tool("large"), SHORT, []),
        (Tool("large"), PADDED, ["too-large"]),
    ],
    ids=["2 MiB", "4 MiB", "short stream", "padded stream"],
)
def test_a_large_answer_is_said_to_be_judged_in_part(
    tool: Tool, step: Step | None, unjudged: list[str], check: Check
) -> None:
    """B12. It is answered, and nothing is wrong with what was read of it: the exit code is 0."""
    with FaultyGateway([tool]) as gateway:
        if step is not None:
            gateway.script("large", step)
        told: dict[str, Any] = seen(check(gateway.url, "--json", "--call", "large"))
    assert told["call"]["answered"] is True
    assert told["answers"]["problems"] == []
    assert [one["why"] for one in told["answers"]["unjudged"]] == unjudged
    assert told["exit_code"] == codes.OK


def test_what_is_written_down_shows_no_word_of_it() -> None:
    """R107, R109. A traceback that prints it shows its shape."""
    exchange = _exchange(b"canary", "whole", more=((b"x-token", b"canary"),))
    plan = Plan(url="https://a.example/canary", call="canary", arguments={"q": "canary"})
    assert (repr(exchange), repr(plan)) == ("Exchange(POST, status=200)", "Plan(...)")
    assert b"canary" in exchange.body, "the control"
