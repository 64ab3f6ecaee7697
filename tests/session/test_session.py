"""D35, D29, B1, B6, R27. Our own client: typed errors, one reconnection, nothing replayed.

In each era that the installed SDK speaks, over real sockets, on asyncio and on trio.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any, Final

import anyio
import anyio.lowlevel
import pytest

from support.sessions import KINDS, SDK_ON_TRIO, Gate, Kind, nothing_left
from surefoot import Bearer, Gateway, Replay, Retry, ToolRule
from surefoot.credentials import AuthorizationRequired, CredentialRequest
from surefoot.errors import (
    AuthorizationRequiredError,
    CredentialError,
    DeadlineExceededError,
    MayHaveRunError,
    NotSentError,
    RateLimitedError,
    SessionLostError,
    SurefootError,
    ToolError,
    UnreadableAnswerError,
)
from surefoot.gateway import GatewaySession
from surefoot.testing import (
    BadJson,
    FaultyGateway,
    IsError,
    Reset,
    RpcError,
    Slow,
    SseCut,
    Status,
    Step,
    Throttle,
    Tool,
)

pytestmark = [pytest.mark.both_majors, pytest.mark.anyio, *SDK_ON_TRIO]

QUICK: Final = Retry(max_attempts=2, base_delay=0.01)
ERAS: Final[dict[Kind, tuple[str, ...]]] = {
    "modern": ("2026-07-28",),
    "handshake": ("2025-11-25",),
    "mcp1": ("2025-11-25",),
}
IN_SESSION: Final = [kind for kind in KINDS if kind != "modern"]
"""The kinds whose server can lose a session."""


def _server(kind: Kind, *tools: Tool, **options: Any) -> FaultyGateway:
    return FaultyGateway(tools, eras=ERAS[kind], **options)


@asynccontextmanager
async def _session(faulty: FaultyGateway, **options: Any) -> AsyncGenerator[GatewaySession]:
    """An open session, with everything in it bounded and nothing left behind."""
    options.setdefault("retry", QUICK)
    with anyio.fail_after(10):
        async with nothing_left(faulty), Gateway(faulty.url, **options).session() as session:
            yield session


@pytest.mark.parametrize("kind", KINDS)
async def test_a_call_gives_text_and_structure(kind: Kind) -> None:
    """D35. And the server's session is ended by a DELETE where the era has one."""
    sums = Tool("sums", answer={"total": 7}, output_schema={"type": "object"})
    with _server(kind, sums) as faulty:
        async with _session(faulty) as session:
            found = await session.call("search", {"q": "it"})
            summed = await session.call("sums")
            kinds = type(session.client).__mro__
            assert any(kind.__module__.startswith("mcp.") for kind in kinds)
        assert (found.text, found.structured, found.is_error) == ("found it", None, False)
        assert summed.structured == {"total": 7}
        assert "found it" not in repr(found)
        assert len(faulty.requests("DELETE")) == (kind != "modern")


@pytest.mark.parametrize("kind", KINDS)
async def test_the_tools_are_asked_for_once_and_again_on_request(
    kind: Kind, caplog: pytest.LogCaptureFixture
) -> None:
    """D29. A declared tool that the server does not list is reported once."""
    declared = {"charge": ToolRule(makes_changes=True), "chagre": ToolRule(makes_changes=True)}
    with _server(kind) as faulty:
        async with _session(faulty, replay=Replay(tools=declared)) as session:
            for _ in range(2):
                assert "charge" in [tool.name for tool in await session.tools()]
            assert len(faulty.requests("tools/list")) == 1
            await session.refresh()
            assert len(faulty.requests("tools/list")) == 2
    told = [record.getMessage() for record in caplog.records if "does not list" in record.msg]
    assert len(told) == 1
    assert "'chagre'" in told[0]


