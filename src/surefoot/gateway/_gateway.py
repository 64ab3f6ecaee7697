"""The law of this file: one noun carries all that is declared about one server, behind every door.

A door only chooses how a client is handed the same stack; none adds behaviour of its own. A Gateway
holds nothing that belongs to an event loop, so one object serves threads and loops alike.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from copy import copy
from dataclasses import replace
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Self, TypeVar

import anyio.to_thread

from surefoot.credentials import Secret, unseen
from surefoot.policy import Fence, Replay, Retry, Rule
from surefoot.sinks import ledger_for, spans_and_events
from surefoot.transports import (
    CallTable,
    Clock,
    Learned,
    StackPlan,
    SystemClock,
    WatchedWriter,
    build_stack,
    chance,
    is_stack_for,
)

from ._options import Answers, Mode, Options, check_options, refuse_credential_headers
from ._pool import Pool
from ._sdk import default_timeout, http_library, sdk_major, streams
from ._session import GatewaySession

if TYPE_CHECKING:
    from surefoot.credentials import Credential, CredentialProvider
    from surefoot.errors import AuthorizationRequiredError
    from surefoot.evidence import SpanSource
    from surefoot.sinks import Target
    from surefoot.transports import Signer

__all__ = ["Gateway", "with_rules"]

_logger = logging.getLogger("surefoot")

_Client = TypeVar("_Client")
_ON = Retry()


class Gateway:
    """One MCP server, and everything that the app declares about it.

    Args:
        url: The server's MCP endpoint, http or https. Only requests to its origin and path are
            ours (D31).
        name: The label that notices, logs and evidence use in place of the origin (R42, R52).
        credentials: A ``CredentialProvider``, a ``Bearer``, ``ApiKey``, ``Basic`` or ``Headers``,
            or an async function; asked for every attempt (R105).
        signer: Awaited below vending with the finished request; returns the request that is sent.
        service: What the provider is asked for (R111).
        scopes: The scopes that the provider is asked for.
        mode: ``"machine"`` or ``"user"``.
        headers: Static headers without secrets; a vended header wins over them (R112).
        retry: The budget of one call, or ``None`` to switch all repeats off.
        replay: What may be repeated, per tool (R4); ``None`` declares nothing (R15).
        answers: ``"checked"`` or ``"strict"`` (D20).
        caller_timeout: Seconds after which the caller stops listening; no wait outlasts it (B6).
        on_authorization: Told when a person must consent first.
        evidence: Where evidence goes outside any run: a path, a sink, or a function of one event;
            or an ``OpenTelemetrySpans`` of another provider than the program's own.
        clock: Time; for tests.
        draw: Chance, uniform in [0, 1); for tests.

    Raises:
        OSError: ``evidence`` is a path that cannot be opened for appending.
        TypeError: an option has the wrong type; the message names it and the way out.
        ValueError: an option is out of range or contradicts another. No text value is echoed.
    """

    @unseen
    def __init__(
        self,
        url: str,
        *,
        name: str | None = None,
        credentials: CredentialProvider | Credential | Callable[..., Any] | None = None,
        signer: Signer | None = None,
        service: str = "gateway",
        scopes: Sequence[str] = (),
        mode: Mode = "machine",
        headers: Mapping[str, str] | None = None,
        retry: Retry | None = _ON,
        replay: Replay | None = None,
        answers: Answers = "checked",
        caller_timeout: float | None = None,
        on_authorization: Callable[[AuthorizationRequiredError], object] | None = None,
        evidence: Target | SpanSource | None = None,
        clock: Clock | None = None,
        draw: Callable[[], float] = chance,
    ) -> None:
        self._options: Options = check_options(
            url,
            name=name,
            credentials=credentials,
            signer=signer,
            service=service,
            scopes=scopes,
            mode=mode,
            headers=headers,
            retry=retry,
            replay=replay,
            answers=answers,
            caller_timeout=caller_timeout,
            on_authorization=on_authorization,
            clock=clock,
            draw=draw,
        )
        self._clock: Clock = clock or SystemClock()
        self._spans, events = spans_and_events(evidence)
        self._ledger = (
            None if events is None else ledger_for(events, now=self._clock.now, option="evidence")
        )
        self._closes = self._ledger
        self._draw = draw
        self._rules: tuple[Rule, ...] = ()
        self._fence = Fence()
        self._learned = Learned(self._options.replay, self._not_listed)
        self._changes: dict[str, Any] = {}
        self._pool = Pool()
        self._entered = 0

    def __repr__(self) -> str:
        """Show the label or the host, and nothing that could be a secret."""
        return f"Gateway({self._options.name or self._options.endpoint.origin!r})"

    @property
    def url(self) -> str:
        """The endpoint."""
        return self._options.endpoint.url

    @property
    def name(self) -> str | None:
        """The declared label."""
        return self._options.name

    async def aclose(self) -> None:
        """Hand the last evidence over. Clients that a door returned are their user's to close."""
        if self._entered:
            self._entered -= 1
            await self._pool.let_go()
        if self._closes is not None:
            # A sink is given a moment to take what is left; the loop must not stand still for it.
            await anyio.to_thread.run_sync(self._closes.close)

    async def __aenter__(self) -> Self:
        """Return the Gateway itself, which keeps its connections from one client to the next."""
        self._pool.keep()
        self._entered += 1
        return self

    async def __aexit__(self, *exc: object) -> None:
        """Close the Gateway."""
        await self.aclose()

    @asynccontextmanager
    async def transport(self, **settings: Any) -> AsyncGenerator[tuple[Any, Any], None]:
        """Open fresh ``(read, write)`` streams for ``mcp.Client`` or a ``ClientSession``.

        ``settings`` go to the SDK's own Streamable HTTP transport (``terminate_on_close``, …).
        Yields two streams on both majors of the SDK.
        """
        table = CallTable(self._spans)
        client = self._pool.client(http_library(), {"timeout": default_timeout()})
        self._protect(client, self._plan(auth_above=False, calls=table))
        async with client, streams(self.url, client, **settings) as (read, write):
            yield read, WatchedWriter(write, table, one_by_one=sdk_major() < 2)

    def session(self) -> GatewaySession:
        """Return our own client for one ``async with``: typed errors, and nothing replayed.

        Raises (when entered):
            SurefootError: the server could not be connected to.
        """
        consents: list[AuthorizationRequiredError] = []

        def asked(error: AuthorizationRequiredError) -> object:
            consents[:] = [error]
            hook = self._options.on_authorization
            return None if hook is None else hook(error)

        bare = self._sibling(on_authorization=asked)
        return GatewaySession(
            bare.transport,
            clock=self._clock,
            consents=lambda: consents[-1] if consents else None,
        )

    def settle(self, call_id: str, *, ran: bool) -> bool:
        """Say what became of a call that may have run, so that an identical one may be made (B3).

        Args:
            call_id: The id that ``MayHaveRunError`` and ``_meta["surefoot/outcome"]`` name.
            ran: What was found out.

        Returns:
            Whether such a call was open.
        """
        return self._fence.settle(call_id, ran=ran)

    @unseen
    def acting_for(self, *, user_token: str | None = None, user_id: str | None = None) -> Gateway:
        """Return a Gateway for one principal: connections and fence are shared, credentials never.

        The identity comes from these arguments alone, never from a context (DESIGN section 2).

        Args:
            user_token: The user's own token, for the provider to exchange; kept sealed. Who comes
                with a new token is somebody new, whom no earlier call stands against (B3).
            user_id: The user's id, where the service trusts the app to name it.

        Raises:
            TypeError: neither or both, or no ``str``.
            ValueError: it is empty.
        """
        if (user_token is None) == (user_id is None):
            msg = "acting_for: takes exactly one of user_token and user_id"
            raise TypeError(msg)
        given = user_token if user_id is None else user_id
        option = "user_token" if user_id is None else "user_id"
        if not isinstance(given, str):
            msg = f"{option}: must be a str"
            raise TypeError(msg)
        if not given:
            msg = f"{option}: must not be empty"
            raise ValueError(msg)
        secret = None if user_token is None else Secret(user_token)
        principal = user_id if user_token is None else _digest(user_token)
        return self._sibling(mode="user", principal=principal, user_token=secret)

    def _sibling(self, **changes: Any) -> Gateway:
        """The same Gateway with other plan values; clock, evidence, pool and fence are shared."""
        sibling = copy(self)
        sibling._entered = 0  # noqa: SLF001 - of the same class
        sibling._closes = None  # noqa: SLF001 - the evidence is closed by the one that opened it
        sibling._changes = {**self._changes, **changes}  # noqa: SLF001 - of the same class
        return sibling

    def _not_listed(self, tool: str) -> None:
        _logger.warning(
            "%s: tool %r is declared, and the server does not list it", self._shown, tool
        )

    @property
    def _shown(self) -> str:
        return self._options.name or self._options.endpoint.origin

    @unseen
    def http_client(self, *, auth_above: bool = False, **settings: Any) -> Any:
        """Return an ``AsyncClient`` of the family that the installed ``mcp`` uses.

        ``settings`` are the client's own (``timeout``, ``verify``, ``proxy``, ``auth``, …);
        timeouts default to the SDK's: 30 s, and 300 s to read. The caller closes the client.

        Args:
            auth_above: An auth flow above this client wants to see the server's 401 and 403 even on
                mcp 1.x, where they otherwise end a session (DESIGN section 7).
            settings: Passed on to the client.

        Raises:
            ValueError: ``headers`` holds a credential, and so has ``credentials=``; not echoed.
        """
        if self._options.credentials is not None:
            refuse_credential_headers(settings.get("headers"))
        settings.setdefault("timeout", default_timeout())
        client = self._pool.client(http_library(), settings)
        return self.protect(client, auth_above=auth_above)

    @unseen
    def http_client_factory(
        self, headers: Any = None, timeout: Any = None, auth: Any = None, **extra: Any
    ) -> Any:
        """Return a client as ``http_client`` does, in the shape that frameworks call a factory.

        A ``None`` stands for "not given", as frameworks mean it; ``extra`` goes to the client.
        """
        given = {"headers": headers, "timeout": timeout, "auth": auth}
        settings = {name: value for name, value in given.items() if value is not None}
        return self.http_client(**settings, **extra)

    def protect(self, client: _Client, *, auth_above: bool = False) -> _Client:
        """Wrap the transport and the mounts of an ``AsyncClient`` in place, and return that client.

        Proxies, TLS settings and event hooks stay, because nothing is built anew: passing
        ``transport=`` to a client would switch environment proxies off. Protecting a client twice
        with the same Gateway changes nothing the second time.

        Args:
            client: An ``httpx.AsyncClient`` or an ``httpx2.AsyncClient``.
            auth_above: As in ``http_client``; implied where the client has an ``auth`` of its own.

        Raises:
            TypeError: it is no async client of either family.
            ValueError: it is already protected for this endpoint with another declaration.
        """
        bare: Any = client
        if not _is_async_client(bare):
            msg = "client: must be an httpx.AsyncClient or an httpx2.AsyncClient"
            raise TypeError(msg)
        self._protect(bare, self._plan(auth_above=auth_above or bare.auth is not None))
        return client

    def _protect(self, bare: Any, plan: StackPlan) -> None:
        bare._transport = self._wrap(bare._transport, plan)  # noqa: SLF001 - DESIGN section 6, pinned
        for pattern, mounted in bare._mounts.items():  # noqa: SLF001
            if mounted is not None:
                bare._mounts[pattern] = self._wrap(mounted, plan)  # noqa: SLF001

    def _wrap(self, transport: Any, plan: StackPlan) -> Any:
        return transport if is_stack_for(transport, self) else build_stack(transport, plan)

    def _plan(self, *, auth_above: bool, calls: CallTable | None = None) -> StackPlan:
        options = self._options
        plan = StackPlan(
            owner=self,
            endpoint=options.endpoint,
            name=options.name,
            credentials=options.credentials,
            signer=options.signer,
            service=options.service,
            scopes=options.scopes,
            mode=options.mode,
            headers=options.headers,
            retry=options.retry,
            replay=options.replay,
            rules=self._rules,
            answers=options.answers,
            caller_timeout=options.caller_timeout,
            auth_above=auth_above,
            on_authorization=options.on_authorization,
            ledger=self._ledger,
            clock=self._clock,
            draw=self._draw,
            fence=self._fence,
            calls=calls,
            learned=self._learned,
            spans=self._spans,
        )
        return replace(plan, **self._changes) if self._changes else plan


def with_rules(gateway: Gateway, rules: Sequence[Rule]) -> Gateway:
    """Give a Gateway an adapter's own refusal rules, all of them, before a door of it is opened.

    For the rooms that know a service (R16, R60); the app's word is ``Replay``.
    """
    gateway._rules = tuple(rules)  # noqa: SLF001 # pyright: ignore[reportPrivateUsage] - of the same file
    return gateway


def _digest(user_token: str) -> str:
    """What tells principals apart in the fence, and is no token."""
    return blake2b(user_token.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def _is_async_client(client: object) -> bool:
    """Whether it is an ``AsyncClient`` of either family, set up so far that it can be wrapped."""
    known = any(
        base.__name__ == "AsyncClient" and base.__module__.partition(".")[0] in ("httpx", "httpx2")
        for base in type(client).__mro__
    )
    return known and hasattr(client, "_transport") and hasattr(client, "_mounts")
