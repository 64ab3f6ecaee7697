"""B7, B13. A secret too short to be searched for is recorded as such, wherever an answer is read.

It would be found in words; so an answer may hold it, and whoever reads the record knows that.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from support.records import validator
from support.sending import URL, message
from surefoot import Gateway, Headers, record
from surefoot.credentials import ApiKey, Issued
from surefoot.testing import RecordingSink, Replies, ScriptedTransport, tool_call

pytestmark = pytest.mark.anyio

SHORT = "k-7q2"
LONG = "CANARY-5d1f0e77aa"

RESULT = {"content": [{"type": "text", "text": f"you sent {SHORT} and {LONG}"}], "isError": False}
EVENT = json.dumps({"jsonrpc": "2.0", "id": 1, "result": RESULT}).encode()

ANSWERS = {
    "a result": Replies(result=RESULT),
    "a failure": Replies(500, body=SHORT.encode()),
    "events": Replies(
        200, headers={"content-type": "text/event-stream"}, body=b"data: %s\n\n" % EVENT
    ),
}


async def the_attempts(family: Any, credentials: Any, *answers: Replies) -> list[dict[str, Any]]:
    """One call; each attempt of it as filed, in an event that the schema knows."""
    sink = RecordingSink()
    with record(sink):
        wire = ScriptedTransport(*answers)
        client = Gateway(URL, credentials=credentials).protect(family.AsyncClient(transport=wire))
        asked = tool_call("search", {"q": "W-7712"}, rpc_id=1)
        await client.post(URL, content=asked.body, headers=dict(asked.headers))
    event: Any
    (event,) = sink.of("tool.request_attempts")
    validator.validate(event)
    return event["attempts"]


@pytest.mark.parametrize("answer", ANSWERS)
async def test_a_secret_that_was_not_searched_for_is_counted(family: Any, answer: str) -> None:
    """B7. However the answer is read; what is long enough is searched for, and not counted."""
    short = await the_attempts(family, ApiKey(SHORT), ANSWERS[answer])
    both = await the_attempts(family, Headers({"x-a": SHORT, "x-b": LONG}), ANSWERS[answer])
    long = await the_attempts(family, ApiKey(LONG), ANSWERS[answer])
    none = await the_attempts(family, None, ANSWERS[answer])
    counts = [[one["unsearched_secrets"] for one in each] for each in (short, both, long, none)]
    assert counts == [[1], [1], [0], [0]]
    found = [each[0]["scrubbed_hits"] for each in (short, both, long)]
    assert found == ([0, 0, 0] if answer == "a failure" else [0, 1, 1])


async def test_an_answer_is_not_searched_for_what_earlier_attempts_carried_either(
    family: Any,
) -> None:
    """B7. Two short ones by then, and the attempt that had no answer has nothing to say of it."""
    vended = iter(["k-1", "k-2", "k-3"])

    async def vend(_: object) -> Issued:
        return Issued(ApiKey(next(vended)))

    refused = Replies(429, headers={"retry-after": "0"})
    attempts = await the_attempts(family, vend, refused, refused, ANSWERS["a result"])
    assert [one["unsearched_secrets"] for one in attempts] == [1, 2, 3]
    cut = ScriptedTransport(ConnectionResetError())
    sink = RecordingSink()
    gateway = Gateway(URL, credentials=ApiKey(SHORT), evidence=sink)
    client = gateway.protect(family.AsyncClient(transport=cut))
    await client.post(URL, content=message().body, headers=dict(message().headers))
    event: Any
    (event,) = sink.of("tool.request_attempts")
    assert [one["unsearched_secrets"] for one in event["attempts"]] == [0]
