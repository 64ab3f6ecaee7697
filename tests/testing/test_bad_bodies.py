"""Each kind of BadJson is bad in the way its name says, and in no other."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import cast, get_args

import pytest

from support.rawhttp import ask
from surefoot.testing import BadJson, FaultyGateway, tool_call
from surefoot.testing._bodies import BadJsonKind


def _message(body: bytes) -> dict[str, object]:
    return cast("dict[str, object]", json.loads(body))


def _pairs(body: bytes) -> list[str]:
    """The keys of the outermost object, unescaped, doubles included."""
    found: list[list[str]] = []

    def keep(pairs: list[tuple[str, object]]) -> dict[str, object]:
        found.append([key for key, _ in pairs])
        return dict(pairs)

    json.loads(body, object_pairs_hook=keep)
    return found[-1]


def _fails(body: bytes, error: type[Exception] = json.JSONDecodeError) -> bool:
    try:
        json.loads(body)
    except error:
        return True
    return False


CHECKS: dict[str, Callable[[bytes], bool]] = {
    "duplicate-keys": lambda body: (
        _pairs(body).count("result") == 2 and body.count(b'"result"') == 2
    ),
    "escaped-duplicate-keys": lambda body: (
        _pairs(body).count("result") == 2 and body.count(b'"result"') == 1
    ),
    "trailing-data": lambda body: (
        _fails(body) and _message(body[: len(body) // 2]) == _message(body[len(body) // 2 :])
    ),
    "bom": lambda body: body[:3] == b"\xef\xbb\xbf" and _message(body[3:])["id"] == 7,
    "nan": lambda body: str(_message(body)["extra"]) == "nan",
    "infinity": lambda body: _message(body)["extra"] == float("inf") and b"Infinity" in body,
    "overflow": lambda body: _message(body)["extra"] == float("inf") and b"1e999" in body,
    "not-utf8": lambda body: _fails(body, UnicodeDecodeError),
    "utf-16": lambda body: json.loads(body.decode("utf-16"))["id"] == 7,
    "lone-surrogate": lambda body: _message(body)["extra"] == "\ud800",
    "too-deep": lambda body: body.count(b"[") > 100_000 and body.count(b"[") == body.count(b"]"),
    "wrong-id": lambda body: _message(body)["id"] == 7007,
    "string-id": lambda body: _message(body)["id"] == "7",
    "null-id": lambda body: _message(body)["id"] is None,
    "no-id": lambda body: set(_message(body)) == {"jsonrpc", "result"},
    "batch": lambda body: json.loads(body)[0]["id"] == 7 and len(json.loads(body)) == 1,
    "result-and-error": lambda body: set(_message(body)) == {"jsonrpc", "id", "result", "error"},
    "neither": lambda body: _message(body) == {"jsonrpc": "2.0", "id": 7},
    "empty": lambda body: body == b"",
    "html": lambda body: body.startswith(b"<html>"),
}


def test_every_kind_has_its_check() -> None:
    """The table below is whole."""
    assert set(CHECKS) == set(get_args(BadJsonKind))


@pytest.mark.parametrize("sse", [False, True], ids=["json", "sse"])
@pytest.mark.parametrize("kind", sorted(CHECKS))
def test_a_bad_body_is_bad_in_its_own_way(kind: BadJsonKind, sse: bool) -> None:
    """The tool ran each time; the framing around the body is sound."""
    with FaultyGateway(sse=sse) as gateway:
        gateway.script("charge", BadJson(kind))
        answer = ask(gateway, tool_call("charge", rpc_id=7))
        assert gateway.executions("charge") == 1
    assert answer.status == 200
    if not sse:
        assert answer.values("content-type") == [b"application/json"]
        assert CHECKS[kind](answer.body)
        return
    content, ended = answer.unchunked()
    opening, closing = b"event: message\r\ndata: ", b"\r\n\r\n"
    assert ended
    assert content.startswith(opening)
    assert content.endswith(closing)
    assert CHECKS[kind](content[len(opening) : -len(closing)])


def test_a_wrong_id_of_a_text_is_another_text() -> None:
    """Ids may be texts."""
    with FaultyGateway() as gateway:
        gateway.script("charge", BadJson("wrong-id"))
        assert ask(gateway, tool_call("charge", rpc_id="a")).json()["id"] == "a-other"
