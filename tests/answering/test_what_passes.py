"""B1, B4, D19, D23, DESIGN 7. What a server says passes where it has a meaning, and no further.

A lost session, an unknown method, a header to mend, a challenge and "not this protocol" reach the
SDK as such, on each of its majors in the way that it can read; all else becomes words at 200.
"""

from __future__ import annotations

import json
from typing import Any, Final

import pytest

from support.answers_read import answering, outcome_of, streamed, told, whole
from surefoot.policy import Replay, Retry, Rule, ThrottleRule, ToolRule
from surefoot.testing import Fails, Replies, ScriptedTransport, mcp_request, tool_call
from surefoot.transports import AnsweringTransport, ReadingTransport, RetryingTransport

pytestmark = pytest.mark.anyio

OLDER: Final = "2025-11-25"
LOST: Final = {"code": -32600, "message": "Session not found"}


def failing(status: int, code: int, message: str = "their words", **data: Any) -> Replies:
    error: dict[str, object] = {"code": code, "message": message}
    return Replies(status, error={**error, "data": data} if data else error)


PASSING: Final = {
    "an error at 200": (200, -32050),
    "unknown method at 404": (404, -32601),
    "bad params at 400": (400, -32602),
    "a header to mend": (400, -32020),
    "a capability that is missing": (400, -32021),
    "a version that is not spoken": (400, -32022),
    "an error at 500": (500, -32000),
}


@pytest.mark.parametrize(("status", "code"), PASSING.values(), ids=PASSING)
async def test_a_servers_own_error_passes_at_a_status_that_ends_no_session(
    family: Any, status: int, code: int
) -> None:
    """D19, DESIGN 7. As it is on 2.x; on 1.x, which dies of it, at 200."""
    answer = await told(family, failing(status, code, why="paper"))
    assert answer.status_code == (status if family.__name__ == "httpx2" else 200)
    said = json.loads(answer.content)["error"]
    assert said == {"code": code, "message": "their words", "data": {"why": "paper"}}


@pytest.mark.parametrize("auth_above", [False, True])
@pytest.mark.parametrize("status", [401, 403])
@pytest.mark.parametrize("body", ["their own error", "a page"])
async def test_a_challenge_keeps_its_status_where_somebody_reads_it(
    family: Any, auth_above: bool, status: int, body: str
) -> None:
    """D23, DESIGN 7. On 2.x, and on 1.x under a flow; the words are ours, and no part of theirs."""
    challenge = 'Bearer error="insufficient_scope", scope="a b"'
    play: dict[str, Any] = (
        {"body": b"<h1>CANARY"}
        if body == "a page"
        else {"error": {"code": -7, "message": "CANARY"}}
    )
    wire = ScriptedTransport(Replies(status, headers={"www-authenticate": challenge}, **play))
    answer = await whole(family, answering(wire, above={"auth_above": auth_above}))
    keeps = family.__name__ == "httpx2" or auth_above
    assert answer.status_code == (status if keeps else 200)
    assert answer.headers.get("www-authenticate") == (challenge if keeps else None)
    assert outcome_of(answer)["kind"] == ("unauthorized" if status == 401 else "forbidden")
    assert outcome_of(answer)["may_have_run"] is False
    assert "CANARY" not in answer.text


@pytest.mark.parametrize("body", ["their own error", "a page", "nothing"])
async def test_a_lost_session_is_left_to_the_sdks_own_words(family: Any, body: str) -> None:
    """DESIGN 7. Frameworks open a new one by them; on 1.x by the status alone."""
    play: dict[str, Any] = {"their own error": {"error": LOST}, "a page": {"body": b"<h1>"}}
    reply = Replies(404, **play.get(body, {}))
    inside = tool_call("search", version=OLDER, session="s-1")
    answer = await told(family, reply, inside)
    assert answer.status_code == 404
    if body == "their own error" and family.__name__ == "httpx2":
        assert json.loads(answer.content)["error"] == LOST
    else:
        assert answer.content == b""
        assert "content-type" not in answer.headers


@pytest.mark.parametrize("code", [-32601, -32602])
async def test_an_unknown_method_or_tool_in_a_session_is_no_lost_session(
    family: Any, code: int
) -> None:
    """DESIGN 7. The code says what the status does not."""
    inside = mcp_request("x/y", version=OLDER, session="s-1")
    answer = await told(family, failing(404, code), inside)
    assert answer.status_code == (404 if family.__name__ == "httpx2" else 200)
    assert json.loads(answer.content)["error"]["code"] == code


