"""D3, R41. A gateway that nobody reaches is told as such, with the reason in fixed words."""

from __future__ import annotations

import socket
import ssl

import pytest

from support.checking import Check, seen
from surefoot.cli import _exit_codes as codes
from surefoot.cli._check_reach import why_unreached
from surefoot.testing import FaultyGateway, Reset
from surefoot.transports import never_left

pytestmark = pytest.mark.both_majors

CANARY = "canary-5d21"


class ConnectError(Exception):
    """Called as the HTTP libraries call theirs."""


def raised(*chain: BaseException) -> BaseException:
    """An error that came from the others, the last one first."""
    error: BaseException = ConnectError(CANARY)
    below = error
    for one in chain:
        below.__cause__ = one
        below = one
    return error


def test_a_port_where_nobody_listens_is_said_to_be_one(check: Check) -> None:
    """D3. It is tried again, and no answer of the gateway's is blamed: there was none."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    told = seen(check(f"http://127.0.0.1:{port}/mcp", "--json"))
    assert told["failed"] == "it could not be reached: nobody listens there"
    assert told["exit_code"] == codes.FAILED
    assert told["protocol"] is None
    assert told["answers"] == {"read": 0, "problems": [], "unjudged": []}


def test_plain_http_in_the_place_of_https_is_guessed(check: Check) -> None:
    with FaultyGateway() as gateway:
        told = seen(check(gateway.url.replace("http:", "https:"), "--json"))
        assert gateway.journal == ()
    assert told["failed"] == (
        "it could not be reached: no TLS could be agreed on; is it plain http?"
    )


def test_a_connection_that_died_was_one(check: Check) -> None:
    """D3. The control: what was reached is not told as out of reach."""
    with FaultyGateway() as gateway:
        gateway.script("server/discover", Reset(when="before-headers"), repeat=True)
        gateway.script("initialize", Reset(when="before-headers"), repeat=True)
        told = seen(check(gateway.url, "--json"))
    assert "no answer came back" in told["failed"]
    assert "no-answer" in {one["rule"] for one in told["answers"]["problems"]}


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (raised(ConnectionRefusedError(CANARY)), "nobody listens there"),
        (raised(OSError(CANARY), ConnectionRefusedError(CANARY)), "nobody listens there"),
        (
            raised(OSError(CANARY), ExceptionGroup("", [OSError(), ConnectionRefusedError()])),
            "nobody listens there",
        ),
        (raised(socket.gaierror(CANARY)), "its name cannot be looked up"),
        (
            raised(ssl.SSLCertVerificationError(CANARY)),
            "its certificate is not valid for this name and machine",
        ),
        (raised(ssl.SSLError(CANARY)), "no TLS could be agreed on; is it plain http?"),
        (raised(TimeoutError(CANARY)), "no connection came about in time"),
        (raised(OSError(CANARY)), "no connection came about"),
        (raised(), "no connection came about"),
    ],
)
def test_the_reason_is_in_the_chain_of_errors_and_in_fixed_words(
    error: BaseException, words: str
) -> None:
    """R41. No text of an error is handed on: it may hold an address."""
    assert never_left(error, proven=True)
    assert why_unreached(error) == words
    assert CANARY not in words


def test_a_chain_that_leads_back_to_itself_has_an_end() -> None:
    error = raised(OSError())
    below = error.__cause__
    assert below is not None
    below.__context__ = error
    assert why_unreached(error) == "no connection came about"


@pytest.mark.parametrize("error", [ValueError(), ConnectionResetError(), TimeoutError()])
def test_another_error_proves_nothing(error: Exception) -> None:
    assert not never_left(error, proven=True)
