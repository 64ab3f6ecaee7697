"""The law of this file: what a request asks for is read once, from its own bytes.

The body is made whole before the first attempt, and read when somebody first asks what it says. The
body decides and not a header: ``Mcp-Method`` exists in one era only and can be wrong. What cannot
be read as one message is treated as a tool call that nobody declared (D1).
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any, cast

from surefoot.evidence import current_ledger
from surefoot.policy import Call, idempotency_value
from surefoot.wire import read_request

from ._body import MAX_REQUEST_BODY, buffer_request
from ._learned import HEADER_MISMATCH
from ._notices import origin_of
from ._recorder import Record

if TYPE_CHECKING:
    from surefoot.evidence import Ledger, SpanSource
    from surefoot.policy import Replay
    from surefoot.wire import Outgoing

    from ._calls import CallTable
    from ._clock import Clock
    from ._family import Family, HTTPRequest
    from ._learned import Learned

__all__ = ["Opener"]


class Opener:
    """Opens the record of a request, for the outermost layer of a stack.

    Args:
        replay: What the app declared.
        name: The endpoint's label; without one, the origin of each request stands in (R52).
        ledger: Where evidence goes outside of any run.
        clock: Time.
        max_body: Bytes of a request body that are kept for a repeat (D10).
        calls: What the callers of one stream said of their messages beside the messages.
        learned: What the server's answers have taught so far.
        spans: Where attempts get their spans.
        where: The origin of every request, where that is known.
        principal: On whose behalf all of them are.
    """

    __slots__ = (
        "_calls", "_clock", "_learned", "_ledger", "_max_body", "_name", "_principal", "_replay",
        "_spans", "_where",
    )  # fmt: skip

    def __init__(
        self,
        *,
        replay: Replay,
        name: str | None,
        ledger: Ledger | None,
        clock: Clock,
        max_body: int = MAX_REQUEST_BODY,
        calls: CallTable | None = None,
        learned: Learned | None = None,
        spans: SpanSource | None = None,
        where: str | None = None,
        principal: str | None = None,
    ) -> None:
        self._replay = replay
        self._name = name
        self._ledger = ledger
        self._clock = clock
        self._max_body = max_body
        self._calls = calls
        self._learned = learned
        self._spans = spans
        self._where = where
        self._principal = principal

    async def open(self, request: HTTPRequest, family: Family) -> Record:
        """Buffer the body, and begin the record of a request."""
        record = self.open_whole(request, family)
        if record is None:
            started = self._clock.monotonic()
            body = await buffer_request(request, family, self._max_body)
            record = self._record(request, family, started, body, resendable=body is not None)
        return record

    def open_whole(self, request: HTTPRequest, family: Family) -> Record | None:
        """The same where the body is whole already, as every client's is; ``None`` where not."""
        if not isinstance(request.stream, family.ByteStream):
            return None
        body: bytes = request.read()
        resendable = len(body) <= self._max_body
        return self._record(request, family, self._clock.monotonic(), body, resendable=resendable)

    def _record(
        self,
        request: HTTPRequest,
        family: Family,
        started: float,
        body: bytes | None,
        *,
        resendable: bool,
    ) -> Record:
        record = Record(
            opener=self,
            body=body,
            resendable=resendable,
            http_method=request.method,
            url=request.url,
            family=family.name,
            started=started,
            # The context of the request decides, not that in which its answer is closed (R22).
            ledger=current_ledger() or self._ledger,
        )
        if self._spans is not None and self._spans.tracing():
            record.spans = self._spans
        if self._calls is not None:
            self._of_its_caller(record, self._calls)
        if record.ledger is not None:
            record.begin()
        return record

    @staticmethod
    def _of_its_caller(record: Record, calls: CallTable) -> None:
        """Take over what the caller said of this message, beside the message."""
        outgoing = record.outgoing
        if outgoing is None or outgoing.kind != "request":
            return
        context = calls.take(outgoing.id)
        if context is not None:
            record.ledger = context.ledger or record.ledger
            record.ends = context.ends
            record.abandoned = context.abandoned
            record.parent = context.parent
            if context.record is None or outgoing.is_tool_call:
                # The SDK may ask for the list of tools on behalf of the same call.
                context.record = record

    def origin(self, url: Any) -> str:
        """The origin of a request, the only part of a URL that a span carries (B14)."""
        return self._where or origin_of(url)

    def endpoint(self, url: Any) -> str:
        """The label, or the origin of a URL."""
        return self._name or origin_of(url)

    def read(
        self, http_method: str, body: bytes | None, *, resendable: bool
    ) -> tuple[Outgoing | None, Call]:
        """What a request asks for: the message, and what a series must know of it."""
        if http_method != "POST" and not body:
            return None, _known_call(resendable=resendable)
        outgoing = read_request(body) if body else None
        if outgoing is None or outgoing.kind == "unreadable":
            return outgoing, _known_call(is_tool_call=True, resendable=resendable)
        method = outgoing.method
        if method != "tools/call":
            return outgoing, _known_call(method=method, resendable=resendable)
        tool = outgoing.tool
        rule = None if tool is None else self._replay.tools.get(tool)
        carried = (
            rule is not None
            and rule.idempotency_key is not None
            and idempotency_value(rule.idempotency_key, outgoing.arguments, outgoing.meta)
            is not None
        )
        call = _known_call(
            method=method,
            tool=tool,
            is_tool_call=True,
            key_carried=carried,
            resendable=resendable,
            hinted=self._learned is not None and self._learned.hinted(tool),
        )
        return outgoing, call

    def call_id(self, record: Record) -> str:
        """Our id for the call that a request is, or goes on with (D33)."""
        asked = record.outgoing
        if self._learned is not None and asked is not None:
            known = self._learned.call_of(asked, self._principal)
            if known is not None:
                call_id, record.call_began, record.sent_again = known
                return call_id
        return os.urandom(8).hex()

    def heard(self, record: Record, message: Mapping[str, Any]) -> None:
        """Learn from an answer of the server's own, as it was checked."""
        asked = record.outgoing
        if self._learned is None or asked is None:
            return
        result = message.get("result")
        if asked.method == "tools/list":
            if isinstance(result, dict):
                self._learned.listed(asked, cast("dict[str, Any]", result))
        elif asked.method == "tools/call":
            if isinstance(result, dict):
                told = cast("dict[str, Any]", result)
                if "requestState" in told and record.call_id is not None:
                    state = told["requestState"]
                    record.goes_on = self._learned.begun(
                        record.call_id, asked, self._principal, state, _began(record)
                    )
            elif record.code == HEADER_MISMATCH and record.call_id is not None:
                # The SDK sends it again once, with other headers.
                record.goes_on = not record.sent_again
                if record.goes_on:
                    self._learned.mismatched(record.call_id, asked, self._principal, _began(record))


def _began(record: Record) -> float:
    """When the call began of which this request is a part."""
    return record.started if record.call_began is None else record.call_began


@lru_cache(maxsize=256)
def _known_call(
    *,
    method: str | None = None,
    tool: str | None = None,
    is_tool_call: bool = False,
    key_carried: bool = False,
    resendable: bool = True,
    hinted: bool = False,
) -> Call:
    """A ``Call``; the same few are wanted again and again."""
    return Call(
        method=method,
        tool=tool,
        is_tool_call=is_tool_call,
        key_carried=key_carried,
        resendable=resendable,
        hinted=hinted,
    )
