"""B2, B3, R13, R20, R24, D3, D17. Whatever happens, a tool runs no more often than it may.

Over a server in memory that counts executions: random declarations, faults, repeats of a framework,
concurrent calls and cancellations, on a loop that takes its tasks in an order of its own. The rules
themselves, row by row, are held by the state machine beside this file.
"""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

import anyio
import anyio.lowlevel
import pytest

from support.sessions import FAMILY
from surefoot import Gateway, Replay, Retry, ToolRule
from surefoot.policy import ReplayPolicy
from surefoot.testing import RecordingSink

pytestmark = pytest.mark.unmeasured

SCRIPTS: Final = 1_000
URL: Final = "http://127.0.0.1:1/mcp"
FAULTS: Final = (
    "ok", "ok", "429", "429", "lost", "lost-ran", "503-ran", "unreadable-ran", "never-sent", "400",
)  # fmt: skip
RULES: Final = {
    "none": None,
    "throttle": ToolRule(repeat_on={"throttle"}),
    "network": ToolRule(repeat_on={"network"}),
    "changes": ToolRule(makes_changes=True),
    "keyed": ToolRule(
        makes_changes=True, idempotency_key="arguments.key", repeat_on={"throttle", "network"}
    ),
}


class _Time:
    """A clock that stands still but for its sleeps."""

    def __init__(self) -> None:
        self.t = 0.0

    def monotonic(self) -> float:
        return self.t

    def now(self) -> datetime:
        return datetime(2026, 1, 1, tzinfo=UTC)

    async def sleep(self, seconds: float) -> None:
        await anyio.lowlevel.checkpoint()
        self.t += seconds


@dataclass
class _Server:
    """Answers as its chance says; counts executions by request and by what was asked."""

    draw: random.Random
    ran: Counter[object] = field(default_factory=Counter[object])
    by_arguments: Counter[str] = field(default_factory=Counter[str])
    proves_not_sent: bool = True

    async def handle_async_request(self, request: Any) -> Any:
        message: Any = json.loads(await request.aread())
        fault = self.draw.choice(FAULTS)
        for _ in range(self.draw.randrange(3)):
            await anyio.lowlevel.checkpoint()
        if fault == "never-sent":
            raise FAMILY.ConnectError("refused", request=request)
        if fault in {"ok", "lost-ran", "503-ran", "unreadable-ran"}:
            self.ran[message["id"]] += 1
            self.by_arguments[json.dumps(message["params"]["arguments"])] += 1
        for _ in range(self.draw.randrange(3)):
            await anyio.lowlevel.checkpoint()
        if fault.startswith("lost"):
            raise FAMILY.ReadError("reset", request=request)
        result: dict[str, Any] = {"content": [], "isError": False}
        body = {"jsonrpc": "2.0", "id": message["id"], "result": result}
        status = {"429": 429, "503-ran": 503, "400": 400}.get(fault, 200)
        text = b"{" if fault == "unreadable-ran" else json.dumps(body).encode()
        return FAMILY.Response(
            status,
            headers={"content-type": "application/json"},
            content=text if status == 200 else b"",
        )

    async def aclose(self) -> None:
        """Nothing is open."""