FAULTS: Final[list[tuple[Step, type[SurefootError], int]]] = [
    (IsError("declined"), ToolError, 1),
    (Throttle(60), RateLimitedError, 0),
    (Status(503), MayHaveRunError, 0),
    (Status(400, "no"), NotSentError, 0),
    (Status(403), CredentialError, 0),
    (Reset("after-run"), MayHaveRunError, 1),
    (SseCut(), MayHaveRunError, 1),
    (BadJson("duplicate-keys"), MayHaveRunError, 1),
]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("step", "error", "ran"), FAULTS, ids=lambda value: str(value)[:30])
async def test_what_happened_is_a_type(
    step: Step, error: type[SurefootError], ran: int, kind: Kind
) -> None:
    """R27, D35. The session lives on, and the call was made once."""
    with _server(kind) as faulty:
        async with _session(faulty) as session:
            faulty.script("charge", step)
            with pytest.raises(error) as raised:
                await session.call("charge", {"amount": 1})
            assert type(raised.value) is error
            assert (await session.call("search", {"q": "it"})).text == "found it"
        assert faulty.executions("charge") == ran
        assert len(faulty.requests("charge")) == 1
    caught: Any = raised.value
    if isinstance(step, BadJson):
        assert isinstance(caught.__cause__, UnreadableAnswerError)
        assert caught.__cause__.rule == "duplicate-key"
    if error is MayHaveRunError:
        assert (caught.tool, caught.attempts) == ("charge", 1)
        assert caught.call_id
    if error is ToolError:
        assert caught.result.content[0].text == "declined"


@pytest.mark.parametrize("kind", KINDS)
async def test_the_servers_own_error_is_the_sdks(kind: Kind) -> None:
    """D35, D20. A JSON-RPC error of the server passes as the SDK raises it."""
    with _server(kind) as faulty:
        async with _session(faulty) as session:
            faulty.script("search", RpcError(-32602, "no such column", status=200))
            with pytest.raises(Exception, match="no such column") as raised:
                await session.call("search")
            assert not isinstance(raised.value, SurefootError)
            assert (await session.call("search", {"q": "it"})).text == "found it"


@pytest.mark.parametrize("kind", IN_SESSION)
async def test_a_lost_session_is_said_once_and_the_next_call_connects_anew(kind: Kind) -> None:
    """D35. Nothing is replayed."""
    with _server(kind) as faulty:
        async with _session(faulty) as session:
            first = session.client
            faulty.forget_sessions()
            with pytest.raises(SessionLostError):
                await session.call("charge", {"amount": 1})
            assert faulty.executions("charge") == 0
            assert (await session.call("charge", {"amount": 1})).text == "charged 1"
            assert session.client is not first
        assert faulty.executions("charge") == 1
        assert len(faulty.requests("initialize")) == 2


@pytest.mark.parametrize("kind", IN_SESSION)
async def test_many_calls_that_find_the_session_lost_connect_once(
    kind: Kind,
) -> None:
    """D35, B1. And a call that was in flight on the lost session gets its answer."""
    gate = Gate()
    told: list[str] = []
    with _server(kind, Tool("held", answer=gate)) as faulty:
        async with _session(faulty) as session:

            async def once(tool: str) -> None:
                try:
                    told.append((await session.call(tool, {"q": "it"})).text)
                except SessionLostError:
                    told.append("lost")

            async with anyio.create_task_group() as group:
                group.start_soon(once, "held")
                await faulty.until(lambda: faulty.executions("held") == 1)
                faulty.forget_sessions()
                async with anyio.create_task_group() as crowd:
                    for _ in range(5):
                        crowd.start_soon(once, "search")
                assert told == ["lost"] * 5
                async with anyio.create_task_group() as crowd:
                    for _ in range(5):
                        crowd.start_soon(once, "search")
                assert told[5:] == ["found it"] * 5
                gate.open()
            assert told[10:] == ["held a while"]
        assert len(faulty.requests("initialize")) == 2


async def test_a_server_that_cannot_be_reached_is_told_by_type() -> None:
    """D35, D3."""
    with FaultyGateway() as faulty:
        url = faulty.url
    for _ in range(2):
        with pytest.raises(NotSentError), anyio.fail_after(10):
            async with Gateway(url, retry=None).session():
                pass


