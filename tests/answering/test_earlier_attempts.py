"""B7, R19, R107. What any attempt of a call carried does not come back in the answer to the call.

Each attempt is vended anew, and a server may well remember the one before.
"""

from __future__ import annotations

import gc
import json
import weakref
from typing import Any

import pytest

from support.sending import URL, message
from surefoot import Gateway, record
from surefoot.credentials import Bearer, Issued
from surefoot.testing import RecordingSink, Replies, ScriptedTransport, SecretAudit, tool_call
from surefoot.wire import MARK

pytestmark = [pytest.mark.unmeasured, pytest.mark.anyio]

CANARY = "CANARY-{}-5d1f0e77aa"


class Vault:
    """Vends another token each time, and knows which of them are still alive."""

    def __init__(self) -> None:
        self.alive: list[weakref.ref[Issued]] = []

    async def vend(self, _: object, /) -> Issued:
        """One more."""
        issued = Issued(Bearer(CANARY.format(len(self.alive))))
        self.alive.append(weakref.ref(issued))
        return issued


def saying(text: str) -> Replies:
    return Replies(result={"content": [{"type": "text", "text": text}], "isError": False})


REJECTED = {
    "429": Replies(429, headers={"retry-after": "0"}),
    "401": Replies(401, headers={"www-authenticate": 'Bearer error="invalid_token"'}),
}


@pytest.mark.parametrize("first", REJECTED)
async def test_an_echo_of_an_earlier_attempt_is_removed(family: Any, first: str) -> None:
    """B7. And of this one; a token of no attempt stays, and nothing is kept afterwards."""
    vault = Vault()
    echo = " ".join(CANARY.format(one) for one in (0, 1, 7))
    wire = ScriptedTransport(REJECTED[first], saying(echo))
    client = Gateway(URL, credentials=vault).protect(family.AsyncClient(transport=wire))
    asked = message()
    response = await client.post(URL, content=asked.body, headers=dict(asked.headers))
    text = response.json()["result"]["content"][0]["text"]
    assert len(vault.alive) == 2
    assert text == f"{MARK} {MARK} {CANARY.format(7)}"
    wire.requests.clear()
    gc.collect()
    assert [one() for one in vault.alive] == [None, None]
    for one in range(2):
        with SecretAudit(CANARY.format(one)) as audit:
            audit.add("the client", client)
            audit.add("the answer", response)


async def test_arguments_in_clear_hold_none_of_any_attempt(family: Any) -> None:
    """B7, R51. A later attempt may be given what the model was given already."""
    sink = RecordingSink()
    wire = ScriptedTransport(REJECTED["429"], saying("done"))
    with record(sink, content="full"):
        client = Gateway(URL, credentials=Vault()).protect(family.AsyncClient(transport=wire))
        call = json.loads(message().body)
        call["params"]["arguments"] = {"q": [CANARY.format(one) for one in (0, 1, 7)]}
        await client.post(URL, json=call)
    begun: Any
    (begun,) = [one for one in sink.events if one["type"] == "call.started"]
    kinds = [one["type"] for one in sink.events]
    assert json.loads(begun["arguments"]["text"]) == {"q": [MARK, MARK, CANARY.format(7)]}
    assert kinds.index("call.started") < kinds.index("call.ended")


async def test_a_resumption_is_searched_for_what_its_call_carried(family: Any) -> None:
    """B7, D18. Events that are sent again may echo the request that they answer, and each other."""
    vault = Vault()
    events = {"content-type": "text/event-stream"}
    cut = b"id: e-1\ndata: \n\n"
    again = b"id: e-2\ndata: \n\n"
    asked = tool_call("search", version="2025-11-25", session="s-1", rpc_id=1)
    echo = " ".join(CANARY.format(one) for one in (0, 1, 2, 7))
    last = {"jsonrpc": "2.0", "id": 1, "result": {"content": [{"text": echo}]}}
    end = b"data: " + json.dumps(last).encode() + b"\n\n"
    wire = ScriptedTransport(
        *(Replies(200, headers=events, body=body) for body in (cut, again, end))
    )
    client = Gateway(URL, credentials=vault).protect(family.AsyncClient(transport=wire))
    session = {"mcp-session-id": "s-1", "accept": "text/event-stream"}
    read = await client.post(URL, content=asked.body, headers=dict(asked.headers))
    for event_id in ("e-1", "e-2"):
        read = await client.get(URL, headers={**session, "last-event-id": event_id})
    assert len(vault.alive) == 3
    assert f"{MARK} {MARK} {MARK} {CANARY.format(7)}" in read.text
    wire.requests.clear()
    gc.collect()
    assert [one() for one in vault.alive] == [None] * 3
