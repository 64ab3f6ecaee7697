"""R107 to R109, R116, R72, B8. Each row of the page of leaks is held by a test; here are the rest.

Bug reports of the same kinds: a token with a line end that an error prints whole, and URLs with
passwords and query secrets in logs.
"""

from __future__ import annotations

import io
import logging
import re
import traceback
from collections.abc import Generator
from pathlib import Path
from typing import Any, Final

import httpx2
import pytest

import surefoot
from support.sending import DONE, URL, message
from surefoot import Bearer, Gateway
from surefoot.credentials import CredentialRequest, Issued
from surefoot.errors import InvalidCredentialError
from surefoot.testing import ScriptedTransport, SecretLeakError, assert_no_secret

CANARY: Final = "CANARY-9c41-leak"
ROOT: Final = Path(__file__).resolve().parents[2]
PAGE: Final = ROOT / "docs" / "reference" / "leaks.md"

PRINTS: Final = (
    ("httpx", logging.INFO),
    ("httpx2", logging.INFO),
    ("httpcore.connection", logging.DEBUG),
    ("httpcore.http11", logging.DEBUG),
    ("httpcore2.http11", logging.DEBUG),
    ("httpcore2.http2", logging.DEBUG),
    ("h11", logging.DEBUG),
    ("hpack.hpack", logging.DEBUG),
    ("hpack.table", logging.DEBUG),
    ("h2.something", logging.DEBUG),
    ("mcp.client.streamable_http", logging.INFO),
    ("mcp.client.streamable_http", logging.DEBUG),
    ("mcp.client.auth.oauth2", logging.DEBUG),
    ("mcp.client.something_new", logging.DEBUG),
    ("mcp.shared.jsonrpc_dispatcher", logging.DEBUG),
)


@pytest.fixture
def printed() -> Generator[io.StringIO]:
    """What an app with logging at DEBUG prints; every logger is put back."""
    said = io.StringIO()
    handler = logging.StreamHandler(said)
    root = logging.getLogger()
    loggers = list(logging.root.manager.loggerDict.values())
    before = [
        (one, one.level, list(one.filters)) for one in loggers if isinstance(one, logging.Logger)
    ]
    level = root.level
    root.addHandler(handler)
    root.setLevel(logging.DEBUG)
    yield said
    root.removeHandler(handler)
    root.setLevel(level)
    for logger in logging.root.manager.loggerDict.values():
        if isinstance(logger, logging.Logger):
            logger.filters.clear()
            logger.setLevel(logging.NOTSET)
    for logger, was, filters in before:
        logger.setLevel(was)
        logger.filters.extend(filters)


@pytest.mark.parametrize(("name", "level"), PRINTS)
def test_the_logger_is_silent(name: str, level: int, printed: io.StringIO) -> None:
    """R109. Below WARNING; also where a level is set later. Without the call it prints: control."""
    logger = logging.getLogger(name)
    logger.log(level, "before %s", CANARY)
    assert CANARY in printed.getvalue()
    surefoot.quiet_loggers()
    surefoot.quiet_loggers()
    if name != "mcp.client.something_new":
        logger.setLevel(logging.DEBUG)
    printed.truncate(0)
    logger.log(level, "after %s", CANARY)
    assert CANARY not in printed.getvalue()
    logger.warning("a warning")
    assert "a warning" in printed.getvalue()


@pytest.mark.anyio
async def test_a_call_is_not_printed_by_the_loggers_of_others(printed: io.StringIO) -> None:
    """R109, C27 of the bug reports. The real client; the query of the URL is the secret."""
    for quiet in (False, True):
        if quiet:
            surefoot.quiet_loggers()
            printed.truncate(0)
        await _call(Gateway(f"{URL}&more={CANARY}"), ScriptedTransport(DONE))
        assert (CANARY in printed.getvalue()) is not quiet


def test_our_own_logger_is_left_as_it_is(printed: io.StringIO) -> None:
    """R52. A wait and a give-up are still said."""
    surefoot.quiet_loggers()
    logging.getLogger("surefoot").info("waiting for a while")
    assert "waiting for a while" in printed.getvalue()


async def _call(gateway: Gateway, wire: Any) -> httpx2.Response:
    asked = message()
    client = httpx2.AsyncClient(transport=wire)
    async with gateway.protect(client):
        return await client.post(gateway.url, content=asked.body, headers=dict(asked.headers))


@pytest.mark.anyio
async def test_the_request_of_an_answer_has_no_credential() -> None:
    """R107, R119. What was sent had it: the control."""
    wire = ScriptedTransport(DONE)
    response = await _call(Gateway(URL, credentials=Bearer(CANARY)), wire)
    assert CANARY not in str(response.request.headers.raw)
    assert wire.requests[0].header_values("authorization") == (f"Bearer {CANARY}".encode(),)


