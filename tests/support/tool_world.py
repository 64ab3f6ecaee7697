"""The law of this file: a server that is honest counts, and a model says what it may be asked.

Everything happens on one loop whose time is a number, so that a script decides each step: when a
request is answered and with what, who leaves, how time passes. The model beside it is written from
the rules and knows nothing of the fence: a call that may have run stands until it is settled, and
no identical one may reach the server meanwhile (B3); a request runs as often as it may (R13, R24).
"""

from __future__ import annotations

import asyncio
import contextvars
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any, Final, Literal

from support.sessions import FAMILY
from support.told_loop import Loop, LoopClock
from support.tool_rows import ADAPTER, FAULTS, RULES, Fault, Rows
from surefoot import Bearer, Gateway, Replay, Retry, record
from surefoot.credentials import CredentialRequest
from surefoot.errors import CredentialError
from surefoot.gateway import with_rules
from surefoot.policy import ReplayPolicy

__all__ = ["Asked", "Setting", "World"]

URL: Final = "http://127.0.0.1:1/mcp"
PADDING: Final = " " * 4096
_MOST_KEPT: Final = 2048
_SESSION: Final = "session-1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """What a script begins with."""

    rule: str
    policy: ReplayPolicy
    vault: Literal["up", "down"] | None = None
    attempts: int = 3
    deadline: float | None = None


@dataclass(eq=False, kw_only=True)
class Asked:
    """One request of a caller."""

    number: int
    arguments: Mapping[str, Any]
    principal: str | None
    run: int | None
    state: str | None = None
    long: bool = False
    """Its body cannot be sent again."""
    arrived: list[str] = field(default_factory=list[str])
    """What each of its attempts met at the server."""
    ran: int = 0
    stood: bool = False
    """An identical call stood when it was made."""
    told: Any = None
    """The JSON-RPC answer that its caller read."""
    status: int = 0
    over: bool = False
    left: bool = False
    """Its caller was cancelled."""
    task: Any = None
    raised: BaseException | None = None

    @property
    def facts(self) -> Mapping[str, Any]:
        """`surefoot/outcome`, where its caller was told something by us."""
        answer: Any = self.told or {}
        result: Any = answer.get("result", {})
        error: Any = answer.get("error", {})
        told: Any = result.get("_meta") or error.get("data") or {}
        return told.get("surefoot/outcome", {})

    @property
    def has_result(self) -> bool:
        """The server's own result reached its caller."""
        return self.told is not None and "result" in self.told and not self.facts

    @property
    def next_state(self) -> str | None:
        """The state that its next round would carry."""
        answer: Any = self.told or {}
        result: Any = answer.get("result", {})
        return result.get("requestState")


class _Sink:
    """Keeps the events of a script."""

    never_stalls = True

    def __init__(self) -> None:
        self.records: list[dict[str, Any]] = []

    def emit(self, event: Mapping[str, Any]) -> None:
        """Keep one."""
        if event["type"] == "tool.request_attempts":
            self.records.append(dict(event))


