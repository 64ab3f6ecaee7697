"""B1, B5, R23, R25. One call's failure is that call's failure, whatever the fault.

Each row is one fault of the gateway. On every kind of session, for JSON and for event streams, on
asyncio and on trio, the caller reads what the row says, a call in flight beside it is answered, a
later call on the same session works, and the tool ran as often as the row says.
"""

from __future__ import annotations

from typing import Final

import pytest

from support.sessions import KINDS, SDK_ON_TRIO, Kind
from support.survival import Fault, Reads, survives
from surefoot.testing import (
    BadJson,
    CutJson,
    EndlessComments,
    EndlessStream,
    GzipBomb,
    HeldStream,
    IsError,
    Raw,
    Redirect,
    Reset,
    RpcError,
    SessionLost,
    Slow,
    SseCut,
    Status,
    Throttle,
    Trickle,
    TruncatedGzip,
    WrongLength,
)

pytestmark = [pytest.mark.unmeasured, pytest.mark.both_majors, pytest.mark.anyio, *SDK_ON_TRIO]

UNANSWERED: Final = Reads(words="no-answer", may_have_run=True)
CUT: Final = Reads(words="cut-stream", may_have_run=True)
UNREADABLE: Final = Reads(words="unreadable", may_have_run=True)
ANSWERED: Final = Reads(text="charged 1")
IMPATIENT: Final[dict[Kind, Reads]] = {
    "modern": Reads(code=-32001, text="timed out"),
    "handshake": Reads(code=-32001, text="timed out"),
    "mcp1": Reads(code=408, text="Timed out"),
}
LOST: Final[dict[Kind, Reads]] = {
    "handshake": Reads(code=-32600, text="Session not found"),
    "mcp1": Reads(code=32600, text="Session terminated"),
}
TOO_LARGE: Final = Reads(words="too-large", may_have_run=True)


def _refused(words: str, status: int) -> dict[Kind, Reads]:
    """401 and 403 keep their status where an auth flow may want them: as an error on 2.x."""
    kept = Reads(words=words, status=status, as_error=True)  # type: ignore[arg-type]
    said = Reads(words=words, status=status)  # type: ignore[arg-type]
    return {"modern": kept, "handshake": kept, "mcp1": said}


