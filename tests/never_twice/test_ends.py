"""B3, R3, R27, D3. Every way in which a call can end, and whether an identical one may follow it.

What its caller is told and what the fence remembers are one thing: who is told that nothing was
sent may send it, and nothing is called unsent that was on the wire.
"""

from __future__ import annotations

from typing import Any, Final

import pytest

from support.sessions import FAMILY
from surefoot import Gateway, Replay, Retry, ToolRule
from surefoot.gateway import with_rules
from surefoot.policy import AnswerView, Rule, ThrottleRule, Verdict
from surefoot.testing import Fails, FakeClock, Replies, ScriptedTransport

pytestmark = [pytest.mark.both_majors, pytest.mark.anyio]

URL: Final = "http://127.0.0.1:1/mcp"
PAYS: Final = Replay(tools={"pay": ToolRule(makes_changes=True)})
DONE: Final = Replies(result={"content": [], "isError": False})
NEVER: Final = Fails("ConnectError")
EVENTS: Final = {"content-type": "text/event-stream"}
MOVED: Final = Replies(307, headers={"location": "/mcp"})


def _error(code: int, status: int = 200) -> Replies:
    return Replies(status, error={"code": code, "message": "no"})


class _Busy:
    """A refusal that a service's own adapter knows."""

    reads: int = 1024

    def recognise(self, answer: AnswerView) -> Verdict | None:
        """By its code."""
        return Verdict(kind="session-busy") if b"-32042" in answer.body else None


RULES: Final = (
    Rule(recognise=ThrottleRule()),
    Rule(recognise=_Busy(), assumes="refused-before-execution"),
)

SURE: Final[dict[str, tuple[Any, ...]]] = {
    "a result": (DONE,),
    "a failure of the tool": (Replies(result={"content": [], "isError": True}),),
    "429": (Replies(429),),
    "busy": (_error(-32042, 409),),
    **{str(status): (Replies(status),) for status in (400, 401, 403, 404, 405, 406, 413, 415, 422)},
    "never sent": (NEVER, NEVER, NEVER),
    "sent elsewhere, and never sent": (MOVED, NEVER, NEVER),
    "invalid parameters": (_error(-32602),),
    "a header mismatch": (_error(-32020, 400),),
    "an unknown method": (_error(-32601, 404),),
}
OPEN: Final[dict[str, tuple[Any, ...]]] = {
    "no response": (Fails("ReadError"),),
    "no response in time": (Fails("ReadTimeout"),),
    "half written": (Fails("WriteError"),),
    **{str(status): (Replies(status),) for status in (402, 408, 409, 418, 425, 500, 502, 503, 504)},
    "an internal error": (_error(-32603),),
    "a server's error": (_error(-32000),),
    "the last of them": (_error(-32099),),
    "cancelled": (_error(-32800),),
    "cannot be read": (Replies(body=b"{", headers={"content-type": "application/json"}),),
    "an empty answer": (Replies(200),),
    "a body that breaks": (
        Replies(
            chunks=(b'{"jsonrpc":',),
            breaks=Fails("ReadError"),
            headers={"content-type": "application/json"},
        ),
    ),
    "a stream that is cut": (Replies(chunks=(b": hello\n\n",), headers=EVENTS),),
    "never sent, then lost": (NEVER, Fails("ReadError")),
    "sent elsewhere, then lost": (MOVED, Fails("ReadError")),
    "sent elsewhere, then 503": (MOVED, Replies(503)),
}


async def _ask(client: Any, number: int) -> Any:
    params = {"name": "pay", "arguments": {"amount": 1}}
    message = {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params}
    response = await client.post(URL, json=message)
    if response.headers["content-type"] == "text/event-stream":
        line = next(line for line in response.text.splitlines() if line.startswith("data: "))
        response = FAMILY.Response(200, content=line.removeprefix("data: "))
    told: Any = response.json()
    holder: Any = told.get("result", {}).get("_meta") or told.get("error", {}).get("data") or {}
    return holder.get("surefoot/outcome", {})


@pytest.mark.parametrize(
    ("plays", "stays_open"),
    [
        *(pytest.param(plays, False, id=name) for name, plays in SURE.items()),
        *(pytest.param(plays, True, id=name) for name, plays in OPEN.items()),
    ],
)
async def test_an_identical_payment_follows_an_end_that_is_sure_and_no_other(
    plays: tuple[Any, ...], stays_open: bool
) -> None:
    """B3. And whoever is told that it may have run is not let through a moment later."""
    wire = ScriptedTransport(*plays, DONE, proves_not_sent=True)
    gateway = with_rules(
        Gateway(URL, replay=PAYS, retry=Retry(max_attempts=3), clock=FakeClock()), RULES
    )
    async with gateway.protect(FAMILY.AsyncClient(transport=wire)) as client:
        first = await _ask(client, 1)
        second = await _ask(client, 2)
    assert second == {} or second["kind"] == "fenced"
    assert bool(second) is stays_open
    assert len(wire.requests) == len(plays) + (not stays_open)
    if stays_open and first:
        assert second["earlier_call_id"] == first["call_id"]
        assert first["may_have_run"] is True


@pytest.mark.parametrize(
    ("plays", "kind"),
    [
        ((Replies(429), NEVER, NEVER), "rate-limited"),
        ((_error(-32042, 409), NEVER, NEVER), "session-busy"),
        ((NEVER, Replies(429), NEVER), "rate-limited"),
        ((NEVER, NEVER, NEVER), "not-sent"),
        ((MOVED, NEVER, NEVER), "not-sent"),
    ],
)
async def test_what_was_refused_once_is_not_called_unsent(plays: Any, kind: str) -> None:
    """R3, D3, B5. A repeat that never left takes back no send before it."""
    wire = ScriptedTransport(*plays, proves_not_sent=True)
    gateway = with_rules(Gateway(URL, retry=Retry(max_attempts=3), clock=FakeClock()), RULES)
    async with gateway.protect(FAMILY.AsyncClient(transport=wire)) as client:
        assert (await _ask(client, 1))["kind"] == kind
