"""What the AgentCore platform does before a server is asked: addresses, sessions, names of tools.

All requests are signed.
"""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from support.hand_clock import HandClock
from support.rawhttp import RawAnswer, ask
from support.sigv4 import ask_signed
from surefoot.testing import (
    AgentCoreRow,
    AgentCoreStandIn,
    GatewayThrottle,
    RewritingHop,
    SessionLost,
    Throttle,
    Tool,
    mcp_request,
    tool_call,
)

CALL = tool_call("charge", {"amount": 5}, rpc_id=7)
OPEN = mcp_request("initialize", {"protocolVersion": "2025-11-25"}, version=None)
BUSY = "Session operation in progress, please retry"


def test_other_steps_and_tools_serve_as_everywhere() -> None:
    """Scripts mix rows and steps; each attempt uses up one."""
    tools = [Tool("book", answer=lambda arguments: f"booked {arguments.get('seat')}")]
    with AgentCoreStandIn(tools) as stand_in:
        stand_in.script("book", "busy", Throttle(3), "throttle")
        call = tool_call("book", {"seat": 12})
        statuses = [ask_signed(stand_in, call).status for _ in range(3)]
        assert statuses == [200, 429, 200]
        assert stand_in.executions("book") == 0
        assert b"booked 12" in ask_signed(stand_in, call).body
        assert stand_in.executions("book") == 1
        assert stand_in.remaining("book") == 0


@pytest.mark.parametrize(
    ("script", "error", "says"),
    [
        (("charge", "bussy"), ValueError, "takes the name of a row"),
        (("charge", 7), TypeError, "takes steps"),
        (("charge", "identity-throttle"), ValueError, "IdentityRow cannot answer"),
        (("GetResourceApiKey", "throttle"), ValueError, "AgentCoreRow cannot answer"),
        (("GetSomething", "throttle"), ValueError, "no tool, method or HTTP method"),
    ],
)
def test_a_script_that_cannot_mean_anything_is_refused(
    script: tuple[str, str], error: type[Exception], says: str
) -> None:
    """Where it is declared."""
    with AgentCoreStandIn() as stand_in, pytest.raises(error, match=says):
        stand_in.script(*script)


def test_both_addresses_of_the_runtime_and_the_gateway_answer_through_a_hop() -> None:
    """The same signature of the same headers, whatever the hop did to the others."""
    with AgentCoreStandIn(hop=RewritingHop()) as stand_in:
        for url in (stand_in.runtime_url, stand_in.runtime_id_url):
            assert b"charged 5" in ask_signed(stand_in, CALL, url).body
        call = tool_call("orders___charge", {"amount": 6})
        assert b"charged 6" in ask_signed(stand_in, call, stand_in.gateway_url).body
        assert stand_in.executions("charge") == 2
        assert stand_in.executions("orders___charge") == 1
        assert len(stand_in.signatures) == 3
        assert len({made.signature for made in stand_in.signatures}) == 3
        assert stand_in.journal[0].header("via") is None
        assert stand_in.journal[0].header("connection") == b"close"


ELSEWHERE: list[tuple[str, Callable[[AgentCoreStandIn], str], int]] = [
    ("another runtime", lambda s: s.runtime_url.replace("orders-", "others-"), 404),
    ("another endpoint", lambda s: s.runtime_url.replace("DEFAULT", "PROD"), 404),
    ("no endpoint named", lambda s: s.runtime_url.partition("?")[0], 200),
    ("the id alone", lambda s: s.runtime_id_url.partition("&")[0], 400),
    ("another account", lambda s: s.runtime_id_url.replace("123456789012", "210987654321"), 404),
    ("colons as they are", lambda s: s.runtime_url.replace("%3A", ":"), 200),
    ("a slash in the name", lambda s: s.runtime_url.replace("%2F", "/"), 404),
    ("encoded twice", lambda s: s.runtime_url.replace("%", "%25"), 404),
    ("another path", lambda s: f"{s.origin}/runtimes/x/stop", 404),
    ("no service", lambda s: f"{s.origin}/elsewhere", 404),
]


