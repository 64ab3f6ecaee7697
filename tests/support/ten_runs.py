"""The law of this file: ten runs as a real Gateway records them, and what a reader must find there.

Each is a turn of an agent against a difficult gateway, made anew; what a stranger has to be able to
say of it stands beside it: which call was throttled, how long it waited, who permitted the repeat,
and what may have run.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any, Final

import anyio

from surefoot import Bearer, Gateway, Replay, Retry, ToolRule, record
from surefoot.credentials import CredentialRequest
from surefoot.testing import FaultyGateway, Reset, Slow, SseCut, Status, Step, Throttle, tool_call

__all__ = ["TEN_RUNS", "Told", "recorded"]

QUICK: Final = Retry(max_attempts=3, base_delay=0.05, spread=0, max_wait=3.0)
DECLARED: Final = Replay(
    tools={
        "search": ToolRule(repeat_on={"throttle", "network"}),
        "refund": ToolRule(makes_changes=True),
    }
)
TOKEN: Final = "canary-of-the-ten-runs"


class Turn:
    """One agent at work: calls tools one after the other, or several at once."""

    def __init__(self, gateway: Gateway, server: FaultyGateway) -> None:
        self._gateway = gateway
        self._server = server

    def script(self, tool: str, *steps: Step) -> None:
        """What the gateway does to the next calls of a tool."""
        self._server.script(tool, *steps)

    async def call(self, tool: str, **arguments: Any) -> None:
        """Call a tool, as a client without a framework would."""
        asked = tool_call(tool, arguments)
        async with self._gateway.http_client() as client:
            await client.post(self._server.url, headers=asked.headers, content=asked.body)


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """A run, and what `surefoot show` has to say of it."""

    plays: Callable[[Turn], Awaitable[None]]
    says: Sequence[str]
    """Whatever a reader must find, each in one line of the text once its wrapping is undone."""
    says_not: Sequence[str] = ()
    settings: dict[str, Any] = field(default_factory=dict[str, Any])


async def _quiet(turn: Turn) -> None:
    await turn.call("search", q="W-7712")
    await turn.call("charge", amount=12)


async def _throttled(turn: Turn) -> None:
    turn.script("search", Throttle(1))
    await turn.call("charge", amount=12)
    await turn.call("search", q="W-7712")


async def _throttled_to_the_end(turn: Turn) -> None:
    turn.script("search", Throttle(60))
    await turn.call("search", q="W-7712")


async def _lost(turn: Turn) -> None:
    turn.script("refund", Reset("after-run"))
    await turn.call("search", q="W-7712")
    await turn.call("refund", order="W-7712", amount=12)


async def _lost_and_repeated(turn: Turn) -> None:
    turn.script("search", Reset("before-headers"))
    await turn.call("search", q="W-7712")


async def _rejected(turn: Turn) -> None:
    turn.script("search", Status(401))
    await turn.call("search", q="W-7712")


async def _failing(turn: Turn) -> None:
    turn.script("charge", Status(503))
    await turn.call("charge", amount=12)


async def _cut(turn: Turn) -> None:
    turn.script("refund", SseCut())
    await turn.call("refund", order="W-7712", amount=12)


async def _again(turn: Turn) -> None:
    turn.script("refund", Reset("after-run"))
    for _ in range(2):
        await turn.call("refund", order="W-7712", amount=12)


async def _left(turn: Turn) -> None:
    turn.script("search", Throttle(0))
    turn.script("charge", Slow(30))
    await turn.call("search", q="W-7712")
    with anyio.move_on_after(0.3):
        await turn.call("charge", amount=12)


_GENERATIONS: Final = count(1)


async def _vault(_asked: CredentialRequest) -> Bearer:
    """Whoever is asked again hands out another."""
    return Bearer(f"{TOKEN}-{next(_GENERATIONS)}")


BY_POLICY: Final = (
    "repeat permitted by the default policy, ASSUMING that the server refused it before it ran"
)
BY_POLICY_TOO: Final = (
    "repeat permitted by the default policy, ASSUMING that the server rejected the credential "
    "before it ran"
)
BY_APP: Final = "repeat permitted by the app's own declaration"
NOTHING_MAY: Final = "no call may have run without a result"

TEN_RUNS: Final[dict[str, Told]] = {
    "nothing happened": Told(
        plays=_quiet,
        says=["2 calls", "0 throttled;", NOTHING_MAY],
        says_not=["of it waiting", "repeat permitted"],
    ),
    "throttled, then answered": Told(
        plays=_throttled,
        says=["1 throttled (search);", "waited 1.00 s in all", BY_POLICY, NOTHING_MAY],
    ),
    "throttled, on the app's word": Told(
        plays=_throttled,
        settings={"replay": DECLARED},
        says=["1 throttled (search);", "waited 1.00 s in all", BY_APP, NOTHING_MAY],
        says_not=["ASSUMING"],
    ),
    "throttled to the end": Told(
        plays=_throttled_to_the_end,
        says=[
            "1 throttled (search);",
            "given up, refused 429: a longer wait would pass the budget",
            "the server asked for 60.00 s",
            NOTHING_MAY,
        ],
        says_not=["waited 60", "repeat permitted"],
    ),
    "an answer was lost": Told(
        plays=_lost,
        settings={"replay": DECLARED},
        says=[
            "given up, no answer: nobody permitted a repeat",
            "MAY HAVE RUN without a result: refund",
        ],
        says_not=["repeat permitted"],
    ),
    "an answer was lost, and the app permits a repeat": Told(
        plays=_lost_and_repeated,
        settings={"replay": DECLARED},
        says=["no answer (", BY_APP, "0 throttled;", NOTHING_MAY],
    ),
    "a credential was rejected": Told(
        plays=_rejected,
        settings={"credentials": _vault},
        says=[
            "answered 401",
            BY_POLICY_TOO,
            "sent again at once",
            "0 throttled;",
            NOTHING_MAY,
        ],
    ),
    "a failure": Told(
        plays=_failing,
        says=["answered 503", "0 throttled;", "MAY HAVE RUN without a result: charge"],
    ),
    "a stream was cut": Told(
        plays=_cut,
        says=["the stream ended before the reply", "MAY HAVE RUN without a result: refund"],
    ),
    "a call was made again": Told(
        plays=_again,
        settings={"replay": DECLARED},
        says=["an identical earlier call may have run", "MAY HAVE RUN without a result: refund"],
    ),
    "a caller left": Told(
        plays=_left,
        says=[
            "1 throttled (search);",
            BY_POLICY,
            "cut off: the caller cancelled it",
            "MAY HAVE RUN without a result: charge",
        ],
    ),
}


async def recorded(name: str, folder: Path) -> Path:
    """Record one of the runs; returns its file."""
    told = TEN_RUNS[name]
    path = folder / "run.jsonl"
    with FaultyGateway() as server:
        gateway = Gateway(server.url, name="billing", retry=QUICK, **told.settings)
        with record(path, name=name):
            await told.plays(Turn(gateway, server))
    return path
