"""R51, R107, R117, B13, D33. A call is filed when it begins and when it ends, and each credential.

Through every kind of session, and over a script of answers: what began, how it ended, whether it
may have run, and that one call of several requests is one call.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from hashlib import sha256
from typing import Any, Final

import anyio
import pytest

from support.records import validator
from support.sessions import FAMILY, KINDS, SDK_ON_TRIO, Kind, opened
from surefoot import Bearer, Gateway, Replay, Retry, ToolRule, record
from surefoot.credentials import CredentialRequest
from surefoot.errors import CredentialError
from surefoot.evidence import Pending
from surefoot.testing import (
    Fails,
    FaultyGateway,
    RecordingSink,
    Replies,
    ScriptedTransport,
    Throttle,
)

pytestmark = [pytest.mark.both_majors, pytest.mark.anyio, *SDK_ON_TRIO]

URL: Final = "http://127.0.0.1:1/mcp"
QUICK: Final = Retry(max_attempts=2, base_delay=0.001, max_wait=1.0)
DONE: Final = Replies(result={"content": [], "isError": False})
EMPTY: Final = sha256(b"{}").hexdigest()


def of(sink: RecordingSink, *types: str) -> list[dict[str, Any]]:
    return [dict(event) for event in sink.events if event["type"] in types]


def _of_the_call(sink: RecordingSink) -> list[dict[str, Any]]:
    """The events of the first call, in their order."""
    (call_id,) = {event["call"] for event in of(sink, "call.started")}
    return [dict(event) for event in sink.events if event.get("call") == call_id]


async def _post(gateway: Gateway, wire: ScriptedTransport, *messages: dict[str, Any]) -> list[Any]:
    async with gateway.protect(FAMILY.AsyncClient(transport=wire)) as client:
        return [await client.post(URL, json=message) for message in messages]


def _call(number: int = 1, tool: str = "pay", **params: Any) -> dict[str, Any]:
    return {
        "jsonrpc": "2.0",
        "id": number,
        "method": "tools/call",
        "params": {"name": tool, "arguments": {}, **params},
    }


@pytest.mark.parametrize("kind", KINDS)
async def test_a_call_begins_and_ends_in_the_run_of_its_caller(kind: Kind) -> None:
    """D33, R51. With digests of what was asked and of exactly what was read; and nothing else."""
    sink = RecordingSink()
    with FaultyGateway() as faulty:
        faulty.script("search", Throttle(0))
        gateway = Gateway(faulty.url, name="shop", retry=QUICK, credentials=Bearer("c" * 12))
        async with opened(gateway.transport(), kind) as session:
            with record(sink):
                await session.call("search", {"q": "W-1", "a": 1.0})
    for event in sink.events:
        validator.validate(event)
    begun, *vended, attempts, ended = _of_the_call(sink)
    assert begun["type"] == "call.started"
    canonical = b'{"a":1,"q":"W-1"}'
    digest = {"length": len(canonical), "sha256": sha256(canonical).hexdigest()}
    assert (begun["tool"], begun["endpoint"], begun["arguments"]) == ("search", "shop", digest)
    assert attempts["request"] == digest
    # One for each attempt, and of each the kind and the service alone.
    frame = {"v", "type", "seq", "time", "run"}
    assert [{name: event[name] for name in event.keys() - frame} for event in vended] == [
        {"call": begun["call"], "service": "gateway", "kind": "bearer"}
    ] * 2
    assert (ended["is_error"], ended["effect"]) == (False, "ran")
    assert ended["answer"] == attempts["answer"]
    assert ended["answer"]["length"] > 0
    assert ended["duration_seconds"] == attempts["duration_seconds"] > 0
    assert begun["seq"] < vended[0]["seq"] < attempts["seq"] < ended["seq"]


ENDS: Final[dict[str, tuple[list[Any], Any, str, str]]] = {
    # The script, is_error, effect, and the form of what the client was given.
    "a result": ([DONE], False, "ran", "json"),
    "a tool that failed": ([Replies(result={"content": [], "isError": True})], True, "ran", "json"),
    "refused, then a result": ([Replies(429), DONE], False, "ran", "json"),
    "refused to the end": ([Replies(429)] * 2, True, "unknown", "local"),
    "a failure": ([Replies(503)], True, "unknown", "local"),
    "an error of the server's": (
        [Replies(error={"code": -32602, "message": "no such tool"})], True, "unknown", "json",
    ),
    "an error that was refused, then a result": (
        [Replies(429, error={"code": -32000, "message": "busy"}), DONE], False, "ran", "json",
    ),
    "no answer": ([Fails("ReadError")], True, "unknown", "local"),
    "not to be read": ([Replies(200, body=b"{")], True, "unknown", "local"),
}  # fmt: skip


@pytest.mark.parametrize("how", ENDS)
async def test_how_a_call_ended_is_filed(how: str) -> None:
    """D33, R23. An answer is not a success, an error is not "did not run", nor is a refusal."""
    script, is_error, effect, form = ENDS[how]
    sink = RecordingSink()
    wire = ScriptedTransport(*script)
    (told,) = await _post(Gateway(URL, retry=QUICK, evidence=sink), wire, _call())
    (begun,), (ended,) = of(sink, "call.started"), of(sink, "call.ended")
    assert (ended["is_error"], ended["effect"]) == (is_error, effect)
    assert ended["answer"] == {
        "form": form,
        "length": len(told.content),
        "sha256": sha256(told.content).hexdigest(),
    }
    assert begun["call"] == ended["call"]
    assert begun["arguments"] == {"length": 2, "sha256": EMPTY}
    for event in sink.events:
        validator.validate(event)


async def test_a_call_whose_caller_left_ends_without_a_word_of_failure() -> None:
    """D27, D33. Nobody was told anything; what it did is unknown."""
    sink = RecordingSink()

    async def never() -> AsyncIterator[bytes]:
        yield b""
        await anyio.sleep(30)

    wire = ScriptedTransport(
        Replies(200, chunks=never, headers={"content-type": "application/json"})
    )
    with anyio.move_on_after(0.1):
        await _post(Gateway(URL, retry=QUICK, evidence=sink), wire, _call())
    (ended,) = of(sink, "call.ended")
    assert (ended["is_error"], ended["effect"], ended["answer"]["form"]) == (None, "unknown", None)


async def test_a_call_that_the_fence_stopped_and_one_without_a_credential_did_not_run() -> None:
    """B3, R106, D33. Each begins, ends in an error, and sent nothing; nothing was vended."""
    sink = RecordingSink()
    pays = Replay(tools={"pay": ToolRule(makes_changes=True)})
    wire = ScriptedTransport(Fails("ReadError"))
    await _post(Gateway(URL, replay=pays, evidence=sink), wire, _call(1), _call(2))

    async def none(_asked: CredentialRequest) -> Any:
        raise CredentialError("there is none")

    gateway = Gateway(URL, credentials=none, evidence=sink)
    await _post(gateway, ScriptedTransport(DONE), _call(3))
    lost, *stopped = of(sink, "call.ended")
    assert (lost["is_error"], lost["effect"]) == (True, "unknown")
    assert [(one["is_error"], one["effect"]) for one in stopped] == [(True, "not_sent")] * 2
    assert of(sink, "credential.vended") == []


async def test_rounds_of_a_call_and_one_sent_again_for_its_headers_are_one_call_each() -> None:
    """D33. It begins with the first request and ends with the last; the time is that of both."""
    asks = Replies(
        result={"resultType": "input_required", "inputRequests": {}, "requestState": "v1.sealed"}
    )
    mismatch = Replies(400, error={"code": -32020, "message": "header mismatch"})
    for first, more in ((asks, {"requestState": "v1.sealed"}), (mismatch, {})):
        sink = RecordingSink()
        wire = ScriptedTransport(first, DONE)
        gateway = Gateway(URL, evidence=sink)
        await _post(gateway, wire, _call(1), _call(2, **more))
        types = [event["type"] for event in sink.events]
        assert types == [
            "run.started", "call.started", *["tool.request_attempts"] * 2, "call.ended",
        ]  # fmt: skip
        assert len({event["call"] for event in sink.events[1:]}) == 1
        requests, (ended,) = of(sink, "tool.request_attempts"), of(sink, "call.ended")
        assert ended["effect"] == "ran"
        assert ended["duration_seconds"] >= sum(one["duration_seconds"] for one in requests)
    # The SDK gives up after one more; then so does the record.
    sink = RecordingSink()
    await _post(Gateway(URL, evidence=sink), ScriptedTransport(mismatch), _call(1), _call(2))
    (ended,) = of(sink, "call.ended")
    assert ended["is_error"] is True


async def test_a_call_after_one_that_was_refused_twice_for_its_headers_is_a_call_of_its_own() -> (
    None
):
    """D33. What was sent again once is not waited for a second time."""
    mismatch = Replies(400, error={"code": -32020, "message": "header mismatch"})
    sink = RecordingSink()
    wire = ScriptedTransport(mismatch, mismatch, DONE)
    await _post(Gateway(URL, evidence=sink), wire, _call(1), _call(2), _call(3))
    calls = [event["call"] for event in of(sink, "call.started")]
    assert len(set(calls)) == 2
    assert [event["call"] for event in of(sink, "call.ended")] == calls


async def test_a_round_that_is_sent_again_for_its_headers_ends_its_call_once() -> None:
    """D33. The second round of a call meets the mismatch, and is sent again with its state."""
    asks = Replies(
        result={"resultType": "input_required", "inputRequests": {}, "requestState": "v1.sealed"}
    )
    mismatch = Replies(400, error={"code": -32020, "message": "header mismatch"})
    sink = RecordingSink()
    again = {"requestState": "v1.sealed"}
    wire = ScriptedTransport(asks, mismatch, DONE)
    await _post(Gateway(URL, evidence=sink), wire, _call(1), _call(2, **again), _call(3, **again))
    (started,), (ended,) = of(sink, "call.started"), of(sink, "call.ended")
    assert started["call"] == ended["call"]
    assert (ended["is_error"], ended["effect"]) == (False, "ran")


async def test_what_calls_no_tool_begins_and_ends_no_call() -> None:
    """D33. It has its attempts and its credential, under no call; nor has a notification one."""
    sink = RecordingSink()
    gateway = Gateway(URL, credentials=Bearer("c" * 12), evidence=sink)
    listed = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    said = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    await _post(gateway, ScriptedTransport(Replies(result={"tools": []})), listed, said)
    assert of(sink, "call.started", "call.ended") == []
    assert [event["call"] for event in sink.events[1:]] == [None] * 4
    assert len(of(sink, "credential.vended")) == 2


async def test_a_large_body_does_not_wait_for_a_sink() -> None:
    """B13. Its digest is taken at once: what is queued stays small, however long a sink stalls."""
    kept: list[Any] = []

    class Slow:
        never_stalls = True

        def emit(self, _event: Any, /) -> None: ...

        def emit_later(self, filed: Any, /) -> None:
            kept.append(filed)

    for size in (10, 1_000_000):
        kept.clear()
        message = _call(arguments={"text": "x" * size})
        await _post(Gateway(URL, evidence=Slow()), ScriptedTransport(DONE), message)
        held = [isinstance(one._entry, Pending) for one in kept]
        assert held == [False, *[size == 10] * 3]
        types = [one.event()["type"] for one in kept]
        assert types == ["run.started", "call.started", "tool.request_attempts", "call.ended"]
