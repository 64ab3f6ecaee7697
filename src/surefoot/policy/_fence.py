"""The law of this file: what may have run is not run again, whoever asks for it (B3).

Retries of a framework, of a model and of a person arrive as new requests with new ids; only what is
remembered above the connection can recognise them. A call is remembered from its first send until
it ends in something that says it did not stay open: a result, a proof that it was not sent, a
recognised refusal, or a status that a server gives before it runs anything. Any other end leaves it
here as "may have run", and an identical call is answered locally, naming the earlier one. The later
rounds of a call pass because each follows an end of that sort; one that was lost is no exception.

Memory is bounded and never loses what matters: entries expire, and a full fence refuses calls that
make changes rather than forget one. Keys are digests, so no argument is kept. Pure: time is an
argument; one lock makes it safe from any thread.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass
from hashlib import blake2b
from typing import Final, Literal
from weakref import WeakSet

__all__ = [
    "DAY",
    "Blocked",
    "Ending",
    "Fence",
    "FenceFull",
    "FenceKey",
    "Passed",
    "fence_key",
]

DAY: Final = 86400.0
"""Seconds: how long an open call is remembered by default."""

FenceKey = bytes
"""A digest of scope, principal, tool and canonical arguments."""

Ending = Literal["settled", "may-have-run"]
"""How a call ended, as far as the fence cares."""

_SWEEP: Final = 32
"""Entries that one question looks at for their age, so that none pays for a crowd of them."""


def fence_key(*, scope: str, principal: str | None, tool: str, arguments: bytes) -> FenceKey:
    """Build the key under which a call is remembered.

    Args:
        scope: The run, or the Gateway where there is none; always the Gateway for a tool that makes
            changes.
        principal: On whose behalf; nobody and an empty name are two.
        tool: The tool's name.
        arguments: The canonical bytes of the arguments, so that equal arguments are equal here.
    """
    digest = blake2b(digest_size=16)
    for part in (scope, "" if principal is None else f"={principal}", tool):
        data = part.encode("utf-8", "surrogatepass")
        digest.update(len(data).to_bytes(8, "big"))
        digest.update(data)
    digest.update(arguments)
    return digest.digest()


@dataclass(frozen=True, slots=True, kw_only=True)
class Passed:
    """Nothing stands against the call; it is remembered from now on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Blocked:
    """An identical call was made earlier and is not settled: this one must not be sent."""

    call_id: str
    """The earlier call's id."""

    in_flight: bool
    """The earlier call is still under way, and so its answer will come."""

    seconds: float
    """How long ago the earlier call began."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FenceFull:
    """There is no room to remember another open call, and none is forgotten for it."""

    entries: int
    """How many open calls are remembered."""


class _Entry:
    __slots__ = ("begun", "call_id", "in_flight")

    def __init__(self, call_id: str, begun: float) -> None:
        self.call_id = call_id
        self.begun = begun
        self.in_flight = True


class Fence:
    """Remembers open calls.

    Args:
        max_entries: How many open calls are remembered; 100,000 of them take about 32 MB.
        ttl: Seconds after which an open call is forgotten.

    Raises:
        ValueError: a bound below 1, or a lifetime that is not above 0.
    """

    __slots__ = ("__weakref__", "_by_id", "_entries", "_followed", "_lock", "_max", "_ttl")

    def __init__(self, *, max_entries: int = 100_000, ttl: float = DAY) -> None:
        if max_entries < 1:
            msg = f"max_entries: must be at least 1, not {max_entries}"
            raise ValueError(msg)
        if not ttl > 0:
            msg = f"ttl: must be above 0, not {ttl}"
            raise ValueError(msg)
        self._max = max_entries
        self._ttl = ttl
        self._entries: OrderedDict[FenceKey, _Entry] = OrderedDict()
        self._by_id: dict[str, FenceKey] = {}
        self._followed: WeakSet[Fence] = WeakSet()
        self._lock = threading.Lock()

    def __len__(self) -> int:
        """How many calls are remembered."""
        return len(self._entries)

    def enter(
        self, key: FenceKey, call_id: str, *, now: float, changing: bool
    ) -> Passed | Blocked | FenceFull:
        """Ask, right before the first send, whether a call may be sent; if so remember it.

        Args:
            key: What the call is.
            call_id: Our own id for it, by which it is left and settled.
            now: Monotonic seconds.
            changing: The tool makes changes: it is refused where there is no room to remember it.
                Another then passes unremembered, and nothing is forgotten for either.
        """
        with self._lock:
            self._expire(now)
            found = self._entries.get(key)
            if found is not None and now - found.begun >= self._ttl:
                self._drop(key)
                found = None
            if found is not None:
                return Blocked(
                    call_id=found.call_id,
                    in_flight=found.in_flight,
                    seconds=max(0.0, now - found.begun),
                )
            if len(self._entries) >= self._max:
                return FenceFull(entries=len(self._entries)) if changing else _PASSED
            self._entries[key] = _Entry(call_id, now)
            self._by_id[call_id] = key
            return _PASSED

    def leave(self, call_id: str, ending: Ending) -> None:
        """Say how a call that passed ended; one that the fence does not know is nothing to it."""
        with self._lock:
            key = self._by_id.get(call_id)
            if key is None:
                return
            if ending == "settled":
                self._drop(key)
            else:
                self._entries[key].in_flight = False

    def settle(self, call_id: str, *, ran: bool) -> bool:
        """Take the app's word on an open call: it is remembered no longer, whatever the word is.

        Args:
            call_id: The earlier call's id.
            ran: What the app found out. If it ran, its work is done; if it did not, it may be made
                again. Either way an identical call is a new decision of the caller.

        Returns:
            Whether the fence knew the call, or one that it follows.
        """
        del ran
        with self._lock:
            fences = (self, *self._followed)
        return any(fence.forget(call_id) for fence in fences)

    def follow(self, other: Fence) -> None:
        """Pass on to another fence the app's word on calls that only that one remembers."""
        if other is not self:
            with self._lock:
                self._followed.add(other)

    def forget(self, call_id: str) -> bool:
        """Forget a call that is remembered here; returns whether there was one."""
        with self._lock:
            key = self._by_id.get(call_id)
            if key is None:
                return False
            self._drop(key)
            return True

    def _expire(self, now: float) -> None:
        """Forget some of what is older than the lifetime; entries lie in the order they began."""
        for _ in range(_SWEEP):
            key = next(iter(self._entries), None)
            if key is None or now - self._entries[key].begun < self._ttl:
                return
            self._drop(key)

    def _drop(self, key: FenceKey) -> None:
        entry = self._entries.pop(key)
        self._by_id.pop(entry.call_id, None)


_PASSED: Final = Passed()
