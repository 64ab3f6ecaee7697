"""The law of this file: a credential is asked for again only where its provider said it may help.

Consent is an answer, a rejection is final, a cancellation passes; each ends the asking at once. The
waits are those of every other series: the issuer's own number whole or not at all, else a jittered
backoff, within one total. After the last try the provider's own error is raised.
"""

from __future__ import annotations

import random  # noqa: TID251 - the default of an argument
from collections.abc import Callable

from surefoot.credentials._failures import TransientCredentialError
from surefoot.credentials._kinds import Credential
from surefoot.credentials._port import (
    AuthorizationRequired,
    CredentialProvider,
    CredentialRequest,
    Issued,
)
from surefoot.credentials._static import as_provider
from surefoot.credentials._time import Clock, MachineClock
from surefoot.credentials._unseen import unseen
from surefoot.policy import Limits, backoff, stated_wait

__all__ = ["RetryingCredentials"]


class RetryingCredentials:
    """Asks a provider again after ``TransientCredentialError``, and after nothing else.

    Args:
        provider: Who is asked: whatever ``Gateway(credentials=…)`` takes.
        max_attempts: Times it is asked in all.
        max_wait: Seconds of waiting in all; a wait that would pass it is not begun.
        base_delay: Seconds: the ceiling of the first backoff; it doubles from then on.
        clock: Time.
        draw: Chance, uniform in [0, 1).

    Raises:
        TypeError: an option has the wrong type.
        ValueError: an option is out of its range.
    """

    __slots__ = ("_clock", "_draw", "_limits", "_provider", "refreshable", "steps_up")

    @unseen
    def __init__(
        self,
        provider: object,
        *,
        max_attempts: int = 3,
        max_wait: float = 5.0,
        base_delay: float = 0.2,
        clock: Clock | None = None,
        draw: Callable[[], float] = random.random,
    ) -> None:
        self._provider: CredentialProvider = as_provider(provider, option="provider")
        self._limits = Limits(max_attempts=max_attempts, max_wait=max_wait, base_delay=base_delay)
        if self._limits.max_attempts is None:
            message = "max_attempts: must be a whole number, at least 1"
            raise ValueError(message)
        self._clock: Clock = clock or MachineClock()
        self._draw = draw
        self.refreshable = bool(getattr(self._provider, "refreshable", True))
        self.steps_up = bool(getattr(self._provider, "steps_up", self.refreshable))

    async def vend(
        self, request: CredentialRequest, /
    ) -> Issued | Credential | AuthorizationRequired:
        """Return the provider's first answer.

        Raises:
            CredentialError: the provider's own, after the last try or where trying cannot help.
        """
        waited, attempt = 0.0, 1
        while True:
            try:
                return await self._provider.vend(request)
            except TransientCredentialError as error:
                wait = self._wait(error.retry_after, attempt, waited)
                if wait is None:
                    raise
            await self._clock.sleep(wait)
            waited += wait
            attempt += 1

    def whose(self, request: CredentialRequest, /) -> str | None:
        """As the provider says: which user it found elsewhere than in the request."""
        found = getattr(self._provider, "whose", None)
        return None if found is None else found(request)

    def _wait(self, stated: float | None, attempt: int, waited: float) -> float | None:
        """Seconds until the next try, or ``None`` where there is none."""
        limits = self._limits
        if limits.max_attempts is None or attempt >= limits.max_attempts:
            return None
        room = float("inf") if limits.max_wait is None else limits.max_wait - waited
        if stated is None:
            wait = backoff(limits, attempt, self._draw())
        else:
            wait = stated_wait(limits, stated, room - stated, self._draw())
        return wait if wait <= room else None
