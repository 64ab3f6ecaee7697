"""The law of this file: what principals share is connections, and nothing that says whose one was.

Each client keeps what is its own: cookies, headers, an auth flow, and the stack that vends for one
principal. Below them all lies the HTTP library's own transport, which holds open sockets and no
part of any request; clients that would each have made the same one borrow a single one. It belongs
to the event loop on which it is first used, is counted there, and is closed with its last borrower,
so that no client closes a connection of another. A client that is told how to connect (``verify``,
``proxy``, ``limits``, …) connects by itself.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, Final, Self
from urllib.request import getproxies
from weakref import WeakKeyDictionary, WeakSet, WeakValueDictionary

from anyio.lowlevel import RunVar

__all__ = ["Pool"]

_OWN_AFFAIRS: Final = frozenset(
    {
        "auth",
        "base_url",
        "cookies",
        "default_encoding",
        "event_hooks",
        "follow_redirects",
        "headers",
        "max_redirects",
        "params",
        "timeout",
    }
)
"""Settings that a client keeps for itself, above its connections."""

_CERTIFICATES: Final = ("SSL_CERT_FILE", "SSL_CERT_DIR")
_KEPT_IDLE: Final = 100


class Pool:
    """The connections of a Gateway, and of every Gateway that acts for somebody through it."""

    __slots__ = ("__weakref__",)

    def client(self, library: Any, settings: Mapping[str, Any]) -> Any:
        """Make a client, whose connections are borrowed unless it is told how to connect."""
        if not settings.keys() <= _OWN_AFFAIRS:
            return library.AsyncClient(**settings)
        # One for many, so that no count of one client's holds up the others: a session of the
        # handshake era keeps a connection for its standing stream.
        limits = library.Limits(max_connections=None, max_keepalive_connections=_KEPT_IDLE)
        client: Any = library.AsyncClient(limits=limits, **settings)
        # What the library reads of its surroundings is part of what makes two transports the same;
        # a number stands for it, because a proxy's URL may hold a password.
        around = (*sorted(getproxies().items()), *map(os.environ.get, _CERTIFICATES))
        number = hash((library.__name__, around))
        client._transport = _Borrowed(self, ("", number), client._transport)  # noqa: SLF001 - as protect() does
        for pattern, mounted in client._mounts.items():  # noqa: SLF001
            if mounted is not None:
                key = (str(pattern.pattern), number)
                client._mounts[pattern] = _Borrowed(self, key, mounted)  # noqa: SLF001
        return client

    def keep(self) -> None:
        """Keep the connections of this loop, also while nobody borrows them."""
        here = _here(self)
        here.keepers += 1
        here.kept.update(here.wires.values())

    async def let_go(self) -> None:
        """Keep them no longer; what nobody borrows is closed."""
        here = _here(self)
        here.keepers -= 1
        if here.keepers > 0:
            return
        kept, here.kept = here.kept, set()
        for wire in kept:
            await here.close_unless_used(wire)


_Key = tuple[str, int]


class _Wire:
    """One transport of the library's own, and who borrows it."""

    def __init__(self, key: _Key, transport: Any) -> None:
        self.key = key
        self.transport = transport
        self.users: WeakSet[_Borrowed] = WeakSet()


class _Here:
    """What a pool has on one event loop. Borrowers keep a wire alive, and so do keepers."""

    def __init__(self) -> None:
        self.wires: WeakValueDictionary[_Key, _Wire] = WeakValueDictionary()
        self.keepers = 0
        self.kept: set[_Wire] = set()

    async def close_unless_used(self, wire: _Wire) -> None:
        """Close it, once nobody needs it; from then on nobody finds it here."""
        if wire.users or wire in self.kept:
            return
        if self.wires.get(wire.key) is wire:
            del self.wires[wire.key]
        await wire.transport.aclose()


_pools: RunVar[WeakKeyDictionary[Pool, _Here]] = RunVar("surefoot.pools")


def _here(pool: Pool) -> _Here:
    """What the pool has on the loop that runs."""
    try:
        pools = _pools.get()
    except LookupError:
        pools = WeakKeyDictionary[Pool, _Here]()
        _pools.set(pools)
    found = pools.get(pool)
    if found is None:
        found = pools[pool] = _Here()
    return found


class _Borrowed:
    """A client's part in a transport that others use, too.

    Args:
        pool: Whose connections they are.
        key: What makes two transports the same.
        own: The transport that the client made for itself; it becomes the shared one where there is
            none yet, and otherwise is never used.
    """

    def __init__(self, pool: Pool, key: _Key, own: Any) -> None:
        self._pool = pool
        self._key = key
        self._own: Any = own
        self._wire: _Wire | None = None

    @property
    def proves_not_sent(self) -> bool:
        """It is the library's own transport, which is exact about what never left (D3)."""
        return True

    async def handle_async_request(self, request: Any) -> Any:
        """Send one request once."""
        wire = self._wire or self._borrow()
        return await wire.transport.handle_async_request(request)

    def _borrow(self) -> _Wire:
        if self._own is None:
            raise RuntimeError("the client of this transport is closed")
        here = _here(self._pool)
        wire = here.wires.get(self._key)
        if wire is None:
            wire = here.wires[self._key] = _Wire(self._key, self._own)
            if here.keepers:
                here.kept.add(wire)
        self._own = None
        wire.users.add(self)
        self._wire = wire
        return wire

    async def __aenter__(self) -> Self:
        """Borrow, now that the loop is known."""
        if self._wire is None:
            self._borrow()
        return self

    async def __aexit__(self, *exc: object) -> None:
        """Give back."""
        await self.aclose()

    async def aclose(self) -> None:
        """Give back; whoever is the last closes the connections."""
        wire, self._wire, self._own = self._wire, None, None
        if wire is None:
            return
        wire.users.discard(self)
        await _here(self._pool).close_unless_used(wire)