@pytest.mark.parametrize(
    ("url", "status"), [row[1:] for row in ELSEWHERE], ids=[row[0] for row in ELSEWHERE]
)
def test_what_is_not_the_runtimes_address_is_not_answered_as_such(
    url: Callable[[AgentCoreStandIn], str], status: int
) -> None:
    """404 for another runtime, 400 for an id without its account."""
    with AgentCoreStandIn() as stand_in:
        answer = ask_signed(stand_in, CALL, url(stand_in))
        assert answer.status == status
        assert stand_in.executions("charge") == (1 if status == 200 else 0)


def test_the_arn_is_that_of_the_regions_partition() -> None:
    """China and GovCloud have their own."""
    for region, begins in (("us-west-2", "arn:aws:"), ("cn-north-1", "arn:aws-cn:")):
        arn = AgentCoreStandIn(region=region).runtime_arn
        assert arn.startswith(f"{begins}bedrock-agentcore:{region}:123456789012:runtime/orders-")
    assert AgentCoreStandIn(region="us-gov-west-1").runtime_arn.startswith("arn:aws-us-gov:")


def test_get_and_delete_are_not_spoken_and_an_answer_needs_both_types() -> None:
    """405 with AgentCore's odd body; 406."""
    with AgentCoreStandIn() as stand_in:
        for method in ("GET", "DELETE"):
            answer = ask_signed(stand_in, None, method=method)
            assert answer.status == 405
            assert answer.json() == {
                "jsonrpc": "2.0",
                "id": "",
                "result": None,
                "error": {"code": -32600, "message": "HTTP method not supported."},
            }
        for accept in ("application/json", "text/event-stream", "*/*"):
            answer = ask_signed(stand_in, CALL, headers={"accept": accept})
            assert answer.status == 406
        assert stand_in.executions("charge") == 0


@pytest.mark.parametrize(("length", "status"), [(32, 400), (33, 200), (256, 200), (257, 400)])
def test_a_runtime_session_id_has_33_to_256_characters(length: int, status: int) -> None:
    """The MCP session id has no such rule."""
    name = "X-Amzn-Bedrock-AgentCore-Runtime-Session-Id"
    with AgentCoreStandIn() as stand_in:
        assert ask_signed(stand_in, CALL, headers={name: "s" * length}).status == status


@pytest.mark.parametrize("version", ["2026-07-28", "2025-11-25"])
def test_a_stateless_runtime_names_a_session_on_every_answer(version: str) -> None:
    """It takes what the client names, and makes one up where it names none."""
    with AgentCoreStandIn() as stand_in:
        call = tool_call("search", version=version)
        answer = ask_signed(stand_in, call)
        (first,) = answer.values("mcp-session-id")
        (address,) = answer.values("x-amzn-bedrock-agentcore-runtime-session-endpoint-url")
        assert stand_in.canary in address.decode()
        (other,) = ask_signed(stand_in, call).values("mcp-session-id")
        assert first != other
        for name in (first.decode(), "chosen-by-the-client"):
            answer = ask_signed(stand_in, tool_call("search", version=version, session=name))
            assert answer.values("mcp-session-id") == [name.encode()]
            assert answer.status == 200
        note = mcp_request("notifications/initialized", version=version, rpc_id=None)
        told = ask_signed(stand_in, note)
        assert told.status == 202
        assert len(told.values("mcp-session-id")) == 1


