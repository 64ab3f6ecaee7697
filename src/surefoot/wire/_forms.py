"""The law of this file: what surefoot itself answers has one of three forms, in canonical bytes.

A tool call that is given up on is a *result* that says ``isError``: measured, a JSON-RPC error made
one framework run the tool four times, a result once, and only a result shows the model the text.
Anything else is a JSON-RPC error. Both validate in every protocol version, and both carry the facts
as data under one key, ``surefoot/outcome`` (DESIGN section 7).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal

from surefoot.wire._jsonrpc import RequestId
from surefoot.wire._sentences import Outcome
from surefoot.wire.strict_json import dumps

__all__ = [
    "INTERNAL_ERROR",
    "OUTCOME_KEY",
    "PREFIX",
    "UNSUPPORTED_PROTOCOL_VERSION",
    "Effect",
    "discover_failure",
    "error",
    "outcome_meta",
    "tool_result",
]

PREFIX: Final = "surefoot/"
"""Keys that begin so are ours; in a server's own message they are removed."""

OUTCOME_KEY: Final = "surefoot/outcome"
"""Where the facts of an outcome are, in a result's ``_meta`` and in an error's ``data``."""

INTERNAL_ERROR: Final = -32603
"""The JSON-RPC code of an error that has no closer one."""

UNSUPPORTED_PROTOCOL_VERSION: Final = -32022
"""The one error that ends connecting instead of moving it to an older protocol (B4)."""

Effect = Literal["not_sent", "unknown", "ran"]
"""What is known about the effect of what was asked for (DESIGN section 4)."""


def outcome_meta(
    outcome: Outcome,
    *,
    may_have_run: bool,
    effect: Effect,
    status: int | None = None,
    retry_after: float | None = None,
    attempts: int | None = None,
    waited: float | None = None,
    error_type: str | None = None,
    rule: str | None = None,
    call_id: str | None = None,
    earlier: str | None = None,
) -> dict[str, Any]:
    """Put the facts of an outcome into the object that goes under ``surefoot/outcome``.

    A fact that is not known is left out. Durations are seconds, and their names say so.

    Args:
        outcome: which one; also names the sentence.
        may_have_run: whether the call may have run.
        effect: what is known about its effect.
        status: the HTTP status of the last answer.
        retry_after: what the server asked to wait.
        attempts: how many times it was sent.
        waited: how long was waited between attempts.
        error_type: the AWS error type (D24).
        rule: the rule that an unreadable answer broke.
        call_id: the id under which the evidence and the fence know the call.
        earlier: the same of the earlier, identical call that stands against it (B3).
    """
    facts: dict[str, Any] = {
        "kind": outcome,
        "may_have_run": may_have_run,
        "effect": effect,
        "status": status,
        "retry_after_seconds": retry_after,
        "attempts": attempts,
        "waited_seconds": waited,
        "error_type": error_type,
        "rule": rule,
        "call_id": call_id,
        "earlier_call_id": earlier,
    }
    return {name: value for name, value in facts.items() if value is not None}


def tool_result(
    request_id: RequestId, text: str, meta: Mapping[str, Any], *, result_type: bool
) -> bytes:
    """Write a tool call's answer that says, in one sentence, how the call was given up on.

    Args:
        request_id: the id of the call.
        text: the sentence.
        meta: the facts, as ``outcome_meta`` gives them.
        result_type: whether the call's protocol version has ``resultType``.
    """
    result: dict[str, Any] = {"content": [{"type": "text", "text": text}], "isError": True}
    if result_type:
        result["resultType"] = "complete"
    result["_meta"] = {OUTCOME_KEY: meta}
    return dumps({"jsonrpc": "2.0", "id": request_id, "result": result})


def error(
    request_id: RequestId | None, code: int, text: str, data: Mapping[str, Any] | None = None
) -> bytes:
    """Write a JSON-RPC error whose message is one sentence.

    Args:
        request_id: the id of the request; ``None`` where there is none to name.
        code: the JSON-RPC code.
        text: the sentence.
        data: what goes under ``data``; nothing where it is ``None``.
    """
    members: dict[str, Any] = {"code": code, "message": text}
    if data is not None:
        members["data"] = data
    return dumps({"jsonrpc": "2.0", "id": request_id, "error": members})


def discover_failure(
    request_id: RequestId, text: str, meta: Mapping[str, Any], *, requested: str
) -> bytes:
    """Write the one error that ends connecting instead of silently downgrading it (B4).

    The SDK gives up, with this sentence, when it shares no version with ``supported`` and finds no
    older one in it.

    Args:
        request_id: the id of ``server/discover``.
        text: the sentence.
        meta: the facts, as ``outcome_meta`` gives them.
        requested: the protocol version that the request named.
    """
    data = {"supported": ["unavailable"], "requested": requested, OUTCOME_KEY: meta}
    return error(request_id, UNSUPPORTED_PROTOCOL_VERSION, text, data)
