"""R90, R91, D23, B11. Of an answer's head goes up what is listed, and of a redirect where it leads.

Everything else that a server says beside its body (cookies, a reason phrase, a place elsewhere, the
text of a challenge) stays below.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any, Final

import pytest

from support.answers_read import (
    CALL,
    URL,
    answer_to,
    answering,
    outcome_of,
    read,
    reading,
    streamed,
    told,
    whole,
)
from surefoot.credentials import Bearer, StaticCredentials
from surefoot.testing import Replies, ScriptedTransport, mcp_request
from surefoot.transports import Endpoint, ReadingTransport, VendingTransport

pytestmark = pytest.mark.anyio

CANARY: Final = "CANARY-3f9c"
UUID: Final = "0f7a3c9e-1111-4222-8333-444455556666"
KEPT: Final = {
    "mcp-session-id": "session-1",
    "mcp-protocol-version": "2025-11-25",
    "retry-after": "7",
    "x-amzn-requestid": UUID,
}
LEFT: Final = {
    "set-cookie": CANARY,
    "server": CANARY,
    "x-amzn-errortype": "ThrottlingException",
    "location": f"/{CANARY}",
    "www-authenticate": f'Basic realm="{CANARY}"',
    "authorization": CANARY,
    "content-language": CANARY,
}


@pytest.mark.parametrize("kind", ["json", "events"])
async def test_what_is_listed_goes_up_and_nothing_else(family: Any, kind: str) -> None:
    """D23. In lower case, on whole answers and on streams alike."""
    lines = [(name.title(), value) for name, value in {**KEPT, **LEFT}.items()]
    typed = [*lines, ("content-type", "application/json")]
    play = (
        streamed(b"", headers=lines)
        if kind == "events"
        else Replies(headers=typed, body=answer_to())
    )
    answer = await read(family, play)
    ours = ["content-type", "content-length"] if kind == "json" else ["content-type"]
    assert {name: answer.headers[name] for name in KEPT} == KEPT
    assert set(answer.headers) == {*KEPT, *ours}
    assert CANARY not in repr(answer.headers) + answer.text


@pytest.mark.parametrize("status", [202, 204, 205])
async def test_a_status_without_a_body_has_no_stream(family: Any, status: int) -> None:
    """B1, D21. The SDK looks for no events there: 1.x would wait for an answer for ever."""

    async def endless() -> AsyncIterator[bytes]:
        while True:
            yield b": ping\n\n"

    play = replace(streamed(by=endless), status=status)
    assert (await read(family, play)).content == b""
    answer = await told(family, play)
    assert answer.status_code == 200
    assert outcome_of(answer)["rule"] == "empty"


async def test_a_reason_phrase_and_what_the_wire_hung_on_stay_below(family: Any) -> None:
    """R91. The status has the words that the protocol gives it."""

    def answered(_: Any) -> Any:
        return family.Response(
            200,
            headers=[("content-type", "application/json")],
            content=answer_to(),
            extensions={"reason_phrase": CANARY.encode(), "http_version": b"HTTP/1.1"},
        )

    wire: Any = ScriptedTransport(answered)
    answer = await whole(family, reading(wire))
    assert answer.reason_phrase == "OK"
    assert CANARY not in repr(answer.__dict__)


@pytest.mark.parametrize(("status", "passes"), [(401, True), (403, True), (400, False)])
async def test_a_challenge_passes_where_it_leads_back_to_the_endpoint(
    family: Any, status: int, passes: bool
) -> None:
    """D23. Without an endpoint the request's own origin counts."""
    where = "http://gateway.test/.well-known/oauth-protected-resource/mcp"
    said = (
        f'Bearer error="invalid_token", error_description="{CANARY}", resource_metadata="{where}"'
    )
    kept = f'Bearer error="invalid_token", resource_metadata="{where}"'
    for endpoint in (None, Endpoint(URL)):
        play = Replies(status, headers={"www-authenticate": said})
        answer = await read(family, play, endpoint=endpoint)
        assert answer.headers.get("www-authenticate") == (kept if passes else None)
    foreign = Replies(status, headers={"www-authenticate": said.replace("gateway", "other")})
    assert "www-authenticate" not in (await read(family, foreign)).headers


