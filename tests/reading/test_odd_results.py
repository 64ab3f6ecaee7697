"""D29, D30, B1, B12. Whatever a server puts into a result, the result is its client's to judge.

What is learned from lists, handshakes and rounds is learned on the side: no JSON in any place of
them keeps an answer from its client, sends it again, or is kept beyond what is needed of it.
"""

from __future__ import annotations

import asyncio
import gc
import json
import logging
import tracemalloc
from typing import Any, Final

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from support.answers_read import answer_to, event, streamed
from support.exchanges import FAMILIES, client_of
from surefoot import Gateway, Replay, Retry, ToolRule
from surefoot.testing import McpRequest, Replies, ScriptedTransport, mcp_request, tool_call

URL: Final = "http://127.0.0.1:1/mcp"
REPLAY: Final = Replay(
    trust_hints=True,
    tools={"search": ToolRule(), "pay": ToolRule(makes_changes=True)},
)

JSON: Final = [("content-type", "application/json")]

values = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.sampled_from([0.5, 1.0, "search", "pay"]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=4,
)
KEYS: Final = (
    "name", "annotations", "readOnlyHint", "idempotentHint", "tools", "nextCursor", "requestState",
    "protocolVersion", "capabilities", "serverInfo", "supportedVersions", "resultType", "content",
)  # fmt: skip
objects = st.dictionaries(st.sampled_from(KEYS), values, max_size=4)
tools = st.lists(
    st.fixed_dictionaries({}, optional={"name": values, "annotations": objects | values}) | values,
    max_size=3,
)
results = objects | st.fixed_dictionaries({"tools": tools}, optional={"nextCursor": values})


async def sent(play: Replies, asked: McpRequest, family: str) -> tuple[dict[str, Any], int]:
    """What a client of a Gateway reads, and how often it was sent."""
    wire = ScriptedTransport(play, play, play)
    client: Any = client_of(family, transport=wire)
    gateway = Gateway(URL, replay=REPLAY, retry=Retry(base_delay=0.01))
    async with gateway.protect(client):
        headers = dict(asked.headers)
        answer = await client.post(URL, content=asked.body, headers=headers)
    # The control: what reads it afterwards reads an event or a whole body, as it was sent.
    text = answer.text.rsplit("data: ", 1)[-1]
    return json.loads(text), len(wire.requests)


ASKED: Final = {
    "tools/list": mcp_request("tools/list"),
    "a later page": mcp_request("tools/list", {"cursor": "2"}),
    "initialize": mcp_request("initialize"),
    "server/discover": mcp_request("server/discover"),
    "tools/call": tool_call("search"),
}


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("form", ["json", "events"])
@settings(max_examples=60, deadline=None)
@given(what=st.sampled_from(sorted(ASKED)), result=results)
@example(what="tools/list", result={"tools": [{"name": {}}]})
@example(what="tools/list", result={"tools": [{"name": ["search"]}], "nextCursor": {"a": []}})
@example(what="tools/list", result={"tools": {"name": "search"}, "nextCursor": [1]})
@example(what="tools/list", result={"tools": [{"name": "search", "annotations": []}]})
@example(what="tools/call", result={"requestState": {"a": 1}})
def test_any_result_passes_and_is_asked_for_once(
    family: str, form: str, what: str, result: dict[str, Any]
) -> None:
    """B1, D29, D30. A name that is no text was an answer that nobody got (measured)."""
    body = answer_to(result={"of": "any sort", **result})
    play = streamed(event(body)) if form == "events" else Replies(body=body, headers=JSON)
    read, sends = asyncio.run(sent(play, ASKED[what], family))
    assert read == json.loads(body)
    assert sends == 1


@pytest.mark.anyio
@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("form", ["json", "events"])
async def test_what_cannot_be_learned_from_is_an_answer_still(
    family: str, form: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """B1. Not even a fault of our own there costs anybody an answer; the log names it alone."""

    def fails(*_: object) -> None:
        msg = "which quotes an answer"
        raise RuntimeError(msg)

    monkeypatch.setattr("surefoot.transports._learned.Learned.listed", fails)
    caplog.set_level(logging.WARNING, "surefoot")
    body = answer_to(result={"tools": [{"name": "search"}]})
    play = streamed(event(body)) if form == "events" else Replies(body=body, headers=JSON)
    read, sends = await sent(play, ASKED["tools/list"], family)
    assert (read, sends) == (json.loads(body), 1)
    said = [record.getMessage() for record in caplog.records if "learned" in record.msg]
    assert said == ["learned nothing from an answer: RuntimeError"]


@pytest.mark.anyio
@pytest.mark.parametrize("family", FAMILIES)
async def test_of_a_cursor_a_digest_is_kept(family: str) -> None:
    """B12. Eight pages of a megabyte each leave less than one behind; what they listed counts."""
    pages = [
        Replies(result={"tools": [], "nextCursor": f"{number}" + "x" * 1_000_000})
        for number in range(8)
    ]
    kept: list[str] = []
    wire = ScriptedTransport(*pages)
    gateway = Gateway(URL, replay=REPLAY)
    async with gateway.protect(client_of(family, transport=wire)) as client:
        tracemalloc.start()
        try:
            asked = ASKED["tools/list"]
            for _ in pages:
                await client.post(URL, content=asked.body, headers=dict(asked.headers))
            gc.collect()
            held, _ = tracemalloc.get_traced_memory()
            kept.extend("y" * 1_000_000 for _ in range(2))
            more, _ = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
    assert held < 1_000_000
    assert more - held > 1_000_000  # the control: what is kept is seen
