"""The law of this file: one object, opened with `with`, stands in for AWS Bedrock AgentCore.

What it is made of is in the files beside it; what it shares with `FaultyGateway` is inherited.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

from surefoot.testing._agentcore_gateway import GatewayService, gateway_tools
from surefoot.testing._agentcore_gateway_rows import GATEWAY_ROWS, GATEWAY_THROTTLES
from surefoot.testing._agentcore_hop import RewritingHop
from surefoot.testing._agentcore_identity import IdentityService
from surefoot.testing._agentcore_identity_rows import IDENTITY_ROWS
from surefoot.testing._agentcore_oddities import ODDITIES
from surefoot.testing._agentcore_rows import AGENTCORE_CANARY
from surefoot.testing._agentcore_runtime import RuntimeAddress, RuntimeService
from surefoot.testing._agentcore_runtime_rows import RUNTIME_ROWS
from surefoot.testing._agentcore_serving import (
    AgentCoreScripts,
    AgentCoreService,
    AgentCoreServing,
    Auth,
    Door,
)
from surefoot.testing._agentcore_sigv4 import SigV4Keys
from surefoot.testing._agentcore_verifier import SignatureFault, SigV4Verifier, VerifiedSignature
from surefoot.testing._checks import a_bool, a_number_of_seconds, a_text, one_of
from surefoot.testing._eras import ERAS
from surefoot.testing._gateway import FaultyGateway
from surefoot.testing._limits import ExpiringTokens, TokenMint
from surefoot.testing._steps import Step
from surefoot.transports import SystemClock

if TYPE_CHECKING:
    from surefoot.testing._tools import Tool
    from surefoot.transports import Clock

__all__ = ["AGENTCORE_ROWS", "AgentCoreStandIn"]

AGENTCORE_ROWS: Final[Mapping[str, Step]] = {
    **RUNTIME_ROWS,
    **GATEWAY_ROWS,
    **GATEWAY_THROTTLES,
    **IDENTITY_ROWS,
    **ODDITIES,
}
"""Every answer of AgentCore that `AgentCoreStandIn.script` knows by name."""

_CLOCK: Final = SystemClock()


class AgentCoreStandIn(FaultyGateway):
    """AWS Bedrock AgentCore on loopback: a Runtime, a Gateway, and Identity, at one origin.

    It checks AWS signatures on its own, without botocore; answers soundly, or as the script says;
    counts how often each tool ran, and keeps a journal. Beside what `FaultyGateway` has:

    ```python
    with AgentCoreStandIn(provisioning=12) as stand_in:
        os.environ |= stand_in.keys.environ()
        stand_in.script("refund", "throttle", "bad-signature")  # rows of AGENTCORE_ROWS, or steps
        stand_in.script("GetResourceOauth2Token", "identity-throttle")
        ...  # stand_in.runtime_url, stand_in.gateway_url; boto3 with endpoint_url=stand_in.origin
        assert stand_in.executions("refund") == 0
        assert stand_in.executions("orders___refund") == 0  # the same tool through the gateway
        assert stand_in.signature_faults == ()
    ```

    A script's key is a tool, a method, or an operation of Identity. What the platform refuses (a
    signature, an address, a session that is being provisioned) uses up no step.

    Args:
        tools: as for `FaultyGateway`; the gateway lists each as `{target}___{name}`.
        eras: the protocol eras that the servers behind the platform speak.
        sse: answer MCP requests with an event stream, in the place of a JSON body.
        auth: what runtime and gateway ask for: `"sigv4"`, `"bearer"` (a token that Identity or
            `tokens` gave out), or `"none"`. Identity asks for SigV4 unless it is `"none"`.
        region: the region of the runtime, and of every signature.
        session_token: whether the keys that are given out come with a session token.
        provisioning: seconds for which a session that was just begun is busy; the request that
            begins it is answered. Where no session is named, the first request counts as one.
        busy: the row that says so.
        stateful: whether the server behind the runtime forgets its sessions when it is stopped, and
            answers 404 to one that it does not know.
        gateway_sessions: seconds that a session of the gateway lives; `None` for a gateway without
            sessions, which is AWS's default.
        target: the name of the gateway's target.
        consent_seconds: how long a user has to consent.
        skew: seconds that X-Amz-Date may be off.
        reuse_after: as for `SigV4Verifier`; `0` refuses a signature the second time it comes.
        hop: a proxy in front of it that rewrites header lines.
        clock: time for all of it; with a `FakeClock`, give the same one to the client.

    Raises:
        TypeError: an option has the wrong type.
        ValueError: an option cannot mean anything.

    """

    canary: Final = AGENTCORE_CANARY
    """Stands in every answer of a row that a client must not let through as it is."""

    def __init__(
        self,
        tools: Iterable[Tool] = (),
        *,
        eras: tuple[str, ...] = ERAS,
        sse: bool = False,
        auth: Auth = "sigv4",
        region: str = "us-west-2",
        session_token: bool = True,
        provisioning: float = 0.0,
        busy: str = "busy",
        stateful: bool = False,
        gateway_sessions: float | None = None,
        target: str = "orders",
        consent_seconds: float = 600.0,
        skew: float = 300.0,
        reuse_after: float | None = 1.5,
        hop: RewritingHop | None = None,
        clock: Clock = _CLOCK,
    ) -> None:
        super().__init__(tools, eras=eras, sse=sse, clock=clock.monotonic)
        one_of("AgentCoreStandIn(auth)", auth, ("sigv4", "bearer", "none"))
        one_of("AgentCoreStandIn(busy)", busy, [name for name in RUNTIME_ROWS if "busy" in name])
        if hop is not None and not isinstance(hop, RewritingHop):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError(
                f"AgentCoreStandIn(hop) takes a RewritingHop or None, not {type(hop).__name__}"
            )
        plain = self._offered
        through_gateway = gateway_tools(a_text("AgentCoreStandIn(target)", target), plain)
        self._offered = {**plain, **through_gateway}
        self._with_token = a_bool("AgentCoreStandIn(session_token)", session_token)
        self._known: dict[str, SigV4Keys] = {}
        self._expired: set[str] = set()
        self._keys = self.issue_keys(session_token=session_token)
        self._api_key = f"api-key-{secrets.token_hex(12)}"
        self._address = RuntimeAddress(
            region=a_text("AgentCoreStandIn(region)", region),
            account="123456789012",
            agent="orders-Ab12Cd34Ef",
            qualifiers=frozenset({"DEFAULT"}),
        )
        mint = TokenMint(ExpiringTokens(3600.0), clock.monotonic)
        self._mint = mint
        self._identity = IdentityService(
            mint,
            api_key=self._api_key,
            monotonic=clock.monotonic,
            consent_seconds=a_number_of_seconds(
                "AgentCoreStandIn(consent_seconds)", consent_seconds
            ),
        )
        self._door = Door(
            auth,
            verifier=SigV4Verifier(
                self._known,
                region=region,
                skew=skew,
                reuse_after=reuse_after,
                expired=self._expired,
            ),
            mint=mint,
            now=clock.now,
        )
        self._runtime = RuntimeService(
            plain,
            eras,
            address=self._address,
            provisioning=a_number_of_seconds("AgentCoreStandIn(provisioning)", provisioning),
            busy=RUNTIME_ROWS[busy],
            stateful=a_bool("AgentCoreStandIn(stateful)", stateful),
            monotonic=clock.monotonic,
        )
        front = AgentCoreService(
            self._runtime,
            GatewayService(
                through_gateway,
                eras,
                session_seconds=None
                if gateway_sessions is None
                else a_number_of_seconds("AgentCoreStandIn(gateway_sessions)", gateway_sessions),
                monotonic=clock.monotonic,
            ),
            self._identity,
            self._door.principal,
        )
        self._service = front
        scripts = AgentCoreScripts(self._offered, token_endpoint=False)
        self._scripts = scripts
        self._serving = AgentCoreServing(
            streamed=sse,
            front=lambda: front,
            journal=self._journal,
            scripts=scripts,
            door=self._door,
            hop=hop,
        )

    def __repr__(self) -> str:
        return f"<AgentCoreStandIn {'closed' if self._port is None else self.origin}>"

    @property
    def url(self) -> str:
        """The endpoint's URL: that of the runtime, by its ARN."""
        return self.runtime_url

    @property
    def runtime_arn(self) -> str:
        """The ARN of the runtime."""
        return self._address.arn

    @property
    def runtime_id(self) -> str:
        """The id of the runtime, which is the last part of its ARN."""
        return self._address.agent

    @property
    def account_id(self) -> str:
        """The account that the runtime belongs to."""
        return self._address.account

    @property
    def runtime_url(self) -> str:
        """The URL of the runtime's default endpoint, by ARN."""
        named = quote(self.runtime_arn, safe="")
        return f"{self.origin}/runtimes/{named}/invocations?qualifier=DEFAULT"

    @property
    def runtime_id_url(self) -> str:
        """The same endpoint, by id and account."""
        query = f"qualifier=DEFAULT&accountId={self.account_id}"
        return f"{self.origin}/runtimes/{self.runtime_id}/invocations?{query}"

    @property
    def gateway_url(self) -> str:
        """The URL of the gateway."""
        return f"{self.origin}/mcp"

    @property
    def keys(self) -> SigV4Keys:
        """The keys that were given out first; they are good unless they were expired."""
        return self._keys

    @property
    def api_key(self) -> str:
        """What `GetResourceApiKey` gives out."""
        return self._api_key

    @property
    def signatures(self) -> tuple[VerifiedSignature, ...]:
        """Every signature that was found good, in the order of arrival."""
        return tuple(self._door.signatures)

    @property
    def signature_faults(self) -> tuple[SignatureFault, ...]:
        """Why requests were not let in, in the order of arrival."""
        return tuple(self._door.faults)

    def issue_keys(self, *, session_token: bool | None = None) -> SigV4Keys:
        """Give out other keys, which are good beside those before.

        Args:
            session_token: whether they come with one; `None` is as the stand-in was built.

        """
        with_token = self._with_token if session_token is None else session_token
        keys = SigV4Keys(
            f"{'ASIA' if with_token else 'AKIA'}{secrets.token_hex(8).upper()}",
            secrets.token_hex(20),
            f"session/{secrets.token_hex(24)}+/==" if with_token else None,
        )
        self._known[keys.access_key_id] = keys
        return keys

    def expire_keys(self, keys: SigV4Keys) -> None:
        """Answer these keys with `ExpiredTokenException` from now on."""
        self._expired.add(keys.access_key_id)

    def stop_sessions(self) -> None:
        """Stop the runtime's machines, as after 15 minutes without a request.

        What is asked next starts one anew, and is provisioned again; a stateful server has
        forgotten its sessions.

        Raises:
            RuntimeError: the stand-in is not open.
        """
        self._serving.do(lambda _: self._runtime.stop())

    def settle_consents(self, *, granted: bool = True) -> int:
        """End every consent that is open, as its user and the app would; says how many there were.

        Refused ones are `FAILED` when they are polled.
        """
        return self._identity.settle(granted=granted)

    def script(self, key: str, *steps: Step | str, repeat: bool = False) -> None:
        """Say how the next attempts are answered, in the place of what was said before.

        Args:
            key: a tool (`{target}___{tool}` through the gateway), a JSON-RPC method,
                `"tools/call"`, `"GET"`, `"DELETE"`, `"connect"`, or an operation of Identity.
            steps: one for each attempt: a step, or the name of a row of `AGENTCORE_ROWS`.
            repeat: let the last step answer every attempt that follows, too.

        Raises:
            TypeError: something in it is not a step.
            ValueError: there is no such key or row, no step, or a step that cannot answer it.
        """
        played = tuple(_row(step) if isinstance(step, str) else step for step in steps)
        super().script(key, *played, repeat=repeat)


def _row(name: str) -> Step:
    row = AGENTCORE_ROWS.get(name)
    if row is None:
        known = ", ".join(sorted(AGENTCORE_ROWS))
        raise ValueError(f"AgentCoreStandIn.script takes the name of a row, one of: {known}")
    return row
