"""R4, R7, R13, R15, R71, R72, R80, D9, D29, D30. What an app may declare, and what contradicts."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from types import MappingProxyType
from typing import Any

import pytest

from surefoot.policy import Call, Replay, ToolRule, permit

CANARY = "CANARY-51c0"

CHARGE = ToolRule(
    makes_changes=True,
    idempotency_key="arguments.request_id",
    repeat_on={"throttle", "network"},
)
DECLARED = Replay(
    policy="app-authorized",
    tools={
        "search": ToolRule(repeat_on={"throttle"}),
        "refund": ToolRule(makes_changes=True),
        "charge": CHARGE,
    },
    trust_hints=True,
)


def tool_rule(**options: Any) -> ToolRule:
    return ToolRule(**options)


def replay(**options: Any) -> Replay:
    return Replay(**options)


def test_a_rule_declares_nothing_until_told() -> None:
    """R15. No word of the app is no permission and no claim."""
    rule = ToolRule()
    assert (rule.makes_changes, rule.idempotency_key, rule.repeat_on) == (False, None, frozenset())


@pytest.mark.parametrize(
    ("options", "wrong", "says"),
    [
        ({"makes_changes": None}, TypeError, "makes_changes: must be True or False"),
        ({"makes_changes": 1}, TypeError, "makes_changes: must be True or False"),
        ({"makes_changes": CANARY}, TypeError, "makes_changes: must be True or False"),
        ({"repeat_on": "throttle"}, TypeError, "repeat_on: must be a set of"),
        ({"repeat_on": CANARY}, TypeError, "repeat_on: must be a set of"),
        ({"repeat_on": ["throttle"]}, TypeError, "repeat_on: must be a set of"),
        ({"repeat_on": ("network",)}, TypeError, "repeat_on: must be a set of"),
        ({"repeat_on": {"throttle": True}}, TypeError, "repeat_on: must be a set of"),
        ({"repeat_on": None}, TypeError, "repeat_on: must be a set of"),
        ({"repeat_on": True}, TypeError, "repeat_on: must be a set of"),
        ({"repeat_on": {CANARY}}, ValueError, "repeat_on: must be a set of"),
        pytest.param(
            {"repeat_on": {"throttle", CANARY}},
            ValueError,
            "repeat_on: must be a set of",
            id="one known and one unknown",  # a set's own order differs from process to process
        ),
        ({"repeat_on": {"Throttle"}}, ValueError, "repeat_on: must be a set of"),
        ({"repeat_on": {"session-busy"}}, ValueError, "repeat_on: must be a set of"),
        ({"repeat_on": {429}}, ValueError, "repeat_on: must be a set of"),
        ({"idempotency_key": 7}, TypeError, "idempotency_key: must be a path such as"),
        ({"idempotency_key": True}, TypeError, "idempotency_key: must be a path such as"),
        ({"idempotency_key": ("arguments", "a")}, TypeError, "idempotency_key: must be a path"),
        ({"idempotency_key": ""}, ValueError, "idempotency_key: must be a path such as"),
        ({"idempotency_key": CANARY}, ValueError, "idempotency_key: must be a path such as"),
        ({"idempotency_key": "request_id"}, ValueError, "idempotency_key: must be a path"),
        ({"idempotency_key": "arguments"}, ValueError, "idempotency_key: must be a path"),
        ({"idempotency_key": "arguments."}, ValueError, "idempotency_key: must be a path"),
        ({"idempotency_key": "arguments..a"}, ValueError, "idempotency_key: must be a path"),
        ({"idempotency_key": "arguments.a."}, ValueError, "idempotency_key: must be a path"),
        ({"idempotency_key": "argument.a"}, ValueError, "idempotency_key: must be a path"),
        ({"idempotency_key": " arguments.a"}, ValueError, "idempotency_key: must be a path"),
        ({"idempotency_key": "Arguments.a"}, ValueError, "idempotency_key: must be a path"),
        ({"idempotency_key": "_meta"}, ValueError, "idempotency_key: must be a path"),
        ({"idempotency_key": "_meta."}, ValueError, "idempotency_key: must be a path"),
        ({"idempotency_key": "meta.key"}, ValueError, "idempotency_key: must be a path"),
    ],
    ids=lambda value: ascii(value)[:50],
)
def test_a_wrong_option_of_a_tool_is_refused_by_its_name(
    options: dict[str, Any], wrong: type[Exception], says: str
) -> None:
    """R71, R72, D9. What it must be, and never what it was."""
    with pytest.raises(wrong) as caught:
        tool_rule(**options)
    assert type(caught.value) is wrong
    assert str(caught.value).startswith(says)
    assert "CANARY" not in f"{caught.value!r}{caught.value.args!r}"


@pytest.mark.parametrize(
    "path", ["arguments.a", "arguments.a.b.c", "arguments.request id", "_meta.k", "_meta.com.x/y"]
)
def test_a_key_may_lie_anywhere_in_the_arguments_or_under_one_name_of_meta(path: str) -> None:
    """D9. The two forms, and names with any characters."""
    assert ToolRule(idempotency_key=path).idempotency_key == path


@pytest.mark.parametrize(
    ("options", "wrong", "says"),
    [
        ({"policy": CANARY}, ValueError, 'policy: must be "assume-refused" or "app-authorized"'),
        ({"policy": "compatibility"}, ValueError, 'policy: must be "assume-refused"'),
        ({"policy": "APP-AUTHORIZED"}, ValueError, 'policy: must be "assume-refused"'),
        ({"policy": None}, TypeError, 'policy: must be "assume-refused"'),
        ({"policy": True}, TypeError, 'policy: must be "assume-refused"'),
        ({"tools": None}, TypeError, "tools: must be a mapping of tool names to ToolRule"),
        ({"tools": [ToolRule()]}, TypeError, "tools: must be a mapping of tool names"),
        ({"tools": CANARY}, TypeError, "tools: must be a mapping of tool names"),
        ({"tools": {"a": CANARY}}, TypeError, "tools: must be a mapping of tool names"),
        ({"tools": {"a": {"makes_changes": True}}}, TypeError, "tools: must be a mapping"),
        ({"tools": {"a": None}}, TypeError, "tools: must be a mapping of tool names"),
        ({"tools": {"a": ToolRule}}, TypeError, "tools: must be a mapping of tool names"),
        ({"tools": {7: ToolRule()}}, TypeError, "tools: must be a mapping of tool names"),
        ({"trust_hints": None}, TypeError, "trust_hints: must be True or False"),
        ({"trust_hints": 1}, TypeError, "trust_hints: must be True or False"),
        ({"trust_hints": CANARY}, TypeError, "trust_hints: must be True or False"),
    ],
    ids=lambda value: ascii(value)[:50],
)
def test_a_wrong_declaration_is_refused_by_its_name(
    options: dict[str, Any], wrong: type[Exception], says: str
) -> None:
    """R71, R72. When the Gateway's declaration is built, and not at the first refusal."""
    with pytest.raises(wrong) as caught:
        replay(**options)
    assert type(caught.value) is wrong
    assert str(caught.value).startswith(says)
    assert "CANARY" not in f"{caught.value!r}{caught.value.args!r}"


