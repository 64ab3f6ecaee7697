"""The law of this file: what a request asks for is read once, from its own bytes, beforehand.

The body decides and not a header: ``Mcp-Method`` exists in one era only and can be wrong. What
cannot be read as one message is treated as a tool call that nobody declared (D1).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from surefoot.evidence import current_ledger
from surefoot.policy import Call, idempotency_value
from surefoot.wire import read_request

from ._body import MAX_REQUEST_BODY, buffer_request
from ._notices import origin_of
from ._recorder import Record

if TYPE_CHECKING:
    from surefoot.evidence import Ledger
    from surefoot.policy import Replay
    from surefoot.wire import Outgoing

    from ._clock import Clock
    from ._family import Family, HTTPRequest

__all__ = ["Opener"]


class Opener:
    """Opens the record of a request, for the outermost layer of a stack.

    Args:
        replay: What the app declared.
        name: The endpoint's label; without one, the origin of each request stands in (R52).
        ledger: Where evidence goes outside of any run.
        clock: Time.
        max_body: Bytes of a request body that are kept for a repeat (D10).
    """

    __slots__ = ("_clock", "_ledger", "_max_body", "_name", "_origins", "_replay")

    def __init__(
        self,
        *,
        replay: Replay,
        name: str | None,
        ledger: Ledger | None,
        clock: Clock,
        max_body: int = MAX_REQUEST_BODY,
    ) -> None:
        self._replay = replay
        self._name = name
        self._ledger = ledger
        self._clock = clock
        self._max_body = max_body
        self._origins: tuple[Any, str] | None = None

    async def open(self, request: HTTPRequest, family: Family) -> Record:
        """Buffer the body, read what it asks for, and begin the record of its series."""
        started = self._clock.monotonic()
        if isinstance(request.stream, family.ByteStream):
            body: bytes | None = request.read()
            if body is not None and len(body) > self._max_body:
                body = None
        else:
            body = await buffer_request(request, family, self._max_body)
        outgoing: Outgoing | None = None
        if request.method != "POST":
            call = Call(method=None, resendable=body is not None)
        else:
            outgoing = read_request(body) if body else None
            call = self._call(outgoing, resendable=body is not None)
        return Record(
            outgoing=outgoing,
            call=call,
            http_method=request.method,
            endpoint=self._name or self._origin(request),
            family=family.name,
            started=started,
            # The context of the request decides, not that in which its answer is closed (R22).
            ledger=current_ledger() or self._ledger,
        )

    def _origin(self, request: HTTPRequest) -> str:
        """The origin, worked out once for as long as the requests go to the same one."""
        url = request.url
        key = (url.raw_scheme, url.raw_host, url.port)
        known = self._origins
        if known is None or known[0] != key:
            known = self._origins = (key, origin_of(request))
        return known[1]

    def _call(self, outgoing: Outgoing | None, *, resendable: bool) -> Call:
        if outgoing is None or outgoing.kind == "unreadable":
            return Call(method=None, is_tool_call=True, resendable=resendable)
        method = outgoing.method
        if method != "tools/call":
            return Call(method=method, resendable=resendable)
        tool = outgoing.tool
        rule = None if tool is None else self._replay.tools.get(tool)
        carried = (
            rule is not None
            and rule.idempotency_key is not None
            and idempotency_value(rule.idempotency_key, outgoing.arguments, outgoing.meta)
            is not None
        )
        return Call(
            method=method,
            tool=tool,
            is_tool_call=True,
            key_carried=carried,
            resendable=resendable,
        )
