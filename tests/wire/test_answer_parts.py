"""B7, D17, D24. The parts of a failure that pass by name are searched for secrets, too."""

from __future__ import annotations

import json
from typing import Any

import pytest

from surefoot.wire import RawAnswer, Scrub, safe_answer

SECRET = "CANARY5d1f0e77aa"
DIGITS = "123456789"
HEX = SECRET.encode().hex()
JSON = (b"content-type", b"application/json")


def failed(status: int, body: Any, *lines: tuple[bytes, bytes], policy: Any = "checked") -> Any:
    """A failure, read with both secrets searched for."""
    text = b"" if body is None else json.dumps(body).encode()
    scrub = Scrub([SECRET.encode(), DIGITS.encode()])
    raw = RawAnswer(status, (JSON, *lines), text)
    return safe_answer(raw, request_id=1, policy=policy, scrub=scrub)


@pytest.mark.parametrize("policy", ["checked", "strict"])
@pytest.mark.parametrize(
    ("body", "header"),
    [
        (None, f"{SECRET}Exception"),
        (None, f"com.amazon#{SECRET}Error:http://x"),
        (None, f"X{HEX}Exception"),
        ({"__type": f"com.amazon#{SECRET}Error"}, None),
        ({"code": f"{SECRET}Exception"}, None),
        ({"retryAfter": int(DIGITS)}, None),
        ({"retryAfter": float(DIGITS)}, None),
        ({"jsonrpc": "2.0", "id": 1, "error": {"code": -32000, "message": "m"}}, SECRET + "Error"),
    ],
)
def test_no_part_of_a_failure_brings_a_secret_back(
    body: Any, header: str | None, policy: Any
) -> None:
    """B7. In the text, in the facts, at any policy; a failure counts the hit."""
    lines = [] if header is None else [(b"x-amzn-errortype", header.encode())]
    checked = failed(503, body, *lines, policy=policy)
    shown = repr((checked.body, checked.headers, checked.error_type, checked.retry_after))
    for secret in (SECRET, DIGITS, HEX):
        assert secret not in shown
    if checked.kind == "failure":
        assert checked.scrubbed == 1


@pytest.mark.parametrize(
    ("body", "header", "error_type", "seconds"),
    [
        (None, "ThrottlingException", "ThrottlingException", None),
        ({"__type": "com.amazon#ThrottlingException"}, None, "ThrottlingException", None),
        ({"retryAfter": 12}, None, None, 12.0),
        ({"retryAfter": 1.5, "code": "ConflictException"}, None, "ConflictException", 1.5),
    ],
)
def test_what_holds_none_passes_as_before(
    body: Any, header: str | None, error_type: str | None, seconds: float | None
) -> None:
    """D17, D24. The negative rows."""
    lines = [] if header is None else [(b"x-amzn-errortype", header.encode())]
    checked = failed(503, body, *lines)
    assert (checked.error_type, checked.retry_after) == (error_type, seconds)
    assert checked.scrubbed == 0
