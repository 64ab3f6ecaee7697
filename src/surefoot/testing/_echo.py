"""The law of this file: what was received comes back in a sentence, in a disguise."""

from __future__ import annotations

import base64
from typing import Literal
from urllib.parse import quote

from surefoot.testing._request import Received
from surefoot.testing._wire import compact_json

__all__ = ["Echo", "escaped", "quoted"]

Echo = Literal["plain", "json-escaped", "percent", "base64"]
"""How a body quotes the header values that were received."""


def quoted(received: Received, how: Echo) -> str:
    """The received header values in a sentence, in one of the disguises in which they come back."""
    lines = [
        f"{name.decode('latin-1')}: {_dressed(value, how)}" for name, value in received.headers
    ]
    return "The request was refused. It carried: " + " | ".join(lines)


def _dressed(value: bytes, how: Echo) -> str:
    text = value.decode("latin-1")
    match how:
        case "percent":
            return quote(text, safe="")
        case "base64":
            return base64.b64encode(value).decode()
        case _:
            return text


def escaped(body: bytes, received: Received, how: Echo) -> bytes:
    """A body in which every received header value is spelt in JSON escapes, where asked for."""
    if how != "json-escaped":
        return body
    for _, value in received.headers:
        spelt = "".join(f"\\u{letter:04x}" for letter in value)
        body = body.replace(compact_json(value.decode("latin-1"))[1:-1], spelt.encode())
    return body
