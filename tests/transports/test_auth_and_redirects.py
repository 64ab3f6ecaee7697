"""B9, B11, D4: a 401 causes one forced vend and one send more; redirects stay at home."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from support.sending import DONE, REFUSED, sent_through
from surefoot.credentials import (
    AuthorizationRequired,
    Bearer,
    CredentialRequest,
    Issued,
    SharedCredentials,
    StaticCredentials,
    as_provider,
)
from surefoot.errors import AuthorizationRequiredError, CredentialError
from surefoot.policy import Retry
from surefoot.testing import FakeClock, Replies, ScriptedTransport
from surefoot.transports import VendingTransport

pytestmark = pytest.mark.anyio

UNAUTHORIZED = Replies(401)


def _with(credentials: Any, **settings: Any) -> Callable[[Any], VendingTransport]:
    return lambda wire: VendingTransport(wire, credentials=credentials, **settings)


def _tokens(wire: ScriptedTransport) -> list[bytes]:
    return [value for sent in wire.requests for value in sent.header_values("authorization")]


class Issuer:
    """Vends ``t1``, ``t2``, and so on, and remembers what it was asked."""

    def __init__(self) -> None:
        self.asked: list[CredentialRequest] = []

    async def vend(self, request: CredentialRequest, /) -> Issued:
        """One more."""
        self.asked.append(request)
        return Issued(Bearer(f"t{len(self.asked)}"))


async def test_a_rejected_credential_is_forced_once_and_the_request_sent_once_more(
    family: Any,
) -> None:
    """D4, B9. The provider is told that it was rejected, and which one; nobody waits."""
    issuer = Issuer()
    wire = ScriptedTransport(UNAUTHORIZED, DONE)
    outcome = await sent_through(family, wire, between=_with(issuer))
    assert (outcome.status, outcome.sends, outcome.slept) == (200, 2, ())
    assert _tokens(wire) == [b"Bearer t1", b"Bearer t2"]
    assert [asked.force for asked in issuer.asked] == [False, True]
    assert issuer.asked[0].rejected is None
    assert issuer.asked[1].rejected is not None
    assert outcome.permissions == [("policy", "auth-rejected-before-execution"), None]
    assert [one["reason"] for one in outcome.attempts] == ["first", "auth"]


async def test_a_second_rejection_is_delivered(family: Any) -> None:
    """B9. A fresh credential that is rejected is not retried in a loop."""
    wire = ScriptedTransport(UNAUTHORIZED, UNAUTHORIZED)
    outcome = await sent_through(family, wire, between=_with(Issuer()), retry=Retry(max_attempts=9))
    assert (outcome.status, outcome.sends) == (401, 2)
    assert outcome.record["why"] == "final-answer"


async def test_a_refusal_in_between_does_not_win_a_second_forced_vend(family: Any) -> None:
    """B9, R31. One for each call."""
    issuer = Issuer()
    wire = ScriptedTransport(UNAUTHORIZED, REFUSED, UNAUTHORIZED)
    outcome = await sent_through(family, wire, between=_with(issuer), retry=Retry(max_attempts=9))
    assert (outcome.status, outcome.sends) == (401, 3)
    assert [asked.force for asked in issuer.asked] == [False, True, False]


@pytest.mark.parametrize(
    "credentials", [StaticCredentials(Bearer("static-token")), None], ids=["static", "none"]
)
async def test_a_401_that_no_vend_can_change_is_delivered(family: Any, credentials: Any) -> None:
    """D4. The same value again is not a fresh one; and the user's own header is not ours."""
    wire = ScriptedTransport(UNAUTHORIZED)
    outcome = await sent_through(family, wire, between=_with(credentials))
    assert (outcome.status, outcome.sends) == (401, 1)


async def test_a_401_counts_as_a_send(family: Any) -> None:
    """Invariant 1, D4. Within ``max_attempts``."""
    wire = ScriptedTransport(UNAUTHORIZED)
    outcome = await sent_through(family, wire, between=_with(Issuer()), retry=Retry(max_attempts=1))
    assert (outcome.status, outcome.sends, outcome.record["why"]) == (401, 1, "attempts-spent")


async def test_a_forced_vend_that_fails_is_told_as_what_it_is(family: Any) -> None:
    """R108, D4. A local credential failure is never dressed as the server's 401."""

    async def once(request: CredentialRequest) -> Any:
        if request.force:
            raise CredentialError("the issuer is away", service="gateway")
        return Bearer("first-token")

    async def consent(request: CredentialRequest) -> Any:
        if request.force:
            return AuthorizationRequired("gateway", "https://issuer.example/consent")
        return Bearer("first-token")

    for vend, kind in ((once, CredentialError), (consent, AuthorizationRequiredError)):
        wire = ScriptedTransport(UNAUTHORIZED)
        outcome = await sent_through(family, wire, between=_with(as_provider(vend)))
        assert isinstance(outcome.error, kind)
        assert outcome.sends == 1
        assert [one["outcome"] for one in outcome.attempts] == ["answered", "not_sent"]
        assert outcome.record["why"] == "credential-failed"
        assert outcome.record["may_have_run"] is False


async def test_what_a_server_accepted_is_marked_and_what_it_rejected_is_not(family: Any) -> None:
    """B9. So a provider tells a credential that ran out from one that never worked."""
    kept: list[Issued] = []

    async def vend(_: object) -> Any:
        kept.append(Issued(Bearer(f"token-{len(kept)}")))
        return kept[-1]

    wire = ScriptedTransport(UNAUTHORIZED, Replies(403))
    await sent_through(family, wire, between=_with(as_provider(vend)))
    assert [issued.generation.accepted for issued in kept] == [False, True]


