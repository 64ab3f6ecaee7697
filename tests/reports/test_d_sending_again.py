"""R18, R19, R112, R113, D10, B11. Kind d of the bug reports: what is sent again is sent anew.

The body is the same to the byte, whoever wrote it and however it came. What proves who sends it is
not: each attempt carries one credential and one signature, made for it, and nothing of an earlier
attempt or of the caller's own.
"""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator, Callable
from hashlib import sha256
from typing import Any, Final

import anyio.lowlevel
import pytest

from support.exchanges import FAMILIES, client_of
from support.reports import attempts_of, say
from surefoot import ApiKey, Bearer, Gateway, Headers
from surefoot.credentials import CredentialRequest
from surefoot.testing import (
    FakeClock,
    FaultyGateway,
    RecordingSink,
    Redirect,
    Status,
    Step,
    Throttle,
    tool_call,
)

pytestmark = [pytest.mark.both_majors, pytest.mark.anyio]

OLD: Final = "Bearer old-token-of-the-caller"


class Vault:
    """A fresh credential for each attempt, of one kind."""

    def __init__(self, kind: Callable[[str], Any]) -> None:
        self._kind = kind
        self._count = itertools.count(1)

    async def vend(self, _: CredentialRequest, /) -> Any:
        """One more."""
        return self._kind(f"fresh-token-{next(self._count)}")


class Signer:
    """Signs as AWS asks it to: a time, a token and a signature, each in a header of its own."""

    def __init__(self) -> None:
        self._count = itertools.count(1)

    async def __call__(self, request: Any) -> Any:
        """Put all three on."""
        number = next(self._count)
        digest = sha256(request.content).hexdigest()
        request.headers["X-Amz-Date"] = f"20260101T00000{number}Z"
        request.headers["X-Amz-Security-Token"] = f"session-token-{number}"
        request.headers["Authorization"] = f"AWS4-HMAC-SHA256 Signature={number}-{digest}"
        return request


KINDS_OF_CREDENTIAL: Final[dict[str, tuple[Callable[[str], Any], str]]] = {
    "bearer": (Bearer, "authorization"),
    "api key": (ApiKey, "x-api-key"),
    "headers": (lambda token: Headers({"authorization": f"Tenant {token}"}), "authorization"),
}
CASINGS: Final = (str.lower, str.upper, str.title)

AGAIN: Final[dict[str, tuple[Step, int]]] = {
    "a refusal": (Throttle(1), 429),
    "a rejection": (Status(401), 401),
    "a redirect within": (Redirect(), 307),
}
"""What is followed by a second send, each for another reason."""


@pytest.mark.parametrize("why", AGAIN)
@pytest.mark.parametrize("kind", KINDS_OF_CREDENTIAL)
@pytest.mark.parametrize("family", FAMILIES)
async def test_each_send_carries_its_own_credential_once_and_nothing_of_the_callers(
    family: str, kind: str, why: str
) -> None:
    """R18, R19, R112, B9, B11, C19 of the bug reports. In any letter case, whatever the reason."""
    build, name = KINDS_OF_CREDENTIAL[kind]
    step, status = AGAIN[why]
    for casing in CASINGS:
        with FaultyGateway() as faulty:
            faulty.script("charge", step)
            gateway = Gateway(faulty.url, credentials=Vault(build), clock=FakeClock())
            client = gateway.protect(client_of(family, headers={casing(name): OLD}))
            async with client:
                assert (await say(client, faulty.url)).text == "charged 1"
            assert [entry.status for entry in faulty.journal] == [status, 200]
            lines = [entry.header_values(name) for entry in faulty.journal]
            assert [len(values) for values in lines] == [1, 1]
            sent = [value for values in lines for value in values]
            assert [b"fresh-token-1" in sent[0], b"fresh-token-2" in sent[1]] == [True, True]
            assert not faulty.received(OLD)


@pytest.mark.parametrize("family", FAMILIES)
async def test_each_send_is_signed_anew_over_the_same_body(family: str) -> None:
    """R18, R113, C19 of the bug reports. A header of an old signature never comes back on top."""
    stale = {"authorization": OLD, "x-amz-date": "20200101T000000Z", "x-amz-security-token": OLD}
    sink = RecordingSink()
    with FaultyGateway() as faulty:
        faulty.script("charge", Throttle(1), Throttle(1))
        gateway = Gateway(faulty.url, signer=Signer(), clock=FakeClock(), evidence=sink)
        async with gateway.protect(client_of(family, headers=stale)) as client:
            assert (await say(client, faulty.url)).text == "charged 1"
        for name in stale:
            lines = [entry.header_values(name) for entry in faulty.journal]
            assert [len(values) for values in lines] == [1, 1, 1]
            assert len(set(lines)) == 3
        digest = sha256(faulty.journal[0].body).hexdigest().encode()
        signed = [entry.header("authorization") or b"" for entry in faulty.journal]
        assert all(one.endswith(digest) for one in signed)
        assert not faulty.received(OLD)
        assert not faulty.received("20200101T000000Z")
    assert [one["status"] for one in attempts_of(sink)] == [429, 429, 200]


