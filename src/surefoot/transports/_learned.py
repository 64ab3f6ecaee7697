"""The law of this file: what a server's own answers teach is kept for its Gateway, and bounded.

Which tools it lists and what it hints of them (D29, D30), and which later requests belong to a call
that has begun: its ``requestState`` rounds, and the one sent again after a header mismatch (D33).
Hints are kept only where the app trusts them; of a state only a digest is kept. Safe from any
thread.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Final, cast

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from surefoot.policy import Replay
    from surefoot.wire import Outgoing

__all__ = ["HEADER_MISMATCH", "Learned"]

HEADER_MISMATCH: Final = -32020
"""The call's headers do not fit its body; the SDK reads the tool's schema and sends it again."""

_MOST_HINTS: Final = 10_000
_MOST_LISTS: Final = 256
_MOST_CALLS: Final = 10_000


class Learned:
    """What the answers of one server have taught so far.

    Args:
        replay: What the app declared.
        report: Told, once for each, of a declared tool that a complete list does not hold.
    """

    __slots__ = ("_calls", "_declared", "_hints", "_lists", "_lock", "_report", "_reported")

    def __init__(self, replay: Replay, report: Callable[[str], None]) -> None:
        self._declared = frozenset(replay.tools)
        self._hints: OrderedDict[str, bool] | None = OrderedDict() if replay.trust_hints else None
        self._report = report
        self._reported: set[str] = set()
        self._lists: OrderedDict[bytes, frozenset[str]] = OrderedDict()
        self._calls: OrderedDict[bytes, tuple[str, float]] = OrderedDict()
        self._lock = threading.Lock()

    def hinted(self, tool: str | None) -> bool:
        """Whether the server hints that this tool may be repeated; ``False`` where unknown."""
        if self._hints is None or tool is None:
            return False
        with self._lock:
            return self._hints.get(tool, False)

    def listed(self, asked: Outgoing, result: Mapping[str, Any]) -> None:
        """Take one page of ``tools/list``; after the last one, report what the list lacks."""
        entries: Any = result.get("tools")
        if not isinstance(entries, list):
            return
        tools = [cast("dict[str, Any]", one) for one in entries if isinstance(one, dict)]  # pyright: ignore[reportUnknownVariableType]
        began, goes_on = asked.params.get("cursor"), result.get("nextCursor")
        missing: list[str] = []
        with self._lock:
            self._take_hints(tools)
            names = (one.get("name") for one in tools)
            seen = self._declared.intersection(name for name in names if isinstance(name, str))
            if began is not None:
                before = self._lists.pop(_place(began), None)
                if before is None:
                    return  # the pages before this one were not seen here
                seen |= before
            if goes_on:
                _keep(self._lists, _place(goes_on), seen, _MOST_LISTS)
                return
            missing = sorted(self._declared - seen - self._reported)
            self._reported.update(missing)
        for tool in missing:
            self._report(tool)

    def _take_hints(self, tools: list[dict[str, Any]]) -> None:
        if self._hints is None:
            return
        for one in tools:
            name: object = one.get("name")
            said: Any = one.get("annotations")
            hints = cast("dict[str, Any]", said) if isinstance(said, dict) else {}
            if isinstance(name, str):
                repeatable = (
                    hints.get("readOnlyHint") is True or hints.get("idempotentHint") is True
                )
                _keep(self._hints, name, repeatable, _MOST_HINTS)

    def begun(
        self, call_id: str, asked: Outgoing, principal: str | None, state: object, began: float
    ) -> bool:
        """A round of a call ended with the state that its next round will carry, if it has one.

        A state is whatever the server likes, and may be the same for many calls: "step 2". So the
        next round is known by what it asks for, too.
        """
        if not isinstance(state, str):
            return False
        key = _round(b"state", asked, principal, state)
        with self._lock:
            _keep(self._calls, key, (call_id, began), _MOST_CALLS)
        return True

    def mismatched(
        self, call_id: str, asked: Outgoing, principal: str | None, began: float
    ) -> None:
        """A call was refused for its headers, and will be sent again with others."""
        key = _round(b"mismatch", asked, principal, asked.request_state)
        with self._lock:
            _keep(self._calls, key, (call_id, began), _MOST_CALLS)

    def call_of(self, asked: Outgoing, principal: str | None) -> tuple[str, float, bool] | None:
        """The call that this request goes on with, when that began, and whether it is sent again.

        ``None`` for a new one. What is sent again after a header mismatch is so once.
        """
        if not self._calls:
            return None
        state = asked.request_state
        same = _round(b"mismatch", asked, principal, state)
        after = None if state is None else _round(b"state", asked, principal, state)
        with self._lock:
            again = self._calls.pop(same, None)
            if again is not None:
                return *again, True
            known = None if after is None else self._calls.get(after)
            return None if known is None else (*known, False)


def _place(cursor: object) -> bytes:
    """Where a list goes on, as a key: whatever a server may have sent."""
    text = cursor if isinstance(cursor, str) else repr(cursor)
    return _digest(b"text" if text is cursor else b"other", text)


def _keep(table: OrderedDict[Any, Any], key: object, value: object, most: int) -> None:
    table[key] = value
    table.move_to_end(key)
    if len(table) > most:
        table.popitem(last=False)


def _digest(kind: bytes, text: str) -> bytes:
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16, key=kind).digest()


def _round(kind: bytes, asked: Outgoing, principal: str | None, state: str | None) -> bytes:
    """What one round of one call is known by, whatever its id and its headers."""
    known = blake2b(asked.compared_arguments(), digest_size=16, key=kind)
    for part in (asked.tool, principal, state):
        data = b"" if part is None else b"=" + part.encode("utf-8", "surrogatepass")
        known.update(len(data).to_bytes(8, "big") + data)
    return known.digest()
