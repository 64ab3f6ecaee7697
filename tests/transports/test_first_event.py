"""D16, D22, R14, R59, R62, B3: a rule of an adapter may look at the first event of a stream.

What it recognises there is repeated or put into words like any refusal; what it does not goes by as
if nobody had looked.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any, Final

import anyio
import pytest

from support.sending import URL, message
from surefoot import Gateway, Replay, Retry, ToolRule
from surefoot.gateway import with_rules
from surefoot.policy import AnswerView, Rule, Verdict
from surefoot.testing import FakeClock, RecordingSink, Replies, ScriptedTransport

pytestmark = pytest.mark.anyio

CHANGES: Final = Replay(tools={"search": ToolRule(makes_changes=True)})
AUTHORIZED: Final = Replay(policy="app-authorized")
EVENTS: Final = {"content-type": "text/event-stream"}


class Busy:
    """Recognises one code in a body, and keeps what it was shown."""

    def __init__(self) -> None:
        self.saw: list[bytes] = []

    reads = 4096

    def recognise(self, answer: AnswerView) -> Verdict | None:
        """Look for the code."""
        self.saw.append(answer.body)
        return Verdict(kind="session-busy") if b'"code":-32005' in answer.body else None


def _event(**members: object) -> bytes:
    return b"data: " + json.dumps({"jsonrpc": "2.0", "id": 1, **members}).encode() + b"\n\n"


BUSY: Final = _event(error={"code": -32005, "message": "Session operation in progress"})
OTHER: Final = _event(error={"code": -32602, "message": "Invalid params"})
DONE: Final = _event(result={"content": [], "isError": False})
PROGRESS: Final = (
    b'data: {"jsonrpc":"2.0","method":"notifications/progress",'
    b'"params":{"progressToken":1,"progress":1}}\n\n'
)


def streams(*parts: bytes) -> Replies:
    """An event stream in these parts."""

    async def chunks() -> AsyncIterator[bytes]:
        for part in parts:
            yield part

    return Replies(headers=EVENTS, chunks=chunks)


def gateway(rule: Busy, sink: RecordingSink, replay: Replay | None = None) -> Gateway:
    """A Gateway with one adapter's rule."""
    made = Gateway(
        URL, replay=replay, evidence=sink, clock=FakeClock(), draw=lambda: 0.0, retry=Retry()
    )
    return with_rules(made, [Rule(recognise=rule, assumes="refused-before-execution")])


async def ask(family: Any, made: Gateway, wire: ScriptedTransport) -> Any:
    """Post one call through the Gateway."""
    asked = message()
    async with made.protect(family.AsyncClient(transport=wire)) as client:
        return await client.post(URL, content=asked.body, headers=dict(asked.headers))


async def test_a_refusal_in_the_first_event_is_repeated_and_nobody_reads_it(family: Any) -> None:
    """R14, D16. A comment before it is no event. The next answer goes by as it is."""
    rule, sink = Busy(), RecordingSink()
    wire = ScriptedTransport(streams(b": soon\n\n", BUSY), streams(PROGRESS, DONE))
    response = await ask(family, gateway(rule, sink), wire)
    assert len(wire.requests) == 2
    assert "-32005" not in response.text
    assert response.text.count("data: ") == 2
    assert [b"-32005" in body for body in rule.saw] == [True, False]
    (record,) = sink.of("tool.request_attempts")
    kinds = [(one["kind"], one["permission"]) for one in record["attempts"]]  # type: ignore[union-attr]
    assert kinds[0][0] == "session-busy"
    assert kinds[0][1] == {"by": "adapter", "assumes": "refused-before-execution"}
    assert kinds[1] == (None, None)
    assert record["ended"] == "answered"
    assert wire.open_responses == 0


async def test_a_refusal_that_is_not_repeated_is_put_into_words(family: Any) -> None:
    """R13, DESIGN section 7. The error itself would have a framework run the tool again."""
    rule, sink = Busy(), RecordingSink()
    wire = ScriptedTransport(streams(BUSY))
    response = await ask(family, gateway(rule, sink, CHANGES), wire)
    assert len(wire.requests) == 1
    read = response.json()
    assert read["result"]["isError"] is True
    assert read["result"]["_meta"]["surefoot/outcome"]["kind"] == "session-busy"
    (record,) = sink.of("tool.request_attempts")
    assert (record["ended"], record["why"]) == ("refused", "no-permission")
    assert wire.open_responses == 0


