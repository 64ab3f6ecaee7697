"""R51, R107, R117, B7, B13. Arguments and answers are kept in clear only where the app asked.

Then without the secrets of their attempts, cut at their bound, and without what is for the client's
eyes alone. Else nothing of them is in any event but length and digest.
"""

from __future__ import annotations

import json
from typing import Any, Final

import anyio
import pytest

from support.records import validator
from support.sessions import FAMILY, KINDS, SDK_ON_TRIO, Kind, opened
from surefoot import Bearer, Gateway, Retry, record
from surefoot.credentials import AuthorizationRequired, CredentialRequest
from surefoot.evidence import MAX_CONTENT, Content
from surefoot.testing import (
    FaultyGateway,
    RecordingSink,
    Replies,
    ScriptedTransport,
    SseCut,
    Throttle,
)

pytestmark = [pytest.mark.both_majors, pytest.mark.anyio, *SDK_ON_TRIO]

URL: Final = "http://127.0.0.1:1/mcp"
CANARY: Final = "canary-4b1f09de77"
QUICK: Final = Retry(max_attempts=2, base_delay=0.001, max_wait=1.0)


def _event(sink: RecordingSink, kind: str) -> dict[str, Any]:
    (event,) = (one for one in sink.events if one["type"] == kind)
    validator.validate(event)
    return dict(event)


async def _posted(
    answer: Replies, arguments: dict[str, Any], content: Content = "full", **settings: Any
) -> tuple[RecordingSink, bytes]:
    """One call in a run; its events, and what the client read."""
    sink = RecordingSink()
    gateway = Gateway(URL, retry=QUICK, credentials=Bearer(CANARY), **settings)
    message = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": {"name": "pay", "arguments": arguments},
    }
    wire = ScriptedTransport(answer)
    with record(sink, content=content):
        async with gateway.protect(FAMILY.AsyncClient(transport=wire)) as client:
            read = await client.post(URL, json=message)
    return sink, read.content


@pytest.mark.parametrize("content", ["digests", "full"])
async def test_content_is_kept_where_it_was_asked_for_and_nowhere_else(content: Content) -> None:
    """R51. The positive control and its opposite: the same call, asked for and not."""
    said = Replies(result={"content": [{"type": "text", "text": "a private answer"}]})
    sink, read = await _posted(said, {"q": "a private question"}, content)
    begun, ended = _event(sink, "call.started"), _event(sink, "call.ended")
    everything = json.dumps(sink.events)
    if content == "digests":
        assert set(begun["arguments"]) == {"length", "sha256"}
        assert set(ended["answer"]) == {"form", "length", "sha256"}
        assert "private" not in everything
    else:
        assert begun["arguments"]["text"] == '{"q":"a private question"}'
        assert ended["answer"]["text"] == read.decode()
        assert (begun["arguments"]["cut"], ended["answer"]["cut"]) == (False, False)
    assert begun["arguments"]["length"] == len(b'{"q":"a private question"}')


async def test_what_is_kept_holds_no_secret_of_its_attempt_whoever_wrote_it() -> None:
    """R107, B7. A model that was given the token puts it into its arguments; a server echoes it."""
    said = Replies(result={"content": [{"type": "text", "text": f"you sent Bearer {CANARY}"}]})
    sink, _ = await _posted(said, {"note": f"token {CANARY}"})
    assert CANARY not in json.dumps(sink.events)
    assert _event(sink, "call.started")["arguments"]["text"] == '{"note":"token [secret removed]"}'
    assert "you sent Bearer [secret removed]" in _event(sink, "call.ended")["answer"]["text"]


async def test_what_is_kept_is_cut_at_its_bound_and_says_so() -> None:
    """B13. On both sides; the length is that of the whole."""
    said = Replies(result={"content": [{"type": "text", "text": "é" * MAX_CONTENT}]})
    sink, read = await _posted(said, {"text": "x" * MAX_CONTENT})
    for fields in (_event(sink, "call.started")["arguments"], _event(sink, "call.ended")["answer"]):
        assert fields["cut"] is True
        assert len(fields["text"].encode()) <= MAX_CONTENT + 3
        assert fields["length"] > MAX_CONTENT
    assert _event(sink, "call.ended")["answer"]["length"] == len(read)


