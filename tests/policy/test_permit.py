"""R4 to R16, R61, R67, R68, D1 to D4, D9, D17, D29, D30, D32, D36. The decision table, row by row.

Each table maps a declaration to what may be repeated under ``assume-refused`` and under
``app-authorized``; a grant is written as who granted it, and "-" is no grant.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import pytest

from surefoot.policy import Call, Cause, Permission, Replay, ReplayPolicy, ToolRule, permit

Assumption = Literal["refused-before-execution"]
REFUSED: Assumption = "refused-before-execution"
KEY = "arguments.request_id"

GRANTS: dict[str, Permission | None] = {
    "-": None,
    "app": Permission(by="app"),
    "policy": Permission(by="policy", assumes=REFUSED),
    "policy-auth": Permission(by="policy", assumes="auth-rejected-before-execution"),
    "adapter": Permission(by="adapter", assumes=REFUSED),
    "hint": Permission(by="hint"),
    "hint-refused": Permission(by="hint", assumes=REFUSED),
    "protocol": Permission(by="protocol"),
    "protocol-refused": Permission(by="protocol", assumes=REFUSED),
    "protocol-auth": Permission(by="protocol", assumes="auth-rejected-before-execution"),
    "proof": Permission(by="proof"),
}

DECLARED: dict[str, tuple[ToolRule | None, bool]] = {
    "none": (None, False),
    "plain": (ToolRule(), False),
    "throttle": (ToolRule(repeat_on={"throttle"}), False),
    "network": (ToolRule(repeat_on={"network"}), False),
    "both": (ToolRule(repeat_on={"throttle", "network"}), False),
    "changes": (ToolRule(makes_changes=True), False),
    "changes, stray key": (ToolRule(makes_changes=True), True),
    "changes, key absent": (ToolRule(makes_changes=True, idempotency_key=KEY), False),
    "changes, key": (ToolRule(makes_changes=True, idempotency_key=KEY), True),
    "changes, both, key absent": (
        ToolRule(makes_changes=True, idempotency_key=KEY, repeat_on={"throttle", "network"}),
        False,
    ),
    "changes, throttle, key": (
        ToolRule(makes_changes=True, idempotency_key=KEY, repeat_on={"throttle"}),
        True,
    ),
    "changes, network, key": (
        ToolRule(makes_changes=True, idempotency_key=KEY, repeat_on={"network"}),
        True,
    ),
}
"""A declaration, and whether this call carries a value where its key is declared."""

Rows = Mapping[str, tuple[str, str]]

THROTTLE: Rows = {
    "none": ("policy", "-"),
    "plain": ("policy", "-"),
    "throttle": ("app", "app"),
    "network": ("policy", "-"),
    "both": ("app", "app"),
    "changes": ("-", "-"),
    "changes, stray key": ("-", "-"),
    "changes, key absent": ("-", "-"),
    "changes, key": ("policy", "-"),
    "changes, both, key absent": ("-", "-"),
    "changes, throttle, key": ("app", "app"),
    "changes, network, key": ("policy", "-"),
}
ADAPTERS_THROTTLE: Rows = {
    name: ("adapter" if assume == "policy" else assume, authorized)
    for name, (assume, authorized) in THROTTLE.items()
}
BUSY: Rows = {
    "none": ("adapter", "adapter"),
    "plain": ("adapter", "adapter"),
    "throttle": ("adapter", "adapter"),
    "network": ("adapter", "adapter"),
    "both": ("adapter", "adapter"),
    "changes": ("-", "-"),
    "changes, stray key": ("-", "-"),
    "changes, key absent": ("-", "-"),
    "changes, key": ("adapter", "adapter"),
    "changes, both, key absent": ("-", "-"),
    "changes, throttle, key": ("adapter", "adapter"),
    "changes, network, key": ("adapter", "adapter"),
}
NETWORK: Rows = {
    "none": ("-", "-"),
    "plain": ("-", "-"),
    "throttle": ("-", "-"),
    "network": ("app", "app"),
    "both": ("app", "app"),
    "changes": ("-", "-"),
    "changes, stray key": ("-", "-"),
    "changes, key absent": ("-", "-"),
    "changes, key": ("-", "-"),
    "changes, both, key absent": ("-", "-"),
    "changes, throttle, key": ("-", "-"),
    "changes, network, key": ("app", "app"),
}
AUTH: Rows = {
    "none": ("policy-auth", "policy-auth"),
    "plain": ("policy-auth", "policy-auth"),
    "throttle": ("policy-auth", "policy-auth"),
    "network": ("policy-auth", "policy-auth"),
    "both": ("policy-auth", "policy-auth"),
    "changes": ("-", "-"),
    "changes, stray key": ("-", "-"),
    "changes, key absent": ("-", "-"),
    "changes, key": ("-", "-"),
    "changes, both, key absent": ("-", "-"),
    "changes, throttle, key": ("policy-auth", "policy-auth"),
    "changes, network, key": ("policy-auth", "policy-auth"),
}
ANY_PROOF: Rows = dict.fromkeys(DECLARED, ("proof", "proof"))
ANY_MOVE: Rows = dict.fromkeys(DECLARED, ("protocol", "protocol"))

TABLE: list[tuple[Cause, Assumption | None, Rows]] = [
    ("throttle", None, THROTTLE),
    ("throttle", REFUSED, ADAPTERS_THROTTLE),
    ("session-busy", REFUSED, BUSY),
    ("network", None, NETWORK),
    ("auth", None, AUTH),
    ("reconnect", None, ANY_PROOF),
    ("redirect", None, ANY_MOVE),
]


def tool_call(*, key_carried: bool = False, hinted: bool = False, tool: str = "t") -> Call:
    return Call(
        method="tools/call", tool=tool, is_tool_call=True, key_carried=key_carried, hinted=hinted
    )


def declared(name: str, policy: ReplayPolicy, *, trust_hints: bool = False) -> Replay:
    rule = DECLARED[name][0]
    tools = {} if rule is None else {"t": rule}
    return Replay(policy=policy, tools=tools, trust_hints=trust_hints)


@pytest.mark.parametrize(
    ("cause", "assumes", "name", "policy", "grant"),
    [
        (cause, assumes, name, policy, grant)
        for cause, assumes, rows in TABLE
        for name, grants in rows.items()
        for policy, grant in zip(("assume-refused", "app-authorized"), grants, strict=True)
    ],
)
def test_a_tool_call_is_repeated_only_on_somebodys_word(
    *, cause: Cause, assumes: Assumption | None, name: str, policy: ReplayPolicy, grant: str
) -> None:
    """R4 to R10, R13, R16, R61, R67, R68, D3, D4, D17, D32. Invariant 5: one grant or none."""
    call = tool_call(key_carried=DECLARED[name][1])
    replay = declared(name, policy)
    assert permit(call, replay, cause, assumes=assumes) == GRANTS[grant]


@pytest.mark.parametrize("policy", ["assume-refused", "app-authorized"])
@pytest.mark.parametrize("cause", ["throttle", "network", "auth", "session-busy"])
def test_a_declaration_of_another_tool_says_nothing(policy: ReplayPolicy, cause: Cause) -> None:
    """R4. Permission is per tool: neither a word nor a guard reaches another one."""
    tools = {
        "T": ToolRule(repeat_on={"throttle", "network"}),
        "t ": ToolRule(makes_changes=True),
        "": ToolRule(makes_changes=True),
    }
    there = Replay(policy=policy, tools=tools)
    nothing = Replay(policy=policy)
    for call in (tool_call(), Call(method=None, is_tool_call=True)):
        assert permit(call, there, cause, assumes=REFUSED) == permit(
            call, nothing, cause, assumes=REFUSED
        )


@pytest.mark.parametrize("policy", ["assume-refused", "app-authorized"])
def test_a_busy_session_needs_the_adapters_own_word(policy: ReplayPolicy) -> None:
    """R16, R67. A rule that names no assumption repeats nothing as its own policy."""
    for name in DECLARED:
        call = tool_call(key_carried=DECLARED[name][1])
        assert permit(call, declared(name, policy), "session-busy") is None


@pytest.mark.parametrize(
    ("cause", "grants"),
    [
        ("throttle", ("policy", "-")),
        ("network", ("-", "-")),
        ("auth", ("policy-auth", "policy-auth")),
        ("reconnect", ("proof", "proof")),
        ("redirect", ("protocol", "protocol")),
    ],
)
def test_a_body_that_cannot_be_read_is_an_undeclared_tool_call(
    cause: Cause, grants: tuple[str, str]
) -> None:
    """D1. It may be one; so it is never repeated on network, whatever its tools are declared."""
    call = Call(method=None, is_tool_call=True)
    tools = {"t": ToolRule(repeat_on={"throttle", "network"})}
    assert permit(call, Replay(tools=tools), cause) == GRANTS[grants[0]]
    strict = Replay(policy="app-authorized", tools=tools)
    assert permit(call, strict, cause) == GRANTS[grants[1]]


READS = [
    "initialize",
    "server/discover",
    "ping",
    "tools/list",
    "prompts/list",
    "resources/list",
    "resources/templates/list",
    "roots/list",
    "resources/read",
    "prompts/get",
    "completion/complete",
]
OTHERS = [
    None,
    "",
    "list",
    "tools/lists",
    "tools/list_changed",
    "notifications/tools/list_changed",
    "notifications/initialized",
    "notifications/cancelled",
    "logging/setLevel",
    "resources/subscribe",
    "resources/unsubscribe",
    "tasks/cancel",
    "sampling/createMessage",
    "elicitation/create",
    "Ping",
    "tools/call",
]


@pytest.mark.parametrize("policy", ["assume-refused", "app-authorized"])
@pytest.mark.parametrize("method", [*READS, *OTHERS])
def test_what_is_no_tool_call_is_the_protocols_to_repeat(
    method: str | None, policy: ReplayPolicy
) -> None:
    """D1, D2, D32, D36. On a refusal anything, under either policy; on network only reads."""
    call = Call(method=method)
    replay = Replay(policy=policy, tools={"t": ToolRule(makes_changes=True)})
    assert permit(call, replay, "throttle") == GRANTS["protocol-refused"]
    assert permit(call, replay, "throttle", assumes=REFUSED) == GRANTS["protocol-refused"]
    assert permit(call, replay, "session-busy", assumes=REFUSED) == GRANTS["protocol-refused"]
    assert permit(call, replay, "auth") == GRANTS["protocol-auth"]
    assert permit(call, replay, "redirect") == GRANTS["protocol"]
    assert permit(call, replay, "reconnect") == GRANTS["proof"]
    expected = "protocol" if method in READS else "-"
    assert permit(call, replay, "network") == GRANTS[expected]


@pytest.mark.parametrize(
    ("name", "hinted", "trusted", "throttle", "network"),
    [
        ("none", True, True, ("hint-refused", "hint-refused"), ("hint", "hint")),
        ("none", True, False, ("policy", "-"), ("-", "-")),
        ("none", False, True, ("policy", "-"), ("-", "-")),
        ("plain", True, True, ("policy", "-"), ("-", "-")),
        ("throttle", True, True, ("app", "app"), ("-", "-")),
        ("network", True, True, ("policy", "-"), ("app", "app")),
        ("changes", True, True, ("-", "-"), ("-", "-")),
        ("changes, key", True, True, ("policy", "-"), ("-", "-")),
    ],
)
def test_a_servers_hint_counts_only_where_it_is_trusted_and_nothing_was_declared(
    *,
    name: str,
    hinted: bool,
    trusted: bool,
    throttle: tuple[str, str],
    network: tuple[str, str],
) -> None:
    """D30, D32. The app's own word goes first, and a hint never lifts a guard."""
    call = tool_call(key_carried=DECLARED[name][1], hinted=hinted)
    for index, policy in enumerate(("assume-refused", "app-authorized")):
        replay = declared(name, policy, trust_hints=trusted)
        assert permit(call, replay, "throttle") == GRANTS[throttle[index]]
        assert permit(call, replay, "network") == GRANTS[network[index]]


@pytest.mark.parametrize("cause", [cause for cause, _, _ in TABLE])
@pytest.mark.parametrize("name", DECLARED)
def test_a_grant_never_says_that_the_call_did_not_run(cause: Cause, name: str) -> None:
    """R3, R5, R61, R68. An assumption is named as one, and the app's word needs none."""
    for policy in ("assume-refused", "app-authorized"):
        call = tool_call(key_carried=DECLARED[name][1])
        grant = permit(call, declared(name, policy), cause, assumes=None)
        if grant is not None and cause == "throttle" and grant.by != "app":
            assert grant.assumes == REFUSED
        if grant is not None and grant.by in ("app", "proof"):
            assert grant.assumes is None


def test_the_tables_hold_every_declaration() -> None:
    """R13. The positive control: a row that was left out would be a case nobody decided."""
    for _, _, rows in TABLE:
        assert set(rows) == set(DECLARED)