async def test_an_error_that_is_no_refusal_goes_by_as_it_is(family: Any) -> None:
    """R59. The control: looking changes nothing."""
    rule, sink = Busy(), RecordingSink()
    wire = ScriptedTransport(streams(OTHER))
    response = await ask(family, gateway(rule, sink), wire)
    assert response.headers["content-type"] == "text/event-stream"
    assert '"code":-32602' in response.text
    assert len(wire.requests) == 1


@pytest.mark.parametrize("replay", [CHANGES, AUTHORIZED])
@pytest.mark.parametrize("ends", [OTHER, DONE], ids=["error", "result"])
async def test_a_call_that_was_refused_in_a_stream_does_not_stay_in_the_fence(
    family: Any, replay: Replay, ends: bytes
) -> None:
    """B3. A recognised refusal is sure; and so is what comes after it."""
    rule, sink = Busy(), RecordingSink()
    made = gateway(rule, sink, replay)
    first = await ask(family, made, ScriptedTransport(streams(BUSY), streams(ends)))
    assert first.status_code == 200
    wire = ScriptedTransport(streams(DONE))
    again = await ask(family, made, wire)
    assert len(wire.requests) == 1
    assert '"isError":false' in again.text


async def test_a_standing_stream_is_handed_on_at_its_headers(family: Any) -> None:
    """R62. It refuses nothing, and may say nothing for hours."""
    release = anyio.Event()

    async def silent() -> AsyncIterator[bytes]:
        await release.wait()
        yield PROGRESS

    rule, sink = Busy(), RecordingSink()
    wire = ScriptedTransport(Replies(headers=EVENTS, chunks=silent))
    made = gateway(rule, sink)
    async with made.protect(family.AsyncClient(transport=wire)) as client:
        with anyio.fail_after(5):
            asked = client.stream("GET", URL, headers={"accept": "text/event-stream"})
            async with asked as response:
                assert response.status_code == 200
                release.set()
                assert "progress" in "".join([text async for text in response.aiter_text()])
    assert rule.saw == [b""]


async def test_a_result_is_not_shown_to_any_rule(family: Any) -> None:
    """R59, D16. What is a result is no refusal, whatever its text says."""
    rule, sink = Busy(), RecordingSink()
    text = 'it says "code":-32005'
    result = {"content": [{"type": "text", "text": text}], "isError": False}
    wire = ScriptedTransport(Replies(result=result))
    response = await ask(family, gateway(rule, sink), wire)
    assert response.json()["result"]["content"][0]["text"] == text
    assert rule.saw == []


@pytest.mark.parametrize("answer_id", [None, 7])
async def test_a_notification_that_is_refused_at_200_is_repeated(
    family: Any, answer_id: int | None
) -> None:
    """D1, D16. Or the session would go on without it; nobody above reads the refusal.

    An error that names some other request is no answer to it.
    """
    rule, sink = Busy(), RecordingSink()
    refusal = {
        "jsonrpc": "2.0", "id": answer_id,
        "error": {"code": -32005, "message": "Session operation in progress"},
    }  # fmt: skip
    wire = ScriptedTransport(Replies(json=refusal), Replies(202))
    made = gateway(rule, sink, CHANGES)
    told = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    async with made.protect(family.AsyncClient(transport=wire)) as client:
        response = await client.post(URL, json=told)
    assert response.content == b""
    repeated = answer_id is None
    assert len(wire.requests) == (2 if repeated else 1)
    (record,) = sink.of("tool.request_attempts")
    attempts: Any = record["attempts"]
    if repeated:
        assert attempts[0]["permission"] == {
            "by": "protocol", "assumes": "refused-before-execution",
        }  # fmt: skip
        assert response.status_code == 202


@pytest.mark.parametrize("looked_at", [True, False])
async def test_a_deadline_covers_a_stream_as_far_as_a_rule_looks(
    family: Any, looked_at: bool
) -> None:
    """D26, R62. Up to its first event where a rule looks at that; else up to its headers."""

    async def late() -> AsyncIterator[bytes]:
        await anyio.sleep(0.3)
        yield DONE

    wire = ScriptedTransport(Replies(headers=EVENTS, chunks=late))
    made = Gateway(URL, retry=Retry(max_elapsed=0.1))
    if looked_at:
        made = with_rules(made, [Rule(recognise=Busy(), assumes="refused-before-execution")])
    with anyio.fail_after(5):
        response = await ask(family, made, wire)
    if looked_at:
        meta = response.json()["result"]["_meta"]["surefoot/outcome"]
        assert (meta["kind"], meta["may_have_run"]) == ("deadline", True)
    else:
        assert '"isError":false' in response.text
    assert wire.open_responses == 0