@dataclass
class _World:
    """One script: a declaration, a server, and callers who do not give up easily."""

    seed: int
    policy: ReplayPolicy
    rule: str
    sink: RecordingSink
    told: Counter[str] = field(default_factory=Counter[str])
    sent: int = 0

    async def play(self) -> _Server:
        draw = random.Random(self.seed)
        server = _Server(draw)
        rule = RULES[self.rule]
        gateway = Gateway(
            URL,
            replay=Replay(policy=self.policy, tools={} if rule is None else {"pay": rule}),
            retry=Retry(max_attempts=3, base_delay=0.01),
            clock=_Time(),
            draw=draw.random,
            evidence=self.sink,
        )
        client = gateway.protect(FAMILY.AsyncClient(transport=server))
        async with client, anyio.create_task_group() as group:
            for _ in range(draw.randrange(1, 4)):
                group.start_soon(self._caller, client, draw)
        return server

    async def _caller(self, client: Any, draw: random.Random) -> None:
        """Make one call, and again after every failure, as frameworks do; or leave in between."""
        arguments = {"amount": draw.randrange(2)}
        if self.rule == "keyed":
            arguments["key"] = draw.randrange(1, 3)
        patience = draw.choice([None, None, None, draw.randrange(8)])
        for _ in range(3):
            with anyio.CancelScope() as scope:
                async with anyio.create_task_group() as group:
                    if patience is not None:
                        group.start_soon(_leave_after, patience, scope.cancel)
                    answer = await self._call(client, arguments)
                    group.cancel_scope.cancel()
                    if answer:
                        self.told[json.dumps(arguments)] += 1
                        return

    async def _call(self, client: Any, arguments: dict[str, int]) -> bool:
        self.sent += 1
        params = {"name": "pay", "arguments": arguments}
        message = {"jsonrpc": "2.0", "id": self.sent, "method": "tools/call", "params": params}
        response = await client.post(URL, json=message)
        result: Any = response.json()["result"]
        return not result["isError"]


async def _leave_after(checkpoints: int, leave: Callable[[], None]) -> None:
    for _ in range(checkpoints):
        await anyio.lowlevel.checkpoint()
    leave()


@pytest.mark.timeout(300)  # a thousand scripts, on a machine that may be doing other things
@pytest.mark.parametrize("anyio_backend", ["trio"])
async def test_no_script_runs_a_tool_more_often_than_it_may() -> None:
    """B3, R13. And each kind of end is met under each declaration and policy."""
    met: set[tuple[str, str, str, str]] = set()
    most = Counter[str]()
    policies: tuple[ReplayPolicy, ...] = ("assume-refused", "app-authorized")
    for seed in range(SCRIPTS):
        rule, policy = list(RULES)[seed % len(RULES)], policies[seed // len(RULES) % 2]
        world = _World(seed, policy, rule, RecordingSink())
        server = await world.play()
        fenced = rule == "changes" or (rule, policy) == ("none", "app-authorized")
        if fenced:
            for asked, ran in server.by_arguments.items():
                assert ran <= world.told[asked] + 1, (seed, asked)
        # One request runs once, unless the app said that it may be repeated after a lost answer.
        allowed = 3 if rule in {"network", "keyed"} else 1
        assert all(ran <= allowed for ran in server.ran.values()), seed
        most[rule] = max(most[rule], *server.ran.values(), 0)
        for record in world.sink.of("tool.request_attempts"):
            attempts: Any = record["attempts"]
            for attempt in attempts:
                grant = attempt.get("permission")
                by = grant["by"] if grant else "nobody"
                met.add((rule, policy, attempt["outcome"], by))
            met.add((rule, policy, str(record["ended"]), str(record["why"])))
    # The positive control: what may be repeated after a lost answer was, and ran again.
    assert most["network"] > 1
    assert most["keyed"] > 1
    expected = {
        *((rule, policy, "not_sent", "proof") for rule in RULES for policy in policies),
        *((rule, policy, "cut", "cancelled") for rule in RULES for policy in policies),
        *((rule, policy, "answered", "final-answer") for rule in RULES for policy in policies),
        *(("throttle", policy, "refused", "app") for policy in policies),
        *(
            ("keyed", policy, how, "app")
            for policy in policies
            for how in ("refused", "unanswered")
        ),
        *(("network", policy, "unanswered", "app") for policy in policies),
        *(("changes", policy, "refused", "no-permission") for policy in policies),
        *(("changes", policy, "unanswered", "no-permission") for policy in policies),
        *(("changes", policy, "not_sent", "fenced") for policy in policies),
        *(("none", policy, "unanswered", "no-permission") for policy in policies),
        ("none", "assume-refused", "refused", "policy"),
        ("none", "app-authorized", "refused", "no-permission"),
        ("none", "app-authorized", "not_sent", "fenced"),
        ("network", "app-authorized", "refused", "no-permission"),
    }
    assert expected <= met, expected - met
    assert not any(how == "fenced" for rule, *_, how in met if rule in {"network", "keyed"})
