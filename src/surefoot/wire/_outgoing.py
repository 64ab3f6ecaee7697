"""The law of this file: what a request of ours asks for is read once, and looked at lazily.

Every layer asks the same few questions about the body that goes out (which method, which tool,
which id); they are answered from one parse. A body that is not one JSON-RPC message is
``unreadable``, and the layers treat it as an undeclared tool call (D1).
"""

from __future__ import annotations

import json
from collections.abc import Set as AbstractSet
from typing import Any, Final, Literal, cast

import jiter

from surefoot.errors import UnreadableAnswerError
from surefoot.wire._jsonrpc import RequestId, as_request_id
from surefoot.wire.strict_json import dumps

__all__ = [
    "PROTOCOL_VERSION_KEY",
    "RESULT_TYPE_SINCE",
    "Outgoing",
    "OutgoingKind",
    "could_name",
    "read_request",
]

OutgoingKind = Literal["request", "notification", "response", "unreadable"]
"""What a body that goes out is; a ``response`` answers something that the server asked."""

PROTOCOL_VERSION_KEY: Final = "io.modelcontextprotocol/protocolVersion"
"""Where a request of the stateless era names its protocol version, in ``params._meta``."""

RESULT_TYPE_SINCE: Final = "2026-07-28"
"""The first protocol version whose results carry ``resultType``; versions compare as text."""


class Outgoing:
    """One body that goes out, read. Its repr shows no argument and no tool.

    A plain slotted class and not a dataclass: it is built for every request, and a frozen dataclass
    costs three times as much to build.
    """

    __slots__ = ("_params", "id", "kind", "method")

    kind: OutgoingKind
    """What the body is."""

    id: RequestId | None
    """The id of a request, or of what a response answers."""

    method: str | None
    """The method of a request or notification."""

    def __init__(
        self,
        kind: OutgoingKind,
        request_id: RequestId | None = None,
        method: str | None = None,
        params: dict[str, Any] | None = None,
    ) -> None:
        self.kind = kind
        self.id = request_id
        self.method = method
        self._params = params

    def __repr__(self) -> str:
        """Show what may be shown."""
        return f"Outgoing(kind={self.kind!r}, method={self.method!r})"

    @property
    def params(self) -> dict[str, Any]:
        """The parameters; empty where there are none."""
        return self._params if self._params is not None else {}

    @property
    def is_tool_call(self) -> bool:
        """Whether this is a request that runs a tool."""
        return self.method == "tools/call" and self.kind == "request"

    @property
    def tool(self) -> str | None:
        """The tool's name, where this names one: also without an id, when nobody would answer."""
        if self._params is None or self.method != "tools/call":
            return None
        name = self._params.get("name")
        return name if type(name) is str else None

    @property
    def arguments(self) -> dict[str, Any] | None:
        """The arguments object of a tool call, or ``None`` where it carries none."""
        return _object(self.params.get("arguments")) if self.method == "tools/call" else None

    def canonical_arguments(self) -> bytes | None:
        """Return the arguments in one form, so that equal arguments give equal bytes (B3).

        Keys are sorted, and 1.0 is written as 1, because models write either. ``None`` where there
        are no arguments, or where they have no JSON form.
        """
        arguments = self.arguments
        if arguments is None:
            return None
        try:
            return dumps(_one_form(arguments))
        except UnreadableAnswerError:
            return None

    def compared_arguments(self) -> bytes:
        """Return whatever stands in the place of the arguments, in one form, for comparing alone.

        Never raises, and tells apart what ``canonical_arguments`` has no form for: what is no
        object, and numbers that no float holds. Those of an absurd length are taken for the same.
        """
        canonical = self.canonical_arguments()
        if canonical is not None:
            return canonical
        given = self.params.get("arguments")
        if given is None:
            return b"{}"
        try:
            # The blank is in no canonical form, and ASCII says everything that Python can hold.
            return b" " + json.dumps(_one_form(given)).encode("ascii")
        except ValueError:  # a whole number of thousands of digits, which Python will not write
            return b" "

    @property
    def meta(self) -> dict[str, Any]:
        """``params._meta``; empty where there is none."""
        return _object(self.params.get("_meta")) or {}

    @property
    def protocol_version(self) -> str | None:
        """The protocol version that ``_meta`` names, as the stateless era does; else ``None``."""
        version = self.meta.get(PROTOCOL_VERSION_KEY)
        return version if type(version) is str else None

    @property
    def has_result_type(self) -> bool:
        """Whether a result for this request carries ``resultType`` (DESIGN section 7)."""
        version = self.protocol_version
        return version is not None and version >= RESULT_TYPE_SINCE

    @property
    def has_task(self) -> bool:
        """Whether the call asks to be run as a task, so that its answer is no tool result."""
        return self.params.get("task") is not None

    @property
    def request_state(self) -> str | None:
        """The sealed state that joins this request to an earlier round of the same call (D33)."""
        state = self.params.get("requestState")
        return state if type(state) is str else None

    @property
    def cancelled_id(self) -> RequestId | None:
        """Which request a ``notifications/cancelled`` cancels (B2)."""
        if self.method != "notifications/cancelled":
            return None
        return as_request_id(self.params.get("requestId"))


