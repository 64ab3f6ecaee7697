"""The law of this file: what is decided before a request is understood: who, and how often.

Both clocks are the gateway's own, so that a test with a hand-moved clock need not sleep.
"""

from __future__ import annotations

import math
import secrets
import threading
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass

from surefoot.testing._checks import a_count, a_number_of_seconds, a_text

__all__ = ["Buckets", "ExpiringTokens", "TokenBucket", "TokenMint"]


@dataclass(frozen=True, slots=True)
class TokenBucket:
    """A rate limit per principal, where a principal is one value of the Authorization header.

    An empty bucket answers 429 with Retry-After in whole seconds, rounded up, at least 1. The tool
    does not run, and no step of a script is used up.

    Raises:
        TypeError: an option has the wrong type.
        ValueError: the rate is not above 0, or the burst is below 1.
    """

    rate: float
    """Requests per second that flow back into the bucket."""
    burst: int
    """Requests that the full bucket holds."""
    _: KW_ONLY
    methods: tuple[str, ...] | None = ("tools/call",)
    """The JSON-RPC methods that count; `None` counts every HTTP request."""
    rpc_code: int | None = None
    """With a code, the body is a JSON-RPC error that carries it; else it is plain text."""

    def __post_init__(self) -> None:
        a_number_of_seconds("TokenBucket(rate)", self.rate, zero=False)
        a_count("TokenBucket(burst)", self.burst, least=1)


class Buckets:
    """The fill of each principal's bucket."""

    def __init__(self, bucket: TokenBucket, clock: Callable[[], float]) -> None:
        self._bucket = bucket
        self._clock = clock
        self._fill: dict[str, tuple[float, float]] = {}

    def take(self, principal: str) -> int | None:
        """Take one request out; `None` if there was one, else the whole seconds until there is."""
        now = self._clock()
        fill, since = self._fill.get(principal, (float(self._bucket.burst), now))
        fill = min(float(self._bucket.burst), fill + (now - since) * self._bucket.rate)
        if fill >= 1:
            self._fill[principal] = (fill - 1, now)
            return None
        self._fill[principal] = (fill, now)
        return max(1, math.ceil((1 - fill) / self._bucket.rate))


@dataclass(frozen=True, slots=True)
class ExpiringTokens:
    """Let in only requests that carry a bearer token which this gateway minted, and not long ago.

    Any other request is answered 401 with `WWW-Authenticate: Bearer error="invalid_token"`. The
    tool does not run, and no step of a script is used up. Valid tokens come from `gateway.tokens`,
    or from the token endpoint.

    Raises:
        TypeError: an option has the wrong type.
        ValueError: the lifetime is not above 0, or the endpoint is not a path.
    """

    lifetime: float
    """Seconds for which a token is good after it was minted."""
    _: KW_ONLY
    endpoint: str | None = None
    """A path, such as `"/token"`, at which any POST is given a fresh token (OAuth 2.0, client
    credentials). Metadata that names it (RFC 9728, RFC 8414) is then served too."""

    def __post_init__(self) -> None:
        a_number_of_seconds("ExpiringTokens(lifetime)", self.lifetime, zero=False)
        if self.endpoint is not None and not a_text(
            "ExpiringTokens(endpoint)", self.endpoint
        ).startswith("/"):
            raise ValueError("ExpiringTokens(endpoint) takes a path that starts with a slash")


class TokenMint:
    """The tokens that a gateway gave out. Safe to use from any thread."""

    def __init__(self, tokens: ExpiringTokens, clock: Callable[[], float]) -> None:
        self._lifetime = tokens.lifetime
        self._clock = clock
        self._lock = threading.Lock()
        self._minted: dict[str, float] = {}
        self._latest: str | None = None

    def __repr__(self) -> str:
        return f"<TokenMint, {self.count} minted>"

    @property
    def lifetime(self) -> float:
        """Seconds for which a token is good."""
        return self._lifetime

    @property
    def count(self) -> int:
        """How many tokens were minted."""
        with self._lock:
            return len(self._minted)

    def mint(self) -> str:
        """A new token, good from now on."""
        with self._lock:
            token = f"token-{len(self._minted) + 1}-{secrets.token_hex(8)}"
            self._minted[token] = self._clock()
            self._latest = token
        return token

    def current(self) -> str:
        """The latest token while it is good, else a new one; little of its life may be left."""
        latest = self._latest
        return latest if latest is not None and self.accepts(latest) else self.mint()

    def accepts(self, token: str) -> bool:
        """Whether a request that carries this token now would be let in."""
        with self._lock:
            minted = self._minted.get(token)
            return minted is not None and self._clock() - minted < self._lifetime

    def revoke_all(self) -> None:
        """Make every token given out so far invalid at once."""
        with self._lock:
            self._minted = dict.fromkeys(self._minted, -math.inf)
