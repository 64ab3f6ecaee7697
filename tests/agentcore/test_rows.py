"""D4, D16, D17, D19, D20, D23, D24, R2, R11, R60, R61, R68, R88 to R98, B1: each answer, and us.

Every answer that the stand-in knows by name meets one tool call, through the SDK's own client of
each era. Held are what the model reads, how often the call went out and its tool ran, by whose word
it was repeated, and what the evidence says; and that nothing of the signed request, the session
token or a refused value reaches the model, and the session lives on.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import pytest

from support.agentcore import gateway_of, runtime_of
from support.sessions import KINDS, SDK_ON_TRIO, Kind, Told, opened
from surefoot.testing import AGENTCORE_ROWS, AgentCoreStandIn, FakeClock, RecordingSink
from surefoot.wire import MAY_HAVE_RUN, Outcome, sentence

pytestmark = [pytest.mark.both_majors, pytest.mark.anyio, *SDK_ON_TRIO]

BACKENDS: Final[dict[Kind, str]] = {"modern": "asyncio", "handshake": "trio", "mcp1": "asyncio"}
EVERY_KIND: Final = [(kind, BACKENDS[kind]) for kind in KINDS]

Grant = tuple[str, str, str]
"""Who permitted a repeat, on which assumption, and after which kind of refusal."""

BUSY: Final[Grant] = ("adapter", "refused-before-execution", "session-busy")
STATED: Final[Grant] = ("adapter", "refused-before-execution", "throttle")
PLAIN: Final[Grant] = ("policy", "refused-before-execution", "throttle")


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """What comes of one answer."""

    name: str
    grant: Grant | None = None
    """By whose word the call is sent again; the second answer is sound."""
    wait: float | None = None
    """The least and most of the wait, where the service states one: it, and half as much more."""
    words: Outcome | None = None
    """The outcome in words of ours."""
    status: int | None = None
    error: str | None = None
    """The AWS error type that stands in those words."""
    code: int | None = None
    """The code of the server's own error, where that passes."""
    text: str | None = None
    """Its message, or the tool's own text."""
    is_error: bool = False
    """The tool's own failure."""
    ran: int = 0
    edge: str = "final-answer"
    """Why the series ended."""

    def __str__(self) -> str:
        return self.name


def said(
    name: str, words: Outcome, status: int | None = None, error: str | None = None, **more: Any
) -> Row:
    """A row whose answer is put into our words."""
    return Row(name=name, words=words, status=status, error=error, **more)


def passes(name: str, code: int, text: str, **more: Any) -> Row:
    """A row whose error passes: code and a known message."""
    return Row(name=name, code=code, text=text, **more)


def again(name: str, grant: Grant, wait: float | None = None) -> Row:
    """A row that is waited out."""
    return Row(name=name, grant=grant, wait=wait, text="found it", ran=1)


def sound(name: str) -> Row:
    """A row that only looks odd."""
    return Row(name=name, text="found it", ran=1)


def unread(name: str, words: Outcome = "unreadable") -> Row:
    """A row that cannot be read in exactly one way; its tool ran."""
    return Row(name=name, words=words, ran=1, edge="unreadable")


SIGNATURE: Final = "InvalidSignatureException"