MALFORMED: Final = ("\n", " ", "\t", "\x00", "\u00e9", "\x7f", "\r\nx: y")


@pytest.mark.parametrize("bad", MALFORMED, ids=repr)
@pytest.mark.parametrize("before", [True, False], ids=["before", "after"])
def test_a_malformed_value_is_refused_without_an_echo(bad: str, before: bool) -> None:
    """B8, R108, C25 of the bug reports. What secret stores add; the error has no chain."""
    with pytest.raises(InvalidCredentialError) as caught:
        Bearer(f"{bad}{CANARY}" if before else f"{CANARY}{bad}")
    said = "".join(traceback.format_exception(caught.value))
    assert CANARY not in said
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None


def test_what_a_provider_hands_out_shows_nothing() -> None:
    """R107, R108. A bare token shows itself in the same places: the control."""
    issued = Issued(Bearer(CANARY))
    assert_no_secret(CANARY, repr(issued), str(issued), f"{issued}", skip=["tasks", "requests"])
    with pytest.raises(SecretLeakError):
        assert_no_secret(CANARY, f"Issued({CANARY})", skip=["objects", "tasks", "requests"])


@pytest.mark.parametrize("user", ["user:CANARY@", "CANARY@", ":CANARY@"])
def test_user_information_in_a_url_is_refused(user: str) -> None:
    """R72, R112, C27 of the bug reports. An HTTP library makes Basic of it, unasked."""
    with pytest.raises(ValueError, match="credentials=Basic") as caught:
        Gateway(f"https://{user.replace('CANARY', CANARY)}gateway.example.com/mcp")
    assert CANARY not in str(caught.value)


@pytest.mark.anyio
async def test_a_signers_text_is_quoted_by_nobody() -> None:
    """R116. It sees the credential; what it raises is told by its kind alone."""
    seen: list[str] = []

    async def sign(request: Any) -> Any:
        seen.append(request.headers["authorization"])
        raise RuntimeError(f"cannot sign {seen[0]}")

    wire = ScriptedTransport(DONE)
    response = await _call(Gateway(URL, credentials=Bearer(CANARY), signer=sign), wire)
    assert seen == [f"Bearer {CANARY}"]
    assert not wire.requests
    assert CANARY not in response.text


@pytest.mark.anyio
async def test_each_attempt_asks_the_provider() -> None:
    """R105, R110, C07 of the bug reports. A connection lives for hours, its token does not."""

    class Vault:
        vended = 0

        async def vend(self, request: CredentialRequest, /) -> Issued:
            """The newest one."""
            del request
            self.vended += 1
            return Issued(Bearer(f"token-{self.vended}"))

    wire: Any = ScriptedTransport(DONE, DONE)
    client = Gateway(URL, credentials=Vault()).protect(httpx2.AsyncClient(transport=wire))
    asked = message()
    async with client:
        for _ in range(2):
            await client.post(URL, content=asked.body, headers=dict(asked.headers))
    sent = [one.header_values("authorization") for one in wire.requests]
    assert sent == [(b"Bearer token-1",), (b"Bearer token-2",)]


def test_each_row_of_the_page_names_a_test_that_exists() -> None:
    """R109. Each channel is closed by somebody, and each but the heap has a test."""
    rows = [line.split("|")[1:-1] for line in PAGE.read_text("utf-8").splitlines() if "|" in line]
    channels = [[cell.strip() for cell in row] for row in rows[2:]]
    assert len(channels) > 15
    written = "".join(path.read_text("utf-8") for path in (ROOT / "tests").rglob("test_*.py"))
    for channel, _, closed_by, _, test in channels:
        assert closed_by in {"surefoot", "`quiet_loggers()`", "the app", "nobody"}, channel
        names = re.findall(r"test_\w+", test)
        assert names or closed_by == "nobody", channel
        for name in names:
            assert f"def {name}(" in written, name


OF_THE_SDK: Final = ("`mcp.client` at ERROR", "`MCPError`", "Spans of the SDK", "instrumentation")


@pytest.mark.parametrize("channel", OF_THE_SDK)
def test_a_row_about_the_sdk_names_a_test_that_runs_it(channel: str) -> None:
    """R109. A test without the SDK finds nothing in its channels, whatever we do."""
    (row,) = [line for line in PAGE.read_text("utf-8").splitlines() if channel in line]
    names = re.findall(r"test_\w+", row.split("|")[-2])
    sessions = (ROOT / "tests" / "gateway" / "test_secrecy.py").read_text("utf-8")
    assert names
    for name in names:
        assert f"def {name}(" in sessions, f"{name} opens no session of the SDK"
