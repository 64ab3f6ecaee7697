"""The law of this file: an issuer of numbered tokens does as it is told, and counts who asked."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import Any

import anyio
import anyio.lowlevel

from surefoot.credentials import (
    AuthorizationRequired,
    Bearer,
    Credential,
    CredentialRequest,
    Issued,
    SharedCredentials,
)
from surefoot.errors import CredentialError

__all__ = ["PLAIN", "Issuer", "together", "token_of", "until"]

PLAIN = CredentialRequest()


class Issuer:
    """Vends numbered tokens; may be slow, held, failing, or ask for consent."""

    def __init__(self, *, life: float | None = 60.0) -> None:
        self.life = life
        self.asked: list[CredentialRequest] = []
        self.numbers = count(1)
        self.gate: anyio.Event | None = None
        self.entered = 0
        self.fails: Exception | None = None
        self.answer: Callable[[], Issued | Credential | AuthorizationRequired] = self.token

    def token(self) -> Issued:
        return Issued(Bearer(f"t{next(self.numbers)}"), expires_in=self.life)

    async def vend(
        self, request: CredentialRequest, /
    ) -> Issued | Credential | AuthorizationRequired:
        self.asked.append(request)
        self.entered += 1
        await anyio.lowlevel.checkpoint()
        if self.gate is not None:
            await self.gate.wait()
        if self.fails is not None:
            raise self.fails
        return self.answer()


async def token_of(shared: SharedCredentials, request: CredentialRequest = PLAIN) -> str:
    issued = await shared.vend(request)
    assert isinstance(issued, Issued)
    return issued.secrets()[0].decode()


async def together(number: int, call: Callable[[int], Any]) -> list[Any]:
    """Run ``call`` so many times at once; collect results and errors in order."""
    ends: list[Any] = [None] * number

    async def one(place: int) -> None:
        try:
            ends[place] = await call(place)
        except CredentialError as error:
            ends[place] = error

    with anyio.fail_after(10):
        async with anyio.create_task_group() as group:
            for place in range(number):
                group.start_soon(one, place)
    return ends


async def until(true: Callable[[], bool]) -> None:
    """Give way to others until it is so."""
    with anyio.fail_after(5):
        while not true():
            await anyio.lowlevel.checkpoint()