async def test_a_failed_vend_is_told_by_type_when_connecting() -> None:
    """D35, R117. The URL of a consent is a field."""

    async def consent(request: CredentialRequest) -> AuthorizationRequired:
        return AuthorizationRequired(request.service, "https://example.com/consent?capability=1")

    async def broken(request: CredentialRequest) -> Bearer:
        raise OSError(request.service)

    with FaultyGateway() as faulty:
        async with nothing_left(faulty):
            with pytest.raises(AuthorizationRequiredError) as asked:
                async with Gateway(faulty.url, credentials=consent).session():
                    pass
            with pytest.raises(CredentialError):
                async with Gateway(faulty.url, credentials=broken).session():
                    pass
        assert asked.value.authorization_url.endswith("capability=1")
        assert not faulty.journal


@pytest.mark.parametrize("kind", KINDS)
async def test_a_server_that_keeps_refusing_is_told_by_type_when_connecting(kind: Kind) -> None:
    """D35, B4."""
    with _server(kind) as faulty:
        opening = "server/discover" if kind == "modern" else "initialize"
        faulty.script(opening, Throttle(60), repeat=True)
        if kind == "handshake":
            faulty.clear_scripts()
            faulty.script("initialize", Throttle(60), repeat=True)
        async with nothing_left(faulty):
            with pytest.raises(RateLimitedError):
                async with Gateway(faulty.url, retry=QUICK).session():
                    pass


@pytest.mark.parametrize("kind", KINDS)
async def test_what_the_body_raises_goes_on_as_it_is(kind: Kind) -> None:
    """D35. Not inside a group, and the session is closed."""
    with _server(kind) as faulty:
        with pytest.raises(KeyError) as raised:  # noqa: PT012 - the block is what is tested
            async with _session(faulty) as session:
                await session.call("search")
                raise KeyError("mine")
        assert type(raised.value) is KeyError
        assert len(faulty.requests("DELETE")) == (kind != "modern")


@pytest.mark.parametrize("in_flight", [False, True])
@pytest.mark.parametrize("kind", KINDS)
async def test_an_app_that_is_cancelled_leaves_nothing_behind(kind: Kind, in_flight: bool) -> None:
    """D27, D35. It stays cancelled; a session at rest is ended by its DELETE all the same."""
    gate = Gate()
    with _server(kind, Tool("held", answer=gate)) as faulty:
        async with nothing_left(faulty):
            with anyio.CancelScope() as app:
                async with Gateway(faulty.url).session() as session, anyio.create_task_group() as g:
                    if in_flight:
                        g.start_soon(session.call, "held")
                        await faulty.until(lambda: faulty.executions("held") == 1)
                    app.cancel()
                    await anyio.lowlevel.checkpoint()
            assert app.cancelled_caught
            gate.open()
        if not in_flight:
            assert len(faulty.requests("DELETE")) == (kind != "modern")


@pytest.mark.parametrize("kind", KINDS)
async def test_a_timeout_says_whether_the_call_may_have_run(kind: Kind) -> None:
    """B6, R27, D26. In flight: it may have. Before anything was sent: it did not."""
    vault = anyio.Event()

    async def slow(request: CredentialRequest) -> Bearer:
        if request.mode == "machine" and vault.is_set():
            await anyio.sleep(5)
        return Bearer("token-of-the-vault")

    with _server(kind) as faulty:
        async with _session(faulty, credentials=slow) as session:
            await session.tools()  # so that a busy machine's time for them is not the call's
            faulty.script("charge", Slow(4, when="after"))
            with pytest.raises(MayHaveRunError) as raised:
                await session.call("charge", {"amount": 1}, timeout=0.6)
            assert raised.value.cause == "deadline"
            assert isinstance(raised.value.__cause__, DeadlineExceededError)
            vault.set()
            with pytest.raises(DeadlineExceededError):
                await session.call("search", {"q": "never"}, timeout=0.1)
            vault = anyio.Event()
            await anyio.sleep(0.05)
        assert faulty.executions("search") == 0
        assert not faulty.requests("search")


async def test_a_session_is_entered_once() -> None:
    """D35."""
    with FaultyGateway() as faulty:
        session = Gateway(faulty.url).session()
        async with session:
            pass
        with pytest.raises(RuntimeError, match="entered once"):
            await session.__aenter__()
        with pytest.raises(RuntimeError, match="not open"):
            await session.call("search")
