"""B1, D22, D37, DESIGN 7. A stream that ends without its answer ends with ours, or is resumed.

Where the era has sessions and an event id was seen, the client comes back for the answer with it; a
resumption may fail once in its sight, and then the call is answered in words. Whatever is kept for
that is bounded, and each call is filed once.
"""

from __future__ import annotations

import json
from hashlib import sha256
from typing import Any, Final

import pytest

from support.answers_read import (
    CALL,
    SOUND,
    answer_to,
    answering,
    event,
    opened,
    outcome_of,
    streamed,
    whole,
)
from support.sending import filed, ledger_into
from surefoot.testing import (
    Fails,
    McpRequest,
    RecordingSink,
    Replies,
    ScriptedTransport,
    mcp_request,
    tool_call,
)
from surefoot.transports._resuming import Pending, Resumptions

pytestmark = pytest.mark.anyio

OLDER: Final = "2025-11-25"
IN_SESSION: Final = tool_call("search", version=OLDER, session="s-1")
PRIMED: Final = streamed(b"id: e-1\nretry: 100\n\n")
ANSWERED: Final = streamed(event(answer_to()))
SESSION: Final = {"mcp-session-id": "s-1", "accept": "text/event-stream"}


class Client:
    """One client over words, whose evidence goes into a sink."""

    def __init__(self, family: Any, *plays: Any) -> None:
        self.family = family
        self.sink = RecordingSink()
        self.wire = ScriptedTransport(*plays)
        above = {"ledger": ledger_into(self.sink)}
        self.transport = answering(self.wire, above=above, attempts=1)

    async def call(self, request: McpRequest = IN_SESSION) -> Any:
        """Make a call."""
        return await whole(self.family, self.transport, request)

    async def resume(self, event_id: str | None = "e-1", **headers: str) -> Any:
        """Come back with an event id."""
        lines = {**SESSION, **({} if event_id is None else {"last-event-id": event_id}), **headers}
        return await whole(self.family, self.transport, method="GET", headers=lines.items())

    def calls(self) -> list[dict[str, Any]]:
        """What was filed of calls."""
        events: list[Any] = self.sink.of("tool.request_attempts")
        return [one for one in events if one["method"] == "tools/call"]


def result_in(answer: Any) -> dict[str, Any]:
    """The result of the last event."""
    return dict(json.loads(answer.text.rsplit("data: ", 1)[1])["result"])


OWED: Final = {
    "nothing came": (streamed(), IN_SESSION),
    "nothing but pings": (streamed(b": ping\n\n"), IN_SESSION),
    "half an event": (streamed(event(answer_to())[:-1]), IN_SESSION),
    "it broke": (streamed(b": ping\n\n", breaks=Fails("ReadError")), IN_SESSION),
    "an id, in the era without sessions": (PRIMED, CALL),
    "an id that is no header": (streamed("id: é\n\n".encode()), IN_SESSION),
}


@pytest.mark.parametrize(("play", "request_"), OWED.values(), ids=OWED)
async def test_a_stream_without_its_answer_ends_with_ours(
    family: Any, play: Any, request_: McpRequest
) -> None:
    """D22, R27. At once, so that nobody waits for ever; and it may have run."""
    client = Client(family, play)
    answer = await client.call(request_)
    assert (answer.status_code, answer.headers["content-type"]) == (200, "text/event-stream")
    facts = outcome_of(answer)
    assert (facts["kind"], facts["may_have_run"]) == ("cut-stream", True)
    assert result_in(answer)["isError"] is True
    (record,) = client.calls()
    assert (record["ended"], record["why"]) == ("cut", "stream-cut")
    assert record["may_have_run"] is True
    assert record["answer"]["sha256"] == sha256(answer.content).hexdigest()


