"""The law of this file: an answer is checked in a test as the reader checks it, in one line."""

from __future__ import annotations

import json
from typing import Any

from surefoot.wire import CheckedAnswer, RawAnswer, safe_answer

__all__ = ["CANARY", "JSON", "answered", "failed", "reply", "value"]

CANARY = "CANARY-3f9c"
"""Stands for whatever must not come back."""

JSON = (b"content-type", b"application/json")
"""The one line that says that a body is JSON."""


def answered(status: int, body: Any, *lines: tuple[bytes, bytes], **options: Any) -> CheckedAnswer:
    """Check one answer to request 1; a body that is no bytes is written as JSON."""
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    options.setdefault("request_id", 1)
    return safe_answer(RawAnswer(status, lines or (JSON,), data), **options)


def reply(**members: Any) -> dict[str, Any]:
    """An answer to request 1."""
    return {"jsonrpc": "2.0", "id": 1, **members}


def failed(code: int = -32603, message: str = "m", **members: Any) -> dict[str, Any]:
    """An error that answers request 1."""
    return reply(error={"code": code, "message": message, **members})


def value(checked: CheckedAnswer) -> Any:
    """What the client reads; its headers say the truth about it."""
    lines = dict(checked.headers)
    assert lines[b"content-length"] == b"%d" % len(checked.body)
    assert (b"content-type" in lines) == bool(checked.body)
    if checked.body:
        assert lines[b"content-type"] == b"application/json"
    return json.loads(checked.body) if checked.body else None
