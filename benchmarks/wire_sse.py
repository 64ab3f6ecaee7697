"""What decoding an event stream costs, against httpx2's own reader.

    python benchmarks/wire_sse.py [--rounds 15]

`httpx2.EventSource` is what the MCP SDK reads with. `decode` is our decoder alone; `decode, check,
encode` is all that is done to an event on its way: strict JSON, canonical form, written again;
`safe_event` adds the reading of the message itself. One event a chunk is how live streams come;
64 KiB is a stream that was written at once.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Iterator

import httpx2
from figures import figure
from wire_rounds import compare

from surefoot.wire import SseDecoder, encode_event, safe_event
from surefoot.wire.strict_json import canonical

EVENTS = 2_000
FORMS = {
    "data alone": b"data: %b\n\n",
    "event: message, CRLF": b"event: message\r\ndata: %b\r\n\r\n",
    "with ids": b"id: e-%d\nevent: message\ndata: %b\n\n",
}


class Chunks(httpx2.SyncByteStream):
    """A body that comes in pieces."""

    def __init__(self, chunks: list[bytes]) -> None:
        self._chunks = chunks

    def __iter__(self) -> Iterator[bytes]:
        return iter(self._chunks)


def events(form: bytes) -> list[bytes]:
    """Progress notifications, about 115 bytes each."""
    made: list[bytes] = []
    for number in range(EVENTS):
        params = {"progressToken": 3, "progress": number, "total": EVENTS}
        message = {"jsonrpc": "2.0", "method": "notifications/progress", "params": params}
        data = json.dumps(message, separators=(",", ":")).encode()
        made.append(form % (number, data) if b"%d" in form else form % data)
    return made


def theirs(chunks: list[bytes]) -> int:
    """Read with httpx2."""
    request = httpx2.Request("GET", "http://127.0.0.1")
    kind = {"content-type": "text/event-stream"}
    response = httpx2.Response(200, headers=kind, request=request, stream=Chunks(chunks))
    return sum(1 for _ in httpx2.EventSource(response))


def ours(chunks: Iterable[bytes]) -> int:
    """Decode alone."""
    decoder = SseDecoder()
    found = sum(len(list(decoder.feed(chunk))) for chunk in chunks)
    decoder.close()
    return found


def through(chunks: Iterable[bytes]) -> int:
    """Decode, check and encode."""
    decoder = SseDecoder()
    size = 0
    for chunk in chunks:
        for block in decoder.feed(chunk):
            text = canonical(block.data or b"null")[1]
            size += len(encode_event(text, id=block.id, retry=block.retry))
    return size


def whole(chunks: Iterable[bytes]) -> int:
    """Everything that is done to an event on its way."""
    decoder = SseDecoder()
    return sum(
        len(safe_event(block, request_id=3).wire)
        for chunk in chunks
        for block in decoder.feed(chunk)
    )


def main() -> None:
    """Print one table for each form and way of coming."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=15)
    rounds = parser.parse_args().rounds
    for name, form in FORMS.items():
        alone = events(form)
        stream = b"".join(alone)
        pieces = [stream[at : at + 65_536] for at in range(0, len(stream), 65_536)]
        for how, chunks in (("one event a chunk", alone), ("64 KiB a chunk", pieces)):
            rows = {
                "httpx2.EventSource": lambda chunks=chunks: theirs(chunks),
                "decode": lambda chunks=chunks: ours(chunks),
                "decode, check, encode": lambda chunks=chunks: through(chunks),
                "decode, safe_event": lambda chunks=chunks: whole(chunks),
            }
            found = compare(f"{name}, {how}: {EVENTS} events", rows, rounds=rounds)
            faster = {row: 1 / ratio for row, ratio in found.items()}
            print(
                f"  faster than httpx2: decode {faster['decode']:.2f} (target 2), "
                f"decode, check, encode {faster['decode, check, encode']:.2f} (target 1.15)"
            )
            title = f"speed, events with {name}, {how}"
            peer = "httpx2.EventSource"
            figure(f"{title}: decode", faster["decode"], "x", against=peer, at_least=2)
            checked = faster["decode, check, encode"]
            figure(f"{title}: and check, encode", checked, "x", against=peer, at_least=1.15)


if __name__ == "__main__":
    main()
