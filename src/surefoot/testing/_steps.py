"""The law of this file: a step is a frozen value that answers one request, and says where it fits.

A fault of your own is a subclass with a `play`; the gateway treats it as it treats those that ship.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, ClassVar, Final

if TYPE_CHECKING:
    from surefoot.testing._exchange import Exchange
    from surefoot.testing._request import Kind

__all__ = ["ANSWERED", "EVERYWHERE", "EVERYWHERE_OR_CONNECT", "STREAMED", "Step"]

ANSWERED: Final[frozenset[Kind]] = frozenset({"call", "request"})
"""Requests that carry an id, and so are owed a JSON-RPC answer."""

EVERYWHERE: Final[frozenset[Kind]] = frozenset(
    {"call", "request", "notification", "token", "get", "delete"}
)

EVERYWHERE_OR_CONNECT: Final[frozenset[Kind]] = frozenset(
    {"call", "request", "notification", "token", "get", "delete", "connect"}
)

STREAMED: Final[frozenset[Kind]] = frozenset({"call", "request", "get"})
"""Requests that an event stream can answer."""


class Step(ABC):
    """One attempt's worth of behaviour."""

    __slots__ = ()

    fits: ClassVar[frozenset[Kind]] = EVERYWHERE
    """The kinds of request that it can answer; a script for any other is refused when declared."""

    @abstractmethod
    async def play(self, exchange: Exchange) -> None:
        """Answer one request, in the gateway's own loop.

        Cancelled when the client withdraws in a way that its protocol era lets stop the tool. What
        it raises fails the test, when the gateway closes.
        """
