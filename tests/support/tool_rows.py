"""The law of this file: the two tables once more, as values that know nothing of the code.

What a server may do to a call, what an app may have declared, who then permits a repeat, and how
each row of a table is known again in the evidence of a call.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from support.sessions import FAMILY
from surefoot import ToolRule
from surefoot.policy import AnswerView, ReplayPolicy, Rule, ThrottleRule, Verdict

if TYPE_CHECKING:
    from support.tool_world import Setting

__all__ = ["ADAPTER", "EXPECTED", "FAULTS", "RULES", "Declared", "Fault", "Rows"]

Check = Callable[[str, Mapping[str, Any]], Awaitable[bool | None]]
Grant = tuple[str, str | None] | None

_KEY: Final = "arguments.key"
_BUSY: Final = b'{"busy":true}'


@dataclass(frozen=True, slots=True, kw_only=True)
class Declared:
    """What an app may have declared about the tool."""

    options: Mapping[str, Any] | None = None
    checked: bool = False
    """The app can find out what became of a call."""

    def rule(self, check: Check) -> ToolRule | None:
        """The declaration."""
        if self.options is None:
            return None
        more: dict[str, Any] = {"check_effect": check} if self.checked else {}
        return ToolRule(**self.options, **more)

    @property
    def changing(self) -> bool:
        """The tool makes changes."""
        return bool((self.options or {}).get("makes_changes"))

    def _lifted(self, keyed: bool) -> bool:
        return keyed and (self.options or {}).get("idempotency_key") is not None

    def guarded(self, keyed: bool) -> bool:
        """It may not be repeated of our own accord (R13)."""
        return self.changing and not self._lifted(keyed)

    def declares(self, cause: str) -> bool:
        """The app allows a repeat after this."""
        return cause in (self.options or {}).get("repeat_on", ())

    def on_network(self, keyed: bool) -> bool:
        """One request may run more than once, on the app's word."""
        return self.declares("network") and not self.guarded(keyed)

    def fenced(self, policy: ReplayPolicy, keyed: bool) -> bool:
        """Identical calls must keep away (B3)."""
        if self.changing:
            return self.guarded(keyed)
        return self.options is None and policy == "app-authorized"


