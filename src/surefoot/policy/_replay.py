"""The law of this file: only the app says what may be sent again, and each grant names who said so.

Permission and the effect of an attempt are two facts and never one: a grant under an assumption
leaves the effect unknown (R4, R5, R68). A tool that makes changes is never repeated of our own
accord, unless the app declared that its server deduplicates by a key that this call carries (R13).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final, Literal, get_args

from ._options import a_bool, one_of, wrong_type, wrong_value

__all__ = [
    "Call",
    "Cause",
    "CheckEffect",
    "Permission",
    "RepeatOn",
    "Replay",
    "ReplayPolicy",
    "ToolRule",
    "idempotency_value",
    "permit",
]

RepeatOn = Literal["throttle", "network"]
ReplayPolicy = Literal["assume-refused", "app-authorized"]
Cause = Literal["throttle", "session-busy", "network", "reconnect", "auth", "redirect"]
"""Why a request would be sent again: two refusals, two failures, and two moves of HTTP itself."""

CheckEffect = Callable[[str, Mapping[str, Any]], Awaitable[bool | None]]
"""Finds out whether a call of a tool with these arguments took effect; ``None``: unknown."""

_CAUSES: Final[frozenset[str]] = frozenset(get_args(RepeatOn))
_POLICIES: Final[tuple[ReplayPolicy, ...]] = get_args(ReplayPolicy)
_KEY_ROOTS: Final = ("arguments.", "_meta.")
_KEY: Final = "a path such as arguments.request_id or _meta.name"
_TOOLS: Final = "a mapping of tool names to ToolRule objects"

_READS: Final = frozenset(
    {
        "completion/complete",
        "initialize",
        "ping",
        "prompts/get",
        "resources/read",
        "server/discover",
    }
)
"""Methods that the MCP specification defines as reads; with every ``*/list`` (D2, D36)."""


def _check_causes(causes: object) -> None:
    """Hold ``repeat_on`` to a set of its two words."""
    if not isinstance(causes, AbstractSet):
        raise wrong_type("repeat_on", 'a set of "throttle" and "network", for example {"throttle"}')
    if not causes <= _CAUSES:
        raise wrong_value("repeat_on", 'a set of "throttle" and "network" and nothing else')


def _check_key(path: object) -> None:
    """Hold an idempotency key's path to its two forms."""
    if not isinstance(path, str):
        raise wrong_type("idempotency_key", _KEY)
    rest = next((path[len(root) :] for root in _KEY_ROOTS if path.startswith(root)), "")
    if not rest or (path.startswith("arguments.") and not all(rest.split("."))):
        raise wrong_value("idempotency_key", _KEY)


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolRule:
    """What the app declares about one tool of one server.

    Raises:
        TypeError: an option has the wrong type.
        ValueError: ``repeat_on`` or ``idempotency_key`` says something that has no meaning.
    """

    makes_changes: bool = False
    """The tool changes something: never repeated, unless the call carries its idempotency key."""

    idempotency_key: str | None = None
    """Where a call carries the key by which the server deduplicates: ``arguments.a.b`` or
    ``_meta.name`` (D9). The guard lifts only if this call carries a non-empty scalar there."""

    repeat_on: AbstractSet[RepeatOn] = frozenset()
    """After what the app allows a repeat: ``"throttle"`` (a 429), ``"network"`` (no answer)."""

    check_effect: CheckEffect | None = None
    """Awaited with the tool's name and arguments, for at most 10 s, when a call meets an earlier
    one that may have run and is over: ``True`` if that one took effect, ``False`` if not, ``None``
    if nobody knows. Only for a tool that makes changes, in a way that only reads (B3)."""

    def __post_init__(self) -> None:
        """Check each option by its name."""
        a_bool("makes_changes", self.makes_changes)
        _check_causes(self.repeat_on)
        object.__setattr__(self, "repeat_on", frozenset(self.repeat_on))
        if self.idempotency_key is not None:
            _check_key(self.idempotency_key)
        check: object = self.check_effect
        if check is None:
            return
        if not callable(check):
            raise wrong_type("check_effect", "an async function of a tool's name and arguments")
        if not self.makes_changes:
            raise wrong_value("check_effect", "left out, or makes_changes=True given beside it")


