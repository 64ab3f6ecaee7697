"""R98, R103, B1, B5, DESIGN 7. A request that carries an id is always answered, and never raised.

What is given up on is said at status 200, with the request's own id, in the form that its method
has; a message that nobody waits for is accepted; only where nobody would read words does an error
go up as it is.
"""

from __future__ import annotations

import json
from typing import Any, Final

import pytest

from support.answers_read import CALL, answering, event, outcome_of, read, streamed, told, whole
from surefoot.errors import (
    AuthorizationRequiredError,
    CredentialError,
    DeadlineExceededError,
    MayHaveRunError,
    UnreadableAnswerError,
)
from surefoot.testing import Fails, McpRequest, Replies, ScriptedTransport, mcp_request, tool_call
from surefoot.transports import AnsweringTransport
from surefoot.wire import MAY_HAVE_RUN, Outcome, sentence

pytestmark = pytest.mark.anyio

MODERN: Final = "2026-07-28"
OLDER: Final = "2025-11-25"


def task(version: str) -> McpRequest:
    asked = {"name": "search", "arguments": {}, "task": {"ttl": 60_000}}
    return mcp_request("tools/call", asked, version=version)


REQUESTS: Final = {
    "a call": (tool_call("search"), "complete"),
    "a call of the older era": (tool_call("search", version=OLDER), "result"),
    "a call of no era": (tool_call("search", version=None), "result"),
    "a task": (task(OLDER), "error"),
    "a list": (mcp_request("tools/list"), "error"),
    "initialize": (mcp_request("initialize", version=OLDER), "error"),
    "discovery": (mcp_request("server/discover"), "discover"),
    "a method of its own": (mcp_request("x/y"), "error"),
}

JSON: Final = {"content-type": "application/json"}
HAPPENINGS: Final[dict[str, tuple[Any, Outcome]]] = {
    "reset": (Fails("ReadError"), "no-answer"),
    "no HTTP": (Fails("RemoteProtocolError"), "no-answer"),
    "a read timeout": (Fails("ReadTimeout"), "no-answer"),
    "an error of nobody's": (ZeroDivisionError("by zero"), "no-answer"),
    "500": (Replies(500, body=b"<h1>"), "server-failure"),
    "503": (Replies(503), "server-failure"),
    "429": (Replies(429, headers={"retry-after": "7"}), "rate-limited"),
    "a redirect elsewhere": (
        Replies(302, headers={"location": "http://other.test/"}),
        "redirected",
    ),
    "418": (Replies(418), "server-error"),
    "nothing": (Replies(200), "unreadable"),
    "202": (Replies(202), "unreadable"),
    "a page": (Replies(200, headers={"content-type": "text/html"}, body=b"<h1>"), "unreadable"),
    "broken off": (
        Replies(headers=JSON, chunks=[b"{"], breaks=Fails("ReadError")), "no-answer",
    ),
    "a stream cut": (streamed(), "cut-stream"),
    "a stream broken off": (streamed(b": ping\n\n", breaks=Fails("ReadError")), "cut-stream"),
    "a stream of nonsense": (streamed(event(b"nonsense")), "unreadable"),
}  # fmt: skip


def message_of(answer: Any) -> dict[str, Any]:
    """The last message of an answer."""
    text: str = answer.text
    if answer.headers["content-type"] == "text/event-stream":
        text = text.rsplit("data: ", 1)[1]
    return dict(json.loads(text))


@pytest.mark.parametrize(("request_", "form"), REQUESTS.values(), ids=REQUESTS)
@pytest.mark.parametrize(("play", "words"), HAPPENINGS.values(), ids=HAPPENINGS)
async def test_whatever_happens_is_said_in_the_form_of_the_method(
    family: Any, request_: McpRequest, form: str, play: Any, words: Outcome
) -> None:
    """B5. One sentence, and the same facts as data; it says whether it may have run."""
    answer = await told(family, play, request_, attempts=1)
    assert answer.status_code == 200
    message = message_of(answer)
    assert (message["jsonrpc"], message["id"]) == ("2.0", 1)
    facts = outcome_of(answer)
    assert facts["kind"] == words
    what: Any = "call" if b"tools/call" in request_.body else "read"
    if b"x/y" in request_.body:
        what = "request"
    assert facts["may_have_run"] is (words in MAY_HAVE_RUN and what != "read")
    assert facts["attempts"] == 1
    if form in {"complete", "result"}:
        result = message["result"]
        assert result["isError"] is True
        assert result.get("resultType") == ("complete" if form == "complete" else None)
        (block,) = result["content"]
        text = block["text"]
    else:
        text = message["error"]["message"]
        assert message["error"]["code"] == {
            "discover": -32022, "error": -32600 if words == "redirected" else -32603,
        }[form]  # fmt: skip
        if form == "discover":
            assert message["error"]["data"]["supported"] == ["unavailable"]
    assert text == sentence(
        words,
        what=what,
        status=facts.get("status"),
        retry_after=facts.get("retry_after_seconds"),
        attempts=1,
    )


IDS: Final = [1, 0, -7, 2**60, "1", "", "é", "x" * 300]


@pytest.mark.parametrize("rpc_id", IDS)
@pytest.mark.parametrize("play", [Fails("ReadError"), Replies(500), streamed()])
async def test_the_id_of_the_request_is_kept_by_type_and_value(
    family: Any, rpc_id: Any, play: Any
) -> None:
    """D18."""
    answer = await told(family, play, tool_call("search", rpc_id=rpc_id))
    found = message_of(answer)["id"]
    assert (type(found), found) == (type(rpc_id), rpc_id)


