"""The law of this file: AgentCore Runtime in front of a sound MCP server: address, session, window.

The platform pins each session to one machine. While that machine starts, whatever else names the
session is refused as busy, before it reaches the server. Sources: the AWS developer guide (MCP
protocol contract, runtime sessions) and the service model of `bedrock-agentcore`.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Final
from urllib.parse import parse_qs, unquote

from surefoot.testing._agentcore_rows import AGENTCORE_CANARY, AgentCoreRow, request_id
from surefoot.testing._agentcore_runtime_rows import RUNTIME_ROWS
from surefoot.testing._eras import Service, Session
from surefoot.testing._request import Received, Reply
from surefoot.testing._wire import header_line

if TYPE_CHECKING:
    from surefoot.testing._exchange import Exchange
    from surefoot.testing._tools import Tool

__all__ = ["RuntimeAddress", "RuntimeService", "lend_session", "without_session"]

_INVOCATIONS: Final = re.compile(r"/runtimes/(?P<runtime>[^/]+)/invocations")
_SESSION_HEADER: Final = "x-amzn-bedrock-agentcore-runtime-session-id"
_ADDRESSED: Final = header_line(
    "x-amzn-bedrock-agentcore-runtime-session-endpoint-url",
    f"https://{AGENTCORE_CANARY}.session.bedrock-agentcore.us-west-2.amazonaws.com",
)
"""An address of the session itself, which AWS may send; no client should show or follow it."""
_PARTITIONS: Final = (("cn-", "aws-cn"), ("us-gov-", "aws-us-gov"))
_NOT_SPOKEN: Final[Mapping[str, object]] = {
    "jsonrpc": "2.0",
    "id": "",
    "result": None,
    "error": {"code": -32600, "message": "HTTP method not supported."},
}


class RuntimeAddress:
    """The ways in which one runtime is named in a URL."""

    def __init__(
        self, *, region: str, account: str, agent: str, qualifiers: frozenset[str]
    ) -> None:
        partition = next((name for begins, name in _PARTITIONS if region.startswith(begins)), "aws")
        self.arn = f"arn:{partition}:bedrock-agentcore:{region}:{account}:runtime/{agent}"
        self.agent = agent
        self.account = account
        self._qualifiers = qualifiers

    def refusal(self, received: Received) -> AgentCoreRow | None:
        """The row that answers a request for something else; `None` where it is for this one."""
        found = _INVOCATIONS.fullmatch(received.path)
        if found is None:
            return RUNTIME_ROWS["not-found-api"]
        query = parse_qs(received.target.partition("?")[2], keep_blank_values=True)
        if query.get("qualifier", ["DEFAULT"])[0] not in self._qualifiers:
            return RUNTIME_ROWS["not-found-api"]
        named = unquote(found["runtime"])
        if named == self.arn:
            return None
        account = query.get("accountId", [""])[0]
        if named == self.agent and re.fullmatch(r"[0-9]{12}", account) is None:
            return RUNTIME_ROWS["validation-api"]
        here = (named, account) == (self.agent, self.account)
        return None if here else RUNTIME_ROWS["not-found-api"]


class RuntimeService(Service):
    """A runtime, as its clients see it. Lives in the loop of the stand-in."""

    def __init__(
        self,
        tools: Mapping[str, Tool],
        eras: tuple[str, ...],
        *,
        address: RuntimeAddress,
        provisioning: float,
        busy: AgentCoreRow,
        stateful: bool,
        monotonic: Callable[[], float],
    ) -> None:
        super().__init__(tools, eras)
        self._address = address
        self._provisioning = provisioning
        self._busy = busy
        self._stateful = stateful
        self._monotonic = monotonic
        self._ready_at: dict[str, float] = {}
        """When the machine of a session is up; `""` stands for requests that name no session."""

    def refusal(self, received: Received) -> AgentCoreRow | None:
        """What the platform answers in the place of the server; `None` lets the request through."""
        if (elsewhere := self._address.refusal(received)) is not None:
            return elsewhere
        if received.http_method != "POST":
            return None
        accept = (received.header("accept") or "").lower()
        if "application/json" not in accept or "text/event-stream" not in accept:
            return RUNTIME_ROWS["not-acceptable"]
        own = received.header(_SESSION_HEADER)
        if own is not None and not 33 <= len(own) <= 256:
            return RUNTIME_ROWS["validation-api"]
        name = received.header("mcp-session-id")
        if name is not None and self._stateful and name not in self.sessions:
            return RUNTIME_ROWS["session-not-found"]
        if received.method == "initialize" and name is None:
            return None  # a session of its own begins
        return None if self._is_up(name or "") else self._busy

    async def run(self, exchange: Exchange) -> Reply:
        """Let the server answer, and name the session on whatever it says."""
        received = exchange.received
        if received.http_method != "POST":
            return Reply(status=405, message=_NOT_SPOKEN, lines=(request_id(),))
        name = lend_session(self, exchange)
        reply = await super().run(exchange)
        lines = [line for line in reply.lines if line[0] != b"mcp-session-id"]
        opened = next((value for key, value in reply.lines if key == b"mcp-session-id"), None)
        if opened is not None:
            name = opened.decode()
            self._is_up(name)
        lines += [(b"mcp-session-id", name.encode("latin-1")), _ADDRESSED, request_id()]
        return replace(reply, lines=tuple(lines))

    def stop(self) -> None:
        """End every machine: a stateful server forgets, a stateless one starts anew when asked."""
        self._ready_at.clear()
        if self._stateful:
            self.forget_sessions()

    def _is_up(self, name: str) -> bool:
        """Whether the machine of a session is up; the request that has it started comes through."""
        now = self._monotonic()
        if name not in self._ready_at:
            self._ready_at[name] = now + self._provisioning
            return True
        return now >= self._ready_at[name]


def lend_session(service: Service, exchange: Exchange) -> str:
    """Give a request of the handshake era the session that a stateless server does not ask for.

    Returns the session's name; the request is answered as if it had named it.
    """
    received = exchange.received
    name = received.header("mcp-session-id")
    if name is not None and (name in service.sessions or received.modern):
        return name
    lent = name or str(uuid.uuid4())
    if received.modern or received.method == "initialize":
        return lent
    service.sessions[lent] = Session()
    if name is None:
        line = (b"mcp-session-id", lent.encode("latin-1"))
        exchange.received = replace(received, headers=(*received.headers, line))
    return lent


def without_session(reply: Reply) -> Reply:
    """An answer that names no session."""
    return replace(reply, lines=tuple(line for line in reply.lines if line[0] != b"mcp-session-id"))