RUNTIME: Final = [
    again("busy", BUSY), again("busy-json", BUSY), again("busy-sse", BUSY),
    again("busy-409", BUSY), again("busy-409-type-in-body", BUSY),
    passes("conflict", -32005, "Resource conflict - Resource already exists"),
    said("conflict-409", "server-error", 409, "ConflictException"),
    again("throttle", STATED), again("throttle-sse", STATED),
    again("throttle-429", PLAIN), again("throttle-429-seconds", PLAIN, 2.0),
    again("throttle-429-garbage", PLAIN),
    said("quota-402", "server-error", 402, "ServiceQuotaExceededException"),
    said("bad-signature", "unauthorized", 403, SIGNATURE),
    said("signature-expired", "unauthorized", 403, SIGNATURE),
    said("signature-not-yet", "unauthorized", 403, SIGNATURE),
    said("incomplete-signature", "unauthorized", 403, "IncompleteSignatureException"),
    said("missing-token", "unauthorized", 403, "MissingAuthenticationTokenException"),
    said("expired-token", "unauthorized", 403, "ExpiredTokenException"),
    said("unrecognized-client", "unauthorized", 403, "UnrecognizedClientException"),
    said("no-bearer", "unauthorized", 401),
    said("other-auth", "forbidden", 403, "AccessDeniedException"),
    said("denied", "forbidden", 403),
    said("denied-api", "forbidden", 403, "AccessDeniedException"),
    passes("validation", -32006, "Validation error - Invalid request data"),
    said("validation-api", "rejected", 400, "ValidationException"),
    passes("not-found", -32004, "Resource not found - Requested resource does not exist"),
    passes("not-acceptable", -32011, "Accept Header Error - MCP protocol requires Accept header: "
           "application/json, text/event-stream", status=406),
    said("method-not-allowed", "rejected", 405),
    passes("runtime-error", -32010, "Tool execution error - Please check your CloudWatch logs for "
           "more information"),
    said("runtime-error-424", "server-error", 424, "RuntimeClientError", ran=1),
    said("runtime-start-424", "server-error", 424, "RuntimeClientError"),
    passes("internal", -32603, "Internal error - Server error"),
    said("internal-500", "server-failure", 500, "InternalServerException", ran=1),
    said("bad-gateway-502", "server-failure", 502, ran=1),
    said("unavailable-503", "server-failure", 503, ran=1),
    said("gateway-timeout-504", "server-failure", 504, ran=1),
    # What no client may believe, or give up on too soon.
    unread("duplicate-keys"), unread("bom"), unread("trailing-data"), unread("batch"),
    unread("nan"), unread("lone-surrogate"), unread("not-utf8"), unread("wrong-id"),
    unread("json-seq"), unread("utf-16"), unread("too-deep", "too-large"),
    unread("too-large", "too-large"), unread("sse-two-messages"),
    passes("error-data", -32603, "Internal error", ran=1),
    passes("unknown-message", -32099, sentence("server-error"), ran=1),
    sound("sse-bare-returns"), sound("sse-split-letter"), sound("sse-comments"),
    sound("sse-primed"),
    said("sse-dropped", "no-answer", ran=1, edge="no-permission"),
    said("reset-before", "no-answer", edge="no-permission"),
    said("reset-after", "no-answer", ran=1, edge="no-permission"),
]  # fmt: skip

GATEWAY: Final = [
    passes("gateway-session-missing", -32600, "Bad Request: Missing session ID", status=400),
    passes("gateway-unknown-tool", -32602, sentence("not-found", status=404), status=404),
    said("gateway-no-bearer", "unauthorized", 401),
    said("gateway-scope", "forbidden", 403),
    passes("gateway-consent", -32042, "A person has to open a page before the server can do this"),
    Row(name="gateway-tool-error", text="An internal error occurred. Please retry later.",
        is_error=True, ran=1),
    said("gateway-tool-500", "server-failure", 500, "ToolExecutionError", ran=1),
    passes("gateway-capability", -32021,
           "The server requires a capability that the client does not have", status=400),
    passes("gateway-version", -32022, "Unsupported protocol version", status=400),
    again("knowledge-throttle", PLAIN),
    again("gateway-throttle", STATED, 1.0), again("gateway-throttle-429", STATED, 1.0),
    again("gateway-throttle-http", STATED, 1.0), again("gateway-throttle-short", STATED, 0.2),
    said("gateway-throttle-long", "rate-limited", 429, edge="waiting-spent"),
    again("gateway-throttle-text", PLAIN), again("gateway-throttle-negative", PLAIN),
    again("gateway-throttle-huge", PLAIN), again("gateway-throttle-null", PLAIN),
    again("gateway-throttle-unstated", PLAIN),
]  # fmt: skip

ELSEWHERE: Final = {
    "session-not-found", "not-found-api", "gateway-session-lost", "gateway-header-mismatch",
    "gateway-tool-debug", "throttle-429-date",
}  # fmt: skip
"""Those that are told differently in each era, and have tests of their own."""