def test_a_stateful_runtime_knows_only_the_sessions_that_it_opened() -> None:
    """404 for another, and for all of them once their machine was stopped."""
    with AgentCoreStandIn(stateful=True) as stand_in:
        (name,) = ask_signed(stand_in, OPEN).values("mcp-session-id")
        call = tool_call("search", version="2025-11-25", session=name.decode())
        assert ask_signed(stand_in, call).status == 200
        stranger = tool_call("search", version="2025-11-25", session="another")
        assert ask_signed(stand_in, stranger).json()["error"] == {
            "code": -32001,
            "message": "Session not found",
        }
        stand_in.stop_sessions()
        assert ask_signed(stand_in, call).status == 404
        assert ask_signed(stand_in, OPEN).status == 200


@pytest.mark.parametrize("busy", ["busy", "busy-409"])
@pytest.mark.parametrize("version", ["2026-07-28", "2025-11-25"])
def test_a_session_is_busy_until_its_machine_is_up(version: str, busy: str) -> None:
    """The request that begins it is answered; the others are refused until then; none ran."""
    clock = HandClock()
    with AgentCoreStandIn(provisioning=12, busy=busy, clock=clock) as stand_in:
        first = (
            ask_signed(stand_in, OPEN, at=clock.now())
            if version == "2025-11-25"
            else ask_signed(stand_in, mcp_request("server/discover"), at=clock.now())
        )
        assert first.status == 200
        name = first.values("mcp-session-id")[0].decode() if version == "2025-11-25" else None
        call = tool_call("search", version=version, session=name)

        def asked() -> RawAnswer:
            return ask_signed(stand_in, call, at=clock.now())

        for _ in range(2):
            stand_in_says = asked()
            assert stand_in_says.status == (409 if busy == "busy-409" else 200)
            assert BUSY.encode() in stand_in_says.body
        clock.move(11.9)
        assert BUSY.encode() in asked().body
        assert stand_in.executions("search") == 0
        clock.move(0.2)
        assert b"found everything" in asked().body
        assert stand_in.executions("search") == 1

        stand_in.stop_sessions()
        assert b"found everything" in asked().body  # it has the machine started
        assert BUSY.encode() in asked().body


def test_a_session_without_provisioning_is_never_busy() -> None:
    """The control."""
    with AgentCoreStandIn() as stand_in:
        assert b"found everything" in ask_signed(stand_in, tool_call("search")).body
        assert b"found everything" in ask_signed(stand_in, tool_call("search", rpc_id=2)).body


def test_what_the_platform_refuses_uses_up_no_step() -> None:
    """A bad signature, a busy session, a wrong address."""
    with AgentCoreStandIn(provisioning=60) as stand_in:
        stand_in.script("search", "internal-500")
        assert ask(stand_in, tool_call("search"), path="/mcp").status == 403
        assert ask_signed(stand_in, mcp_request("server/discover")).status == 200
        assert BUSY.encode() in ask_signed(stand_in, tool_call("search")).body
        assert stand_in.remaining("search") == 1
        assert stand_in.signature_faults == ("missing",)


def test_a_gateway_has_its_search_and_names_every_tool_after_its_target() -> None:
    """And 404 for a tool that it does not have, which says nothing about a session."""
    with AgentCoreStandIn(target="shop") as stand_in:
        listed = ask_signed(stand_in, mcp_request("tools/list"), stand_in.gateway_url)
        names = [tool["name"] for tool in json.loads(listed.body)["result"]["tools"]]
        assert names[0] == "x_amz_bedrock_agentcore_search"
        assert names[1:] == ["shop___search", "shop___refund", "shop___charge", "shop___slow"]
        search = tool_call("x_amz_bedrock_agentcore_search", {"query": "refund please"})
        found = json.loads(ask_signed(stand_in, search, stand_in.gateway_url).body)["result"]
        (tool,) = found["structuredContent"]["tools"]
        assert tool["name"] == "shop___refund"
        unknown = ask_signed(stand_in, tool_call("charge"), stand_in.gateway_url)
        assert unknown.status == 404
        assert stand_in.executions("charge") == 0
        assert listed.values("mcp-session-id") == []
        assert ask_signed(stand_in, None, stand_in.gateway_url, method="GET").status == 405