class World:
    """One script: callers, the whole stack, and a server that the script answers for.

    Args:
        loop: Where everything happens.
        setting: What the script begins with.
        rows: Counts the rows of the tables that were met.
    """

    proves_not_sent = True

    def __init__(self, loop: Loop, setting: Setting, rows: Rows) -> None:
        self.loop = loop
        self.setting = setting
        self._rows = rows
        self._sink = _Sink()
        self.asked: list[Asked] = []
        self.pending: list[tuple[Asked, asyncio.Future[Fault]]] = []
        self._vended = 0
        self._standing: dict[object, Asked] = {}
        self._open_runs: dict[object, Asked] = {}
        self._wrong: list[str] = []
        rule = RULES[setting.rule].rule(self._find_out)
        gateway = Gateway(
            URL,
            credentials=self._vend if setting.vault else None,
            replay=Replay(policy=setting.policy, tools={} if rule is None else {"pay": rule}),
            retry=Retry(
                max_attempts=setting.attempts, max_elapsed=setting.deadline, spread=0, jitter="none"
            ),
            clock=LoopClock(loop),
            draw=lambda: 0.5,
            evidence=self._sink,
        )
        self._gateway = with_rules(gateway, ADAPTER)
        principals = {None: self._gateway, "ada": self._gateway.acting_for(user_id="ada")}
        self._clients = {name: self._client(one) for name, one in principals.items()}
        self._runs: list[contextvars.Context] = []
        for _ in range(2):
            context = contextvars.copy_context()
            context.run(record(self._sink).__enter__)
            self._runs.append(context)

    def _client(self, gateway: Gateway) -> Any:
        client: Any = gateway.protect(FAMILY.AsyncClient(transport=self))
        client._transport._opener._max_body = _MOST_KEPT
        return client

    # ---- what the script does

    def ask(self, amount: int, *, keyed: bool, principal: str | None, run: int | None,
            state: str | None = None, long: bool = False) -> Asked:  # fmt: skip
        """A caller calls; whether it is a repeat of a framework's, only the arguments say."""
        arguments = {"amount": amount, "key": "k-1"} if keyed else {"amount": amount}
        one = Asked(number=len(self.asked) + 1, arguments=arguments, principal=principal, run=run,
                    state=state, long=long)  # fmt: skip
        one.stood = self._key(one) in self._standing
        self.asked.append(one)
        context = contextvars.copy_context() if run is None else self._runs[run]
        one.task = self.loop.create_task(self._call(one), context=context)
        self._go()
        return one

    def answer(self, index: int, name: str) -> None:
        """The server answers one of the requests that it has."""
        _, waiting = self.pending.pop(index % len(self.pending))
        if not waiting.done():
            waiting.set_result(FAULTS[name])
        self._go()

    def leave(self, one: Asked) -> None:
        """A caller is cancelled."""
        one.left = True
        one.task.cancel()
        self._go()
        assert one.over

    def cancel_by_message(self, one: Asked) -> None:
        """A caller of the handshake era says that it no longer listens."""
        params = {"requestId": one.number}
        message = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}
        client = self._clients[one.principal]
        self.loop.create_task(client.post(URL, json=message, headers={"mcp-session-id": _SESSION}))
        self._go()

    def pass_time(self, seconds: float) -> None:
        """Time goes by."""
        self.loop.now += seconds
        self._go()

    def settle(self, one: Asked) -> None:
        """The app found out, and says so."""
        call_id = one.facts.get("call_id")
        key = self._key(one)
        if call_id is None or self._standing.get(key) is not one:
            return
        assert self._gateway.settle(call_id, ran=key in self._open_runs)
        self._settled(key)

    def over(self) -> list[Asked]:
        """What was asked and has ended, for somebody who still listens."""
        return [one for one in self.asked if one.over and not one.left]

    def close(self) -> None:
        """Everybody leaves; then the books are compared."""
        if self._wrong:
            for task in asyncio.all_tasks(self.loop):
                task.cancel()
            self.loop.settle()
            return
        for one in self.asked:
            if not one.over:
                self.leave(one)
        for client in self._clients.values():
            self.loop.create_task(client.aclose())
        self._go()
        assert not asyncio.all_tasks(self.loop)
        keyed = {_digest(one.arguments): "key" in one.arguments for one in self.asked}
        for found in self._sink.records:
            if found["tool"] == "pay":
                self._rows.met(found, self.setting, keyed=keyed[found["request"]["sha256"]])

    def _go(self) -> None:
        """Let things happen; what is wrong is the script's affair, and not that of one task."""
        self.loop.settle()
        assert not self._wrong, self._wrong

    def _hold(self, true: object, otherwise: str) -> None:
        if not true:
            self._wrong.append(otherwise)

    # ---- what happens then

    async def _call(self, one: Asked) -> None:
        params: dict[str, Any] = {"name": "pay", "arguments": one.arguments}
        if one.state is not None:
            params |= {"requestState": one.state, "inputResponses": {}}
        message = {"jsonrpc": "2.0", "id": one.number, "method": "tools/call", "params": params}
        text = json.dumps(message) + (PADDING if one.long else "")
        headers = {"content-type": "application/json", "mcp-session-id": _SESSION}
        try:
            response = await self._clients[one.principal].post(
                URL, content=text.encode(), headers=headers
            )
            one.status = response.status_code
            one.told = _read(response)
        except BaseException as raised:
            one.raised = raised
            cancelled = isinstance(raised, asyncio.CancelledError)
            self._hold(one.left and cancelled, f"raised {raised!r}")
            if cancelled:
                raise
        finally:
            one.over = True
            self._ended(one)

    async def handle_async_request(self, request: Any) -> Any:
        """A request arrives; it is answered when the script says so."""
        message: Any = json.loads(await request.aread())
        if message["method"] == "notifications/cancelled":
            return FAMILY.Response(202)
        number: int = message["id"]
        one = self.asked[number - 1]
        self._arrives(one)
        waiting: asyncio.Future[Fault] = self.loop.create_future()
        self.pending.append((one, waiting))
        one.arrived.append("held")
        fault = await waiting
        one.arrived[-1] = fault.name
        if fault.runs:
            self._runs_now(one)
        return fault.play(request, number)

    async def aclose(self) -> None:
        """Nothing is open."""

    async def _vend(self, request: CredentialRequest) -> Bearer:
        del request
        self._vended += 1
        if self.setting.vault == "down" and self._vended > 1:
            raise CredentialError("the vault is down")
        return Bearer(f"token-of-the-vault-{self._vended}")

    async def _find_out(self, tool: str, arguments: Mapping[str, Any]) -> bool:
        """What an app that can look would say; what it says settles the call."""
        del tool
        for key, one in self._standing.items():
            if one.over and one.arguments == arguments:
                ran = key in self._open_runs
                self._settled(key)
                return ran
        self._hold(None, "asked about a call that does not stand")
        return False

    # ---- the model

    def _fenced(self, one: Asked) -> bool:
        """Whether identical calls must keep away from this one (B3)."""
        return RULES[self.setting.rule].fenced(self.setting.policy, "key" in one.arguments)

    def _key(self, one: Asked) -> object:
        """What makes two calls identical."""
        changing = RULES[self.setting.rule].changing
        return (None if changing else one.run, one.principal, _digest(one.arguments))

    def _arrives(self, one: Asked) -> None:
        self._hold(not one.over, "sent for a caller who has left")
        within = len(one.arrived) < self.setting.attempts
        self._hold(within, "sent more often than the budget allows")
        if self._fenced(one):
            key = self._key(one)
            alone = self._standing.setdefault(key, one) is one
            self._hold(alone, "sent beside one that stands")

    def _runs_now(self, one: Asked) -> None:
        one.ran += 1
        may = self.setting.attempts
        if not RULES[self.setting.rule].on_network("key" in one.arguments):
            may = 1
        self._hold(one.ran <= may, "one request ran more often than it may")
        if self._fenced(one):
            key = self._key(one)
            self._hold(key not in self._open_runs, "ran again, and nobody knows of the first time")
            self._open_runs[key] = one

    def _ended(self, one: Asked) -> None:
        """What its caller knows now, and what stands from now on."""
        key, kind = self._key(one), one.facts.get("kind")
        if one.has_result and self._open_runs.get(key) is one:
            del self._open_runs[key]
        if self._standing.get(key) is one and self._is_sure(one):
            self._hold(key not in self._open_runs, "let go of, and it ran")
            del self._standing[key]
        if one.left:
            return
        if kind in {"fenced", "in-flight"}:
            self._hold(one.stood or key in self._standing, "stopped, and nothing stood")
            self._hold(not one.arrived, "stopped, and sent")
        elif one.stood and self._fenced(one):
            self._hold(kind == "already-ran", f"not stopped, and told {kind}")
        if kind in {"not-sent", "not-sent-in-time"}:
            left = set(one.arrived) - {"never-sent", "307", "401"}
            self._hold(not left, f"told that it was not sent, and met {left}")
        if one.facts and not one.facts["may_have_run"]:
            self._hold(one.ran == 0, f"told {kind}, as if it had not run")

    def _is_sure(self, one: Asked) -> bool:
        """Whether it ended in one of the ways that leave nothing open (B3)."""
        if one.has_result:
            return True
        kind, last = one.facts.get("kind"), one.arrived[-1]
        if last == "307":
            # What was to follow the redirect never left: no credential, or no time.
            return kind in {"credentials-failed", "not-sent", "not-sent-in-time"}
        if last == "never-sent":
            return True
        return not one.left and kind != "deadline" and last in FAULTS and FAULTS[last].sure

    def _settled(self, key: object) -> None:
        del self._standing[key]
        self._open_runs.pop(key, None)
        for one in self.asked:
            one.stood = one.stood and self._key(one) != key


def _digest(arguments: Mapping[str, Any]) -> str:
    text = json.dumps(arguments, sort_keys=True, separators=(",", ":"))
    return sha256(text.encode()).hexdigest()


def _read(response: Any) -> dict[str, Any]:
    """The JSON-RPC answer, whole or as an event."""
    text: str = response.text
    if response.headers["content-type"] == "text/event-stream":
        lines = [line for line in text.splitlines() if line.startswith("data: ")]
        text = lines[-1].removeprefix("data: ")
    found: dict[str, Any] = json.loads(text)
    return found