PLACES: Final = {
    "a path": ("/elsewhere?x=1", True),
    "the whole place": ("http://gateway.test/other", True),
    "with the port by name": ("http://gateway.test:80/other", True),
    "another host": (f"http://{CANARY}.test/mcp", False),
    "another port": ("http://gateway.test:8080/mcp", False),
    "another scheme": ("https://gateway.test/mcp", False),
    "with a name and a password": (f"http://user:{CANARY}@gateway.test/mcp", False),
    "no place": (None, False),
    "no URL": ("http://[", False),
    "not ASCII": ("/\xe9", False),
}


@pytest.mark.parametrize(("place", "within"), PLACES.values(), ids=PLACES)
@pytest.mark.parametrize("status", [301, 302, 303, 304, 307, 308])
async def test_a_redirect_goes_up_with_its_place_only_where_it_may_be_followed(
    family: Any, status: int, place: str | None, within: bool
) -> None:
    """B11. Within the origin, and with the method and the body kept; any other ends here."""
    lines = [] if place is None else [("location", place)]
    wire = ScriptedTransport(Replies(status, headers=lines), Replies(result={"content": []}))
    answer = await whole(family, reading(wire))
    followed = within and status in {307, 308}
    assert answer.status_code == (200 if followed else status)
    assert "location" not in answer.headers
    assert CANARY not in answer.text
    assert {sent.method for sent in wire.requests} == {"POST"}
    assert [sent.body for sent in wire.requests] == [CALL.body] * (2 if followed else 1)


@pytest.mark.parametrize("status", [301, 307])
async def test_a_redirect_that_nobody_above_would_follow_has_no_status_of_one(
    family: Any, status: int
) -> None:
    """B11. Reading by itself cannot count a send, and so lets no client follow."""
    wire = ScriptedTransport(Replies(status, headers={"location": "/elsewhere"}))
    answer = await whole(family, ReadingTransport(wire))
    assert answer.status_code == 502
    assert "location" not in answer.headers


@pytest.mark.parametrize("method", ["POST", "GET", "DELETE"])
async def test_what_a_series_did_not_follow_nobody_follows(family: Any, method: str) -> None:
    """B11. A call is told in words; a stream and an end of a session keep the bare status."""
    place = f"http://{CANARY}.test/mcp"
    wire = ScriptedTransport(Replies(307, headers={"location": place}))
    answer = await whole(family, answering(wire), CALL, method=method)
    assert answer.status_code == (200 if method == "POST" else 307)
    assert "location" not in answer.headers
    assert CANARY not in answer.text


async def test_a_secret_in_the_place_of_a_redirect_is_followed_by_nobody(family: Any) -> None:
    """B7, B11. A place that quotes the credential is no place."""
    token = "canary-token-0123456789"
    wire = ScriptedTransport(Replies(307, headers={"location": f"/mcp?token={token}"}))
    vending = VendingTransport(wire, credentials=StaticCredentials(Bearer(token)))
    answer = await whole(family, reading(vending))
    assert len(wire.requests) == 1
    assert "location" not in answer.headers
    assert wire.requests[0].header_values("authorization") == (f"Bearer {token}".encode(),)


async def test_a_lost_session_is_told_by_its_status_in_the_session_alone(family: Any) -> None:
    """DESIGN 7. A 404 means that the session is gone, where the request named one."""
    call = mcp_request("tools/list", version="2025-11-25")
    inside = mcp_request("tools/list", version="2025-11-25", session="s-1")
    assert (await read(family, Replies(404), call)).json()["error"]["code"] == -32601
    assert (await read(family, Replies(404), inside)).json()["error"]["code"] == -32600
    assert (await told(family, Replies(404), inside)).content == b""
