"""D3, R10: what is proven never to have left, and who may prove it."""

from __future__ import annotations

import socket
from collections.abc import Callable
from typing import Any

import pytest

from support.sending import DONE, filed, ledger_into, lowest, message, post, sent_through
from surefoot.policy import Replay, Retry, ToolRule
from surefoot.testing import Fails, FakeClock, RecordingSink, ScriptedTransport
from surefoot.transports import RetryingTransport, VendingTransport

pytestmark = pytest.mark.anyio

NEVER_LEFT = ("ConnectError", "ConnectTimeout", "PoolTimeout")
IN_DOUBT = (
    "ReadError",
    "ReadTimeout",
    "WriteError",
    "WriteTimeout",
    "RemoteProtocolError",
    "LocalProtocolError",
    "ProxyError",
    "CloseError",
    "NetworkError",
    "TransportError",
)


@pytest.mark.parametrize("name", NEVER_LEFT)
async def test_what_never_left_is_sent_again_under_every_policy(family: Any, name: str) -> None:
    """D3. Also a tool that makes changes: nothing reached it."""
    replay = Replay(policy="app-authorized", tools={"search": ToolRule(makes_changes=True)})
    wire = ScriptedTransport(Fails(name), DONE, proves_not_sent=True)
    outcome = await sent_through(family, wire, replay=replay)
    assert (outcome.status, outcome.sends) == (200, 2)
    assert outcome.permissions == [("proof", None), None]
    assert [one["effect"] for one in outcome.attempts] == ["not_sent", "unknown"]
    assert outcome.record["may_have_run"] is False


@pytest.mark.parametrize("name", IN_DOUBT)
async def test_if_in_doubt_the_effect_is_unknown(family: Any, name: str) -> None:
    """D3, R10. Every other error, also from a transport that proves."""
    wire = ScriptedTransport(Fails(name), proves_not_sent=True)
    outcome = await sent_through(family, wire)
    assert outcome.sends == 1
    (attempt,) = outcome.attempts
    assert (attempt["outcome"], attempt["effect"]) == ("unanswered", "unknown")
    assert attempt["sends_at_least_one"] is False
    assert outcome.record["may_have_run"] is True


@pytest.mark.parametrize("name", NEVER_LEFT)
async def test_another_transports_word_proves_nothing_unless_it_declares_it(
    family: Any, name: str
) -> None:
    """D3. It may have sent before it failed, and the record says "at least one"."""
    outcome = await sent_through(family, ScriptedTransport(Fails(name)))
    assert outcome.sends == 1
    (attempt,) = outcome.attempts
    assert (attempt["effect"], attempt["sends_at_least_one"]) == ("unknown", True)


def _closed_port() -> str:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    return f"http://127.0.0.1:{port}/mcp"


def _bare(wire: Any) -> Any:
    return wire


def _below_vending(wire: Any) -> Any:
    return VendingTransport(wire)


def _nobodys(wire: Any) -> Any:
    """A wrapper of somebody else's, which may do anything."""

    class Wrapper:
        wrapped = wire

        async def handle_async_request(self, request: Any) -> Any:
            return await wire.handle_async_request(request)

        async def aclose(self) -> None:
            await wire.aclose()

    return Wrapper()


def _subclassed(wire: Any) -> Any:
    """A subclass of the family's own, which may do anything, too."""
    kind: Any = wire.__class__
    return type("Subclass", (kind,), {})()


def _nobodys_below_vending(wire: Any) -> Any:
    return _below_vending(_nobodys(wire))


def _subclassed_below_vending(wire: Any) -> Any:
    return _below_vending(_subclassed(wire))


def _none(wire: Any) -> Any:
    del wire


@pytest.mark.parametrize(
    ("between", "proves"),
    [
        (_bare, True),
        (_below_vending, True),
        (_none, True),
        (_nobodys, False),
        (_subclassed, False),
        (_nobodys_below_vending, False),
        (_subclassed_below_vending, False),
    ],
    ids=["its own", "below a layer of ours", "made at the first call", "wrapped", "subclassed",
         "wrapped below a layer of ours", "subclassed below a layer of ours"],
)  # fmt: skip
async def test_the_familys_own_transport_proves_it_and_its_exact_type_alone(
    family: Any, between: Callable[[Any], Any], proves: bool
) -> None:
    """D3, R78. Over a real socket: a connection that is refused."""
    sink = RecordingSink()
    transport = RetryingTransport(
        between(family.AsyncHTTPTransport()),
        retry=Retry(max_attempts=2),
        ledger=ledger_into(sink),
        clock=FakeClock(),
        draw=lowest,
    )
    with pytest.raises(family.ConnectError):
        await post(family, transport, message(), url=_closed_port())
    await transport.aclose()
    record = filed(sink)
    assert len(record["attempts"]) == (2 if proves else 1)
    assert record["may_have_run"] is not proves
    assert record["ended"] == ("not_sent" if proves else "unanswered")


async def test_reconnect_switched_off_leaves_the_apps_word(family: Any) -> None:
    """D3, R10, R80. Without the proof it is a network failure like any other, which did not run."""
    for tools, sends in (({}, 1), ({"search": ToolRule(repeat_on={"network"})}, 2)):
        wire = ScriptedTransport(Fails("ConnectError"), DONE, proves_not_sent=True)
        outcome = await sent_through(
            family, wire, retry=Retry(reconnect=False), replay=Replay(tools=tools)
        )
        assert outcome.sends == sends
        assert outcome.record["may_have_run"] is False


async def test_what_may_be_called_into_doubt_later_may_be_switched(family: Any) -> None:
    """D3. A transport is asked when it failed, not when the series was built."""
    wire = ScriptedTransport(Fails("ConnectError"), Fails("ConnectError"))
    assert (await sent_through(family, wire)).sends == 1
    wire.proves_not_sent = True
    outcome = await sent_through(family, wire, retry=Retry(max_attempts=1))
    assert outcome.record["may_have_run"] is False
