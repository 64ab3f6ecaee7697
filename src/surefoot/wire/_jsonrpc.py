"""The law of this file: what is not exactly one JSON-RPC message is not read as one.

A batch is refused (R97). Member names are compared as they are written, and a name that differs
from a known one only in case is refused, because another reader might take it for that member.
There is exactly one of ``result`` and ``error``; ``result: null`` beside an error object is an
error (D19), as AWS writes it. Ids are compared by type and value: 1 is not True, "1" or 1.0 (D18).
"""

from __future__ import annotations

from typing import Any, Final, Literal, NamedTuple, TypeAlias, cast

__all__ = ["Message", "MessageKind", "RequestId", "as_request_id", "read_message", "same_id"]

RequestId: TypeAlias = int | str
"""What MCP allows as the id of a request; never a ``bool``, a float or null."""

MessageKind = Literal["request", "notification", "response", "error"]
"""The four things that one message can be."""

_MEMBERS: Final = frozenset({"jsonrpc", "id", "method", "params", "result", "error"})


class Message(NamedTuple):
    """One JSON-RPC message, read. Members that JSON-RPC does not know are gone from it.

    A tuple, because it is built for every answer and is cheap to build.
    """

    kind: MessageKind
    """Which of the four it is."""

    id: RequestId | None
    """Its id; ``None`` on a notification, and on an error that could not name its request."""

    value: dict[str, Any]
    """The message itself, with the members that JSON-RPC knows and no other."""

    def __repr__(self) -> str:
        """Show the kind alone: the value is what a server or a user wrote."""
        return f"Message(kind={self.kind!r})"


# Twice as fast as calling the class, and this runs for every message.
_new = cast("Any", tuple).__new__


def as_request_id(value: object) -> RequestId | None:
    """Return the value if it may be the id of a request, else ``None``."""
    return value if type(value) is int or type(value) is str else None


def same_id(one: object, other: object) -> bool:
    """Tell whether two ids are the same by type and value (D18)."""
    return type(one) is type(other) and one == other


def read_message(value: object, *, lenient: bool = False) -> Message | str:
    """Read a parsed JSON value as one message, or return the word for the rule that it breaks.

    ``lenient`` also takes what is written for "none" where nothing should stand: ``error: null``
    beside a result, ``params: null``, and ``id: null`` on what is then a notification. None of it
    is ambiguous, the SDK reads it so, and servers write it.
    """
    if not isinstance(value, dict):
        return "batch" if isinstance(value, list) else "not-an-object"
    message = cast("dict[str, Any]", value)
    if message.get("jsonrpc") != "2.0":
        return "not-jsonrpc"
    # What most answers are, in few steps: jsonrpc, id and result, and nothing else.
    if len(message) == 3 and type(message.get("result")) is dict:
        request_id = message.get("id")
        if type(request_id) is int or type(request_id) is str:
            return _new(Message, ("response", request_id, message))
    if not message.keys() <= _MEMBERS:
        if any(name.lower() in _MEMBERS for name in message.keys() - _MEMBERS):
            return "member-case"
        message = {name: member for name, member in message.items() if name in _MEMBERS}
    if "method" in message:
        return _read_call(_without_nulls(message) if lenient else message)
    return _read_answer(message, lenient=lenient)


def _without_nulls(message: dict[str, Any]) -> dict[str, Any]:
    """Drop the members of a call that say "none"."""
    nulls = [name for name in ("id", "params") if message.get(name, 0) is None]
    return {name: message[name] for name in message if name not in nulls} if nulls else message


def _read_call(message: dict[str, Any]) -> Message | str:
    """Read a request or a notification."""
    if "result" in message or "error" in message:
        return "answer-and-call"
    if type(message["method"]) is not str:
        return "bad-method"
    if not isinstance(message.get("params", {}), dict):
        return "bad-params"
    if "id" not in message:
        return Message("notification", None, message)
    request_id = as_request_id(message["id"])
    if request_id is None:
        return "bad-id"
    return Message("request", request_id, message)


def _read_answer(message: dict[str, Any], *, lenient: bool) -> Message | str:
    """Read a response or an error."""
    if "params" in message:
        message = {name: member for name, member in message.items() if name != "params"}
    error: object = message.get("error")
    if "error" in message and "result" in message:
        if error is not None and message["result"] is None:
            message = {name: member for name, member in message.items() if name != "result"}
        elif lenient and error is None:
            message = {name: member for name, member in message.items() if name != "error"}
        else:
            return "result-and-error"
    request_id = as_request_id(message.get("id"))
    if "error" in message:
        if request_id is None and message.get("id") is not None:
            return "bad-id"
        return _read_error(message, request_id)
    if "result" not in message:
        return "neither-result-nor-error"
    if request_id is None:
        return "bad-id"
    if not isinstance(message["result"], dict):
        return "bad-result"
    return Message("response", request_id, message)


def _read_error(message: dict[str, Any], request_id: RequestId | None) -> Message | str:
    """Hold an error object to its shape: an integer code, a text, and data that may be anything."""
    error = message["error"]
    if not isinstance(error, dict):
        return "bad-error"
    members = cast("dict[str, Any]", error)
    if type(members.get("code")) is not int or type(members.get("message")) is not str:
        return "bad-error"
    kept = {name: members[name] for name in ("code", "message", "data") if name in members}
    if len(kept) != len(members) or "id" not in message:
        message = {"jsonrpc": "2.0", "id": request_id, "error": kept}
    return Message("error", request_id, message)