@pytest.mark.parametrize("name", ["Authorization", "authorization", "x-api-key", "Cookie"])
def test_a_credential_that_would_be_sent_for_ever_is_refused_when_it_is_declared(name: str) -> None:
    """R112, R71, R72, C19 of the bug reports. By its name, and without its value."""
    for build in (
        lambda: Gateway("http://127.0.0.1:1/mcp", headers={name: OLD}),
        lambda: Gateway("http://127.0.0.1:1/mcp", credentials=Bearer("vended-token")).http_client(
            headers={name: OLD}
        ),
    ):
        with pytest.raises(ValueError, match=f"headers: {name.lower()}") as caught:
            build()
        assert OLD not in str(caught.value)


BODY: Final = tool_call("charge", {"amount": 1, "note": "Zürich ✓ " + "long " * 20_000}).body


def _at_once() -> bytes:
    return BODY


async def _in_pieces() -> AsyncIterator[bytes]:
    for start in range(0, len(BODY), 4093):
        await anyio.lowlevel.checkpoint()
        yield BODY[start : start + 4093]


async def _in_one_piece() -> AsyncIterator[bytes]:
    await anyio.lowlevel.checkpoint()
    yield BODY


async def _with_nothing_between() -> AsyncIterator[bytes]:
    await anyio.lowlevel.checkpoint()
    for part in (b"", BODY[:1], b"", BODY[1:], b""):
        yield part


WRITERS: Final[dict[str, Callable[[], Any]]] = {
    "at once": _at_once,
    "in pieces": _in_pieces,
    "in one piece": _in_one_piece,
    "with nothing between": _with_nothing_between,
}


@pytest.mark.parametrize("why", AGAIN)
@pytest.mark.parametrize("written", WRITERS)
@pytest.mark.parametrize("family", FAMILIES)
async def test_a_body_that_can_be_read_once_is_sent_again_to_the_byte(
    family: str, written: str, why: str
) -> None:
    """D10, R13, C21 of the bug reports. And its length, or its chunks, say the truth each time."""
    step, _ = AGAIN[why]
    with FaultyGateway() as faulty:
        faulty.script("charge", step)
        gateway = Gateway(faulty.url, credentials=Vault(Bearer), clock=FakeClock())
        async with gateway.protect(client_of(family)) as client:
            said = await say(client, faulty.url, content=WRITERS[written]())
        assert said.text == "charged 1"
        assert [entry.body for entry in faulty.journal] == [BODY, BODY]
        for entry in faulty.journal:
            length = entry.header("content-length")
            assert length in {None, b"%d" % len(BODY)}
            assert (length is None) == (entry.header("transfer-encoding") == b"chunked")
        assert faulty.executions("charge") == 1


@pytest.mark.parametrize("why", ["a refusal", "a rejection"])
@pytest.mark.parametrize("cap", [len(BODY) - 1, len(BODY)])
async def test_a_body_too_large_to_be_kept_is_sent_once_and_whole(cap: int, why: str) -> None:
    """D10, C21 of the bug reports. Never again empty, never again in part. The control fits."""
    step, status = AGAIN[why]
    family = FAMILIES[0]
    with FaultyGateway() as faulty:
        faulty.script("charge", step)
        gateway = Gateway(faulty.url, credentials=Vault(Bearer), clock=FakeClock())
        client: Any = gateway.protect(client_of(family))
        client._transport._opener._max_body = cap
        async with client:
            said = await say(client, faulty.url, content=_in_pieces())
        fits = cap == len(BODY)
        assert [entry.status for entry in faulty.journal] == ([status, 200] if fits else [status])
        assert {entry.body for entry in faulty.journal} == {BODY}
        assert (said.text == "charged 1") == fits


@pytest.mark.parametrize("family", FAMILIES)
async def test_a_body_whose_writer_breaks_off_reaches_nobody(family: str) -> None:
    """D10, D3, C21 of the bug reports. It was to be gathered first, and so nothing was sent."""

    async def breaks_off() -> AsyncIterator[bytes]:
        await anyio.lowlevel.checkpoint()
        yield BODY[:100]
        message = "the disk is gone"
        raise OSError(message)

    with FaultyGateway() as faulty:
        gateway = Gateway(faulty.url, clock=FakeClock())
        async with gateway.protect(client_of(family)) as client:
            with pytest.raises(OSError, match="the disk is gone"):
                await say(client, faulty.url, content=breaks_off())
            assert faulty.journal == ()
            assert (await say(client, faulty.url)).text == "charged 1"
