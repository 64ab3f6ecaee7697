"""The law of this file: a request is let in by the platform first, then by a script, then served.

Three surfaces at one origin: a runtime, a gateway and the identity service. What the platform
refuses uses up no step.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Final, Literal

from surefoot.testing._agentcore_gateway import GatewayService
from surefoot.testing._agentcore_gateway_rows import GATEWAY_ROWS
from surefoot.testing._agentcore_identity import IdentityService
from surefoot.testing._agentcore_identity_rows import OPERATIONS
from surefoot.testing._agentcore_rows import AgentCoreRow, request_id
from surefoot.testing._agentcore_runtime import RuntimeService
from surefoot.testing._agentcore_runtime_rows import RUNTIME_ROWS
from surefoot.testing._agentcore_sigv4 import ALGORITHM, read_authorization
from surefoot.testing._agentcore_verifier import (
    SignatureFault,
    SignatureRefusedError,
    SigV4Verifier,
    VerifiedSignature,
)
from surefoot.testing._answers import Answer
from surefoot.testing._eras import Service, Session
from surefoot.testing._limits import TokenMint
from surefoot.testing._request import Received, Reply
from surefoot.testing._scripts import Scripts
from surefoot.testing._serving import Guards, Serving

if TYPE_CHECKING:
    from surefoot.testing._agentcore_hop import RewritingHop
    from surefoot.testing._exchange import Exchange
    from surefoot.testing._journal import Journal
    from surefoot.testing._link import Link
    from surefoot.testing._request import Kind
    from surefoot.testing._steps import Step

__all__ = ["AgentCoreScripts", "AgentCoreService", "AgentCoreServing", "Auth", "Door", "surface_of"]

Auth = Literal["sigv4", "bearer", "none"]
Surface = Literal["runtime", "gateway", "identity"]

_PATHS: Final[Mapping[str, str]] = {one.path: one.name for one in OPERATIONS.values()}
_GATEWAY_PATH: Final = "/mcp"
_METADATA: Final = "/.well-known/oauth-protected-resource"

_FAULT_ROWS: Final[Mapping[SignatureFault, str]] = {
    "missing": "missing-token",
    "not-sigv4": "other-auth",
    "malformed": "incomplete-signature",
    "unknown-key": "unrecognized-client",
    "wrong-token": "unrecognized-client",
    "expired-token": "expired-token",
    "too-old": "signature-expired",
    "too-new": "signature-not-yet",
}
"""The rows of faults that AWS words on their own; any other is `bad-signature`."""


class Door:
    """Who is let in, by what they carry."""

    def __init__(
        self,
        auth: Auth,
        *,
        verifier: SigV4Verifier,
        mint: TokenMint,
        now: Callable[[], datetime],
    ) -> None:
        self.signatures: list[VerifiedSignature] = []
        self.faults: list[SignatureFault] = []
        self.auth: Auth = auth
        self._verifier = verifier
        self._mint = mint
        self._now = now

    def refusal(self, received: Received, surface: str) -> AgentCoreRow | None:
        """The row for a request that is not let in."""
        if self.auth == "none":
            return None
        if self.auth == "bearer" and surface != "identity":
            return self._without_bearer(received, surface)
        try:
            made = self._verifier.verify(
                received.http_method,
                received.target,
                received.headers,
                received.body,
                now=self._now(),
            )
        except SignatureRefusedError as error:
            self.faults.append(error.fault)
            return RUNTIME_ROWS[_FAULT_ROWS.get(error.fault, "bad-signature")]
        self.signatures.append(made)
        return None

    def principal(self, received: Received) -> str:
        """Whose request it is: the access key id, or the whole Authorization line."""
        text = received.header("authorization") or ""
        asked = read_authorization(text)
        return text if asked is None else asked.access_key_id

    def _without_bearer(self, received: Received, surface: str) -> AgentCoreRow | None:
        scheme, _, token = (received.header("authorization") or "").partition(" ")
        if scheme == ALGORITHM:
            return RUNTIME_ROWS["other-auth"]
        if scheme.lower() == "bearer" and self._mint.accepts(token.strip()):
            return None
        if surface == "gateway":
            return GATEWAY_ROWS["gateway-no-bearer"]
        return RUNTIME_ROWS["no-bearer"]


class AgentCoreScripts(Scripts):
    """Scripts that know the operations of the identity service, too."""

    def take(self, received: Received) -> Step | None:
        """The step for a request, used up by this; `None` where nothing is declared for it."""
        if received.kind != "token":
            return super().take(received)
        with self._lock:
            script = self._scripts.get(received.method or "")
            return None if script is None else script.take()

    def _kind(self, key: object) -> Kind:
        return "token" if key in OPERATIONS else super()._kind(key)


class AgentCoreService(Service):
    """The three services behind one front."""

    def __init__(
        self,
        runtime: RuntimeService,
        gateway: GatewayService,
        identity: IdentityService,
        principal: Callable[[Received], str],
    ) -> None:
        super().__init__({}, ())
        self.runtime = runtime
        self.gateway = gateway
        self._identity = identity
        self._principal = principal
        runtime.executions = gateway.executions = self.executions
        runtime.replays = gateway.replays = self.replays

    def refusal(self, received: Received, surface: str) -> AgentCoreRow | None:
        """What the platform answers in the place of the servers behind it."""
        match surface:
            case "runtime":
                return self.runtime.refusal(received)
            case "gateway":
                return self.gateway.refusal(received, self._principal(received))
            case _:
                return None

    async def run(self, exchange: Exchange) -> Reply:
        """Do what a request asks, at the surface that it was sent to."""
        received = exchange.received
        match surface_of(received):
            case "identity":
                return self._identity.answer(received)
            case "gateway":
                return await self.gateway.run_for(exchange, self._principal(received))
            case _:
                return await self.runtime.run(exchange)

    def session_of(self, received: Received) -> Session | None:
        """The live session that a request names, or `None`."""
        at = self.gateway if surface_of(received) == "gateway" else self.runtime
        return at.session_of(received)

    def forget_sessions(self) -> None:
        """End every session, as a restart would."""
        self.runtime.forget_sessions()
        self.gateway.forget_sessions()

    def forget(self, name: str | None) -> None:
        """End one session, where it is known."""
        self.runtime.forget(name)
        self.gateway.forget(name)


class AgentCoreServing(Serving):
    """The thread of the stand-in."""

    def __init__(
        self,
        *,
        streamed: bool,
        front: Callable[[], AgentCoreService],
        journal: Journal,
        scripts: AgentCoreScripts,
        door: Door,
        hop: RewritingHop | None,
    ) -> None:
        super().__init__(
            path=_GATEWAY_PATH,
            streamed=streamed,
            service=front,
            journal=journal,
            scripts=scripts,
            guards=Guards(None, None, None, None),
        )
        self._front = front
        self._steps = scripts
        self._door = door
        self._hop = hop

    async def _answer(self, link: Link, received: Received) -> None:
        name = _PATHS.get(received.path)
        if name is not None and received.http_method == "POST":
            received = replace(received, kind="token", method=name, rpc_id=None)
        await super()._answer(link, received)

    async def _play(self, exchange: Exchange) -> None:
        if self._hop is not None:
            passed = self._hop.rewrite(exchange.received.headers)
            exchange.received = replace(exchange.received, headers=passed)
        received = exchange.received
        if self._door.auth == "bearer" and received.path.endswith(_METADATA):
            await exchange.send_reply(Reply(message=self._described(received.path)))
            return
        surface = surface_of(received)
        if surface is None:
            await exchange.send(404, (request_id(),), b"")
            return
        refused = self._door.refusal(received, surface) or self._front().refusal(received, surface)
        step = refused or self._steps.take(received)
        self.journal.update(exchange.number, step=step)
        await (step or Answer()).play(exchange)

    def _described(self, path: str) -> dict[str, object]:
        """What an OAuth client looks for below a protected resource (RFC 9728)."""
        resource = path.removesuffix(_METADATA) or _GATEWAY_PATH
        return {
            "resource": self._origin + resource,
            "authorization_servers": ["https://issuer.example"],
        }


def surface_of(received: Received) -> Surface | None:
    """Which service a request is for."""
    path = received.path
    if path in _PATHS:
        return "identity" if received.http_method == "POST" else None
    if path == _GATEWAY_PATH:
        return "gateway"
    return "runtime" if path.startswith("/runtimes/") else None
