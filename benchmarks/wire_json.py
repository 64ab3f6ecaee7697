"""What strict reading and canonical writing cost, against orjson's loads and dumps.

    pip install orjson
    python benchmarks/wire_json.py [--rounds 25]

`canonical` is what reading an answer does: strict parse and canonical form in one pass. `loads` and
`dumps` one after the other write twice, because an overflow to infinity shows only in what is
written. The targets are those of `canonical`.
"""

from __future__ import annotations

import argparse
import base64
import json
import random
from typing import Any
from uuid import UUID

import orjson
from figures import figure
from wire_rounds import compare

from surefoot.wire import RawAnswer, read_request, safe_answer
from surefoot.wire.strict_json import canonical, dumps, loads

TARGETS = {"small": 3.0, "medium": 2.7, "records": 1.6, "base64": 1.8}


def texts() -> dict[str, bytes]:
    """One answer of each size, as servers give them."""
    draw = random.Random(1)  # noqa: S311  # seeded texts

    def answer(result: Any) -> bytes:
        return json.dumps(
            {"jsonrpc": "2.0", "id": 3, "result": result}, separators=(",", ":")
        ).encode()

    def row(number: int) -> dict[str, Any]:
        return {
            "id": str(UUID(int=draw.getrandbits(128))),
            "number": number,
            "price": number * 1.37,
            "name": f"customer {number}",
            "tags": ["alpha", "beta"],
            "open": True,
            "note": None,
        }

    small = {
        "content": [{"type": "text", "text": "Order W-7712 was shipped on the 3rd; see tracking."}],
        "isError": False,
        "resultType": "complete",
        "structuredContent": {"result": 3, "ok": True, "share": 1.5},
        "_meta": {"io.modelcontextprotocol/serverInfo": {"name": "srv", "version": "1.0.0"}},
    }
    picture = base64.b64encode(draw.randbytes(7_500_000)).decode()
    return {
        "small": answer(small),
        "medium": answer({"structuredContent": {"rows": [row(n) for n in range(110)]}}),
        "records": answer({"structuredContent": {"rows": [row(n) for n in range(52_000)]}}),
        "base64": answer({"content": [{"type": "image", "data": picture}]}),
    }


def main() -> None:
    """Print one table for each size."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=25)
    rounds = parser.parse_args().rounds
    for name, data in texts().items():
        rows = {
            "orjson loads and dumps": lambda data=data: orjson.dumps(orjson.loads(data)),
            "canonical": lambda data=data: canonical(data),
            "loads, then dumps": lambda data=data: dumps(loads(data)),
        }
        found = compare(
            f"{name}: {len(data):,} bytes", rows, rounds=rounds if len(data) < 1e6 else 9
        )
        print(f"  canonical at most {TARGETS[name]}: {found['canonical']:.2f}")
        what = f"strict parse and canonical form, {name}, {len(data):,} bytes"
        against = "orjson loads and dumps"
        figure(what, found["canonical"], "x", against=against, at_most=TARGETS[name])
    small = texts()["small"]
    raw = RawAnswer(200, ((b"content-type", b"application/json"), (b"date", b"x")), small)
    rows = {
        "orjson loads and dumps": lambda: orjson.dumps(orjson.loads(small)),
        "safe_answer, 300 bytes": lambda: safe_answer(raw, request_id=3),
        "orjson loads": lambda: orjson.loads(REQUEST),
        "read_request, 300 bytes": lambda: read_request(REQUEST),
    }
    compare("one call", rows, rounds=rounds)


REQUEST = (
    b'{"method":"tools/call","params":{"name":"add","arguments":{"a":1,"b":2,"q":"order W-7712"},'
    b'"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",'
    b'"io.modelcontextprotocol/clientInfo":{"name":"mcp","version":"0.1.0"},'
    b'"io.modelcontextprotocol/clientCapabilities":{}}},"jsonrpc":"2.0","id":3}'
)

if __name__ == "__main__":
    main()