async def test_a_credential_that_was_accepted_once_does_not_open_the_breaker(family: Any) -> None:
    """B9. The control: fresh ones that never worked do, and then nothing is asked for."""
    for plays, sound in (([DONE, UNAUTHORIZED, DONE], True), ([UNAUTHORIZED], False)):
        shared = SharedCredentials(Issuer(), max_rejections=1, clock=FakeClock())
        wire = ScriptedTransport(*plays)
        if sound:
            await sent_through(family, wire, between=_with(shared))
        outcome = await sent_through(family, wire, between=_with(shared))
        assert isinstance(outcome.error, CredentialError) is not sound
        assert len(wire.requests) == len(plays)


# ----------------------------------------------------------------------------------- redirects


@pytest.mark.parametrize("status", [307, 308])
@pytest.mark.parametrize(
    ("location", "goes_to"),
    [
        ("/elsewhere", "http://gateway.test/elsewhere"),
        ("elsewhere?x=1", "http://gateway.test/elsewhere?x=1"),
        ("http://gateway.test/b", "http://gateway.test/b"),
        ("http://gateway.test:80/b", "http://gateway.test/b"),
        ("HTTP://GATEWAY.TEST/b", "http://gateway.test/b"),
        ("//gateway.test/b", "http://gateway.test/b"),
    ],
)
async def test_a_redirect_within_the_origin_is_followed_as_a_send(
    family: Any, status: int, location: str, goes_to: str
) -> None:
    """B11, D32. Method and body are kept, and nobody waits; the protocol permits it."""
    wire = ScriptedTransport(Replies(status, headers={"location": location}), DONE)
    outcome = await sent_through(family, wire, redirects=True)
    assert (outcome.status, outcome.sends, outcome.slept) == (200, 2, ())
    first, second = wire.requests
    assert (second.url, second.method, second.body) == (goes_to, "POST", first.body)
    assert outcome.permissions == [("protocol", None), None]
    assert [one["reason"] for one in outcome.attempts] == ["first", "redirect"]


@pytest.mark.parametrize(
    ("status", "headers"),
    [
        (307, [("location", "http://elsewhere.test/mcp")]),
        (307, [("location", "https://gateway.test/mcp")]),
        (307, [("location", "http://gateway.test:8080/mcp")]),
        (307, [("location", "http://gateway.test./mcp")]),
        (307, [("location", "http://sub.gateway.test/mcp")]),
        (307, [("location", "//elsewhere.test/mcp")]),
        (307, [("location", "http://user@gateway.test/mcp")]),
        (307, [("location", "http://user:word@gateway.test/mcp")]),
        (307, [("location", "ftp://gateway.test/mcp")]),
        (307, [("location", "javascript:alert(1)")]),
        (307, [("location", "http://[::1/mcp")]),
        (307, [("location", b"/\xff")]),
        (307, [("location", "/a"), ("location", "/a")]),
        (307, []),
        (308, [("location", "http://elsewhere.test/mcp")]),
        (301, [("location", "/b")]),
        (302, [("location", "/b")]),
        (303, [("location", "/b")]),
        (300, [("location", "/b")]),
        (304, [("location", "/b")]),
        (200, [("location", "/b")]),
    ],
)
async def test_every_other_redirect_is_delivered_and_nothing_goes_there(
    family: Any, status: int, headers: list[tuple[str, str | bytes]]
) -> None:
    """B11. The control is above."""
    wire = ScriptedTransport(Replies(status, headers=headers))
    outcome = await sent_through(family, wire, redirects=True, between=_with(Issuer()))
    # (Of some of these the client above says itself that they are no URL.)
    assert (outcome.record["status"], outcome.sends) == (status, 1)


async def test_redirects_are_not_followed_where_that_is_not_asked_for(family: Any) -> None:
    """B11. A transport has none of its own accord."""
    wire = ScriptedTransport(Replies(307, headers={"location": "/b"}))
    outcome = await sent_through(family, wire)
    assert (outcome.status, outcome.sends) == (307, 1)


async def test_a_redirect_is_vended_and_signed_again(family: Any) -> None:
    """B11, R18. A signature is for one URL."""

    async def sign(request: Any) -> Any:
        request.headers["x-signature"] = f"for {request.url.path}"
        return request

    wire = ScriptedTransport(Replies(307, headers={"location": "/b"}), DONE)
    await sent_through(family, wire, redirects=True, between=_with(Issuer(), signer=sign))
    assert _tokens(wire) == [b"Bearer t1", b"Bearer t2"]
    signatures = [sent.header_values("x-signature") for sent in wire.requests]
    assert signatures == [(b"for /mcp",), (b"for /b",)]


async def test_redirects_count_and_a_circle_of_them_ends(family: Any) -> None:
    """B11, invariant 1, invariant 17. Within ``max_attempts``, and after twenty without any."""
    for limit, sends in ((3, 3), (None, 21)):
        wire = ScriptedTransport(Replies(307, headers={"location": "/b"}), repeat=True)
        outcome = await sent_through(family, wire, redirects=True, retry=Retry(max_attempts=limit))
        assert (outcome.status, outcome.sends) == (307, sends)
        assert outcome.record["why"] == "attempts-spent"


async def test_after_a_redirect_a_refusal_is_repeated_where_it_led(family: Any) -> None:
    """B11, R31. One series all the way."""
    wire = ScriptedTransport(Replies(307, headers={"location": "/b"}), REFUSED, DONE)
    outcome = await sent_through(family, wire, redirects=True)
    assert [sent.url for sent in wire.requests][1:] == ["http://gateway.test/b"] * 2
    assert outcome.status == 200