@pytest.mark.parametrize("causes", [{"throttle"}, {"network"}, {"throttle", "network"}])
def test_changing_and_repeatable_without_a_key_is_a_contradiction(causes: Any) -> None:
    """R13, D29. It is refused with the name of the tool, and with both ways out."""
    rule = ToolRule(makes_changes=True, repeat_on=causes)
    with pytest.raises(ValueError, match=r"^tools\['refund'\]: .* contradict") as caught:
        Replay(tools={"search": ToolRule(repeat_on=causes), "refund": rule})
    assert "search" not in str(caught.value)
    assert "idempotency_key" in str(caught.value)


@pytest.mark.parametrize(
    "rule",
    [
        ToolRule(makes_changes=True),
        ToolRule(makes_changes=True, idempotency_key="_meta.key"),
        CHARGE,
        ToolRule(repeat_on={"network"}),
        ToolRule(idempotency_key="arguments.id", repeat_on={"network"}),
    ],
)
def test_what_does_not_contradict_is_taken(rule: ToolRule) -> None:
    """D29. The positive control of the refusal above."""
    assert Replay(tools={"refund": rule}).tools["refund"] is rule


def test_what_is_declared_cannot_be_changed_behind_our_back() -> None:
    """R4, R71. Copies are kept, and they are frozen."""
    causes: set[Any] = {"throttle"}
    rule = ToolRule(repeat_on=causes)
    causes.add("network")
    assert rule.repeat_on == {"throttle"}
    assert isinstance(rule.repeat_on, frozenset)
    tools = {"search": rule}
    declared = Replay(tools=tools)
    tools["refund"] = ToolRule(makes_changes=True)
    assert dict(declared.tools) == {"search": rule}
    with pytest.raises(TypeError):
        declared.tools["other"] = rule  # type: ignore[index]
    for value, name in ((rule, "makes_changes"), (declared, "policy")):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(value, name, "assume-refused")