ERRORS: Final[dict[str, tuple[Exception, Outcome]]] = {
    "no credential": (CredentialError("no"), "credentials-failed"),
    "a person must consent": (
        AuthorizationRequiredError(service="mail", authorization_url="https://x.test/CANARY"),
        "consent-needed",
    ),
    "too late to send": (DeadlineExceededError(max_elapsed=1.0), "not-sent-in-time"),
    "may have run": (MayHaveRunError(cause="deadline", attempts=1), "not-sent"),
    "a rule of ours": (UnreadableAnswerError(rule="batch"), "not-sent"),
    "anything": (RuntimeError("CANARY"), "not-sent"),
}


@pytest.mark.parametrize(("error", "words"), ERRORS.values(), ids=ERRORS)
async def test_an_error_before_anything_was_sent_is_told_as_what_it_is(
    family: Any, error: Exception, words: Outcome
) -> None:
    """B5, R117. A local failure is never dressed as a server's, and quotes nothing."""
    # A layer between the words and the wire, which fails by itself: no attempt is on record.
    answer = await whole(family, AnsweringTransport(ScriptedTransport(error)))
    assert outcome_of(answer)["kind"] == words
    assert outcome_of(answer)["may_have_run"] is False
    assert outcome_of(answer)["effect"] == "not_sent"
    assert "CANARY" not in answer.text


NOBODY_WAITS: Final = {
    "a notification": mcp_request("notifications/initialized", rpc_id=None, version=OLDER).body,
    "an answer of the client": b'{"jsonrpc":"2.0","id":7,"result":{}}',
    "a refusal of the client": b'{"jsonrpc":"2.0","id":7,"error":{"code":-1,"message":"no"}}',
}


@pytest.mark.parametrize("body", NOBODY_WAITS.values(), ids=NOBODY_WAITS)
@pytest.mark.parametrize(
    "play", [Fails("ReadError"), RuntimeError("x"), *map(Replies, [400, 429, 500, 307])], ids=str
)
async def test_a_message_that_nobody_waits_for_is_accepted(
    family: Any, body: bytes, play: Any
) -> None:
    """B1. A failure of it would cost the session its writer."""
    answer = await told(family, play, McpRequest(headers=CALL.headers, body=body))
    assert (answer.status_code, answer.content) == (202, b"")


@pytest.mark.parametrize("body", NOBODY_WAITS.values(), ids=NOBODY_WAITS)
@pytest.mark.parametrize("status", [401, 403])
async def test_a_challenge_to_it_reaches_the_flow_above_where_no_session_dies_of_it(
    family: Any, body: bytes, status: int
) -> None:
    """B10. On 2.x, which reads such a status and goes on; 1.x would lose its writer."""
    challenge = 'Bearer error="invalid_token"'
    play = Replies(status, headers={"www-authenticate": challenge}, json={"quotes": "CANARY"})
    answer = await told(family, play, McpRequest(headers=CALL.headers, body=body))
    passes = family.__name__ == "httpx2"
    assert answer.status_code == (status if passes else 202)
    assert answer.headers.get("www-authenticate") == (challenge if passes else None)
    assert answer.content == b""


@pytest.mark.parametrize("body", [b"", b"half", b"[]", b'{"jsonrpc":"2.0"}'])
async def test_what_is_no_message_gets_the_servers_status_and_no_word_of_its(
    family: Any, body: bytes
) -> None:
    """D1, R91. Nobody above could read an answer to it; what is raised, is."""
    request = McpRequest(headers=CALL.headers, body=body)
    answer = await told(family, Replies(400, json={"quotes": "CANARY"}), request)
    assert (answer.status_code, answer.content) == (400, b"")
    with pytest.raises(family.ReadError):
        await told(family, Fails("ReadError"), request)


@pytest.mark.parametrize("method", ["GET", "DELETE"])
async def test_what_has_no_message_goes_up_as_it_is(family: Any, method: str) -> None:
    """B1. The SDK looks at its status alone, and catches what is raised."""
    for status in (200, 202, 400, 404, 405, 500):
        wire = ScriptedTransport(Replies(status, json={"quotes": "CANARY"}))
        answer = await whole(family, answering(wire), method=method)
        assert (answer.status_code, answer.content) == (status, b"")
    wire = ScriptedTransport(Fails("ReadError"))
    with pytest.raises(family.ReadError):
        await whole(family, answering(wire), method=method)


async def test_a_sound_answer_passes_byte_for_byte(family: Any) -> None:
    """R88. Words change nothing that needs none."""
    play = Replies(result={"content": [], "isError": True, "structuredContent": {"n": 1.0}})
    assert (await told(family, play)).content == (await read(family, play)).content


async def test_a_request_that_is_under_way_already_passes_straight_through(family: Any) -> None:
    """R31. A second stack hidden behind a foreign wrapper answers nothing."""
    inner = answering(ScriptedTransport(Replies(500)))

    class Foreign:
        """Somebody's layer, which does not say what it wraps."""

        async def handle_async_request(self, request: Any) -> Any:
            return await inner.handle_async_request(request)

        async def aclose(self) -> None:
            """Nothing is open."""

    answer = await whole(family, answering(Foreign()))
    assert outcome_of(answer)["kind"] == "server-failure"
    assert outcome_of(answer)["attempts"] == 1