async def test_the_url_of_a_consent_is_for_the_client_alone() -> None:
    """R117. What the client is given holds it, and what is recorded does not."""
    page = f"https://login.example.com/{CANARY}-page"

    async def ask(_asked: CredentialRequest) -> Any:
        return AuthorizationRequired(service="gateway", authorization_url=page)

    sink = RecordingSink()
    hello: dict[str, Any] = {
        "protocolVersion": "2025-11-25",
        "capabilities": {"elicitation": {"url": {}}},
        "clientInfo": {"name": "t", "version": "1"},
    }
    session = {"mcp-session-id": "s-1"}
    opening = Replies(result={"protocolVersion": "2025-11-25"}, headers=session)
    call = {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "pay"}}
    first = True

    async def once(asked: CredentialRequest) -> Any:
        nonlocal first
        if first:
            first = False
            return Bearer("good-" + CANARY)
        return await ask(asked)

    gateway = Gateway(URL, credentials=once)
    with record(sink, content="full"):
        async with gateway.protect(
            FAMILY.AsyncClient(transport=ScriptedTransport(opening))
        ) as client:
            message = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello}
            await client.post(URL, json=message)
            headers = {**session, "mcp-protocol-version": "2025-11-25"}
            told = await client.post(URL, json=call, headers=headers)
    assert page in told.text  # the control: this client is told
    assert CANARY not in json.dumps(sink.events)
    assert "text" not in _event(sink, "call.ended")["answer"]
    assert _event(sink, "call.ended")["answer"]["length"] == len(told.content)


@pytest.mark.parametrize("kind", KINDS)
async def test_the_words_and_the_streams_that_a_client_read_are_kept_too(kind: Kind) -> None:
    """R51. What stands in the place of an answer, and an answer that came as events."""
    sink = RecordingSink()
    with FaultyGateway() as faulty:
        gateway = Gateway(faulty.url, retry=QUICK, credentials=Bearer(CANARY))
        async with opened(gateway.transport(), kind) as session:
            with record(sink, content="full"):
                faulty.script("search", Throttle(60))
                refused = await session.call("search", {"q": "W-1"})
                faulty.script("refund", SseCut())
                cut = await session.call("refund", {"order": "W-1", "amount": 1})
    ends: list[dict[str, Any]] = [dict(event) for event in sink.of("call.ended")]
    texts: list[str] = [event["answer"]["text"] for event in ends]
    assert json.loads(texts[0])["result"]["content"][0]["text"] == refused.text
    assert cut.text in texts[1].replace('\\"', '"')
    assert CANARY not in json.dumps(sink.events)


@pytest.mark.parametrize("content", ["digests", "full"])
async def test_a_call_in_flight_when_its_run_is_closed_leaves_its_beginning(
    content: Content,
) -> None:
    """B13, B7. Without its arguments in clear, which may hold what a later attempt carries."""
    sink = RecordingSink()
    under_way, closed = anyio.Event(), anyio.Event()

    async def answers_after_the_run(_: object) -> Replies:
        under_way.set()
        await closed.wait()
        return Replies(result={"content": [], "isError": False})

    told: list[int] = []
    params = {"name": "pay", "arguments": {"note": f"token {CANARY}"}}
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    gateway = Gateway(URL, credentials=Bearer(CANARY))
    wire = ScriptedTransport(answers_after_the_run)

    async def call(client: Any) -> None:
        told.append((await client.post(URL, json=message)).status_code)

    with anyio.fail_after(10):
        async with (
            gateway.protect(FAMILY.AsyncClient(transport=wire)) as client,
            anyio.create_task_group() as group,
        ):
            with record(sink, content=content):
                group.start_soon(call, client)
                await under_way.wait()
            closed.set()
    assert told == [200]
    begun, ended = _event(sink, "call.started"), _event(sink, "run.ended")
    assert set(begun["arguments"]) == {"length", "sha256"}
    assert (ended["seq"], ended["events"]) == (len(sink.events), len(sink.events))
    assert [one["call"] for one in sink.of("credential.vended")] == [begun["call"]]
    assert CANARY not in json.dumps(sink.events)
    # The control: what came after the run's end is in no event, and so the call has no end.
    assert not sink.of("call.ended")
