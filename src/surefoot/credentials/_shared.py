"""The law of this file: one refresh for each generation, and none for one that is gone (B9).

A hundred callers that find a credential expired or rejected cause one vend. The rejection of a
generation discards that one alone: a late 401 for the one before asks for nothing. No lock is held
while anything is awaited, and nothing belongs to an event loop. Fresh credentials that the server
keeps rejecting open a breaker, because each one costs the issuer a request and none of them helps.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Hashable
from dataclasses import replace
from hashlib import blake2b
from math import inf
from threading import Lock
from typing import Final

from surefoot.credentials._failures import ask
from surefoot.credentials._flight import SingleFlight
from surefoot.credentials._options import count, seconds
from surefoot.credentials._port import (
    AuthorizationRequired,
    CredentialProvider,
    CredentialRequest,
    Generation,
    Issued,
)
from surefoot.credentials._static import as_provider
from surefoot.credentials._time import Clock, MachineClock
from surefoot.credentials._unseen import unseen
from surefoot.errors import CredentialError

__all__ = ["SharedCredentials"]

_MAX_SKEW_SHARE: Final = 0.1
"""Of a stated life: the most that skew may take, or a short-lived token would never be fresh."""

_SECOND_LOOK: Final = 1.0
"""Seconds for which one that is still alive is handed out after an early refresh of it failed."""

_Vended = Issued | AuthorizationRequired


class SharedCredentials:
    """Keeps what a provider vends until it expires or is rejected, and refreshes it once for all.

    It may be wrapped around any provider whose answer follows from what it is asked, and shared by
    Gateways, threads and event loops. One that finds the user somewhere else has a method
    ``whose``, see ``CredentialProvider``.

    Args:
        provider: Who is asked: whatever ``Gateway(credentials=…)`` takes.
        skew: Seconds before its end at which a credential counts as expired; at most a tenth of
            its stated life.
        lifetime: Seconds for which one without a stated life is kept; ``None``: until a rejection.
        max_rejections: How many fresh credentials in a row may be rejected unused within
            ``window`` seconds before the breaker opens.
        window: Seconds, see above.
        cooldown: Seconds for which an open breaker asks for nothing; then it tries one.
        max_entries: How many credentials (by service, scopes and principal) are kept.
        clock: Time.

    Raises:
        TypeError: an option has the wrong type.
        ValueError: an option is out of its range.
    """

    __slots__ = (
        "_clock", "_cooldown", "_entries", "_lifetime", "_lock", "_max_entries", "_max_rejections",
        "_pepper", "_provider", "_skew", "_whose", "_window", "refreshable",
        "steps_up",
    )  # fmt: skip

    @unseen
    def __init__(
        self,
        provider: object,
        *,
        skew: float = 30.0,
        lifetime: float | None = None,
        max_rejections: int = 5,
        window: float = 60.0,
        cooldown: float = 30.0,
        max_entries: int = 1024,
        clock: Clock | None = None,
    ) -> None:
        self._provider: CredentialProvider = as_provider(provider, option="provider")
        self.refreshable = bool(getattr(self._provider, "refreshable", True))
        self.steps_up = bool(getattr(self._provider, "steps_up", self.refreshable))
        self._whose: Callable[[CredentialRequest], str | None] | None
        self._whose = getattr(self._provider, "whose", None)
        self._skew = seconds("skew", skew)
        self._lifetime = inf if lifetime is None else seconds("lifetime", lifetime)
        self._max_rejections = count("max_rejections", max_rejections)
        self._window = seconds("window", window)
        self._cooldown = seconds("cooldown", cooldown)
        self._max_entries = count("max_entries", max_entries)
        self._clock: Clock = clock or MachineClock()
        self._entries: dict[Hashable, _Entry] = {}
        self._lock = Lock()
        self._pepper = os.urandom(16)

    async def vend(self, request: CredentialRequest, /) -> _Vended:
        """Return the kept credential, or the one that is vended for everybody now.

        Raises:
            CredentialError: the provider's own, or fresh ones keep being rejected.
        """
        key = self._key(request)
        entry = self._entries.get(key)
        if entry is None:
            entry = self._enter(key)
        issued = entry.issued
        if issued is not None and not request.force and self._clock.monotonic() < entry.fresh_until:
            return issued
        if request.force:
            self._reject(entry, request.rejected)
        return await entry.flight.run(
            lambda: self._kept(entry), lambda: self._refresh(entry, request)
        )

    def whose(self, request: CredentialRequest, /) -> str | None:
        """As the provider says, so that two of these may lie around one."""
        return None if self._whose is None else self._whose(request)

    def _key(self, request: CredentialRequest) -> Hashable:
        """For whom a credential is; a user's token counts by its digest, which is not kept long."""
        token = request.user_token
        who = None if token is None else self._digest(token.reveal())
        found = None if self._whose is None else self._whose(request)
        unnamed = None if found is None else self._digest(found)
        return request.service, request.scopes, request.mode, request.principal, who, unnamed

    def _digest(self, token: str) -> bytes:
        return blake2b(token.encode("utf-8", "surrogatepass"), key=self._pepper).digest()

    def _enter(self, key: Hashable) -> _Entry:
        """Make room for one more; the oldest that nobody waits for goes first."""
        with self._lock:
            entry = self._entries.get(key)
            if entry is not None:
                return entry
            if len(self._entries) >= self._max_entries:
                oldest = next((k for k, kept in self._entries.items() if kept.flight.idle), None)
                if oldest is not None:
                    del self._entries[oldest]
            return self._entries.setdefault(key, _Entry(self._lock))

    def _kept(self, entry: _Entry) -> Issued | None:
        """The current one while it is fresh. Under the lock."""
        return entry.issued if self._clock.monotonic() < entry.fresh_until else None

    def _reject(self, entry: _Entry, rejected: object | None) -> None:
        """Discard the generation that was rejected, and no other."""
        with self._lock:
            issued = entry.issued
            if issued is None or (rejected is not None and issued.generation is not rejected):
                return
            entry.issued, entry.fresh_until = None, -inf
            entry.rejected = issued.generation
            if issued.generation.accepted:
                entry.strikes.clear()
                return
            now = self._clock.monotonic()
            entry.strikes.append(now)
            while entry.strikes[0] <= now - self._window:
                entry.strikes.popleft()
            if len(entry.strikes) >= self._max_rejections:
                entry.shut_until = now + self._cooldown
                entry.strikes.popleft()  # after the cooldown one more is tried, and only one

    async def _refresh(
        self, entry: _Entry, request: CredentialRequest
    ) -> _Vended | CredentialError | None:
        """Ask the provider once, and keep what it vends; ``None`` asks anew, and by force.

        Runs in one task at a time.
        """
        began = self._clock.monotonic()
        if began < entry.shut_until:
            reason = "fresh credentials keep being rejected; the next is asked for after a pause"
            return CredentialError(reason, service=request.service)
        if entry.rejected is not None:
            request = replace(request, force=True, rejected=entry.rejected)
        vended = await ask(self._provider, request)
        with self._lock:
            if isinstance(vended, Issued):
                if vended.generation is entry.rejected:
                    if not request.force:
                        return None  # it was rejected while it was being vended again
                    reason = "it was rejected, and the provider vended the same one again"
                    return CredentialError(reason, service=request.service)
                self._keep(entry, vended, began)
            elif isinstance(vended, CredentialError):
                issued, now = entry.issued, self._clock.monotonic()
                if issued is not None and now < entry.ends:
                    entry.fresh_until = min(entry.ends, now + _SECOND_LOOK)
                    return issued
        return vended

    def _keep(self, entry: _Entry, issued: Issued, began: float) -> None:
        """Note how long this generation lives, counted from before it was asked for."""
        life = self._lifetime if issued.expires_in is None else issued.expires_in
        skew = 0.0 if life == inf else min(self._skew, life * _MAX_SKEW_SHARE)
        entry.issued, entry.rejected = issued, None
        entry.ends = began + life
        entry.fresh_until = entry.ends - skew


class _Entry:
    """One credential, who refreshes it, and how its predecessors fared."""

    __slots__ = (
        "ends", "flight", "fresh_until", "issued", "rejected", "shut_until", "strikes"
    )  # fmt: skip

    def __init__(self, lock: Lock) -> None:
        self.issued: Issued | None = None
        self.fresh_until = self.ends = self.shut_until = -inf
        self.rejected: Generation | None = None
        self.strikes: deque[float] = deque()
        self.flight: SingleFlight[_Vended] = SingleFlight(lock)