def test_a_gateways_session_is_its_openers_and_ends_on_time() -> None:
    """400 without one, 404 for an unknown one, somebody else's, and an old one."""
    clock = HandClock()
    with AgentCoreStandIn(gateway_sessions=900, clock=clock) as stand_in:
        url = stand_in.gateway_url

        def status(session: str | None, **more: object) -> int:
            call = tool_call("orders___search", version="2025-11-25", session=session)
            return ask_signed(stand_in, call, url, at=clock.now(), **more).status  # pyright: ignore[reportArgumentType]

        opened = ask_signed(stand_in, OPEN, url, at=clock.now())
        name = opened.values("mcp-session-id")[0].decode()
        assert status(name) == 200
        assert status(None) == 400
        assert status("another") == 404
        assert status(name, keys=stand_in.issue_keys()) == 404
        clock.move(899)
        assert status(name) == 200
        clock.move(1)
        assert status(name) == 404
        modern = ask_signed(stand_in, tool_call("orders___search"), url, at=clock.now())
        assert modern.status == 200
        assert modern.values("mcp-session-id") == []


@pytest.mark.parametrize(
    ("build", "error", "says"),
    [
        (lambda: AgentCoreStandIn(auth="iam"), ValueError, "auth"),  # pyright: ignore[reportArgumentType]
        (lambda: AgentCoreStandIn(busy="throttle"), ValueError, "busy"),
        (lambda: AgentCoreStandIn(provisioning=-1), ValueError, "provisioning"),
        (lambda: AgentCoreStandIn(region=""), ValueError, "region"),
        (lambda: AgentCoreStandIn(hop=True), TypeError, "hop"),  # pyright: ignore[reportArgumentType]
        (lambda: AgentCoreStandIn(stateful=1), TypeError, "stateful"),  # pyright: ignore[reportArgumentType]
        (lambda: GatewayThrottle(status=500), ValueError, "status"),  # pyright: ignore[reportArgumentType]
        (lambda: GatewayThrottle(1, 200, form="http"), ValueError, "429 alone"),
        (lambda: AgentCoreRow("", "x", body=lambda _: b""), ValueError, "name"),
        (lambda: AgentCoreRow("x", "x", body=lambda _: b"", status=99), ValueError, "status"),
    ],
)
def test_an_option_that_cannot_mean_anything_is_refused(
    build: Callable[[], object], error: type[Exception], says: str
) -> None:
    """By name."""
    with pytest.raises(error, match=says):
        build()


def test_a_stand_in_that_was_not_opened_has_no_address() -> None:
    """And says so; its repr names no secret."""
    stand_in = AgentCoreStandIn()
    assert repr(stand_in) == "<AgentCoreStandIn closed>"
    with pytest.raises(RuntimeError, match="before it is opened"):
        _ = stand_in.runtime_url
    with stand_in:
        assert repr(stand_in) == f"<AgentCoreStandIn {stand_in.origin}>"
        assert stand_in.url == stand_in.runtime_url


def test_sessions_are_forgotten_on_both_sides() -> None:
    """All of them by hand, one by a step."""
    with AgentCoreStandIn(stateful=True, gateway_sessions=3600) as stand_in:
        for url, tool in (
            (stand_in.runtime_url, "search"),
            (stand_in.gateway_url, "orders___search"),
        ):

            def opened(url: str = url) -> str:
                return ask_signed(stand_in, OPEN, url).values("mcp-session-id")[0].decode()

            def status(name: str, url: str = url, tool: str = tool) -> int:
                call = tool_call(tool, version="2025-11-25", session=name)
                return ask_signed(stand_in, call, url).status

            first, second = opened(), opened()
            stand_in.script(tool, SessionLost())
            assert [status(first), status(first), status(second)] == [404, 404, 200]
            stand_in.forget_sessions()
            assert status(second) == 404
            assert status(opened()) == 200
