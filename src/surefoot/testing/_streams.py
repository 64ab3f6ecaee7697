"""The law of this file: steps that answer with a stream: sound, cut, silent, or endless.

Each docstring says what goes over the wire, and whether the tool ran.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import ClassVar, Literal, cast

from surefoot.testing import _checks as check
from surefoot.testing._exchange import JSON_LINE, Exchange
from surefoot.testing._request import Kind, Reply
from surefoot.testing._steps import ANSWERED, STREAMED, Step
from surefoot.testing._wire import chunk, compact_json, head, sse_event

__all__ = ["EndlessComments", "EndlessStream", "HeldStream", "Sse", "SseCut"]

Before = int | Sequence[Mapping[str, object]]
"""Events that stand before the answer: so many log notifications, or these JSON-RPC messages."""


@dataclass(frozen=True, slots=True)
class Sse(Step):
    """A sound event stream that ends in the answer. The tool ran.

    On the wire: status 200, chunked, first the events of `before`, then the answer, then the end.
    """

    before: Before = 0
    _: KW_ONLY
    comments: Sequence[str] = ()
    """Comment lines that stand before every event."""
    ids: bool = False
    """Give every event an id, with which a GET can ask for the answer (handshake era)."""
    primed: bool = False
    """Open with an event that has an id and no data, as resumable servers do."""
    retry: int | str | None = None
    """Milliseconds until a client reconnects, with the first event; a text is sent as it stands."""
    interval: float = 0.0
    """Seconds between two events."""
    fits: ClassVar[frozenset[Kind]] = ANSWERED

    def __post_init__(self) -> None:
        _messages(self.before)
        check.a_bool("Sse(ids)", self.ids)
        check.a_bool("Sse(primed)", self.primed)
        check.a_number_of_seconds("Sse(interval)", self.interval)

    async def play(self, exchange: Exchange) -> None:
        """Stream the events and the answer."""
        reply = await exchange.run()
        await exchange.start_stream(reply.lines)
        retry = self.retry
        for place, data in enumerate(self._blocks(reply)):
            last = data is not None and place == self._count() - 1
            event_id = f"{exchange.number}-{place}" if self.ids or data is None else None
            if event_id is not None:
                exchange.keep_for_resumption(event_id, Reply(message=reply.message))
            block = sse_event(data or b"", event_id=event_id, retry=retry, comments=self.comments)
            retry = None
            if last:
                await exchange.end_stream(block)
                return
            await exchange.stream(block)
            await exchange.pause(self.interval)

    def _count(self) -> int:
        return len(_messages(self.before)) + 1 + (1 if self.primed else 0)

    def _blocks(self, reply: Reply) -> Iterator[bytes | None]:
        if self.primed:
            yield None
        for message in _messages(self.before):
            yield compact_json(message)
        yield compact_json(reply.message)


@dataclass(frozen=True, slots=True)
class SseCut(Step):
    """An event stream that ends before the answer. The tool ran, unless `ran=False`.

    On the wire: status 200, chunked, the events of `before`, then the end in the way of `how`:

    - `"close"`: the connection closes without the chunk that ends the body.
    - `"end"`: the body ends soundly, and the connection is kept.
    - `"reset"`: the connection is reset.

    With `after_event_id`, the last event before the cut carries that id (an event without data
    where there is none), and a GET that names it as Last-Event-ID is given the answer, unless
    `resumes=False`.
    """

    before: Before = 0
    _: KW_ONLY
    after_event_id: str | None = None
    retry: int | str | None = None
    half_event: bool = False
    """Send the answer's event without its last half, which must then not be believed."""
    how: Literal["close", "end", "reset"] = "close"
    resumes: bool = True
    ran: bool = True
    fits: ClassVar[frozenset[Kind]] = STREAMED

    def __post_init__(self) -> None:
        _messages(self.before)
        check.one_of("SseCut(how)", self.how, ("close", "end", "reset"))
        for option in ("half_event", "resumes", "ran"):
            check.a_bool(f"SseCut({option})", cast("object", getattr(self, option)))
        if self.after_event_id is not None:
            check.a_text("SseCut(after_event_id)", self.after_event_id)
        if self.half_event and not self.ran:
            raise ValueError(
                "SseCut(half_event=True) needs ran=True, as half of nothing is nothing"
            )

    async def play(self, exchange: Exchange) -> None:
        """Stream the events, then cut."""
        owed = exchange.received.kind != "get"
        reply = await exchange.run() if self.ran and owed else Reply()
        await exchange.start_stream(reply.lines)
        datas: list[bytes] = [compact_json(message) for message in _messages(self.before)]
        if self.after_event_id is not None:
            datas = datas or [b""]
            if self.resumes and reply.message is not None:
                exchange.keep_for_resumption(self.after_event_id, Reply(message=reply.message))
        for place, data in enumerate(datas):
            event_id = self.after_event_id if place == len(datas) - 1 else None
            await exchange.stream(
                sse_event(data, event_id=event_id, retry=self.retry if place == 0 else None)
            )
        if self.half_event and reply.message is not None:
            block = sse_event(compact_json(reply.message))
            await exchange.stream(block[: len(block) // 2])
        await self._cut(exchange)

    async def _cut(self, exchange: Exchange) -> None:
        match self.how:
            case "end":
                await exchange.end_stream()
            case "close":
                exchange.hang_up()
            case "reset":
                await exchange.pause(0.02)
                exchange.reset()


@dataclass(frozen=True, slots=True)
class HeldStream(Step):
    """An event stream that stays open and says nothing. The tool ran, unless `ran=False`.

    On the wire: the head of a stream, then nothing until the client leaves; after `seconds`, where
    they are given, the answer and a sound end (for `"GET"`, the end alone).
    """

    seconds: float | None = None
    _: KW_ONLY
    ran: bool = True
    fits: ClassVar[frozenset[Kind]] = STREAMED

    def __post_init__(self) -> None:
        check.a_bool("HeldStream(ran)", self.ran)
        if self.seconds is not None:
            check.a_number_of_seconds("HeldStream(seconds)", self.seconds)

    async def play(self, exchange: Exchange) -> None:
        """Hold the stream open."""
        owed = exchange.received.kind != "get"
        reply = await exchange.run() if self.ran and owed else Reply()
        await exchange.start_stream(reply.lines)
        if self.seconds is None:
            await exchange.hung_up()
            return
        await exchange.pause(self.seconds)
        await exchange.end_stream(
            b"" if reply.message is None else sse_event(compact_json(reply.message))
        )


@dataclass(frozen=True, slots=True)
class EndlessComments(Step):
    """An event stream of comments without an end, one every `interval` seconds.

    The tool ran, unless `ran=False`. It keeps a connection alive for ever without ever answering,
    and ends when the client leaves.
    """

    interval: float = 0.05
    _: KW_ONLY
    comment: str = "ping"
    ran: bool = True
    fits: ClassVar[frozenset[Kind]] = STREAMED

    def __post_init__(self) -> None:
        check.a_number_of_seconds("EndlessComments(interval)", self.interval)
        check.a_bool("EndlessComments(ran)", self.ran)

    async def play(self, exchange: Exchange) -> None:
        """Send comments until the client leaves."""
        if self.ran and exchange.received.kind != "get":
            await exchange.run()
        await exchange.start_stream()
        while True:
            await exchange.stream(sse_event(None, comments=(self.comment,)))
            await exchange.pause(self.interval)


@dataclass(frozen=True, slots=True)
class EndlessStream(Step):
    """A body without an end, as fast as the client reads. The tool ran, unless `ran=False`.

    - `"events"`: an event stream of notifications.
    - `"event"`: an event stream with one event that never ends, in many `data:` lines.
    - `"line"`: an event stream with one line that never ends.
    - `"json"`: a JSON body with one text that never ends.

    It ends when the client leaves, and at the latest, with a close, after `limit` bytes.
    """

    what: Literal["events", "event", "line", "json"] = "events"
    _: KW_ONLY
    limit: int = 256 << 20
    ran: bool = True
    fits: ClassVar[frozenset[Kind]] = ANSWERED

    def __post_init__(self) -> None:
        check.one_of("EndlessStream(what)", self.what, ("events", "event", "line", "json"))
        check.a_count("EndlessStream(limit)", self.limit, least=1)
        check.a_bool("EndlessStream(ran)", self.ran)

    async def play(self, exchange: Exchange) -> None:
        """Send until the client leaves, or the limit is reached."""
        if self.ran:
            await exchange.run()
        opening, more = self._parts(exchange.received.id_json)
        if self.what == "json":
            await exchange.write(head(200, (JSON_LINE, (b"transfer-encoding", b"chunked"))))
        else:
            await exchange.start_stream()
        await exchange.write(chunk(opening))
        sent = 0
        while sent < self.limit:
            await exchange.write(chunk(more))
            sent += len(more)
            await exchange.pause(0)
        exchange.hang_up()

    def _parts(self, id_json: bytes) -> tuple[bytes, bytes]:
        match self.what:
            case "events":
                return b": endless\r\n\r\n", sse_event(compact_json(_log(0))) * 200
            case "event":
                return b"event: message\r\n", b'data: "more"\r\n' * 2000
            case "line":
                return b"data: ", b"x" * 32768
            case "json":
                opening = (
                    b'{"jsonrpc":"2.0","id":%b,"result":{"content":[{"type":"text","text":"'
                    % id_json
                )
                return opening, b"x" * 32768


def _messages(before: object) -> list[Mapping[str, object]]:
    if isinstance(before, int) and not isinstance(before, bool):
        return [_log(place) for place in range(check.a_count("before", before))]
    if isinstance(before, Sequence) and not isinstance(before, str | bytes):
        items = cast("Sequence[object]", before)
        if all(isinstance(item, Mapping) for item in items):
            return [cast("Mapping[str, object]", item) for item in items]
    raise TypeError(
        "before takes a number of events, or a sequence of JSON-RPC messages as mappings"
    )


def _log(place: int) -> Mapping[str, object]:
    params = {"level": "info", "data": f"event {place + 1}"}
    return {"jsonrpc": "2.0", "method": "notifications/message", "params": params}