RULES: Final[Mapping[str, Declared]] = {
    "none": Declared(),
    "throttle": Declared(options={"repeat_on": {"throttle"}}),
    "network": Declared(options={"repeat_on": {"network"}}),
    "changes": Declared(options={"makes_changes": True}),
    "checked": Declared(options={"makes_changes": True}, checked=True),
    "keyed": Declared(options={"makes_changes": True, "idempotency_key": _KEY}),
    "keyed on both": Declared(
        options={
            "makes_changes": True, "idempotency_key": _KEY, "repeat_on": {"throttle", "network"},
        }
    ),
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """What a server does to one attempt."""

    name: str = ""
    runs: bool = False
    sure: bool = False
    """A call that ends in this leaves nothing open (B3)."""
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    body: bytes | None = None
    result: Mapping[str, Any] | None = None
    error: int | None = None
    raises: str | None = None

    def play(self, request: Any, number: int) -> Any:
        """The answer, of the request's family."""
        if self.raises is not None:
            raise getattr(FAMILY, self.raises)("played", request=request)
        if self.body is not None:
            content = self.body
        elif self.error is not None:
            content = _message(number, error={"code": self.error, "message": "no"})
        elif self.result is not None:
            content = _message(number, result=self.result)
        else:
            content = b""
        headers = {"content-type": "application/json", **self.headers}
        return FAMILY.Response(self.status, headers=headers, content=content)


def _message(number: int, **members: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": number, **members}).encode()


_DONE: Final[dict[str, Any]] = {"content": [], "isError": False}
_ASKS: Final[dict[str, Any]] = {"resultType": "input_required", "inputRequests": {}}
_EVENTS: Final = {"content-type": "text/event-stream"}

_PLAYED: Final[dict[str, dict[str, Any]]] = {
    "done": {"runs": True, "sure": True, "result": _DONE},
    "failed": {"runs": True, "sure": True, "result": {"content": [], "isError": True}},
    "asks": {"sure": True, "result": {**_ASKS, "requestState": "state-1"}},
    "429": {"sure": True, "status": 429},
    "429 in 2 s": {"sure": True, "status": 429, "headers": {"retry-after": "2"}},
    "429 in 60 s": {"sure": True, "status": 429, "headers": {"retry-after": "60"}},
    "throttle at 200": {"sure": True, "error": -32003},
    "busy": {"sure": True, "status": 409, "error": -32042},
    "lost": {"raises": "ReadError"},
    "lost, and ran": {"runs": True, "raises": "ReadError"},
    "never-sent": {"sure": True, "raises": "ConnectError"},
    "401": {"sure": True, "status": 401},
    "307": {"sure": False, "status": 307, "headers": {"location": "/mcp"}},
    "400": {"sure": True, "status": 400},
    "503": {"status": 503},
    "503, and ran": {"runs": True, "status": 503},
    "rejected": {"sure": True, "error": -32602},
    "mismatch": {"sure": True, "status": 400, "error": -32020},
    "broke, and ran": {"runs": True, "error": -32603},
    "unreadable, and ran": {"runs": True, "body": b'{"jsonrpc":"2.0","jsonrpc":"2.0"}'},
    "cut, and ran": {"runs": True, "headers": _EVENTS, "body": b": hello\n\n"},
}

FAULTS: Final[Mapping[str, Fault]] = {
    name: Fault(name=name, **what) for name, what in _PLAYED.items()
}


class _Body:
    """Recognises what only a service's own adapter knows."""

    reads: int = 1024

    def __init__(self, code: bytes, kind: Any) -> None:
        self._code = code
        self._kind = kind

    def recognise(self, answer: AnswerView) -> Verdict | None:
        """By the code in the body."""
        return Verdict(kind=self._kind) if self._code in answer.body else None


_UNSAID: Final = "refused-before-execution"
ADAPTER: Final = (
    Rule(recognise=ThrottleRule()),
    Rule(recognise=_Body(b"-32042", "session-busy"), assumes=_UNSAID),
    Rule(recognise=_Body(b"-32003", "throttle")),
)
"""The rules of a service that can be busy, and throttles at 200 (D16, D17)."""


def _cause(attempt: Mapping[str, Any]) -> str | None:
    """Why an attempt would be followed by another."""
    match attempt["outcome"], attempt.get("status"):
        case "refused", _:
            return str(attempt["kind"])
        case "unanswered", _:
            return "network"
        case "not_sent", _:
            return "reconnect"
        case "answered", 401:
            return "auth"
        case "answered", 307:
            return "redirect"
        case _:
            return None


def _grant(cause: str, setting: Setting, *, keyed: bool) -> Grant:
    """The first table: who permits a repeat, or nobody."""
    declared, guarded = RULES[setting.rule], RULES[setting.rule].guarded(keyed)
    if cause in ("reconnect", "redirect"):
        return ("proof" if cause == "reconnect" else "protocol", None)
    if guarded:
        return None
    if cause == "auth":
        if declared.changing and not declared.declares("network"):
            return None
        return ("policy", "auth-rejected-before-execution")
    if cause == "session-busy":
        return ("adapter", _UNSAID)
    if declared.declares(cause):
        return ("app", None)
    if cause == "throttle" and setting.policy == "assume-refused":
        return ("policy", _UNSAID)
    return None


class Rows:
    """Counts how often each row of the two tables was met, and holds it to what it says."""

    def __init__(self) -> None:
        self.counted: Counter[tuple[str, str]] = Counter()

    def met(self, found: Mapping[str, Any], setting: Setting, *, keyed: bool) -> None:
        """Compare the evidence of one request with the rows that it is."""
        attempts: list[Any] = found["attempts"]
        for number, one in enumerate(attempts, 1):
            cause = _cause(one)
            last = number == len(attempts)
            self._first(found, one, cause, setting, keyed=keyed, last=last)
        for row, may_have_run in _second(found, attempts):
            assert found["may_have_run"] is may_have_run, (row, found)
            self.counted[row, setting.policy] += 1

    def _first(
        self, found: Any, one: Any, cause: str | None, setting: Setting, *, keyed: bool, last: bool
    ) -> None:
        given = one.get("permission")
        told = None if given is None else (given["by"], given["assumes"])
        why = found["why"]
        if cause is None:
            assert told is None
            if last and found["ended"] == "answered":
                self.counted["any other status", setting.policy] += 1
        if last:
            assert told is None or why in ("cancelled", "no-time", "deadline", "credential-failed")
            if found["ended"] == "cut" and why in ("cancelled", "deadline"):
                self.counted[f"series ends: {why}", setting.policy] += 1
            if why == "body-not-resendable":
                self.counted["body cannot be re-sent", setting.policy] += 1
        if cause is None or (cause == "auth" and setting.vault is None):
            return
        wanted = _grant(cause, setting, keyed=keyed)
        if told is not None:
            assert told == wanted, (found, wanted)
        elif last and why == "no-permission":
            assert wanted is None, (found, wanted)
        else:
            return
        kind = setting.rule
        if RULES[kind].changing:
            kind = "changes" if RULES[kind].guarded(keyed) else f"{kind}, key carried"
        where = " at 200" if cause == "throttle" and one.get("status") == 200 else ""
        self.counted[f"{cause}{where}: {kind}", setting.policy] += 1


def _second(found: Any, attempts: list[Any]) -> list[tuple[str, bool]]:
    """The rows of the second table that a request is, with what they say of it."""
    outcomes = [one["outcome"] for one in attempts]
    silent = "unanswered" in outcomes
    last: dict[str, Any] = attempts[-1] if attempts else {}
    done = last.get("effect") == "ran"
    rows: list[tuple[str, bool]] = []
    if outcomes and not silent and outcomes[-1] == "refused" and found["why"] != "cancelled":
        rows.append(("all answered, last 429", False))
    if silent and done:
        rows.append(("one without response, then a result", False))
    if silent and not done:
        rows.append(("one without response, then none", True))
        if outcomes[-1] == "refused":
            rows.append(("one without response, then 429", True))
        if last.get("status") == 503:
            rows.append(("one without response, then 503", True))
    if found["why"] == "stream-cut":
        rows.append(("the stream dies before the reply", True))
    if found["why"] == "unreadable":
        rows.append(("cannot be read", True))
    if found["why"] == "deadline" and outcomes[-1:] == ["cut"]:
        rows.append(("cut by the deadline in flight", True))
    if found["why"] == "credential-failed" and not silent:
        rows.append(("credential failed", False))
    if outcomes and set(outcomes) == {"not_sent"} and found["why"] == "attempts-spent":
        rows.append(("never connected", False))
    return rows


_ALL: Final = (
    "none", "throttle", "network", "changes", "keyed, key carried", "keyed on both, key carried",
)  # fmt: skip

EXPECTED: Final[frozenset[str]] = frozenset(
    {
        *(
            f"{cause}: {kind}"
            for cause in (
                "throttle", "throttle at 200", "session-busy", "network", "reconnect", "auth",
                "redirect",
            )
            for kind in _ALL
        ),
        "any other status",
        "series ends: cancelled",
        "series ends: deadline",
        "body cannot be re-sent",
        "all answered, last 429",
        "one without response, then a result",
        "one without response, then none",
        "one without response, then 429",
        "one without response, then 503",
        "the stream dies before the reply",
        "cannot be read",
        "cut by the deadline in flight",
        "credential failed",
        "never connected",
    }
)  # fmt: skip
"""Every row, each of which must be met under both policies."""