FAULTS: Final = [
    Fault(name="401", step=Status(401), reads=_refused("unauthorized", 401)),
    Fault(name="403", step=Status(403, "no"), reads=_refused("forbidden", 403)),
    Fault(
        name="404",
        step=Status(404, "nothing here"),
        reads={
            "modern": Reads(words="not-found", status=404),
            # With a session, 404 means that it is lost: in the words that frameworks look for.
            "handshake": Reads(code=-32600, text="Session terminated"),
            "mcp1": Reads(code=32600, text="Session terminated"),
        },
    ),
    Fault(
        name="429 beyond the budget",
        step=Throttle(0),
        repeat=True,
        sends=2,
        reads=Reads(words="rate-limited", status=429, may_have_run=True),
    ),
    Fault(
        name="429 that asks for too long",
        step=Throttle(60),
        reads=Reads(words="rate-limited", status=429, may_have_run=True),
    ),
    Fault(name="429 once", step=Throttle(0), sends=2, ran=1, reads=ANSWERED),
    Fault(
        name="500",
        step=Status(500, "<h1>oops</h1>", content_type="text/html"),
        reads=Reads(words="server-failure", status=500, may_have_run=True),
    ),
    Fault(
        name="500 after the tool ran",
        step=Status(500, ran=True),
        ran=1,
        reads=Reads(words="server-failure", status=500, may_have_run=True),
    ),
    Fault(
        name="503",
        step=Status(503, headers={"Retry-After": "0"}),
        reads=Reads(words="server-failure", status=503, may_have_run=True),
    ),
    Fault(
        name="slow beyond the caller's own timeout",
        step=Slow(2, when="after"),
        patience=0.1,
        ran=1,
        reads=IMPATIENT,
    ),
    Fault(name="a silent stream", step=HeldStream(), patience=0.1, ran=1, reads=IMPATIENT),
    Fault(name="reset before the headers", step=Reset(), reads=UNANSWERED),
    Fault(name="closed before the headers", step=Reset(how="close"), reads=UNANSWERED),
    Fault(name="reset in the JSON body", step=Reset("in-body"), ran=1, reads=UNANSWERED),
    Fault(name="reset after the tool ran", step=Reset("after-run"), ran=1, reads=UNANSWERED),
    Fault(name="JSON cut below its length", step=CutJson(), ran=1, reads=UNANSWERED),
    Fault(name="JSON cut in a chunk", step=CutJson("chunked"), ran=1, reads=UNANSWERED),
    Fault(name="JSON cut unseen by HTTP", step=CutJson("close"), ran=1, reads=UNREADABLE),
    Fault(name="a length too long", step=WrongLength("long"), ran=1, reads=UNANSWERED),
    Fault(name="two lengths", step=WrongLength("twice"), ran=1, reads=UNANSWERED),
    Fault(name="a length too short", step=WrongLength("short"), ran=1, reads=UNREADABLE),
    Fault(name="no HTTP at all", step=Raw(b"\x00\x01 nonsense\r\n\r\n"), reads=UNANSWERED),
    Fault(name="a stream cut with a close", step=SseCut(), ran=1, reads=CUT),
    Fault(name="a stream cut with a reset", step=SseCut(1, how="reset"), ran=1, reads=CUT),
    Fault(name="a stream that ends soundly", step=SseCut(2, how="end"), ran=1, reads=CUT),
    Fault(name="a stream cut in its answer", step=SseCut(half_event=True), ran=1, reads=CUT),
    Fault(
        name="a stream cut after an event with an id",
        step=SseCut(1, after_event_id="e-1", retry=1),
        ran=1,
        # Where there are sessions the client comes back for the answer, and the tool ran once.
        reads={"modern": CUT, "handshake": ANSWERED, "mcp1": ANSWERED},
    ),
    Fault(name="a name twice", step=BadJson("duplicate-keys"), ran=1, reads=UNREADABLE),
    Fault(name="a page in the place of JSON", step=BadJson("html"), ran=1, reads=UNREADABLE),
    Fault(name="an answer to another call", step=BadJson("wrong-id"), ran=1, reads=UNREADABLE),
    Fault(name="a gzip body without its end", step=TruncatedGzip(), ran=1, reads=UNREADABLE),
    Fault(name="a gzip bomb", step=GzipBomb(32 << 20), ran=1, reads=TOO_LARGE),
    Fault(name="a body without an end", step=EndlessStream("json"), ran=1, reads=TOO_LARGE),
    Fault(name="an event without an end", step=EndlessStream("event"), ran=1, reads=TOO_LARGE),
    Fault(name="events without an end", step=EndlessStream(), patience=0.1, ran=1, reads=IMPATIENT),
    Fault(
        name="comments without an end",
        step=EndlessComments(0.01),
        patience=0.1,
        ran=1,
        reads=IMPATIENT,
    ),
    Fault(
        name="connections that die when they are made",
        key="connect",
        step=Reset("on-accept"),
        repeat=True,
        neighbours=3,
        # Nothing proves to the client that nothing left, and so it may have run (D3).
        reached=0,
        reads=UNANSWERED,
    ),
    Fault(
        name="a session that is lost",
        step=SessionLost(),
        acquainted=True,
        # What the server has forgotten cannot live on; where there are no sessions, all does.
        reads={"modern": LOST["handshake"], **LOST},
        later=LOST,
    ),
    Fault(
        name="a redirect elsewhere",
        step=Redirect(to="http://elsewhere.invalid/mcp"),
        reads=Reads(words="redirected", status=307, may_have_run=True),
    ),
    Fault(name="a redirect within", step=Redirect(), sends=2, ran=1, reads=ANSWERED),
    Fault(
        name="a redirect that would change the method",
        step=Redirect(302),
        reads=Reads(words="redirected", status=302, may_have_run=True),
    ),
    Fault(
        name="an error of the server's own",
        step=RpcError(-32050, "out of paper", status=200),
        reads=Reads(code=-32050, text="out of paper"),
    ),
    Fault(
        name="the tool's own failure",
        step=IsError("declined"),
        ran=1,
        reads=Reads(is_error=True, text="declined"),
    ),
    Fault(name="an answer in drops", step=Trickle(0.001, size=40), ran=1, reads=ANSWERED),
]  # fmt: skip


@pytest.mark.parametrize("sse", [False, True], ids=["json", "sse"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("fault", FAULTS, ids=str)
async def test_a_fault_is_one_calls_affair(fault: Fault, kind: Kind, sse: bool) -> None:
    """B1, C05 and C37 of the bug reports. Words for the caller, and all else as if nothing was."""
    await survives(fault, kind, sse=sse)