async def test_a_stream_with_its_answer_ends_with_that(family: Any) -> None:
    """D22. Whatever comes after it, and however it ends."""
    for play in (ANSWERED, streamed(event(answer_to()), breaks=Fails("ReadError"))):
        client = Client(family, play)
        assert result_in(await client.call()) == SOUND
        (record,) = client.calls()
        assert record["may_have_run"] is False
        assert record["ended"] == "answered"


async def test_what_a_client_can_resume_is_left_to_it(family: Any) -> None:
    """DESIGN 7. Nothing is invented; the answer comes over the second stream, and is one call's."""
    client = Client(family, PRIMED, ANSWERED)
    cut = await client.call()
    assert b"surefoot" not in cut.content
    assert client.calls() == []
    assert result_in(await client.resume()) == SOUND
    (record,) = client.calls()
    assert record["may_have_run"] is False


async def test_a_server_without_sessions_may_let_its_streams_be_resumed(family: Any) -> None:
    """DESIGN 7. The era decides, and not whether a session id was given out."""
    client = Client(family, PRIMED, ANSWERED)
    assert b"surefoot" not in (await client.call(tool_call("search", version=OLDER))).content
    resumed = await whole(
        family, client.transport, method="GET", headers=[("last-event-id", "e-1")]
    )
    assert result_in(resumed) == SOUND


async def test_a_resumption_may_be_cut_and_resumed_again(family: Any) -> None:
    """D37. From where it was cut the last time; and not for ever."""
    again = [streamed(f"id: e-{n}\n\n".encode()) for n in range(1, 13)]
    client = Client(family, *again)
    await client.call()
    for n in range(1, 10):
        assert b"surefoot" not in (await client.resume(f"e-{n}")).content
    last = await client.resume("e-10")
    assert outcome_of(last)["kind"] == "cut-stream"
    (record,) = client.calls()
    assert record["may_have_run"] is True


SOFT: Final = {
    "reset": Fails("ReadError"),
    "500": Replies(500),
    "503": Replies(503),
    "a page": Replies(200, headers={"content-type": "text/plain"}, body=b"a moment"),
    "202": Replies(202),
}
HARD: Final = {
    "404": Replies(404),
    "405": Replies(405),
    "400": Replies(400),
    "401": Replies(401),
    "a redirect": Replies(307, headers={"location": "http://other.test/"}),
}


@pytest.mark.parametrize("failure", SOFT.values(), ids=SOFT)
async def test_a_resumption_may_fail_once_for_the_client_tries_twice(
    family: Any, failure: Any
) -> None:
    """B1, DESIGN 7. The answer is not lost to a trouble that passes; at the second it is words."""
    healed = Client(family, PRIMED, failure, ANSWERED)
    await healed.call()
    await first_try(healed)
    assert result_in(await healed.resume()) == SOUND
    lost = Client(family, PRIMED, failure, failure)
    await lost.call()
    await first_try(lost)
    closing = await lost.resume()
    assert (closing.status_code, outcome_of(closing)["kind"]) == (200, "cut-stream")
    (record,) = lost.calls()
    assert record["may_have_run"] is True


async def first_try(client: Client) -> None:
    """A resumption that fails as a client sees it: by its status, or by what is raised."""
    try:
        answer = await client.resume()
    except client.family.ReadError:
        return
    assert answer.status_code >= 500 or not answer.content


@pytest.mark.parametrize("failure", HARD.values(), ids=HARD)
async def test_a_resumption_that_is_refused_is_answered_in_words_at_once(
    family: Any, failure: Any
) -> None:
    """D37, DESIGN 7. To ask again would bring nothing else."""
    client = Client(family, PRIMED, failure)
    await client.call()
    closing = await client.resume()
    assert closing.status_code == 200
    assert closing.headers["content-type"] == "text/event-stream"
    assert outcome_of(closing)["kind"] == "cut-stream"
    assert result_in(closing)["isError"] is True