async def call(row: Row, kind: Kind, *, through_gateway: bool) -> None:
    """Meet one call with the answer, and hold everything that comes of it."""
    clock, sink = FakeClock(), RecordingSink()
    tool = "orders___search" if through_gateway else "search"
    with AgentCoreStandIn(clock=clock) as stand_in:
        door = gateway_of if through_gateway else runtime_of
        made = door(stand_in, evidence=sink, clock=clock)
        async with opened(made.transport(), kind) as session:
            stand_in.script(tool, row.name)
            told = await session.call(tool, {"q": "it"})
            ran = stand_in.executions(tool)
            later = await session.call(tool, {"q": "later"})
        assert later.text == "found later"
        assert stand_in.signature_faults == ()
        _reads(row, told, kind)
        for secret in (stand_in.keys.session_token, stand_in.keys.access_key_id, stand_in.canary):
            assert secret is not None
            # The page of a consent is the app's to open, and in no text.
            assert secret not in told.text
            assert row.name == "gateway-consent" or secret not in repr(told.raw)
        assert ran == row.ran
        sends = len(stand_in.requests(tool)) - 1
    record: Any = next(one for one in sink.of("tool.request_attempts") if one["tool"] == tool)
    attempts: list[dict[str, Any]] = record["attempts"]
    assert len(attempts) == sends == (1 if row.grant is None else 2)
    _recorded(row, record, attempts)


def _reads(row: Row, told: Told, kind: Kind) -> None:
    """What the model reads."""
    if row.words is None:
        assert row.text is not None
        assert (told.kind, told.code, told.is_error) == (None, row.code, row.is_error), told
        assert told.text == row.text
        return
    wait = 60.0 if row.edge == "waiting-spent" else None
    words = sentence(row.words, status=row.status, error_type=row.error, retry_after=wait)
    assert (told.kind, told.text) == (row.words, words), told
    as_error = row.status in (401, 403) and kind != "mcp1"
    assert told.is_error is not as_error
    assert (told.code is not None) is as_error
    assert told.facts.get("error_type") == row.error
    assert told.facts.get("status") == row.status
    assert told.facts["effect"] == "unknown"


def _recorded(row: Row, record: dict[str, Any], attempts: list[dict[str, Any]]) -> None:
    """What the evidence says: who permitted what, on which assumption, and what stays open."""
    first = attempts[0]
    if row.grant is None:
        assert first["permission"] is None
        open_ended = row.words in MAY_HAVE_RUN and row.words != "rate-limited"
        assert record["may_have_run"] is open_ended
        assert record["why"] == row.edge
        return
    by, assumes, kind = row.grant
    assert first["permission"] == {"by": by, "assumes": assumes}
    assert (first["outcome"], first["kind"], first["effect"]) == ("refused", kind, "unknown")
    assert first["retry_after_seconds"] == row.wait
    low, high = (row.wait, row.wait * 1.5) if row.wait is not None else (0.25, 0.5)
    assert low <= first["wait_seconds"] <= high
    assert (attempts[1]["outcome"], attempts[1]["effect"]) == ("answered", "ran")
    assert (record["ended"], record["may_have_run"]) == ("answered", False)


@pytest.mark.parametrize(("kind", "anyio_backend"), EVERY_KIND)
@pytest.mark.parametrize("row", RUNTIME, ids=str)
async def test_what_a_runtime_answers(row: Row, kind: Kind) -> None:
    """R88 to R91, D16. What clears by itself is waited out; the rest is told, and told once."""
    await call(row, kind, through_gateway=False)


@pytest.mark.parametrize(("kind", "anyio_backend"), EVERY_KIND)
@pytest.mark.parametrize("row", GATEWAY, ids=str)
async def test_what_a_gateway_answers(row: Row, kind: Kind) -> None:
    """D17. Its throttle says in the body when to come back; `limitKey` goes nowhere."""
    await call(row, kind, through_gateway=True)


def test_every_answer_of_the_stand_in_is_here() -> None:
    """The tables are complete: a new row is a row of them, or has a test of its own."""
    named = [row.name for row in (*RUNTIME, *GATEWAY)]
    assert len(named) == len(set(named))
    served = {name for name in AGENTCORE_ROWS if not name.startswith("identity-")}
    assert set(named) | ELSEWHERE == served
