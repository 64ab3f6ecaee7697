"""The law of this file: a secret is found in what is no string, too (B7)."""

from __future__ import annotations

import pytest

from surefoot.wire import MARK, Scrub, read_request

PIN = b"1234567890123"


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        (b'{"a":1234567890123}', b'{"a":"' + MARK.encode() + b'"}'),
        (b'{"a":[1,-1234567890123]}', b'{"a":[1,"-' + MARK.encode() + b'"]}'),
        (b'{"a":1234567890122}', b'{"a":1234567890122}'),
        (b'{"a":true,"b":1.5}', b'{"a":true,"b":1.5}'),
    ],
)
def test_a_secret_of_digits_that_comes_back_as_a_number_is_removed(
    text: bytes, clean: bytes
) -> None:
    """B7. The canonical form is searched, and a number is part of it; other numbers stay."""
    found, hits = Scrub([PIN])(text)
    assert found == clean
    assert hits == (text != clean)


def test_a_tool_call_without_an_id_still_names_its_tool() -> None:
    """R13, D1. What a declaration says of a tool also holds where nobody waits for an answer."""
    body = b'{"jsonrpc":"2.0","method":"tools/call","params":{"name":"refund","arguments":{"n":1}}}'
    read = read_request(body)
    assert read is not None
    assert (read.kind, read.tool, read.arguments) == ("notification", "refund", {"n": 1})
    assert not read.is_tool_call