@pytest.mark.parametrize("failure", [*SOFT.values(), *HARD.values(), streamed()], ids=str)
async def test_a_call_that_an_app_resumes_by_its_token_ends_in_words_too(
    family: Any, failure: Any
) -> None:
    """B1. Measured: a bare failure of such a GET ends the session, and an empty one hangs it."""
    client = Client(family, failure)
    closing = await client.resume("kept-from-yesterday")
    assert closing.status_code == 200
    message = json.loads(closing.text.rsplit("data: ", 1)[1])
    assert message["id"] == (None if family.__name__ == "httpx2" else 0)
    assert outcome_of(closing)["kind"] == "cut-stream"
    assert len(client.sink.of("tool.request_attempts")) == 1


async def test_a_standing_stream_that_is_opened_again_is_nobodys_answer(family: Any) -> None:
    """D37. It fails as it fails: the client gives it up, and calls go on."""
    note = event(b'{"jsonrpc":"2.0","method":"notifications/message","params":{}}', id="n-7")
    client = Client(family, streamed(note), Replies(404), Fails("ReadError"), streamed())
    assert b"surefoot" not in (await client.resume(None)).content
    assert (await client.resume("n-7")).status_code == 404
    with pytest.raises(family.ReadError):
        await client.resume("n-7")
    assert (await client.resume("n-7")).content == b""


async def test_two_calls_cut_at_one_event_are_not_mixed_up(family: Any) -> None:
    """D22. The second is answered at once: which of them came back could not be told."""
    client = Client(family, PRIMED, PRIMED, ANSWERED)
    first = await client.call()
    second = await client.call(tool_call("search", version=OLDER, session="s-1", rpc_id=2))
    assert b"surefoot" not in first.content
    assert outcome_of(second)["kind"] == "cut-stream"
    assert result_in(await client.resume()) == SOUND


async def test_another_sessions_event_resumes_nothing_of_this_one(family: Any) -> None:
    """D22. The same event id is another event there."""
    client = Client(family, PRIMED, Replies(405), ANSWERED)
    await client.call()
    await client.resume("e-1", **{"mcp-session-id": "s-2"})
    assert result_in(await client.resume()) == SOUND


async def test_what_nobody_comes_back_for_is_filed_at_the_end(family: Any) -> None:
    """R22. With what is known: it may have run."""
    client = Client(family, PRIMED)
    await client.call()
    assert client.calls() == []
    await client.transport.aclose()
    assert filed(client.sink)["may_have_run"] is True


async def test_a_reader_that_leaves_before_the_answer_leaves_a_record(family: Any) -> None:
    """D27. Nobody is told; that it may have run is recorded."""
    client = Client(family, streamed(b": ping\n\n", event(answer_to())))
    async with opened(family, client.transport, IN_SESSION) as answer:
        assert await anext(aiter(answer.stream)) == b":\n\n"
    (record,) = client.calls()
    assert (record["ended"], record["why"]) == ("cut", "cancelled")
    assert record["may_have_run"] is True


async def test_a_notification_answered_with_a_stream_owes_nobody_anything(family: Any) -> None:
    """D21. It may end as it likes."""
    client = Client(family, streamed(b": ping\n\n"))
    told = mcp_request("notifications/initialized", rpc_id=None, version=OLDER)
    assert (await client.call(told)).content == b":\n\n"


def test_what_waits_for_a_resumption_is_bounded(family: Any) -> None:
    """D22. The oldest goes, and is filed as what it is."""
    del family
    gone: list[Any] = []

    class Record:
        unanswered = False
        ended: str | None = None

        def end(self, *said: object) -> None:
            gone.append(said)

    waiting = Resumptions()
    some: Any = None
    for n in range(300):
        record: Any = Record()
        assert waiting.wait_for(("s", str(n)), Pending(record, some), lambda _: None)
    assert len(gone) == 300 - 256
    for n in range(2000):
        waiting.stood(("s", str(n)))
    assert len(waiting.all()) == 256