_UNREADABLE: Final = Outgoing("unreadable")

_EXACT: Final = 1e21
"""Below it every writer of JSON spells a whole number out (ECMA-262, Number::toString)."""

_DECIDING: Final = frozenset({"method", "params", "name", "arguments"})
"""Names that some servers match whatever their case: another spelling may name a tool, too."""

_AS_THEY_ARE: Final = frozenset({*_DECIDING, "jsonrpc", "id", "_meta", "task"})


def read_request(body: bytes) -> Outgoing | None:
    """Read a body that goes out; ``None`` where there is no body, as in a GET or DELETE.

    It never raises: what is not exactly one message is of kind ``unreadable``. A number beyond what
    a float holds is not looked for here; it shows in ``canonical_arguments``.
    """
    if not body:
        return None
    try:
        message = jiter.from_json(
            body, allow_inf_nan=False, catch_duplicate_keys=True, cache_mode="keys"
        )
    except ValueError:
        return _UNREADABLE
    if type(message) is not dict:
        return _UNREADABLE
    value = cast("dict[str, Any]", message)
    if value.get("jsonrpc") != "2.0":
        return _UNREADABLE
    request_id = value.get("id")
    if request_id is not None and type(request_id) is not int and type(request_id) is not str:
        return _UNREADABLE
    method = value.get("method")
    if type(method) is str:
        params: dict[str, Any] | None = value.get("params")
        if (params is not None and type(params) is not dict) or "result" in value:
            return _UNREADABLE
        if _misspelt(value) or (params and method == "tools/call" and _misspelt(params)):
            return _UNREADABLE
        if request_id is not None:
            return Outgoing("request", request_id, method, params)
        # A null id is no notification: the server would have to answer it.
        return _UNREADABLE if "id" in value else Outgoing("notification", None, method, params)
    # An error may answer what could not be read far enough to name its id.
    answers = "error" in value or (request_id is not None and "result" in value)
    if "method" not in value and answers and not ("error" in value and "result" in value):
        return Outgoing("response", request_id)
    return _UNREADABLE


def _misspelt(members: dict[str, Any]) -> bool:
    """Whether a member would be taken for another one by whoever does not mind its case."""
    if _AS_THEY_ARE.issuperset(members):
        return False
    return any(name not in _DECIDING and name.casefold() in _DECIDING for name in members)


def could_name(body: bytes, names: AbstractSet[str]) -> bool:
    """Whether a body that is not one message could be a call of one of these tools all the same.

    Somebody may read it who is less strict: as a batch, or as the last of two members of one name.
    What has no single reading could name anything.
    """
    try:
        value = jiter.from_json(body, allow_inf_nan=False, catch_duplicate_keys=True)
    except ValueError:
        return bool(names)
    left: list[object] = [value]
    while left:
        one = left.pop()
        if isinstance(one, str) and one in names:
            return True
        if isinstance(one, dict):
            left.extend(cast("dict[str, object]", one).values())
        elif isinstance(one, list):
            left.extend(cast("list[object]", one))
    return False


def _object(value: object) -> dict[str, Any] | None:
    """Return the value if it is a JSON object."""
    return cast("dict[str, Any]", value) if isinstance(value, dict) else None


def _one_form(value: object) -> object:
    """Sort the keys of every object within, and write whole floats as integers.

    The parser bounds the depth.
    """
    if isinstance(value, dict):
        members = cast("dict[str, object]", value)
        return {name: _one_form(members[name]) for name in sorted(members)}
    if isinstance(value, list):
        return [_one_form(element) for element in cast("list[object]", value)]
    if isinstance(value, float) and value.is_integer() and abs(value) < _EXACT:
        return int(value)
    return value