def test_a_declaration_may_come_as_any_mapping_and_any_set() -> None:
    """R71. What is asked for is a mapping and a set, not a dict and a frozenset."""
    rule = ToolRule(repeat_on={"throttle": 1}.keys())  # type: ignore[arg-type]
    declared = Replay(tools=MappingProxyType({"search": rule}))
    assert declared == Replay(tools={"search": ToolRule(repeat_on=frozenset({"throttle"}))})


@pytest.mark.parametrize("declared", [Replay(), DECLARED], ids=["default", "declared"])
def test_a_declaration_survives_pickle_and_copy_with_its_effect(declared: Replay) -> None:
    """R71. Workers get it whole: equal, frozen, and permitting the same."""
    call = Call(method="tools/call", tool="charge", is_tool_call=True, key_carried=True)
    for again in (
        pickle.loads(pickle.dumps(declared)),  # noqa: S301 - our own bytes
        copy.copy(declared),
        copy.deepcopy(declared),
    ):
        assert again == declared
        assert isinstance(again.tools, MappingProxyType)
        assert permit(call, again, "network") == permit(call, declared, "network")
    assert pickle.loads(pickle.dumps(CHARGE)) == CHARGE  # noqa: S301 - our own bytes


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (Replay(), Replay(tools={}), True),
        (Replay(), Replay(policy="app-authorized"), False),
        (Replay(), Replay(trust_hints=True), False),
        (Replay(), Replay(tools={"a": ToolRule()}), False),
        (Replay(tools={"a": CHARGE}), Replay(tools={"a": CHARGE}), True),
        (Replay(tools={"a": CHARGE}), Replay(tools={"a": ToolRule(makes_changes=True)}), False),
    ],
)
def test_declarations_are_compared_by_what_they_declare(
    one: Replay, other: Replay, same: bool
) -> None:
    """R83. Two stacks over one server have to be able to tell whether they agree."""
    assert (one == other) is same


@pytest.mark.parametrize(
    ("replay", "declares"),
    [
        (Replay(), False),
        (Replay(tools={"a": ToolRule()}), True),
        (Replay(tools={"a": ToolRule(repeat_on={"throttle"})}), True),
        (Replay(tools={"a": ToolRule(), "b": CHARGE}), True),
        (Replay(policy="app-authorized"), True),
        (Replay(trust_hints=True), True),
    ],
)
def test_it_is_known_whether_anything_was_declared(replay: Replay, declares: bool) -> None:
    """R15, D30. Beyond the default policy: a tool, the other policy, or trust in hints."""
    assert replay.declares is declares