@dataclass(frozen=True, slots=True, kw_only=True)
class Replay:
    """What may be sent again to one server (R7 to R9).

    Under ``assume-refused`` a 429 is repeated for every tool that is not declared otherwise, on the
    recorded assumption that it was refused before it ran. ``app-authorized`` drops that assumption:
    a 429 is repeated only for a tool that the app declared repeatable on it.

    Raises:
        TypeError: an option has the wrong type.
        ValueError: an unknown policy, or a declaration that contradicts itself (D29), whose tool is
            named.
    """

    policy: ReplayPolicy = "assume-refused"
    """``assume-refused`` or ``app-authorized``."""

    tools: Mapping[str, ToolRule] = field(default_factory=dict[str, ToolRule])
    """Tool name to its rule; a tool that is not here is undeclared."""

    trust_hints: bool = False
    """Believe the server's ``readOnlyHint`` and ``idempotentHint``, and record that (D30)."""

    def __post_init__(self) -> None:
        """Check the policy and each declaration, and freeze a copy."""
        one_of("policy", self.policy, _POLICIES)
        _check_tools(self.tools)
        a_bool("trust_hints", self.trust_hints)
        object.__setattr__(self, "tools", MappingProxyType(dict(self.tools)))

    @property
    def declares(self) -> bool:
        """Whether the app declared anything beyond the default policy (R15)."""
        return bool(self.tools) or self.policy != "assume-refused" or self.trust_hints

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle by the declarations; the read-only view itself does not pickle."""
        return _rebuild_replay, (self.policy, dict(self.tools), self.trust_hints)


def _rebuild_replay(policy: ReplayPolicy, tools: dict[str, ToolRule], hints: bool) -> Replay:  # noqa: FBT001 - pickle passes positions
    """Build an unpickled declaration through its own checks."""
    return Replay(policy=policy, tools=tools, trust_hints=hints)


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """What a series must know of the request, read once, before the first attempt."""

    method: str | None
    """The JSON-RPC method; ``None`` for a bodiless GET or DELETE."""

    tool: str | None = None
    """The tool's name, where the request is a readable ``tools/call``."""

    is_tool_call: bool = False
    """A ``tools/call``, or a body that cannot be read as one message and so may be one (D1)."""

    key_carried: bool = False
    """This call carries a value where the tool's declaration says that its key is (D9)."""

    resendable: bool = True
    """The body is whole in memory and can be sent again byte for byte (D10)."""

    hinted: bool = False
    """The server's own hints call this tool repeatable (D30)."""

    @property
    def reads(self) -> bool:
        """The specification defines the method as a read (D2, D36)."""
        return self.method is not None and (self.method in _READS or self.method.endswith("/list"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Permission:
    """Who granted a repeat, and what that grant assumes (D32)."""

    by: Literal["app", "policy", "adapter", "protocol", "hint", "proof"]
    """Who said that the request may be sent again."""

    assumes: Literal["refused-before-execution", "auth-rejected-before-execution"] | None = None
    """What is believed and not known, or ``None``."""


_UNDECLARED: Final = ToolRule()
_UNSAID: Final = "refused-before-execution"
"""What every repeat of a 429 assumes that the app itself did not allow (D32)."""


def permit(
    call: Call,
    replay: Replay,
    cause: Cause,
    *,
    assumes: Literal["refused-before-execution"] | None = None,
) -> Permission | None:
    """Answer the ONE question before a repeat: may this request be sent again (R6).

    Args:
        call: What is known of the request.
        replay: The app's declaration.
        cause: Why it would be sent again.
        assumes: The assumption of the adapter whose rule recognised the refusal (R67).

    Returns:
        The grant, or ``None``. The decision table of D1 to D4 and D17, row by row, is its test.
    """
    if cause == "reconnect":
        return Permission(by="proof")
    if cause == "redirect":
        return Permission(by="protocol")
    if not call.is_tool_call:
        return _permit_other(call, cause, assumes)
    rule = replay.tools.get(call.tool, _UNDECLARED) if call.tool is not None else _UNDECLARED
    guarded = rule.makes_changes and not (rule.idempotency_key and call.key_carried)
    if cause == "auth":
        if guarded or (rule.makes_changes and not rule.repeat_on):
            return None
        return Permission(by="policy", assumes="auth-rejected-before-execution")
    if guarded:
        return None
    if cause == "session-busy":
        return Permission(by="adapter", assumes=assumes) if assumes is not None else None
    if cause in rule.repeat_on:
        return Permission(by="app")
    if replay.trust_hints and call.hinted and rule is _UNDECLARED:
        return Permission(by="hint", assumes=_UNSAID if cause == "throttle" else None)
    if cause == "throttle" and replay.policy == "assume-refused":
        by: Literal["adapter", "policy"] = "policy" if assumes is None else "adapter"
        return Permission(by=by, assumes=_UNSAID)
    return None


def _permit_other(
    call: Call, cause: Cause, assumes: Literal["refused-before-execution"] | None
) -> Permission | None:
    """Everything that is no tool call is the protocol's to repeat (D1, D2, D36)."""
    match cause:
        case "auth":
            return Permission(by="protocol", assumes="auth-rejected-before-execution")
        case "throttle":
            return Permission(by="protocol", assumes=_UNSAID)
        case "network":
            return Permission(by="protocol") if call.reads else None
        case _:
            return Permission(by="protocol", assumes=assumes)


def idempotency_value(
    path: str, arguments: object, meta: object
) -> str | int | float | bool | None:
    """The scalar that a call carries where ``path`` points, or ``None`` (D9).

    An empty string, a container and an absent value are all ``None``: they deduplicate nothing.
    """
    root, _, rest = path.partition(".")
    if root == "_meta":
        # A _meta key may hold dots of its own (com.example/key), so the rest is one name.
        value: object = _member(meta, rest)
    else:
        value = arguments
        for name in rest.split("."):
            value = _member(value, name)
    if isinstance(value, (str, int, float)) and value != "":
        return value
    return None


def _member(value: object, name: str) -> object:
    """One member of a JSON object, or ``None``."""
    if not isinstance(value, Mapping):
        return None
    members: Mapping[object, object] = value  # pyright: ignore[reportUnknownVariableType]
    return members.get(name)


def _check_tools(tools: object) -> None:
    """Hold the declarations to their types, and refuse a contradiction by the tool's name (D29)."""
    if not isinstance(tools, Mapping):
        raise wrong_type("tools", _TOOLS)
    rules: Mapping[object, object] = tools  # pyright: ignore[reportUnknownVariableType]
    for name, rule in rules.items():
        if not isinstance(name, str) or not isinstance(rule, ToolRule):
            raise wrong_type("tools", _TOOLS)
        if rule.makes_changes and rule.repeat_on and rule.idempotency_key is None:
            raise ValueError(
                f"tools[{name!r}]: makes_changes and repeat_on contradict each other; declare "
                "the idempotency_key by which the server deduplicates, or drop one of them"
            )