async def test_outside_of_a_session_a_404_is_put_into_words(family: Any) -> None:
    """DESIGN 7. There is nothing to lose."""
    answer = await told(family, Replies(404))
    assert (answer.status_code, outcome_of(answer)["kind"]) == (200, "not-found")


MEANT: Final[dict[str, Replies]] = {
    "400": Replies(400),
    "404": Replies(404),
    "unknown method": failing(404, -32601),
    "unknown method at 200": failing(200, -32601),
    "another version": failing(400, -32022, supported=["2025-11-25"]),
    "invalid request": failing(400, -32600),
}
TROUBLE: Final[dict[str, Any]] = {
    "429": Replies(429),
    "500": Replies(500),
    "503": Replies(503, error={"code": -32001, "message": "busy"}),
    "internal error": failing(200, -32603),
    "internal error at 500": failing(500, -32603),
    "a server's own trouble": failing(200, -32000),
    "a page": Replies(200, headers={"content-type": "text/html"}, body=b"<h1>"),
    "nothing": Replies(200),
    "reset": Fails("ReadError"),
    "refused": Fails("ConnectError"),
    "a stream cut": streamed(),
    "408": Replies(408),
}


@pytest.mark.parametrize("play", MEANT.values(), ids=MEANT)
async def test_not_this_protocol_reaches_a_client_that_asks_for_it(
    family: Any, play: Replies
) -> None:
    """B4. Then it falls back to the older one, as it is meant to."""
    answer = await told(family, play, mcp_request("server/discover"), attempts=1)
    message = json.loads(answer.content)
    assert message["error"]["code"] != -32022 or message["error"]["data"] == {
        "supported": ["2025-11-25"]
    }
    if family.__name__ == "httpx2":
        assert answer.status_code == play.status


@pytest.mark.parametrize("play", TROUBLE.values(), ids=TROUBLE)
async def test_a_passing_trouble_moves_no_client_to_an_older_protocol(
    family: Any, play: Any
) -> None:
    """B4. It ends connecting, by the one answer that does."""
    answer = await told(family, play, mcp_request("server/discover"), attempts=1)
    assert answer.status_code == 200
    text = answer.text.rsplit("data: ", 1)[-1]
    error = json.loads(text)["error"]
    assert error["code"] == -32022
    assert error["data"]["supported"] == ["unavailable"]
    assert error["data"]["requested"] == "2026-07-28"


async def test_a_refusal_that_a_rule_knows_never_passes_as_the_servers_error(family: Any) -> None:
    """R54, B5. A framework would repeat it at once; in words it is told how long to wait."""
    wire = ScriptedTransport(
        Replies(429, headers={"retry-after": "60"}, error={"code": -32029, "message": "slow down"})
    )
    series = RetryingTransport(ReadingTransport(wire), rules=[Rule(recognise=ThrottleRule())])
    answer = await whole(family, AnsweringTransport(series, beside=wire))
    facts = outcome_of(answer)
    assert (facts["kind"], facts["retry_after_seconds"]) == ("rate-limited", 60)
    assert json.loads(answer.content)["result"]["isError"] is True


async def test_after_an_attempt_without_an_answer_no_refusal_takes_that_back(family: Any) -> None:
    """R27. A call that was lost once may have run, whatever is said of its repeat."""
    lost = Fails("ReadError")
    replay = Replay(tools={"search": ToolRule(repeat_on={"network"})})
    for later in (Replies(503), failing(200, -32602), Replies(429)):
        for asked, may_have_run in (
            (tool_call("search"), True),
            (mcp_request("tools/list"), False),
        ):
            wire = ScriptedTransport(lost, later)
            layers = RetryingTransport(
                ReadingTransport(wire), retry=Retry(max_attempts=2, base_delay=0), replay=replay
            )
            answer = await whole(family, AnsweringTransport(layers, beside=wire), asked)
            assert outcome_of(answer)["kind"] == "no-answer"
            assert outcome_of(answer)["may_have_run"] is may_have_run
            assert outcome_of(answer)["attempts"] == 2
    wire = ScriptedTransport(lost, Replies(result={"tools": []}))
    sound = await whole(family, answering(wire, attempts=2), mcp_request("tools/list"))
    assert json.loads(sound.content)["result"] == {"tools": []}
